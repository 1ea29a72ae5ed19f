"""Exact samplers of K-norm noise: big integers, and random bits from `secrets`."""

import secrets
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.samplers.integers import geometrics
from opendp_bayes.samplers.inversion import by_inversion, exp_enclosure


def knorm_noise(k: int, scale: Fraction, draws: int) -> NDArray[Any]:
    """Samples of `P(z) ∝ exp(-||z||_1 / (2 scale))` on the z in Z^k with sum 0, shape
    `(draws, k)`: Python integers (dtype object).

    z is the difference of two independent uniform ways to write m as a sum of k ordered parts, with
    `P(m) ∝ C(m + k - 1, m)^2 exp(-m / scale)`; and m is a number i, `P(i) ∝ C(k - 1, i)^2 exp(-i /
    scale)`, plus 2k - 1 geometrics (`docs/research/proofs.md`, "K-norm noise").
    """
    parts = geometrics(1 / scale, draws * (2 * k - 1)).reshape(draws, 2 * k - 1)
    binomial = partial(_cumulative, k - 1, scale)
    totals = [by_inversion(binomial) + part for part in parts.sum(axis=1).tolist()]
    up, down = (np.array([composition(m, k) for m in totals], dtype=object) for _ in range(2))
    return (up - down).reshape(draws, k)


def composition(total: int, k: int) -> list[int]:
    """k non-negative integers that sum to `total`, uniformly: stars and bars, with the bars chosen
    by Floyd's algorithm.
    """
    bars: set[int] = set()
    for last in range(total, total + k - 1):
        bar = secrets.randbelow(last + 1)
        bars.add(last if bar in bars else bar)
    ends = [-1, *sorted(bars), total + k - 1]
    return [end - start - 1 for start, end in pairwise(ends)]


@lru_cache(maxsize=128)
def _cumulative(n: int, scale: Fraction, bits: int) -> tuple[int, list[int], list[int]]:
    """Lower and upper bounds, in units of `2^-bits` of the first weight, on the sums of the weights
    `C(n, i)^2 exp(-i / scale)` below each i = 0..n, and of all; with the first i, which is 0.

    Up to n = 1000 and with 128 bits an inversion is in doubt with probability below `2^-96`.
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
