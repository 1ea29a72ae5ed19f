"""The bound `1 + sqrt(1 + gamma^2)` on ranges, and the facts of its proof (proofs.md, "EHDS")."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.exponential.sensitivity import smooth_sensitivities
from opendp_bayes.mathematics.simplex import candidates
from tests.helpers import oracles
from tests.helpers.sweeps import slow, some_of

#: Relative; distances are within 2^-45.
ROUNDING = 1e-12


def random_triples(rng, k, number):
    """Priors from 1e-100 and counts of one total, `(number, k)` and `(3, number, k)`."""
    prior = 10 ** rng.uniform(rng.choice([-100.0, -6.0, -1.0]), 2, size=(number, k))
    size = 10 ** rng.integers(0, 6, size=number)
    counts = np.stack(
        [rng.multinomial(size, rng.dirichlet(np.full(k, 0.2), size=number)) for _ in range(3)]
    )
    near = rng.random(number) < 0.5
    for other in (1, 2):  # neighbours of the first, where it has a record to move
        i, j = rng.integers(k, size=number), rng.integers(k, size=number)
        moved = counts[0].copy()
        moved[np.arange(number), i] -= 1
        moved[np.arange(number), j] += 1
        counts[other] = np.where((near & (moved.min(axis=1) >= 0))[:, None], moved, counts[other])
    return prior, counts.astype(np.float64)


def root_divergence(prior: Any, first: Any, second: Any) -> oracles.Floats:
    """`sqrt(D)`, `D = -ln BC`, from counts: floats of a tiny prior plus a count lose them."""
    return np.asarray(
        np.sqrt(
            gap_above(prior + np.minimum(first, second), np.abs(first - second) / 2).sum(axis=-1)
        )
    )


def angle(u: oracles.Floats) -> oracles.Floats:
    """`arcsin H` for `H^2 = 1 - exp(-u^2)`, a concave function of u."""
    return np.arctan2(np.sqrt(-np.expm1(-(u**2))), np.exp(-(u**2) / 2))


def largest_excess(of: Any, seed: int, k: int) -> float:
    """The largest `d(a, c) / (d(a, b) + d(b, c))` over triples, in all three arrangements."""
    prior, counts = random_triples(np.random.default_rng(seed), k, 20_000)
    sides = [of(root_divergence(prior, counts[i], counts[j])) for i, j in ((0, 1), (1, 2), (0, 2))]
    worst = 0.0
    for index in range(3):
        long, rest = sides[index], sides[index - 1] + sides[index - 2]
        worst = max(worst, float(np.max(long[rest > 0] / rest[rest > 0])))
    return worst


@pytest.mark.parametrize(("k", "seed"), some_of(product([2, 3, 6], [0, 1, 2]), 4))
def test_the_root_of_the_divergence_is_a_metric(seed: int, k: int) -> None:
    assert largest_excess(lambda u: u, seed, k) <= 1 + ROUNDING
    assert largest_excess(angle, seed, k) <= 1 + ROUNDING


@pytest.mark.parametrize("power", [1.1, 1.5, 2.0])
def test_notices_what_is_no_metric(power: float) -> None:
    """Negative control: a larger power violates the inequality on the same triples."""
    assert max(largest_excess(lambda u: u**power, seed, 3) for seed in (0, 1, 2)) > 1 + 1e-3


def test_roots_and_gaps_of_the_divergence() -> None:
    """Single coordinates: three concentrations in arithmetic progression, far and tiny. `eta(u)
    = sqrt(1 - exp(-u^2))` has `eta'^2 + eta^2 <= 1`: its arcsine grows like u.
    """
    for start in (1e-12, 0.01, 1.0, 1000.0):
        for step in (0.001, 1.0, 100.0):
            values = [oracles.real(start) + oracles.real(step) * i for i in range(3)]

            def distance(a, b):
                return ((a.lgamma() + b.lgamma()) / 2 - ((a + b) / 2).lgamma()).sqrt()

            near, far = (distance(values[0], values[at]) for at in (1, 2))
            other = (
                (values[1].lgamma() + values[2].lgamma()) / 2
                - ((values[1] + values[2]) / 2).lgamma()
            ).sqrt()
            assert far < near + other
    u = np.geomspace(1e-6, 6, 2000)
    eta = np.sqrt(-np.expm1(-(u**2)))
    slope = u * np.exp(-(u**2)) / eta
    assert np.all(slope**2 + eta**2 <= 1 + 1e-15)
    assert np.all(np.diff(np.diff(angle(np.linspace(0, 6, 500)))) <= 1e-15)
    prior, counts = random_triples(np.random.default_rng(4), 3, 200)
    sane = (prior > 1e-3).all(axis=1)
    plain = np.sqrt(
        gap_above(prior + np.minimum(counts[0], counts[1]), np.abs(counts[1] - counts[0]) / 2).sum(
            axis=-1
        )
    )
    np.testing.assert_allclose(
        root_divergence(prior, counts[0], counts[1])[sane], plain[sane], rtol=1e-8
    )


def ends(size, prior, gamma, widths=None):
    """The largest range over r of `H / S - H' / S'`, and its ends where `S <= S'`."""
    sets = candidates(size, prior.size)
    divergence = np.zeros((len(sets), len(sets)))
    for i, alpha in enumerate(prior):
        column = sets[:, i]
        divergence += gap_above(
            alpha + np.minimum(column[:, None], column), np.abs(column[:, None] - column) / 2
        )
    smooth = smooth_sensitivities(size, prior, gamma=gamma) if widths is None else widths
    scores = distance_from_divergence(divergence) / smooth[:, None]
    first, second = np.nonzero(np.abs(sets[:, None] - sets[None]).sum(axis=-1) == 2)
    difference = scores[first] - scores[second]
    lowest, highest = difference.min(axis=1), difference.max(axis=1)
    smaller = smooth[first] <= smooth[second]
    of = highest[smaller].max()
    return (float(np.max(highest - lowest)), float(lowest[smaller].min()), float(of))


def random_spaces(seed: int, number: int) -> Any:
    rng = np.random.default_rng(seed)
    for _ in range(number):
        k = 2 if rng.random() < 0.6 else 3
        size = int(rng.integers(1, {2: 80, 3: 9}[k] + 1))
        prior = 10 ** rng.uniform(-6, 2, size=k)
        if rng.random() < 0.5:
            prior[:] = prior[0]
        yield size, prior, float(10 ** rng.uniform(-3, 1.5))


def check_range(seed: int, number: int) -> float:
    """The largest observed part of the bound."""
    tightest = 0.0
    for size, prior, gamma in random_spaces(seed, number):
        spread, lowest, highest = ends(size, prior, gamma)
        bound = 1 + math.sqrt(1 + gamma**2)
        assert spread <= bound * (1 + ROUNDING), f"n = {size}, prior {prior}, gamma = {gamma}"
        assert lowest >= -1 - ROUNDING
        assert highest <= math.sqrt(1 + gamma**2) * (1 + ROUNDING)
        tightest = max(tightest, spread / bound)
    return tightest


@pytest.mark.parametrize(
    ("seed", "number", "attained"), [(0, 250, 0.999), *slow([(1, 6000, 0.9999)])]
)
def test_the_range_of_the_score(seed: int, number: int, attained: float) -> None:
    assert attained < check_range(seed, number) <= 1 + ROUNDING


def test_a_smaller_constant_and_a_sensitivity_that_is_not_smooth_are_noticed() -> None:
    """Negative controls: neither `2`, without γ, nor a factor 0.9 on the root; and the papers'
    `2 (1 + γ)` is far away. The bound is attained as γ becomes small; at γ = 1 the largest
    range found is 0.887 of it, at γ = 3 it is 0.625. Negative control: with the local
    sensitivity, or half the smooth one, in its place.
    """
    spread, _, _ = ends(12, np.full(3, 15.17), 1.0)
    assert 2.1 < spread < 1 + math.sqrt(2)
    spread, _, _ = ends(30, np.full(2, 5e-4), 0.02)
    assert spread > 1 + 0.9 * math.sqrt(1 + 0.02**2)
    assert spread / (1 + math.sqrt(1 + 0.02**2)) > 0.999
    prior, gamma = np.full(2, 0.01), 0.02
    smooth = smooth_sensitivities(60, prior, gamma=gamma)
    local = smooth_sensitivities(60, prior, gamma=1e6)
    bound = 1 + math.sqrt(1 + gamma**2)
    assert ends(60, prior, gamma, smooth)[0] <= bound * (1 + ROUNDING)
    assert ends(60, prior, gamma, local)[0] > 1.1 * bound
    assert ends(60, prior, gamma, smooth / 2)[0] > 1.9 * bound
