"""Moments that do not exist, and errors of what is known by draws."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy import special

from opendp_bayes import GaussianParameters, KNormParameters, LaplaceParameters, combine
from opendp_bayes.mechanisms import HellingerExponential
from tests.helpers import brute_force
from tests.helpers.shortened import interpolate_less

MECHANISMS = {
    "Laplace": LaplaceParameters(0.4),
    "K-norm": KNormParameters(0.3),
    "Gaussian": GaussianParameters(0.5),
    "Hellinger": HellingerExponential(0.05),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.01, 2.0, 2.5])
def test_a_ratio_is_finite_where_its_denominator_may_be(name, alpha, release):
    """Any data set may be behind a draw, also one without records of the second category, however
    little that weighs: `1 / θ` has a mean above 1 and a variance above 2 of the prior alone.
    """
    size = 2000
    made = release(MECHANISMS[name], (800, 1200), size, (3.0, alpha)).posterior
    for found in (made.ratio("a", "b"), made.odds("a")):
        assert np.isinf(found.mean()) == (alpha <= 1)
        assert np.isinf(found.std()) == (alpha <= 2)
        assert found.median() == pytest.approx(803 / (1200 + alpha), rel=0.1)
        assert np.isfinite(found.interval()).all()
    assert np.isfinite(made.ratio("b", "a").std())


def test_finite_moments_near_the_edge(release):
    """Against sums over all data sets."""
    made = release(LaplaceParameters(1.5), (9, 2), 11, (0.7, 2.2))
    sets, weights = brute_force.data_sets(made)
    a, b = (np.array(made.prior) + sets).T
    mean = weights @ (a / (b - 1))
    second = weights @ (a * (a + 1) / (b - 1) / (b - 2))
    found = made.posterior.ratio("a", "b")
    assert found.mean() == pytest.approx(mean, rel=1e-3)
    assert found.std() == pytest.approx(np.sqrt(second - mean**2), rel=1e-2)
    right = weights @ special.betainc(a, b, found.median() / (1 + found.median()))
    assert right == pytest.approx(0.5, abs=1e-3)


@dataclass(frozen=True)
class Kept:
    """Draws `scale` records at random: who is drawn is there."""

    scale: float
    name: ClassVar[str] = "kept"

    def log_likelihood(self, released, counts, prior):
        ways = special.gammaln(counts + 1) - special.gammaln(np.maximum(counts - released, 0) + 1)
        return np.where((counts >= released).all(axis=1), ways.sum(axis=1), -np.inf)


def test_a_mechanism_without_a_law_may_exclude_data_sets(release):
    """Two records of the second category were drawn, so that no data set is without them."""
    found = release(Kept(5.0), (3, 2), 9, (1.0, 0.5)).posterior.ratio("a", "b")
    assert np.isfinite(found.mean())
    assert np.isfinite(found.std())


@pytest.fixture
def union(release):
    rows = [((6, 3, 4, 2), 15), ((5, 5, 1, 3), 14)]
    noise = KNormParameters(1.0)
    made = [release(noise, drawn, size, (2.5, 3.0, 4.0, 2.0)) for drawn, size in rows]
    return combine(made, records="different")


def test_the_errors_of_draws_are_what_they_are(release, union, monkeypatch):
    """Over 60 other lists of draws a mean spreads as its standard error says, within a factor of
    1.5 (chi-squared: false alarm below 1e-4); that of single Dirichlets, which are averaged,
    spreads less.
    """
    from opendp_bayes.inference.engines import IndependentDraws

    truth = union._engine
    means, errors = [], []
    for seed in range(60):
        drawn = IndependentDraws(
            truth.sample(400, np.random.default_rng(seed)), prior=np.array(union.prior)
        )
        one = union._made(drawn, union.categories)
        found = one.merged({"ab": ["a", "b"]}).odds("ab")
        means.append(found.mean())
        errors.append(found.standard_error)
    assert 0.2 * np.mean(errors) < np.std(means) < 1.5 * np.mean(errors)


def test_markov_chains_and_weighted_draws_tell_their_size(release, monkeypatch):
    interpolate_less(monkeypatch)
    big = release(HellingerExponential(0.02), (300, 200, 200), 700, (0.7, 1.5, 2.0)).posterior
    ess = big.diagnostics.ess.min()
    for found in (
        big.odds("a"),
        big.ratio("a", "b"),
        big.cumulative()["a"],
        big.difference("a", "b"),
    ):
        assert found.draws <= ess + 1e-9
        assert found.standard_error >= found.std() / np.sqrt(ess) * (1 - 1e-9)
        assert found.probability().standard_error > 0
