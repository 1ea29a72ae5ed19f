"""Draws of pooled groups, and the law of their hyperparameters."""

from itertools import product

import numpy as np
import pytest
from scipy import integrate, special, stats

from opendp_bayes.inference.pooling.pooled_draws import Proposals, Target, concentrations, draws_of
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

LIMIT = stats.norm.isf(oracles.FALSE_ALARM / 2)
#: A prior of κ that goes far.
FAR = stats.fisk(1, scale=10)


class Nothing:
    """Evidence that says nothing."""

    def log_p(self, a):
        return 0.0

    def counts(self, a, number, rng):
        return np.zeros((number, 1, a.size), dtype=np.int32)


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
    target = Target(Nothing(), kappa, beta)
    every, *_ = draws_of(target, beta / beta.sum(), 2000, np.random.default_rng(0))
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
    counts = np.linspace(0, most, k)
    target = Target(Some(counts), FAR, np.ones(k))
    draws, _, worth = draws_of(target, np.full(k, 1 / k), 300, np.random.default_rng(0))
    m = draws / draws.sum(axis=1, keepdims=True)
    wanted = stats.dirichlet(1 + counts)
    assert worth >= 300
    assert np.max(np.abs(m.mean(axis=0) - wanted.mean()) / np.sqrt(wanted.var() / 300)) < LIMIT


def test_proposals_reach_far_and_copies_are_not_taken_for_more_draws():
    """The upper tail of its posterior, where groups are all alike, is that of the prior. Where
    few draws have all the weight the effective ones are few.
    """
    edges = Target(Nothing(), FAR, np.ones(2)).proposals(np.array([0.5, 0.5])).edges
    assert edges[0] < np.log(FAR.ppf(0.002))
    assert edges[-1] > np.log(FAR.ppf(0.998))

    class Narrow(Nothing):
        def log_p(self, a):
            return -1e3 * (np.log(a.sum() / 10) - np.sin(40 * a[0] / a.sum())) ** 2

    target = Target(Narrow(), FAR, np.ones(2))
    draws, _, worth = draws_of(target, np.array([0.5, 0.5]), 100, np.random.default_rng(0))
    assert worth < 2 * len(np.unique(draws[:, 0]))


BETA = np.array([0.7, 2.0, 1.3])
KAPPA = stats.gamma(2, scale=5)


def test_the_density_of_coordinates_is_that_of_the_priors():
    """With its volume: the mass of a part of all m is that under the Dirichlet distribution."""

    def mass(beta, below):
        target = Target(Nothing(), KAPPA, beta)

        def density(z):
            log_m = np.array([[special.log_expit(z), special.log_expit(-z)]])
            return np.exp(target.log_density(np.log([5.0]), log_m)[0])

        low, every = (integrate.quad(density, -30, end)[0] for end in (below, 30))
        return low / every

    beta = np.array([0.8, 2.5])
    wanted = stats.beta(*beta).cdf(0.3)
    assert mass(beta, np.log(0.3 / 0.7)) == pytest.approx(wanted, abs=1e-6)
    assert abs(mass(beta + 1, np.log(0.3 / 0.7)) - wanted) > 0.01  # another prior is noticed

    def of_kappa(v):
        target = Target(Nothing(), KAPPA, BETA)
        return np.exp(target.log_density(np.array([v]), np.zeros((1, 3)))[0])

    assert integrate.quad(of_kappa, -20, np.log(8.0))[0] == pytest.approx(KAPPA.cdf(8.0))


def test_concentrations_keep_to_their_prior():
    for log_kappa, bound in ((-900.0, 1e-25), (900.0, 1e120)):
        found = concentrations(np.array(log_kappa), np.zeros(1))
        assert found == pytest.approx(bound)
    target = Target(Nothing(), stats.uniform(1, 4), BETA)
    low, *_, high = target.proposals(np.full(3, 1 / 3)).edges
    assert 0 < low < 0.01 < 1.6 < high < np.log(5)
    log_p = target.log_density(np.array([1.0, 2.0]), np.zeros((2, 3)))
    assert np.isfinite(log_p[0])
    assert log_p[1] == -np.inf


def laws(shapes, modes=0.0, shares=(0.1, 0.2, 0.3, 0.4)):
    """In four intervals."""
    shape = 4, np.size(shapes)
    both = (np.broadcast_to(np.asarray(of, dtype=float), shape) for of in (modes, shapes))
    return Proposals(np.linspace(0, 2, 5), np.array(shares), *both)


def test_proposals_are_dirichlet_and_draws_have_their_density():
    """So the weights of draws of one law, for another, are 1 on average."""
    beta = np.array([0.5, 2.0, 40.0])
    some = laws(beta, np.log(beta))
    log_kappa, log_m = some.draw(20_000, np.random.default_rng(0))
    wanted = stats.dirichlet(beta)
    off = (np.exp(log_m).mean(axis=0) - wanted.mean()) / np.sqrt(wanted.var() / 20_000)
    assert np.abs(off).max() < LIMIT
    assert np.histogram(log_kappa, some.edges)[0] == pytest.approx(20_000 * some.shares, abs=2)
    density = np.exp(log_m[:9] @ beta)
    found = np.exp(some.log_density(np.ones(9), log_m[:9]))
    assert found / density == pytest.approx(found[0] / density[0])
    first, second = laws([2.0, 3.0, 9.0]), laws([3.0, 4.0, 8.0], [0.3, 0.0, -0.2], (0.25,) * 4)
    drawn = first.draw(40_000, np.random.default_rng(0))

    def off(other):
        ratio = np.exp(other.log_density(*drawn) - first.log_density(*drawn))
        return abs(ratio.mean() - 1) / ratio.std() * np.sqrt(len(ratio))

    assert off(second) < LIMIT
    # Negative control: a law that is thought to be wider.
    wide = laws([1.5, 2.0, 4.0], [0.3, 0.0, -0.2], (0.25,) * 4)
    ratio = np.exp(wide.log_density(*drawn) - first.log_density(*drawn)) * 0.5
    assert abs(ratio.mean() - 1) / ratio.std() * np.sqrt(len(ratio)) > LIMIT
