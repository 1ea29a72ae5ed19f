"""Importance sampling of κ and m, for posteriors that are known."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.pooling.hyperparameters import Priors
from opendp_bayes.inference.pooling.pooled_draws import Proposals, Target, draws_of
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

LIMIT = stats.norm.isf(oracles.FALSE_ALARM / 2)


class Nothing:
    """Evidence that says nothing, in three terms."""

    def terms(self, a):
        return np.zeros(3)

    def counts(self, a, number, rng):
        return np.zeros((number, 1, a.size), dtype=np.int64), 0.0


class Some(Nothing):
    """Evidence as of m alone: so many records of each category, a term for each."""

    def __init__(self, counts):
        self._labels = np.repeat(np.arange(len(counts)), counts)

    def terms(self, a):
        return np.log(a / a.sum())[self._labels]


@pytest.mark.parametrize(
    ("kappa", "k"), some_of(product([stats.fisk(1, scale=10), stats.gamma(30, scale=1)], [2, 5]), 2)
)
def test_draws_are_of_the_prior_where_nothing_is_said(kappa, k):
    """Of κ with its tail, and of m."""
    beta = np.linspace(1, 3, k)
    draws, _ = draws_of(
        Nothing(), Priors(kappa, beta), beta / beta.sum(), 2000, np.random.default_rng(0)
    )
    every = draws.reshape(-1, k)
    off = [np.mean(every.sum(axis=1) < kappa.ppf(level)) - level for level in (0.05, 0.5, 0.95)]
    assert np.max(np.abs(off)) < LIMIT * 0.5 / np.sqrt(2000)
    m = every / every.sum(axis=1, keepdims=True)
    wanted = stats.dirichlet(beta)
    error = np.sqrt(wanted.var() / 2000)
    assert np.max(np.abs(m.mean(axis=0) - wanted.mean()) / error) < LIMIT
    assert np.max(np.abs(m.mean(axis=0) - stats.dirichlet(beta[::-1]).mean()) / error) > LIMIT


def test_many_categories_are_drawn():
    k = 20
    counts, priors = np.arange(1, k + 1), Priors(stats.fisk(1, scale=10), np.ones(k))
    shares = (1 + counts) / (1 + counts).sum()
    draws, _ = draws_of(Some(counts), priors, shares, 300, np.random.default_rng(0))
    m = (draws / draws.sum(axis=2, keepdims=True)).reshape(-1, k)
    wanted = stats.dirichlet(1 + counts)
    assert np.max(np.abs(m.mean(axis=0) - wanted.mean()) / np.sqrt(wanted.var() / 300)) < LIMIT


def test_draws_have_the_density_that_is_said():
    """So the weights of draws of one law, for another, are 1 on average."""
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 3, 4)
    first = Proposals(
        grid, np.array([0.1, 0.2, 0.3, 0.4]), np.zeros((4, 2)), np.tile(np.eye(2), (4, 1, 1))
    )
    factors = np.tile([[0.8, 0.0], [0.3, 0.9]], (4, 1, 1))
    second = Proposals(grid, np.full(4, 0.25), np.full((4, 2), 0.3), factors)
    drawn = first.draw(40_000, rng)
    ratio = np.exp(second.log_density(drawn) - first.log_density(drawn))
    error = ratio.std() / np.sqrt(len(ratio))
    assert abs(ratio.mean() - 1) < LIMIT * error
    # Negative control: another width.
    wide = Proposals(grid, np.full(4, 0.25), np.full((4, 2), 0.3), 1.2 * factors)
    wrong = np.exp(wide.log_density(drawn) + np.log(1.2**2) - first.log_density(drawn))
    assert abs(wrong.mean() - 1) > LIMIT * error


def test_proposals_reach_as_far_as_kappa_may():
    """The upper tail of its posterior, where groups are all alike, is that of the prior."""
    priors = Priors(stats.fisk(1, scale=10), np.ones(2))
    grid = Target(Nothing(), priors).proposals(np.array([0.5, 0.5])).grid
    assert grid[0] < np.log(priors.kappa.ppf(0.002))
    assert grid[-1] > np.log(priors.kappa.ppf(0.998))


def test_copies_are_not_taken_for_more_draws():
    """Where few draws have all the weight the effective ones are few."""

    class Narrow(Nothing):
        def terms(self, a):
            return np.array([-1e3 * (np.log(a.sum() / 10) - np.sin(40 * a[0] / a.sum())) ** 2])

    from opendp_bayes.inference.pooling.pooled_draws import diagnostics_of

    priors = Priors(stats.fisk(1, scale=10), np.ones(2))
    draws, _ = draws_of(Narrow(), priors, np.array([0.5, 0.5]), 100, np.random.default_rng(0))
    found = diagnostics_of(draws)
    assert found.ess.min() < draws.shape[0] * draws.shape[1] / 4
