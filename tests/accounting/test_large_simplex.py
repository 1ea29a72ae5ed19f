"""The worst pair among many candidates, against all pairs over all candidates; and the calibration
that looks for it.
"""

import math
from typing import Any

import numpy as np
import pytest

import opendp_bayes as ob
from opendp_bayes.accounting import exact, thorough
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


@pytest.mark.parametrize("mechanism", [*MECHANISMS[:3], ob.LaplaceParameters(1.0)], ids=str)
@pytest.mark.parametrize("prior", [ONES, (0.3, 2.0, 0.7)])
def test_thorough_is_exact_where_that_is_feasible(mechanism: Any, prior: tuple[float, ...]) -> None:
    setting = {"size": 15, "prior": prior, "epsilon": 0.8, "tune": False}
    found = ob.calibrate(mechanism, accounting="thorough", **setting)
    expected = ob.calibrate(mechanism, **setting)
    assert found.scale == pytest.approx(expected.scale, rel=1e-8)
    assert ob.exact_loss(found, size=15, prior=prior).epsilon <= 0.8


def test_thorough_chooses_the_smoothness_too() -> None:
    template = ob.mechanisms.SmoothHellingerExponential(1.0)
    setting = {"size": 30, "prior": ONES, "epsilon": 1.0}
    found = ob.calibrate(template, accounting="thorough", **setting)
    expected = ob.calibrate(template, **setting)
    assert found.gamma == pytest.approx(expected.gamma, rel=0.1)
    assert found.width(np.array([10, 10, 10]), np.array(ONES)) == pytest.approx(
        expected.width(np.array([10, 10, 10]), np.array(ONES)), rel=0.01
    )


def test_one_look_at_all_pairs_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: with a pair that is not the worst alone, the loss is too large."""
    template = ob.mechanisms.SmoothHellingerExponential(1.0)
    only = exact.WorstPair((10, 10, 10), (11, 9, 10), 0.0)
    monkeypatch.setattr(thorough, "bad_pairs", lambda *_, **__: (only,))
    monkeypatch.setattr(thorough, "loss_within", lambda *_: ob.PrivacyLoss(0.0, 0.0, 0.0))
    found = ob.calibrate(template, size=30, prior=ONES, epsilon=1.0, accounting="thorough")
    assert ob.exact_loss(found, size=30, prior=ONES).epsilon > 1.01


def test_refusals() -> None:
    mechanism = ob.mechanisms.SmoothHellingerExponential(1.0)
    with pytest.raises(ValueError, match=r"accounting='thorough', epsilon=None, delta=None, rho=1"):
        ob.calibrate(mechanism, size=9, prior=ONES, rho=1.0, accounting="thorough")
    with pytest.raises(ValueError, match=r"d_in=2: .*epsilon alone and one record"):
        ob.calibrate(mechanism, size=9, prior=ONES, epsilon=1.0, d_in=2, accounting="thorough")
    with pytest.raises(ValueError, match=r"size=5000, 3 categories: .* probabilities"):
        ob.calibrate(mechanism, size=5000, prior=ONES, epsilon=1.0, accounting="thorough")


def test_the_choice_ends_where_little_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it ends early or late, the loss is the one asked for and the width nearly the same;
    with no end but the exact one there are more looks at all pairs.
    """
    setting = {"size": 60, "prior": ONES, "epsilon": 1.0}
    looks, widths = [], []
    look = thorough.bad_pairs
    for near in (thorough._NEAR, 0.0):
        seen: list[float] = []

        def counted(setting: Setting, _seen: list[float] = seen) -> Any:
            pairs = look(setting)
            _seen.append(pairs[0].epsilon)
            return pairs

        monkeypatch.setattr(thorough, "_NEAR", near)
        monkeypatch.setattr(thorough, "bad_pairs", counted)
        template = ob.mechanisms.SmoothHellingerExponential(1.0)
        found = ob.calibrate(template, accounting="thorough", **setting)
        assert 1 - 1e-6 <= ob.exact_loss(found, size=60, prior=ONES).epsilon <= 1
        looks.append(len(seen))
        widths.append(found.width(np.array([20, 20, 20]), np.array(ONES)))
    assert looks[0] <= looks[1]
    assert widths[0] == pytest.approx(widths[1], rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "k"), [(300, 3), (60, 4)])
def test_reach_with_the_smoothness_chosen(size: int, k: int) -> None:
    prior, balanced = (1.0,) * k, np.full(k, size // k)
    setting = {"size": size, "prior": prior, "epsilon": 1.0, "accounting": "thorough"}
    found = ob.calibrate(ob.mechanisms.SmoothHellingerExponential(1.0), **setting)
    loss = ob.exact_loss(found, size=size, prior=prior)
    assert 1 - 1e-6 <= loss.epsilon <= 1
    assert loss.method == "exact"
    # No worse than the γ of a smaller size, or twice or half the one chosen.
    assert found.gamma is not None
    for gamma in (0.5 * found.gamma, 0.25, 2 * found.gamma):
        template = ob.mechanisms.SmoothHellingerExponential(1.0, gamma=gamma)
        other = ob.calibrate(template, tune=False, **setting)
        width = other.width(balanced, np.array(prior))
        assert found.width(balanced, np.array(prior)) <= width * 1.01


@pytest.mark.slow
@pytest.mark.parametrize(("size", "k"), [(300, 3), (60, 4)])
def test_reach(size: int, k: int) -> None:
    prior = (1.0,) * k
    template = ob.mechanisms.SmoothHellingerExponential(1.0, gamma=0.25)
    setting = {"size": size, "prior": prior, "epsilon": 1.0, "tune": False}
    found = ob.calibrate(template, accounting="thorough", **setting)
    loss = ob.exact_loss(found, size=size, prior=prior)
    assert 1 - 1e-6 <= loss.epsilon <= 1
    assert loss.method == "exact"
    assert found.scale < 0.7 * ob.calibrate(template, **setting).scale  # that of the proven bound


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
