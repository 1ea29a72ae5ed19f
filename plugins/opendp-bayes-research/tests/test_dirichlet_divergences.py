"""Divergences of Dirichlet distributions against integrals."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, dirichlet

from opendp_bayes.mathematics.exponential.hellinger import bhattacharyya_angle, hellinger_distance
from opendp_bayes.mathematics.validation import LARGEST_CONCENTRATION, SMALLEST_PRIOR
from opendp_bayes_research.dirichlet_divergences import kullback_leibler, total_variation

#: Of the second both are larger: two crossings.
PAIRS = [((6.0, 6.0), other) for other in ((7.0, 5.0), (9.0, 8.0), (4.0, 2.5))]
PAIRS += [((3.0, 9.0), (3.0, 5.0)), ((0.5, 3.0), (0.7, 0.2))]
PAIRS += [((51.0, 51.0), (40.0, 62.0)), ((1.0, 101.0), (101.0, 1.0))]


def half_of_the_difference(a: tuple[float, float], b: tuple[float, float]) -> float:
    def difference(x: float) -> float:
        return abs(beta.pdf(x, *a) - beta.pdf(x, *b)) / 2

    edges = np.unique([0.0, *np.linspace(0.001, 0.999, 60), 1.0])
    pieces = itertools.pairwise(edges)
    return sum(quad(difference, low, high, limit=200)[0] for low, high in pieces)


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_total_variation(a: tuple[float, float], b: tuple[float, float]) -> None:
    found = float(total_variation(np.array(a), np.array(b)))
    assert found == pytest.approx(half_of_the_difference(a, b), abs=2e-5)
    assert found == pytest.approx(float(total_variation(np.array(b), np.array(a))), rel=1e-9)


def test_total_variation_of_one_with_itself_is_zero() -> None:
    assert total_variation(np.array([2.0, 3.0]), np.array([[2.0, 3.0], [2.0, 3.5]]))[0] == 0


def test_the_integral_notices_another_parameter() -> None:
    """Negative control."""
    a, b = PAIRS[0]
    other = float(total_variation(np.array(a), np.array((7.1, 4.9))))
    assert abs(other - half_of_the_difference(a, b)) > 1e-3


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
    largest = {kullback_leibler: np.inf, total_variation: 1.0, hellinger_distance: 1.0}
    for distance, most in (largest | {bhattacharyya_angle: np.pi / 2}).items():
        found = distance(a, b)
        assert np.all((found >= 0) & (found <= most * (1 + 1e-15))), distance
        assert not found[same].any()
