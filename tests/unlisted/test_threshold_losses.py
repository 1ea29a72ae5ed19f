"""Losses of unlisted keys by listed outcomes, for people and records; laws that would not do."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import NO_LOSS
from opendp_bayes.unlisted import threshold_losses
from opendp_bayes.unlisted.threshold_losses import loss_of_discovery
from opendp_bayes.unlisted.thresholds import (
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
    Threshold,
)
from tests.helpers import listed_keys
from tests.helpers.distances import moved_by
from tests.helpers.sweeps import some_of

OPTIMAL = [
    ("optimal", growth, delta, growth * part)
    for growth, delta, part in product((0.7, 1.0, 2.0), (0.01, 0.05, 0.15), (1.0, 0.6))
]
LAPLACE = [("laplace", scale, threshold) for scale, threshold in product((0.4, 0.7), (2, 4, 7))]
GAUSSIAN = [("gaussian", scale, threshold) for scale, threshold in product((0.6, 0.9), (4, 6))]


def counts_of_others(noise: listed_keys.Noise, keys: int, moved: int) -> list[int]:
    """All that matter, or of several keys some: none, few, and so many that nothing is hidden."""
    if keys == 1:
        return [*range(noise.far + moved + 1)]
    return [0, 1, moved, noise.far + moved]


def loss_at(law: Threshold, d_in: int | Distance) -> tuple[float, float]:
    loss = loss_of_discovery(Discovery(law), d_in, concentrated=False, delta=0.05)
    return loss.epsilon, loss.delta


@pytest.mark.parametrize(
    ("law", "keys"), some_of(product(OPTIMAL + LAPLACE + GAUSSIAN, (1, 2, 3)), 12)
)
def test_people_in_any_directions(law: tuple[Any, ...], keys: int) -> None:
    """All outcomes where so many counts move by one each, up or down: the loss is attained."""
    ours, noise = listed_keys.both(law)
    epsilon, delta = loss_at(ours, Distance.limited(keys, 1))
    if epsilon == math.inf:
        assert 1 - (1 - noise.shown(1)) ** keys > delta * (1 - 1e-12)
        return
    pairs = listed_keys.of_single_records(counts_of_others(noise, keys, 1), keys)
    truth = listed_keys.largest(noise, pairs, [epsilon])[0]
    assert truth <= delta * (1 + 1e-12) + 1e-15
    assert truth == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize(
    ("law", "size"),
    some_of(product(OPTIMAL + LAPLACE + GAUSSIAN, [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2)]), 12),
)
def test_records_in_any_keys_and_directions(law: tuple[Any, ...], size: tuple[int, int]) -> None:
    """All outcomes where counts of some keys move by so many records in all: the loss holds."""
    ours, noise = listed_keys.both(law)
    keys, records = size
    epsilon, delta = loss_at(ours, records)
    if epsilon == math.inf:
        assert 1 - (1 - noise.shown(1)) ** records > 0.05 / 2 or noise.shown(records) > 0.05 / 2
        return
    pairs = listed_keys.of_records(counts_of_others(noise, keys, records), keys, records)
    truth = listed_keys.largest(noise, pairs, [epsilon])[0]
    assert truth <= delta * (1 + 1e-12)
    if isinstance(ours, OptimalThreshold) and truth > noise.shown(records) * (1 - 1e-12):
        assert truth == pytest.approx(min(delta, noise.shown(records)), rel=1e-9)


def test_records_alone_attain_the_group_bound() -> None:
    """The values are computed apart: one new key of all records."""
    values = {2: 2.395612425086e-4, 3: 4.343346466141e-4, 4: 7.061628294600e-4}
    for records, value in values.items():
        epsilon, delta = loss_at(OptimalThreshold(1 / 3, 1e-4), records)
        assert (epsilon, delta) == pytest.approx((records / 3, value), rel=4e-13)
        assert delta >= value * (1 - 4e-13)


def with_rest(growth: float, part: float, delta: float, decay: float) -> Discovery:
    return Discovery(OptimalThreshold(growth, delta, decay), DiscreteLaplace(1 / (part * growth)))


def largest_with_rest(noise: listed_keys.Noise, scale: float, keys: int, epsilon: float) -> float:
    counts = range(noise.far + 1) if keys == 1 else (0, 1, noise.far // 2, noise.far)
    one = [(n, n + moved) for n in counts for moved in ((1,) if keys == 1 else (0, 1))]
    ups = combinations_with_replacement(one, keys)
    mixed = ((up, (b, a)) for up in one for a, b in one) if keys == 2 else ()
    worst = 0.0
    for moves in (*ups, *mixed):
        before, after = zip(*moves, strict=True)
        most, top = sum(map(max, moves)), max(map(max, moves)) + noise.threshold
        p, q = (listed_keys.with_rest(noise, c, scale, most, top) for c in (before, after))
        worst = max(worst, listed_keys.divergences(p, q, [epsilon])[0])
    return worst


@pytest.mark.parametrize(
    ("keys", "growth", "part", "delta"),
    some_of(product((1, 2), (0.7, 1.0, 2.0, 3.0), (0.1, 0.2, 0.5), (0.02, 0.05, 0.1)), 8),
)
def test_what_the_hidden_hold_together_costs_nothing(keys, growth, part, delta):
    """All outcomes of keys and of the noisy number of records in those that are hidden."""
    scale = 1 / (part * growth)
    decay = float(np.nextafter(growth - 1 / scale, 0))
    discovery = with_rest(growth, part, delta, decay)
    loss = loss_of_discovery(discovery, Distance.limited(keys, 1), concentrated=False)
    assert loss.epsilon == keys * growth
    noise = listed_keys.optimal(growth, delta, decay, discovery.law.threshold)
    truth = largest_with_rest(noise, scale, keys, loss.epsilon)
    assert truth <= loss.delta * (1 + 1e-12)
    if keys == 1:
        assert truth == pytest.approx(delta, rel=1e-9)


def test_what_the_hidden_hold_together_needs_a_slower_decay() -> None:
    """A negative control, and what is paid where there is no room for it."""
    discovery = with_rest(1.0, 0.2, 0.02, 1.0)
    noise = listed_keys.optimal(1.0, 0.02, 1.0, discovery.law.threshold)
    assert largest_with_rest(noise, 5.0, 1, 1.0) == pytest.approx(0.046493, rel=1e-4)
    loss = loss_of_discovery(discovery, 1, concentrated=False)
    assert (loss.epsilon, loss.delta) == pytest.approx((1.2, 0.02), rel=1e-15)
    just = with_rest(1.0, 0.2, 0.02, 0.8)  # a float above 4/5
    assert loss_of_discovery(just, 1, concentrated=False).epsilon == math.nextafter(1, 2)
    free = with_rest(1.0, 0.2, 0.02, float(np.nextafter(0.8, 0)))
    assert loss_of_discovery(free, 1, concentrated=False).epsilon == 1.0
    between = with_rest(1.0, 0.2, 0.02, 0.9)
    assert loss_of_discovery(between, 1, concentrated=False).epsilon == pytest.approx(1.1)
    noise = listed_keys.optimal(1.0, 0.02, 0.9, between.law.threshold)
    assert largest_with_rest(noise, 5.0, 1, 1.1) <= 0.02 * (1 + 1e-9)


@pytest.mark.parametrize("moved", ["people", "records"])
def test_other_laws_pay_for_what_the_hidden_hold_together(moved: Any) -> None:
    for law in (LaplaceThreshold(2.0, 30), GaussianThreshold(4.0, 30)):
        alone = loss_of_discovery(
            Discovery(law), moved_by(3, moved), concentrated=False, delta=1e-2
        )
        rest = Discovery(law, DiscreteLaplace(8.0))
        paid = loss_of_discovery(rest, moved_by(3, moved), concentrated=False, delta=1e-2)
        assert paid.epsilon == pytest.approx(alone.epsilon + 3 / 8, rel=1e-15)
        assert paid.delta == alone.delta
    law = GaussianThreshold(4.0, 30)
    for noise, rho in ((DiscreteGaussian(5.0), 9 / 50), (DiscreteLaplace(5.0), 9 / 50)):
        alone = loss_of_discovery(Discovery(law), moved_by(3, moved), concentrated=True)
        paid = loss_of_discovery(Discovery(law, noise), moved_by(3, moved), concentrated=True)
        assert paid.rho == pytest.approx(alone.rho + rho, rel=1e-15)
        assert paid.delta == alone.delta
    unbounded = Discovery(law, DiscreteGaussian(5.0))
    loss = loss_of_discovery(unbounded, moved_by(1, moved), concentrated=False, delta=1e-2)
    assert loss.epsilon == math.inf


@pytest.mark.parametrize(("scale", "threshold"), [(0.9, 6), (4.0, 9), (3.0, 30)])
def test_new_keys_of_any_records_are_all_partitions(scale: float, threshold: int) -> None:
    law, noise = GaussianThreshold(scale, threshold), listed_keys.gaussian(scale, threshold)
    shown, chosen = [], set()
    for records in range(1, 13):
        by_parts = {
            parts: math.prod(1 - noise.shown(s) for s in parts)
            for parts in listed_keys.partitions(records)
        }
        least = min(by_parts, key=by_parts.__getitem__)
        chosen.add(len(least))
        loss = loss_of_discovery(Discovery(law), records, concentrated=True)
        assert loss.delta == pytest.approx(1 - by_parts[least], rel=1e-9, abs=1e-15)
        assert loss.rho == pytest.approx(records**2 / 2 / scale**2, rel=1e-15)
        shown.append(loss.delta)
    assert scale != 4.0 or len(chosen) > 2
    monotone = np.diff(shown)
    assert np.all(monotone >= 0)


def test_what_is_not_a_new_key_has_the_concentrated_loss() -> None:
    """By the definition of approximate concentrated privacy: given that no new key is shown, no
    Rényi divergence exceeds its order times ρ, and one of a smaller scale does.
    """
    for scale, keys in ((0.8, 1), (1.3, 2), (0.8, 3)):
        noise = listed_keys.gaussian(scale, 5)
        loss = loss_of_discovery(
            Discovery(GaussianThreshold(scale, 5)), Distance.limited(keys, 1), concentrated=True
        )
        assert loss.epsilon == math.inf
        assert loss.delta >= (1 - (1 - noise.shown(1)) ** keys) * (1 - 1e-12)
        largest = 0.0
        for counts in combinations_with_replacement((1, 2, 4, noise.far), keys):
            moved = [n + 1 for n in counts]
            top = max(moved) + len(noise.p)
            p, q = (listed_keys.of_keys(noise, c, top) for c in (counts, moved))
            seen = (p > 1e-280) & (q > 1e-280)
            for first, second in ((p, q), (q, p)):
                log_p, log_q = np.log(first[seen]), np.log(second[seen])
                for order in (1.01, 1.5, 2.0, 3.0):
                    terms = order * log_p + (1 - order) * log_q
                    largest = max(largest, float(logsumexp(terms)) / (order - 1) / order)
        assert loss.rho * (1 - 1e-6) <= largest <= loss.rho * (1 + 1e-6)


LAWS = [OptimalThreshold(0.1, 1e-6), OptimalThreshold(1.0, 1e-6, 0.8), LaplaceThreshold(3.0, 40)]
LAWS += [GaussianThreshold(*of) for of in ((40.0, 400), (6.0, 40), (1.5, 12))]


@pytest.mark.parametrize(
    ("law", "moved", "concentrated"),
    some_of(product(LAWS, ["people", "records"], [False, True]), len(LAWS)),
)
def test_a_loss_never_falls_with_the_distance(law, moved, concentrated):
    distances = [0, 1, 2, 3, 8, 63, 64, 65, 66, 1000, 10**6, 2**31]
    for rest in (None, DiscreteLaplace(20.0)):
        made, how = Discovery(law, rest), {"concentrated": concentrated, "delta": 1e-3}
        losses = [loss_of_discovery(made, moved_by(d, moved), **how) for d in distances]
        assert losses[0] == NO_LOSS
        for name in ("epsilon", "delta", "rho"):
            values = [getattr(loss, name) for loss in losses]
            assert all(a <= b for a, b in pairwise(values)), name
            assert all(value > 0 for value in values[1:]) or losses[1].rho == math.inf
        assert all(loss.range == math.inf for loss in losses[1:])


def test_an_epsilon_meets_its_delta_also_of_several_keys() -> None:
    law = GaussianThreshold(5.2, 31)
    loss = loss_of_discovery(Discovery(law), 1, concentrated=False, delta=1e-8)
    assert loss.method == "exact"
    assert threshold_losses.gaussian_delta(law, loss.epsilon, Distance.of(1)) <= 1e-8
    lower = loss.epsilon * (1 - 1e-9)
    assert threshold_losses.gaussian_delta(law, lower, Distance.of(1)) > 1e-8
    none = loss_of_discovery(Discovery(law), 1, concentrated=False, delta=6e-9)
    assert none.epsilon == math.inf  # a new key is shown more often
    none = loss_of_discovery(Discovery(law), 1, concentrated=False)
    assert (none.epsilon, none.delta) == (math.inf, 0.0)
    some = loss_of_discovery(Discovery(law), 1, concentrated=False, delta=0.9)
    assert some.epsilon == 0.0
    for keys in (1, 2, 5, 64, 1000):
        loss = loss_of_discovery(
            Discovery(OptimalThreshold(0.25, 1e-6)), Distance.limited(keys, 1), concentrated=False
        )
        exact = 1 - (1 - Fraction(1e-6)) ** keys
        assert 0 <= Fraction(loss.delta) / exact - 1 < 3e-16
        assert loss.epsilon == keys / 4
        made, moved = Discovery(OptimalThreshold(0.25, 1e-6)), Distance.limited(keys, 1)
        assert loss_of_discovery(made, moved, concentrated=True).rho == math.inf


# --- Some values that are new, and one that moves
def told_of_one(law: Threshold, moved: int, epsilon: float) -> float:
    """δ at ε of one value of which so many records are there that it is never hidden."""
    _, p = law.masses
    before, after = np.pad(p, (0, moved)), np.pad(p, (moved, 0))
    pairs = (before, after), (after, before)
    return max(float(np.maximum(one - math.exp(epsilon) * other, 0).sum()) for one, other in pairs)


def attained(law: Threshold, moves: list[int], epsilon: float) -> float:
    """The largest δ where the first moves are of new values, and the next of an old one."""
    found = []
    for new in range(len(moves) + 1):
        hidden = float(np.prod(1 - law.shown(moves[:new])))
        old = told_of_one(law, moves[new], epsilon) if new < len(moves) else 0.0
        found.append(1 - hidden + hidden * old)
    return max(found)


def moves_of(distance: Distance) -> list[int]:
    return [moved for moved, number in distance.pieces for _ in range(number)]


MIXED = [OPTIMAL[0], OPTIMAL[-1], LAPLACE[0], LAPLACE[-1], ("gaussian", 1.0, 2), GAUSSIAN[-1]]


@pytest.mark.parametrize("law", MIXED, ids=str)
@pytest.mark.parametrize(("records", "largest"), [(3, 2), (5, 2), (7, 3), (4, 4)])
def test_delta_is_no_less_than_of_new_values_beside_one_that_moves(law, records, largest):
    ours, distance = listed_keys.both(law)[0], Distance.limited(records, largest)
    if isinstance(ours, GaussianThreshold):
        for epsilon in (0.01, 0.5, 2.0):
            stated = threshold_losses.gaussian_delta(ours, epsilon, distance)
            assert stated >= attained(ours, moves_of(distance), epsilon) * (1 - 1e-9)
        return
    epsilon, stated = loss_at(ours, distance)
    assert stated >= attained(ours, moves_of(distance), epsilon) * (1 - 1e-9)


def test_the_larger_of_both_would_be_too_small() -> None:
    """Negative control, at the δ of a law that shows nearly everything."""
    law, distance = GaussianThreshold(1.0, 2), Distance.limited(3, 2)
    new = float(threshold_losses.new_shown(law, distance))
    assert max(new, told_of_one(law, 2, 0.01)) < attained(law, moves_of(distance), 0.01)
