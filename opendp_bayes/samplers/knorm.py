"""Exact samplers of K-norm noise: big integers, and random bits from `secrets`."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from secrets import randbelow

from opendp_bayes.samplers.integers import geometric
from opendp_bayes.samplers.inversion import BITS, by_inversion


def knorm_noise(k: int, scale: Fraction) -> list[int]:
    """A sample of `P(z) ∝ exp(-||z||_1 / (2 scale))` on the z in Z^k with sum 0: k integers, in
    about `20 k` microseconds at every scale.

    z is the difference of two independent uniform ways to write m as a sum of k ordered parts, with
    `P(m) ∝ C(m + k - 1, m)^2 exp(-m / scale)`; and m is a number i, `P(i) ∝ C(k - 1, i)^2 exp(-i /
    scale)`, plus 2k - 1 geometrics (`docs/proofs.md`, "K-norm noise").
    """
    rate = 1 / scale
    total = squared_binomial(k - 1, scale) + sum(geometric(rate) for _ in range(2 * k - 1))
    return [
        up - down for up, down in zip(composition(total, k), composition(total, k), strict=True)
    ]


def composition(total: int, k: int) -> list[int]:
    """k non-negative integers that sum to `total`, uniformly: stars and bars, with the bars chosen
    by Floyd's algorithm.
    """
    places = total + k - 1
    bars: set[int] = set()
    for last in range(places - k + 1, places):
        bar = randbelow(last + 1)
        bars.add(last if bar in bars else bar)
    ends = [-1, *sorted(bars), places]
    return [right - left - 1 for left, right in pairwise(ends)]


def squared_binomial(n: int, scale: Fraction, bits: int = BITS) -> int:
    """A sample of `P(i) ∝ C(n, i)^2 exp(-i / scale)`, i = 0..n, exactly.

    By inversion with a uniform number of which only so many bits are drawn as it takes to tell
    where it lies. Real numbers are enclosed by integers times `2^-bits`; where an enclosure leaves
    a doubt it is computed again with twice the bits, and the number is drawn further. Up to n =
    1000 and with the default, that happens with probability below `2^-100`.
    """
    return by_inversion(lambda precision: _cumulative(n, scale, precision), bits)


@lru_cache(maxsize=128)
def _cumulative(n: int, scale: Fraction, bits: int) -> tuple[int, list[int], list[int]]:
    """Lower and upper bounds, in units of `2^-bits`, on the sums of the weights of
    `squared_binomial` below each i.

    Returns the first i, and two lists: entry j bounds the sum of the weights below `first + j`, and
    a last entry the sum of all. Weights are relative to one near the largest. They are log-concave,
    so those beyond the last one computed on a side are smaller than it, and it is below one unit.
    """
    low, high = exp_enclosure(1 / scale, bits)
    ratio = math.exp(-float(1 / scale) / 2)
    # Near the largest weight: a choice of units, which no law depends on.
    centre = min(int((n + 1) * ratio / (1 + ratio)), n) if low else 0
    unit = 1 << bits
    weights = {centre: (unit, unit)}
    for step in (1, -1):
        i, (lower, upper) = centre, weights[centre]
        while 0 <= i + step <= n and upper > 1:
            # The weight i + 1 is ((n - i) / (i + 1))^2 q times the weight i.
            if step == 1:
                up, down = (n - i) ** 2, (i + 1) ** 2
                lower, upper = (
                    lower * low * up // (down << bits),
                    -(-upper * high * up // (down << bits)),
                )
            else:
                up, down = i**2, (n - i + 1) ** 2
                lower = (lower * up << bits) // (down * high)
                upper = -((-upper * up << bits) // (down * low))
            i += step
            weights[i] = lower, upper
    first, last = min(weights), max(weights)
    before, after = first * weights[first][1], (n - last) * weights[last][1]
    below = list(accumulate((weights[i][0] for i in range(first, last + 1)), initial=0))
    above = list(accumulate((weights[i][1] for i in range(first, last + 1)), initial=before))
    above[-1] += after
    return first, below, above


def exp_enclosure(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers `low <= 2^bits exp(-x) <= high`, for x >= 0, at most a few units apart."""
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
