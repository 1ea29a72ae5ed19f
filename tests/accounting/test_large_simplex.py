"""The worst pair among many candidates, against all pairs over all candidates."""

import math
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.accounting import exact
from opendp_bayes.accounting.divergences import extremes
from opendp_bayes.accounting.exponential import enumeration, large_simplex
from opendp_bayes.accounting.exponential.large_simplex import (
    SUM_ERROR,
    _bounds,
    loss_of_pairs,
    worst_pair,
)
from opendp_bayes.accounting.pairs import pairs_of
from opendp_bayes.mechanisms.laws import ExponentialWeights
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers import oracles

ONES = (1.0, 1.0, 1.0)
SETTINGS = [
    (12, ONES),
    (9, (0.01, 0.01, 0.01)),
    (9, (0.3, 2.0, 0.3)),
    (8, (5.0, 0.1, 1.0)),
    (6, (1.0, 1.0, 1.0, 1.0)),
    (5, (0.2, 3.0, 3.0, 0.2)),
    (1, ONES),
]
MECHANISMS = [
    ob.mechanisms.HellingerExponential(0.4),
    ob.mechanisms.HellingerExponential(1.5, "local"),
    ob.mechanisms.SmoothHellingerExponential(1.1, gamma=0.2),
    ob.mechanisms.SmoothHellingerExponential(2.0, gamma=2.0),
    ob.mechanisms.SmoothHellingerExponential(1.0, beta=0.05),
]


def by_enumeration(mechanism: Any, size: int, prior: tuple[float, ...]) -> tuple[float, float]:
    pairs = pairs_of(Setting.of(mechanism, size, prior), Distance.of(1), 10**12)
    assert pairs is not None
    ends = [extremes(block) for block in pairs.blocks()]  # type: ignore[union-attr]
    epsilon = max(max(high.max(), -low.min()) for low, high in ends)
    return float(epsilon), float(max((high - low).max() for low, high in ends))


@pytest.mark.parametrize(("size", "prior"), SETTINGS)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_worst_pair(mechanism: Any, size: int, prior: tuple[float, ...]) -> None:
    law = ExponentialWeights(mechanism)
    found = worst_pair(law, size, prior)
    epsilon, spread = by_enumeration(mechanism, size, prior)
    assert found.pairs[0].epsilon == pytest.approx(epsilon, rel=1e-11, abs=SUM_ERROR)
    assert found.spread == pytest.approx(spread, rel=1e-11, abs=SUM_ERROR)
    # The pairs are of neighbours, and have these losses, the worst first.
    for pair in found.pairs:
        assert np.abs(np.subtract(pair.first, pair.second)).sum() == 2
        own = loss_of_pairs(law, size, prior, [(pair.first, pair.second)])
        assert own == pytest.approx(pair.epsilon, rel=1e-11, abs=SUM_ERROR)
    assert [pair.epsilon for pair in found.pairs] == sorted(
        (pair.epsilon for pair in found.pairs), reverse=True
    )
    assert len({pair.first for pair in found.pairs}) == len(found.pairs)


