"""Dirichlet-multinomial counts that keep their quantiles while the concentration moves."""

import numpy as np
import pytest
from scipy import special, stats

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling import counts_at_quantiles as module
from opendp_bayes.inference.pooling.counts_at_quantiles import Standing
from opendp_bayes.inference.pooling.rising import Rising
from opendp_bayes.mathematics.simplex import candidates, ranks
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from tests.helpers import oracles

ROWS = 6000
A, OTHER = (
    np.array([[0.3, 2.0, 1.1], [4.0, 0.7, 9.0]]),
    np.array([[1.4, 0.6, 2.0], [2.0, 1.5, 3.0]]),
)


def looks(counts, drawn=0, noised=False):
    """The same draws of every row."""
    noise = DiscreteLaplace(1.5)
    return DrawnCounts.of(np.broadcast_to(drawn, counts.shape), noise, noised)


def drawn(a, size, rng):
    """Rows of two chains in turn."""
    chain = np.arange(ROWS) % 2
    theta = rng.standard_gamma(a[chain])
    return rng.multinomial(size, theta / theta.sum(axis=1, keepdims=True)), chain


def log_probability(counts, a):
    n = counts.sum(axis=-1)
    each = special.gammaln(counts + a) - special.gammaln(a) - special.gammaln(counts + 1.0)
    kappa = a.sum(axis=-1)
    all_of = special.gammaln(kappa) + special.gammaln(n + 1.0) - special.gammaln(kappa + n)
    return each.sum(axis=-1) + all_of


