"""Exact samplers of K-norm noise: big integers, and random bits from `secrets`."""

from fractions import Fraction
from functools import lru_cache
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
    1000 and with the default, that happens with probability below `2^-96`.
    """
    return by_inversion(lambda precision: _cumulative(n, scale, precision), bits)


@lru_cache(maxsize=128)
def _cumulative(n: int, scale: Fraction, bits: int) -> tuple[int, list[int], list[int]]:
    """Lower and upper bounds, in units of `2^-bits` of the first weight, on the sums of the weights
    of `squared_binomial` below each i, and of all; with the first i, which is 0.
    """
    low, high = exp_enclosure(1 / scale, bits)
    lower = upper = 1 << bits
    below, above = [0], [0]
    for i in range(n + 1):
        below.append(below[-1] + lower)
        above.append(above[-1] + upper)
        # The weight i + 1 is ((n - i) / (i + 1))^2 q times the weight i.
        up, down = (n - i) ** 2, (i + 1) ** 2 << bits
        lower, upper = lower * low * up // down, -(-upper * high * up // down)
    return 0, below, above
