"""Directed rounding: the last step of every number that enters a privacy map.

A privacy map is a certified upper bound, so its arithmetic is done exactly on fractions (every
finite float is one) and rounded once, towards the safe side. Quantities that come from
floating-point functions are first replaced by an end of their enclosure.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

_ULP = Fraction(1, 1 << 52)


def round_up(value: Fraction) -> float:
    """Return the smallest float that is at least `value` (infinity above the float range)."""
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def round_down(value: Fraction) -> float:
    """Return the largest float that is at most `value`."""
    return -round_up(-value)


def sqrt_up(value: int | Fraction) -> float:
    """Return a float whose square is at least `value`, at least 0, and not two floats too large."""
    root = math.sqrt(value)
    while Fraction(root) ** 2 < value:
        root = math.nextafter(root, math.inf)
    return root


def upper_end(value: float, relative_error: float) -> float:
    """Return a float that is at least every `v > 0` with `value` within `relative_error` of `v`."""
    return round_up(Fraction(value) / (1 - Fraction(relative_error)))


def lower_end(value: float, relative_error: float) -> float:
    """Return a float that is at most every `v > 0` with `value` within `relative_error` of `v`."""
    return round_down(Fraction(value) / (1 + Fraction(relative_error)))


def divided(limit: float, weights: Sequence[float]) -> tuple[float, ...]:
    """Parts of a finite `limit` in proportion to positive weights, each rounded down, whose sum
    does not exceed it even where every addition, in their order, rounds up.

    A sum of m floats, rounded up m - 1 times, exceeds the exact one by a factor of less than
    `(1 + 2^-52)^(m - 1)`, so that all but `(m - 1) 2^-52` of the limit is always given out.
    """
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact)
    for lost in range(len(exact)):
        whole = Fraction(limit) * (1 - lost * _ULP)
        parts = tuple(round_down(whole * weight / total) for weight in exact)
        if sum_up(parts) <= limit:
            break
    return parts


def sum_up(losses: Sequence[float]) -> float:
    """The sum of losses, every addition in their order rounded up; infinite where one is."""
    total = 0.0
    for loss in losses:
        try:
            total = round_up(Fraction(total) + Fraction(loss))
        except OverflowError:  # infinity is no fraction
            return loss + total
    return total
