"""Divergences of laws known within an error, certified for every law within it."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from opendp_bayes.accounting.divergences import (
    FINE_ORDERS_LESS_ONE,
    Block,
    concentrated,
    extremes,
    hockey_stick,
    largest_concentrated,
    orders_less_one,
)

PAIRS: dict[str, Any] = {
    "two outcomes": (np.log([0.7, 0.3]), np.log([0.4, 0.6])),
    "rare": (np.log([0.9, 0.09, 0.01]), np.log([0.9, 0.0999, 0.0001])),
    "nearly equal": (np.log([0.5, 0.5]), np.log([0.5 + 1e-6, 0.5 - 1e-6])),
}


def block_of(log_p: Any, log_q: Any) -> Block:
    none = np.zeros((1, 0), dtype=np.int64)
    return Block(none, none, np.asarray(log_p)[:, None], np.asarray(log_q)[:, None])


def bound(log_p: Any, log_q: Any, error: float) -> float:
    block = block_of(log_p, log_q)
    low, high = extremes(block)
    return float(concentrated(block, error, np.maximum(high, -low))[0])


@pytest.mark.parametrize("error", [1e-9, 0.01, 0.2])
@pytest.mark.parametrize("name", PAIRS)
def test_a_concentrated_loss_holds_for_every_law_within_the_error(name: str, error: float) -> None:
    """P computed too low by all of the error and Q too high; and the other way round."""
    log_p, log_q = PAIRS[name]
    for sign in (-1, 1):
        assert bound(log_p + sign * error, log_q - sign * error, error) >= bound(
            log_p, log_q, 0.0
        ) * (1 - 1e-12)
    assert bound(log_p, log_q, error) > bound(log_p, log_q, 0.0)


@pytest.mark.parametrize("turned", [False, True])
def test_the_largest_loss_may_lie_beyond_the_last_order_whichever_law_comes_first(turned) -> None:
    """A ratio of e^20 where one law has e^-800 counts at orders from 41 on alone."""
    laws = np.array([-200.0, -820.0, 0.0]), np.array([-201.3, -800.0, 0.0])
    t = np.arange(1.0, 1000.0)
    loss = float(((20 * t - 800) / (t * (1 + t))).max())
    block = block_of(*laws[::-1]) if turned else block_of(*laws)
    assert largest_concentrated(block, 0.0, 0.0) >= loss > 0.1


@pytest.mark.parametrize("largest", [0.0, 1e-9, 1e-3, 0.5, 50.0, None])
def test_orders_rise(largest: float | None) -> None:
    """From near 0, so that between two of them there is one chord, and few lie beyond the last."""
    orders = FINE_ORDERS_LESS_ONE if largest is None else orders_less_one(largest)
    assert 0 < orders[0] <= 2.0**-6
    assert np.all(np.diff(orders) > 0)
    assert orders[-1] >= min(30 if largest is None else max(30, 40 / max(largest, 1e-12)), 1e6)
    assert orders.size < 350


@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0])
def test_few_orders_are_enough_for_small_losses(epsilon: float) -> None:
    """Negative control: orders up to 30 alone give up to five times as much."""
    log_p = np.log(np.array([0.01, 0.98, 0.01]))
    log_q = log_p + epsilon * np.array([1.0, 0.0, -1.0])
    log_q -= np.log(np.exp(log_q).sum())
    pair, largest = block_of(log_p, log_q), np.array([np.abs(log_p - log_q).max()])
    fine = concentrated(pair, 0.0, largest, np.geomspace(1e-4, 1e7, 4000))[0]
    assert fine <= concentrated(pair, 0.0, largest)[0] <= 1.06 * fine
    up_to_30 = orders_less_one(10.0)
    assert (concentrated(pair, 0.0, largest, up_to_30)[0] > 1.2 * fine) == (epsilon < 0.2)


@pytest.mark.parametrize("error", [0.01, 0.2])
def test_the_error_grows_with_the_order(error: float) -> None:
    """`ln sum P^(1 + t) Q^(-t)` by `1 + 2 t`: at the first order, and beyond the last."""
    found = bound([0.0], [0.0], error)
    first, last = orders_less_one(1.0)[0], orders_less_one(1e6)[-1]
    assert found >= (1 + 2 * first) * error / (first * (1 + first))
    high = concentrated(block_of([0.0], [0.0]), error, np.array([1e6]))[0]
    least = (Fraction(10**6) + 2 * Fraction(error)) / (1 + Fraction(float(last)))
    assert Fraction(float(high)) >= least


def test_losses_and_hockey_sticks_have_room_for_rounding() -> None:
    """Where only what is beyond the last order counts, which is `ratio / (1 + t)`. Relatively
    accurate, by `expm1`: the difference of the two terms would be lost.
    """
    largest = np.geomspace(1e3, 1e6, 50)
    for ratio in largest.tolist():
        found = concentrated(block_of([0.0], [0.0]), 0.0, np.array([ratio]))[0]
        assert Fraction(float(found)) >= Fraction(ratio) / (
            1 + Fraction(float(orders_less_one(ratio)[-1]))
        ) * (1 + Fraction(1, 2**41))
    log_p, log_q = np.array([math.log(0.5)] * 2), np.array([math.log(0.5) - 1e-13, math.log(0.5)])
    assert hockey_stick(block_of(log_p, log_q), 0.0)[0] == pytest.approx(
        0.5 * float(log_p[0] - log_q[0]), rel=1e-10
    )


def test_the_largest_of_many_is_that_of_each() -> None:
    """Pairs whose range alone gives less are passed over, and change nothing."""
    rng = np.random.default_rng(4)
    spread = np.linspace(0.1, 2.0, 90)
    log_p = np.log(rng.dirichlet(np.ones(6), 90).T) * spread
    log_q = np.log(rng.dirichlet(np.ones(6), 90).T) * spread
    log_p, log_q = (part - np.log(np.exp(part).sum(axis=0)) for part in (log_p, log_q))
    none = np.zeros((90, 0), dtype=np.int64)
    block = Block(none, none, log_p, log_q)
    smallest, largest = extremes(block)
    each = np.minimum(
        concentrated(block, 1e-12, np.maximum(largest, -smallest)), (largest - smallest) ** 2 / 8
    )
    for known in (0.0, float(np.median(each)), 2 * float(each.max())):
        found = largest_concentrated(block, 1e-12, known)
        assert found == pytest.approx(max(known, float(each.max())), rel=1e-9)
        assert found >= max(known, float(each.max()))


@pytest.mark.parametrize("harmless", [1, 15, 40])
def test_one_bad_pair_among_harmless_ones_is_found(harmless: int) -> None:
    """Whatever else is judged together with it: most ranges are below what is known."""
    log_p, log_q = PAIRS["two outcomes"]
    same = np.tile(log_p[:, None], harmless)
    none = np.zeros((harmless + 1, 0), dtype=np.int64)
    block = Block(none, none, np.column_stack([same, log_p]), np.column_stack([same, log_q]))
    low, high = extremes(block_of(log_p, log_q))
    alone = min(bound(log_p, log_q, 1e-12), float(high[0] - low[0]) ** 2 / 8)
    assert largest_concentrated(block, 1e-12, 0.5 * alone) == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, math.log(1.5), math.log(1.75), math.log(2), 3.0])
def test_the_hockey_stick_divergence_is_the_larger_of_both_orders(epsilon: float) -> None:
    """Of (0.7, 0.3) and (0.4, 0.6): beyond ln 1.75 the first outcome no longer counts."""
    p, q = PAIRS["two outcomes"]
    expected = max(0.7 - 0.4 * math.exp(epsilon), 0.6 - 0.3 * math.exp(epsilon), 0.0)
    for one, other in ((p, q), (q, p)):
        found = float(hockey_stick(block_of(one, other), epsilon)[0])
        assert found == pytest.approx(expected, abs=1e-15)