def test_bounds_hold_and_smaller_ones_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over random pairs and rates, the bounds are never below what they bound; halved ones hide the
    worst pair (negative control).
    """
    rng = np.random.default_rng(0)
    tightest = math.inf
    for _ in range(300):
        k, n = int(rng.integers(2, 5)), int(rng.integers(1, 8))
        prior = 10 ** rng.uniform(-2, 1, k)
        sets = np.array(oracles.data_sets(n, k))
        table = ob.mechanisms.hellinger_distance(sets[:, None] + prior, sets[None] + prior)
        near = np.abs(sets[:, None] - sets).sum(axis=2) == 2
        first, second = np.nonzero(near)
        pair = int(rng.integers(first.size))
        i, j = first[pair], second[pair]
        rate, other = 10 ** rng.uniform(-0.5, 1, 2)
        difference = rate * table[i] - other * table[j]
        above, below = _bounds(np.array([table[i, j]]), np.array([rate]), np.array([other]))
        assert difference.max() <= above[0] * (1 + large_simplex._SLACK)
        assert -difference.min() <= below[0] * (1 + large_simplex._SLACK)
        tightest = min(tightest, above[0] / max(difference.max(), 1e-300))
    assert tightest < 1.001  # some are attained

    law = ExponentialWeights(ob.mechanisms.SmoothHellingerExponential(1.1, gamma=0.2))
    honest = worst_pair(law, 12, ONES).pairs[0].epsilon
    monkeypatch.setattr(large_simplex, "_PAIRS", 1)

    def wrong(distance: Any, rate: Any, other: Any) -> Any:
        above, below = _bounds(distance, rate, other)
        order = np.argsort(np.argsort(above + below))  # the worst pairs seem the best
        return above * order[::-1] * 1e-3, below * order[::-1] * 1e-3

    monkeypatch.setattr(large_simplex, "_bounds", wrong)
    assert worst_pair(law, 12, ONES).pairs[0].epsilon < honest


def test_exact_loss_takes_this_way_for_many_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = ob.mechanisms.SmoothHellingerExponential(1.3, gamma=0.25)
    before = ob.exact_loss(mechanism, size=20, prior=ONES)
    monkeypatch.setattr(exact, "_RENYI_WORK", 0)
    for cached in (exact.loss_within, exact._examine):
        cached.cache_clear()
    after = ob.exact_loss(mechanism, size=20, prior=ONES)
    for cached in (exact.loss_within, exact._examine):
        cached.cache_clear()
    assert after.epsilon == pytest.approx(before.epsilon, rel=1e-9)
    assert after.epsilon >= by_enumeration(mechanism, 20, ONES)[0]
    assert after.range == pytest.approx(before.range, rel=1e-9)
    assert after.method == "exact"


def test_bounds_may_be_too_small_by_the_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    """By as much as they may be wrong: then the worst pair is still found. Not by more."""
    monkeypatch.setattr(large_simplex, "_PAIRS", 1)
    law = ExponentialWeights(ob.mechanisms.SmoothHellingerExponential(1.1, gamma=0.2))
    honest = worst_pair(law, 12, ONES).pairs[0].epsilon
    monkeypatch.setattr(large_simplex, "_SLACK", 0.5)
    found = []
    for seed in range(8):
        for slack in (0.5, 3.0):
            parts = np.random.default_rng(seed)

            def smaller(*of: Any, _part: Any = parts, _slack: float = slack) -> Any:
                part = _part.uniform(1 / (1 + _slack), 1, of[0].size)
                return tuple(bound * part for bound in _bounds(*of))

            monkeypatch.setattr(large_simplex, "_bounds", smaller)
            found.append(worst_pair(law, 12, ONES).pairs[0].epsilon)
    assert found[::2] == [honest] * 8
    assert min(found[1::2]) < honest


def test_pairs_have_their_distance_and_normalisers_need_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prior = (0.3, 2.0, 0.7)
    orbits = large_simplex._orbits(7, prior)
    expected = ob.mechanisms.hellinger_distance(
        orbits.first + prior, orbits.second + np.array(prior)
    )
    assert orbits.distance == pytest.approx(expected, rel=1e-12)
    law = ExponentialWeights(ob.mechanisms.HellingerExponential(0.4))
    expected = worst_pair(law, 7, prior)
    monkeypatch.setattr(large_simplex, "_ENTRIES", 1)  # fewer than there are candidates
    assert worst_pair(law, 7, prior) == expected


def test_the_slack_of_bounds_is_larger_than_what_rounding_does_to_them() -> None:
    """Of two logarithms of sums over all candidates, and a few roundings."""
    assert large_simplex._SLACK >= 4 * large_simplex.SUM_ERROR + 16 * 2.0**-53


def test_the_error_of_sums_covers_those_of_the_most_candidates() -> None:
    """numpy adds up to 128 numbers one after the other, and then two sums at a time."""
    blocks = math.ceil(math.log2(enumeration._MOST_CANDIDATES / 128))
    assert (128 + blocks) * 2.0**-53 <= large_simplex.SUM_ERROR