@pytest.mark.parametrize(("size", "points", "k"), [(9, 128, 3), (40, 8, 2)])
def test_moves_one_law_to_another(monkeypatch, size, points, k):
    """Counts of the first law, moved and weighed, are of the second: with a stride, too."""
    monkeypatch.setattr(module, "_POINTS", points)
    first, second = A[:, :k], OTHER[:, :k]
    counts, chain = drawn(first, size, np.random.default_rng(1))
    standing = Standing(counts, chain, first, looks(counts), np.random.default_rng(2))
    moved = standing.moved(second)
    assert np.all(moved.counts.sum(axis=1) == size)
    assert np.all(moved.counts >= 0)
    weight = np.exp(moved.log_weight - standing.placed.log_weight)
    if points > size:
        assert weight == pytest.approx(1.0)
    else:
        assert np.all((moved.counts - counts) % (1 + size // points) == 0)
    for which, other in ((second, False), (first, True)):  # the second is the negative control
        worst = 0.0
        for of in (0, 1):
            rows, w = moved.counts[chain == of], weight[chain == of]
            for j in range(k):
                mass = stats.betabinom(size, which[of, j], which[of].sum() - which[of, j])
                inside = rows[:, j] <= mass.median()
                off = (w * (inside - mass.cdf(mass.median()))).mean()
                worst = max(worst, abs(off) / (w.std() + 0.5) * np.sqrt(len(w)))
        assert (worst > stats.norm.isf(oracles.FALSE_ALARM / 12)) == other


@pytest.mark.parametrize("points", [128, 4])
@pytest.mark.parametrize(
    "noised", [[True, True, True], [True, False, True], [False, True, False], [False, False, True]]
)
def test_moves_one_posterior_to_another(monkeypatch, noised, points):
    """The same, given what was drawn, by all counts of 9 records; the weights' mean is the ratio of
    the probabilities of what was drawn. Without a stride and with one of 3.
    """
    monkeypatch.setattr(module, "_POINTS", points)
    sets, seen = candidates(9, 3), np.array([7, -2, 3])
    log_noise = np.where(noised, DiscreteLaplace(1.5).log_mass(seen - sets), 0.0).sum(axis=1)
    before, after = (np.exp(log_probability(sets, a[0]) + log_noise) for a in (A, OTHER))
    rng = np.random.default_rng(5)
    counts = sets[rng.choice(len(sets), 4 * ROWS, p=before / before.sum())]
    chain = np.zeros(len(counts), dtype=int)
    standing = Standing(counts, chain, A[:1], looks(counts, seen, noised), rng)
    moved = standing.moved(OTHER[:1])
    weight = np.exp(moved.log_weight - standing.placed.log_weight)
    weight *= moved.inside & standing.placed.inside

    def off(wanted, weight):
        """In standard errors, of what has more than 20 rows."""
        at = ranks(moved.counts, 9)
        found, square = (np.bincount(at, weight**power, len(sets)) for power in (1, 2))
        many = np.bincount(at, minlength=len(sets)) > 20
        wanted = wanted * len(counts) / before.sum()
        return np.abs((found - wanted) / np.sqrt(np.maximum(square, 1e-9)))[many].max()

    assert off(after, weight) < stats.norm.isf(oracles.FALSE_ALARM / 110)
    assert off(before, weight) > 10
    assert off(after, np.full(len(counts), after.sum() / before.sum())) > 10


def test_stays_where_the_law_stays():
    counts, chain = drawn(A, 300, np.random.default_rng(3))
    standing = Standing(counts, chain, A, looks(counts), np.random.default_rng(4))
    again = standing.moved(A)
    inside = standing.placed.inside
    assert np.array_equal(standing.placed.counts, counts)
    assert np.array_equal(again.counts[inside], counts[inside])
    assert np.array_equal(again.log_weight, standing.placed.log_weight)
    assert inside.mean() > 0.99


def test_weights_are_those_of_the_probabilities():
    """Of a group with two records a count: where it can be, each second count is skipped."""
    a, chain = np.array([[1.5, 0.4]]), np.zeros(1, dtype=int)
    counts = np.array([[61, 139]])
    standing = Standing(counts, chain, a, looks(counts), np.random.default_rng(0))
    odd = np.arange(1, 200, 2)
    alike = np.exp(log_probability(np.stack([odd, 200 - odd], axis=1), a)).sum()
    assert np.exp(standing.placed.log_weight) == pytest.approx(alike)


def test_counts_out_of_place_are_noticed():
    """One that no probability is left for."""
    counts, chain = np.array([[0, 90], [90, 0]]), np.zeros(2, dtype=int)
    a, rng = np.array([[900.0, 0.01]]), np.random.default_rng(0)
    standing = Standing(counts, chain, a, looks(counts), rng)
    assert standing.placed.inside.tolist() == [False, True]


def rising_of(counts, a):
    return special.gammaln(counts + a) - special.gammaln(a) - special.gammaln(counts + 1.0)


@pytest.mark.parametrize("kappa", [1e9, 1e15, 1e30])
def test_groups_that_hardly_differ_are_binomial(kappa):
    """`ln Γ(κ)` has no digits left for what one more record changes."""
    a, chain = np.array([[0.3, 0.7]]) * kappa, np.zeros(41, dtype=int)
    counts = np.arange(41)
    both = np.stack([counts, 40 - counts], axis=1)
    standing = Standing(both, chain, a, looks(both), np.random.default_rng(0))
    law = stats.binom(40, 0.3)
    upto = law.cdf(counts)
    inside = standing.placed.inside
    assert np.array_equal(inside, law.pmf(counts) > module._LEAST)
    assert np.all(standing._shares[inside, 0] <= upto[inside] + 1e-7)
    assert np.all(standing._shares[inside, 0] >= (upto - law.pmf(counts))[inside] - 1e-7)


def test_rising_is_the_same_from_a_table():
    a = np.array([[0.3, 7.0], [2.5, 1e-4]])
    counts = np.random.default_rng(0).integers(0, 30, size=(2, 50, 2))
    chain, column = np.arange(2)[:, None, None], np.arange(2)
    rising = Rising(a)
    few = rising(counts[:, :1], chain, column)
    assert rising._table.size == 0
    many = rising(counts, chain, column)
    assert rising._table.size > 0
    wanted = rising_of(counts, a[:, None])
    assert many == pytest.approx(wanted, rel=1e-13, abs=1e-13)
    assert few == pytest.approx(wanted[:, :1], rel=1e-13, abs=1e-13)
