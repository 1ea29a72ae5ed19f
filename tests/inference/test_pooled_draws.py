"""Importance sampling of κ and m, for posteriors that are known."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.pooling.pooled_draws import Priors, Target, draws_of
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

LIMIT = stats.norm.isf(oracles.FALSE_ALARM / 2)


class Nothing:
    """Evidence that says nothing."""

    def log_p(self, a):
        return 0.0

    def counts(self, a, number, rng):
        return np.zeros((number, 1, a.size), dtype=np.int32), 0.0


class Some(Nothing):
    """Evidence as of m alone: so many records of each category."""

    def __init__(self, counts):
        self._counts = counts

    def log_p(self, a):
        return float(self._counts @ np.log(a / a.sum()))


@pytest.mark.parametrize(
    ("kappa", "k"), some_of(product([stats.fisk(1, scale=10), stats.gamma(30, scale=1)], [2, 5]), 2)
)
def test_draws_are_of_the_prior_where_nothing_is_said(kappa, k):
    """Of κ with its tail, and of m."""
    beta = np.linspace(1, 3, k)
    every, *_ = draws_of(
        Nothing(), Priors(kappa, beta), beta / beta.sum(), 2000, np.random.default_rng(0)
    )
    off = [np.mean(every.sum(axis=1) < kappa.ppf(level)) - level for level in (0.05, 0.5, 0.95)]
    assert np.max(np.abs(off)) < LIMIT * 0.5 / np.sqrt(2000)
    m = every / every.sum(axis=1, keepdims=True)
    wanted = stats.dirichlet(beta)
    error = np.sqrt(wanted.var() / 2000)
    assert np.max(np.abs(m.mean(axis=0) - wanted.mean()) / error) < LIMIT
    assert np.max(np.abs(m.mean(axis=0) - stats.dirichlet(beta[::-1]).mean()) / error) > LIMIT


@pytest.mark.parametrize("most", [20, 400])
def test_many_categories_are_drawn(most):
    """Also those that hardly differ from empty ones."""
    k = 20
    counts, priors = np.linspace(0, most, k), Priors(stats.fisk(1, scale=10), np.ones(k))
    draws, _, worth = draws_of(
        Some(counts), priors, np.full(k, 1 / k), 300, np.random.default_rng(0)
    )
    m = draws / draws.sum(axis=1, keepdims=True)
    wanted = stats.dirichlet(1 + counts)
    assert worth >= 300
    assert np.max(np.abs(m.mean(axis=0) - wanted.mean()) / np.sqrt(wanted.var() / 300)) < LIMIT


def test_proposals_reach_as_far_as_kappa_may():
    """The upper tail of its posterior, where groups are all alike, is that of the prior."""
    priors = Priors(stats.fisk(1, scale=10), np.ones(2))
    edges = Target(Nothing(), priors).proposals(np.array([0.5, 0.5])).edges
    assert edges[0] < np.log(priors.kappa.ppf(0.002))
    assert edges[-1] > np.log(priors.kappa.ppf(0.998))


def test_copies_are_not_taken_for_more_draws():
    """Where few draws have all the weight the effective ones are few."""

    class Narrow(Nothing):
        def log_p(self, a):
            return -1e3 * (np.log(a.sum() / 10) - np.sin(40 * a[0] / a.sum())) ** 2

    priors = Priors(stats.fisk(1, scale=10), np.ones(2))
    draws, _, worth = draws_of(
        Narrow(), priors, np.array([0.5, 0.5]), 100, np.random.default_rng(0)
    )
    assert worth < 2 * len(np.unique(draws[:, 0]))


def test_weights_of_counts_cost_draws_and_are_used():
    """Counts of 1 weigh nine times as much as those of 0, of which as many are drawn."""

    class Weighing(Nothing):
        def counts(self, a, number, rng):
            count = int(rng.integers(2))
            return np.full((number, 1, a.size), count, dtype=np.int32), np.log(9.0) * count

    priors = Priors(stats.gamma(3, scale=2), np.ones(2))
    draws, counts, worth = draws_of(
        Weighing(), priors, np.array([0.5, 0.5]), 400, np.random.default_rng(0)
    )
    assert worth >= 400
    assert len(draws) == len(counts)
    assert counts.mean() == pytest.approx(0.9, abs=LIMIT * 0.3 / 20)
