"""Directed rounding: the last step of every number that enters a privacy map.

A privacy map is a certified upper bound, so its arithmetic is done exactly on fractions (every
finite float is one) and rounded once, towards the safe side. Quantities that come from
floating-point functions are first replaced by an end of their enclosure.
"""

import math
from fractions import Fraction


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


def sqrt_up(value: int) -> float:
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
