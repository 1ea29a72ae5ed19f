"""Exact samplers of how many records are drawn from each category, from the operating system's
CSPRNG (`secrets`).

By inversion: the value whose interval of cumulative probability contains a uniform number, of which
only so many bits are drawn as it takes to tell. Successive probabilities have a rational ratio, so
weights are enclosed by integers; where an enclosure leaves a doubt, both are refined. The law is
exact, and the cost is that of a few standard deviations of big-integer steps, whatever the number
of records.
"""

from collections.abc import Callable
from itertools import accumulate

from opendp_bayes.extend import by_inversion
from opendp_bayes_smoothed.draws import Replacement

_BITS = 128

#: From k to the numerator and denominator of `P(k + 1) / P(k)`.
Ratio = Callable[[int], tuple[int, int]]


def draw_histogram(counts: list[int], samples: int, replacement: Replacement) -> list[int]:
    """The histogram of `samples` records drawn from a database with these counts: one number for
    each category, with the sum `samples`.

    Category by category: given those before, the number drawn from a category is hypergeometric or
    binomial.
    """
    size = sum(counts)
    drawn = []
    for count in counts:
        k = (hypergeometric if replacement == "without" else binomial)(count, size - count, samples)
        drawn.append(k)
        size, samples = size - count, samples - k
    return drawn


def hypergeometric(a: int, b: int, s: int) -> int:
    """Draw the number of records among the `a`, of `s` drawn from `a + b` without replacement; `s
    <= a + b`.
    """
    if 2 * s > a + b:
        return a - hypergeometric(a, b, a + b - s)  # those that are left behind
    mode = (s + 1) * (a + 1) // (a + b + 2)
    return invert(
        max(0, s - b), min(a, s), mode, lambda k: ((a - k) * (s - k), (k + 1) * (b - s + k + 1))
    )


def binomial(a: int, b: int, s: int) -> int:
    """Draw the number of records among the `a`, of `s` drawn from `a + b` with replacement; 0 where
    both are 0.
    """
    if a == 0 or b == 0:
        return 0 if a == 0 else s
    mode = (s + 1) * a // (a + b)
    return invert(0, s, min(mode, s), lambda k: ((s - k) * a, (k + 1) * b))


def invert(first: int, last: int, mode: int, ratio: Ratio) -> int:
    """A sample of the law on `first..last` with the given ratios, which fall, and a largest
    probability at `mode`.
    """
    return by_inversion(lambda bits: _cumulative(first, last, mode, ratio, bits), _BITS)


def _cumulative(
    first: int, last: int, mode: int, ratio: Ratio, bits: int
) -> tuple[int, list[int], list[int]]:
    """Lower and upper bounds, in units of `2^-bits` of the weight at `mode`, on the sums of the
    weights below each value and, last, of all.

    Away from the mode the weights fall, and ever faster, so those beyond the last one computed on a
    side are below a geometric series.
    """
    unit = 1 << bits
    # Well above the ceilings of the recurrence, which would keep small weights from falling.
    enough = 1 << bits // 4
    up, after = _side(unit, enough, last - mode, lambda i: ratio(mode + i))
    down, before = _side(unit, enough, mode - first, lambda i: ratio(mode - i - 1)[::-1])
    weights = down[:0:-1] + up
    below = list(accumulate((low for low, _ in weights), initial=0))
    above = list(accumulate((high for _, high in weights), initial=before))
    above[-1] += after
    return mode - len(down) + 1, below, above


def _side(unit: int, enough: int, length: int, ratio: Ratio) -> tuple[list[tuple[int, int]], int]:
    """Bounds of the weights from the mode on to one side, until they are small, and an upper bound
    on the sum of those that follow.
    """
    weights = [(unit, unit)]
    low = high = unit
    for i in range(length):
        numerator, denominator = ratio(i)
        if high <= enough and numerator < denominator:
            return weights, -(-high * numerator // (denominator - numerator))
        low, high = low * numerator // denominator, -(-high * numerator // denominator)
        weights.append((low, high))
    return weights, 0
