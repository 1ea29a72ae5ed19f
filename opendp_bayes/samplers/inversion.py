"""Exact inversion of a law on whole numbers whose probabilities are known by enclosures."""

import math
from bisect import bisect_right
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from secrets import randbits

#: Random bits drawn at first, and the precision of the first enclosures.
BITS = 128

#: From a precision in bits to the first value, and two lists of bounds in units of `2^-bits`: entry
#: j is below, or above, the sum of the weights before `first + j`; the last that of all weights.
Cumulative = Callable[[int], tuple[int, list[int], list[int]]]


def by_inversion(cumulative: Cumulative, bits: int = BITS) -> int:
    """The value whose interval of cumulative probability contains a uniform number, exactly.

    Only so many bits of the number are drawn as it takes to tell where it lies. Where an enclosure
    leaves a doubt it is computed again with twice the bits, and the number is drawn further.
    """
    uniform, bits_drawn = randbits(bits), bits
    while True:
        first, below, above = cumulative(bits)
        at_least, at_most = uniform * below[-1], (uniform + 1) * above[-1]
        index = bisect_right(above, at_least >> bits_drawn, hi=len(above) - 1) - 1
        if index >= 0 and index + 1 < len(below) and at_most <= below[index + 1] << bits_drawn:
            return first + index
        uniform, bits_drawn, bits = uniform << bits | randbits(bits), bits_drawn + bits, 2 * bits


def exp_enclosure(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers `low <= 2^bits exp(-x) <= high`, at most a few units apart."""
    if x < 0:
        more = bits + 3 * math.ceil(-x) + 8
        least, most = exp_enclosure(-x, more)
        whole = 1 << bits + more
        return whole // most, -(-whole // least)
    if x > bits:
        return 0, 1
    digits = bits // 3 + 10
    floor, ceiling = (
        Context(prec=digits, rounding=rounding, traps=[])
        for rounding in (ROUND_FLOOR, ROUND_CEILING)
    )
    numerator, denominator = Decimal(x.numerator), Decimal(x.denominator)
    # `exp` is correctly rounded to the nearest, so the next number on either side is beyond the
    # true value.
    low = floor.next_minus(floor.exp(ceiling.divide(numerator, denominator).copy_negate()))
    high = ceiling.next_plus(ceiling.exp(floor.divide(numerator, denominator).copy_negate()))
    return math.floor(Fraction(low) * 2**bits), math.ceil(Fraction(high) * 2**bits)
