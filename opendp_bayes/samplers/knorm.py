"""Exact samplers of K-norm noise: big integers, and random bits from `secrets`."""

import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.samplers.integers import geometrics, uniform_below
from opendp_bayes.samplers.inversion import BITS, by_inversion, exp_enclosure

#: Up to this scale int64 holds the noise; beyond, Python integers do.
_LARGEST_SCALE = 1 << 24


def knorm_noise(k: int, scale: Fraction, draws: int) -> NDArray[Any]:
    """Samples of `P(z) ∝ exp(-||z||_1 / (2 scale))` on the z in Z^k with sum 0, shape
    `(draws, k)`.

    z is the difference of two independent uniform ways to write m as a sum of k ordered parts, with
    `P(m) ∝ C(m + k - 1, m)^2 exp(-m / scale)`; and m is a number i, `P(i) ∝ C(k - 1, i)^2 exp(-i /
    scale)`, plus 2k - 1 geometrics (`docs/research/proofs.md`, "K-norm noise").
    """
    dtype: Any = np.int64 if scale <= _LARGEST_SCALE else object
    parts = geometrics(1 / scale, draws * (2 * k - 1)).reshape(draws, 2 * k - 1).astype(dtype)
    first = np.array([squared_binomial(k - 1, scale) for _ in range(draws)], dtype=dtype)
    totals = first + parts.sum(axis=1)
    return compositions(totals, k) - compositions(totals, k)


def compositions(totals: NDArray[Any], k: int) -> NDArray[Any]:
    """For each total k non-negative integers that sum to it, uniformly, shape `(m, k)`: stars and
    bars, with the bars chosen by Floyd's algorithm.
    """
    bars = np.empty((totals.size, k - 1), dtype=totals.dtype)
    for i in range(k - 1):
        bar = uniform_below(totals + (i + 1))
        taken = np.any(bars[:, :i] == bar[:, None], axis=1)
        bars[:, i] = np.where(taken, totals + i, bar)
    places = (totals + (k - 1))[:, None]
    ends = np.concatenate([np.full_like(places, -1), np.sort(bars, axis=1), places], axis=1)
    return np.diff(ends, axis=1) - 1


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
