"""The law of an error against the probabilities and draws of the mechanisms themselves."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, dirichlet

import opendp_bayes as ob
import opendp_bayes_research as research
from opendp_bayes.mathematics.validation import LARGEST_CONCENTRATION, SMALLEST_PRIOR
from opendp_bayes_research.error_law import kullback_leibler

MECHANISMS = [ob.LaplaceParameters(1.5), ob.LaplaceParameters(1.0, noise="floored")]
MECHANISMS += [ob.mechanisms.HellingerExponential(0.3), ob.mechanisms.PermuteAndFlip(0.3)]
MECHANISMS.append(ob.mechanisms.SmoothHellingerExponential(2.0, gamma=0.5))
PAIRS = [((6.0, 6.0), other) for other in ((7.0, 5.0), (9.0, 8.0), (4.0, 2.5))]
PAIRS += [((3.0, 9.0), (3.0, 5.0)), ((0.5, 3.0), (0.7, 0.2))]
PAIRS += [((51.0, 51.0), (40.0, 62.0)), ((1.0, 101.0), (101.0, 1.0))]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("counts", [[20, 10], [0, 30]])
def test_against_the_probabilities(mechanism: ob.Mechanism, counts: list[int]) -> None:
    released, log_p = mechanism.log_pmf(counts, 1.0)
    distance = ob.mechanisms.hellinger_distance(np.add(counts, 1.0), released + 1.0)
    law = research.error_law(mechanism, counts, 1.0)
    assert law.mean() == pytest.approx(float(np.exp(log_p) @ distance), abs=1e-6)
    for value in (0.0, 0.1, 0.3, 1.0):
        expected = np.exp(log_p)[distance <= value].sum()
        assert float(law.cdf(value)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("error", ["hellinger", "kl"])
def test_against_draws(error: str) -> None:
    """Within five standard errors (one run in 1.7 million fails), not at a scale 30 % larger."""
    counts, number = [60, 40], 4000
    mechanism = ob.KNormParameters(2.0)
    law = research.error_law(mechanism, counts, 1.0, error=error)
    wrong = research.error_law(ob.KNormParameters(2.6), counts, 1.0, error=error)
    drawn = mechanism.sample(counts, 1.0, number)
    values = {}
    for moved in np.unique(drawn[:, 0]):
        values[moved] = one_error([60, 40], [int(moved), 100 - int(moved)], error)
    sample = np.array([values[first] for first in drawn[:, 0]])
    tolerance = 5 * sample.std() / math.sqrt(number)
    assert abs(sample.mean() - law.mean()) < tolerance
    assert abs(sample.mean() - wrong.mean()) > tolerance


def one_error(counts: list[int], released: list[int], error: str) -> float:
    """By Riemann sums over the unit interval."""
    grid = (np.arange(20_000) + 0.5) / 20_000
    p = beta.logpdf(grid, counts[0] + 1, counts[1] + 1)
    q = beta.logpdf(grid, released[0] + 1, released[1] + 1)
    if error == "hellinger":
        return math.sqrt(max(1 - np.exp((p + q) / 2).mean(), 0.0))
    return float((np.exp(p) * (p - q)).mean())


def test_quantiles_and_what_is_simulated() -> None:
    law = research.error_law(ob.LaplaceParameters(1.0, noise="floored"), [50, 50], 1.0)
    distance = ob.mechanisms.hellinger_distance([51, 51], [[51, 51], [52, 50], [53, 49]])
    # P(H = 0) = 0.316, and with either neighbour 0.748.
    assert law.quantile(0.3) == 0
    assert law.quantile(0.5) == pytest.approx(distance[1])
    assert law.quantile(0.8) == pytest.approx(distance[2])
    assert law.cdf(law.quantile(0.8)) >= 0.8
    assert law.probabilities.sum() == pytest.approx(1.0)
    assert (np.diff(law.values) >= 0).all()
    assert research.error_law(ob.LaplaceParameters(20.0), [100] * 5, 1.0).simulated
    assert not research.error_law(ob.LaplaceParameters(2.0), [100] * 2, 1.0).simulated


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_kullback_leibler(a: tuple[float, float], b: tuple[float, float]) -> None:
    def integrand(x: float) -> float:
        return beta.pdf(x, *a) * (beta.logpdf(x, *a) - beta.logpdf(x, *b))

    edges = np.linspace(0, 1, 40)
    pieces = itertools.pairwise(edges)
    expected = sum(quad(integrand, low, high, limit=200)[0] for low, high in pieces)
    assert float(kullback_leibler(np.array(a), np.array(b))) == pytest.approx(expected, rel=1e-5)


def test_kullback_leibler_of_three_categories_by_simulation() -> None:
    """Within five standard errors of a mean over draws, which five in 10^7 seeds would miss."""
    a, b = np.array([4.0, 2.0, 7.0]), np.array([3.0, 5.0, 5.0])
    draws = dirichlet.rvs(a, size=20_000, random_state=1)
    ratios = dirichlet.logpdf(draws.T, a) - dirichlet.logpdf(draws.T, b)
    error = 5 * ratios.std() / np.sqrt(len(ratios))
    assert abs(float(kullback_leibler(a, b)) - ratios.mean()) < error
    assert abs(float(kullback_leibler(b, a)) - ratios.mean()) > error  # the other direction


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_no_distance_of_what_a_prior_may_be_is_lost_to_overflow() -> None:
    ends = SMALLEST_PRIOR, 1e-16, 1e-3, 1.0, 3.7, 1e3, 1e8, LARGEST_CONCENTRATION, 1e13
    rows = np.array(list(itertools.product(ends, repeat=2)))
    a, b = np.repeat(rows, len(rows), axis=0), np.tile(rows, (len(rows), 1))
    same = (a == b).all(axis=1)
    largest = {kullback_leibler: np.inf, ob.mechanisms.hellinger_distance: 1.0}
    for distance, most in largest.items():
        found = distance(a, b)
        assert np.all((found >= 0) & (found <= most * (1 + 1e-15))), distance
        assert not found[same].any()
