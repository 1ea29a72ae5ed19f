"""Laws of drawing records, without or with replacement: probabilities to full relative accuracy for
databases of any size.

A draw is seen through two categories. `a` and `b` records are in them, `s` records are drawn from
the two, `k` of these from the first. Counts up to `LARGEST_SIZE`, so that a product of two of them
is exact in 64 bits.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.extend import as_choice

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Replacement = Literal["without", "with"]

LARGEST_SIZE = 10**9

#: Stirling's series for `ln n! - (n ln n - n + ln(2 pi n) / 2)`; the first term left out is below
#: 2^-57 from n = 16 on.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)
_TABLE = 16


@dataclass(frozen=True)
class WithoutReplacement:
    """`k` is hypergeometric. One record of the first category fewer, one of the second more, is the
    neighbour.
    """

    def log_pmf(self, k: Integers, a: Integers, b: Integers, s: Integers) -> Floats:
        """`ln P(k)`, elementwise; `log_pmf_error` bounds its error. Cells must be non-negative."""
        left = a + b - s
        cells = ((k, a, s), (a - k, a, left), (s - k, b, s), (left - a + k, b, left))
        terms = _stirling(a) + _stirling(b) + _stirling(s) + _stirling(left) - _stirling(a + b)
        return terms - sum(
            _stirling(cell) + _deviance(cell, rows, columns, a + b) for cell, rows, columns in cells
        )

    def ratio(self, k: Integers, a: Integers, b: Integers, s: Integers) -> Floats:
        """(probability of `k` for the neighbour) / (probability of `k`), within `ratio_error`."""
        return (a - k) / a * ((b + 1) / (b + 1 - s + k))

    def ratio_error(self, a: Integers, b: Integers, s: Integers) -> Floats:
        """Bound on the relative error of `ratio`, for each row: three roundings."""
        return np.full(np.shape(a), 2.0**-51)

    def step(self, k: Integers, a: Integers, b: Integers, s: Integers) -> Floats:
        """`P(k + 1) / P(k)`."""
        return (a - k) / (k + 1) * ((s - k) / (b - s + k + 1))

    def support(self, a: Integers, b: Integers, s: Integers) -> tuple[Integers, Integers]:
        """Smallest and largest possible `k`."""
        return np.maximum(s - b, 0), np.minimum(a, s)


@dataclass(frozen=True)
class WithReplacement:
    """`k` is binomial with probability `a / (a + b)`."""

    def log_pmf(self, k: Integers, a: Integers, b: Integers, s: Integers) -> Floats:
        terms = _stirling(s) - _stirling(k) - _stirling(s - k)
        return terms - _deviance(k, a, s, a + b) - _deviance(s - k, b, s, a + b)

    def ratio(self, k: Integers, a: Integers, b: Integers, s: Integers) -> Floats:
        with np.errstate(divide="ignore", over="ignore"):
            fewer, more = np.log1p(-1 / np.maximum(a, 1)), np.log1p(1 / np.maximum(b, 1))
            return np.exp(np.where(k > 0, k, 1) * np.where(k > 0, fewer, 0.0) + (s - k) * more)

    def ratio_error(self, a: Integers, b: Integers, s: Integers) -> Floats:
        # The exponent has terms of at most 2 s / a, for a >= 2, and s / b, each with five
        # roundings.
        return 2.0**-50 + 2.0**-50 * (2 * s / np.maximum(a, 1) + s / np.maximum(b, 1))

    def step(self, k: Integers, a: Integers, b: Integers, s: Integers) -> Floats:
        return (s - k) / (k + 1) * (a / np.maximum(b, 1))

    def support(self, a: Integers, b: Integers, s: Integers) -> tuple[Integers, Integers]:
        return np.where(b > 0, 0, s), s + np.zeros_like(a)


Draw = WithoutReplacement | WithReplacement
DRAWS: dict[Replacement, Draw] = {"without": WithoutReplacement(), "with": WithReplacement()}


def draw_of(replacement: Replacement) -> Draw:
    """Return the draw of that name; `ValueError` for another name."""
    return DRAWS[as_choice(replacement, "replacement", ("without", "with"))]


def log_sampled(draw: Draw, counts: Integers, histograms: Integers) -> Floats:
    """`ln P` of each histogram of a sample from a database with these counts, shape of a column;
    minus infinity for impossible ones. Within 2^-36 for up to 6 categories.

    Category by category: given those before, the number drawn from one is a draw from two.
    """
    left, samples_left = counts.sum(), histograms.sum(axis=1)
    logs, possible = np.zeros(len(histograms)), np.ones(len(histograms), dtype=np.bool_)
    for a, k in zip(counts[:-1], histograms.T[:-1], strict=True):
        low, high = draw.support(a + 0 * k, left - a + 0 * k, samples_left)
        possible &= (low <= k) & (k <= high) & ((a > 0) | (k == 0))
        cells = (np.where(possible, cell, 0) for cell in (k, a, left - a, samples_left))
        logs += draw.log_pmf(*cells)
        left, samples_left = left - a, samples_left - k
    return np.where(possible & ((samples_left == 0) | (counts[-1] > 0)), logs, -np.inf)


def log_pmf_error(log_p: Floats) -> Floats:
    """Bound on the error of `log_pmf` (`docs/smoothed.md`, "Numerics"): 2^-44 for the
    Stirling parts, 2^-46 of the deviances, whose sum is `-log_p` but for at most 48.
    """
    return 2.0**-44 + 2.0**-46 * (np.abs(log_p) + 48.0)


def log_factorial(n: Integers) -> Floats:
    """`ln n!` for an array of counts."""
    n = np.asarray(n, dtype=np.int64)
    return np.where(n > 0, n * np.log(np.maximum(n, 1)) - n, 0.0) + _stirling(n)


def _stirling(n: Integers) -> Floats:
    """`ln n! - (n ln n - n)`: `ln(2 pi n) / 2` and Stirling's series from `_TABLE` on, 0 at 0."""
    n = np.asarray(n)
    large = np.maximum(n, _TABLE).astype(np.float64)
    inverse = 1 / large
    square = inverse * inverse
    series = np.zeros_like(large)
    for coefficient in reversed(_STIRLING):
        series = series * square + coefficient
    return np.where(
        n < _TABLE,
        _SMALL_RESTS[np.minimum(n, _TABLE - 1)],
        np.log(2 * np.pi * large) / 2 + series * inverse,
    )


def _small_rests() -> Floats:
    n = np.arange(1, _TABLE)
    # ln n! + n - n ln n, from products that are exact and sums of at most five digits before the
    # point.
    exact = np.log(np.cumprod(n.astype(np.float64)))
    return np.concatenate([[0.0], exact + n - n * np.log(n)])


_SMALL_RESTS = _small_rests()


def _deviance(cell: Integers, row: Integers, column: Integers, total: Integers) -> Floats:
    """`x ln(x / m) - x + m >= 0` with `m = row column / total`, from the difference `x - m`, whose
    numerator is exact in 64 bits (Loader 2000).
    """
    expected = row * column
    excess = cell * total - expected
    possible = expected > 0
    relative = np.where(possible, excess / np.where(possible, expected, 1), 0.0)
    return np.where(possible, expected / np.maximum(total, 1) * entropy_gap(relative), 0.0)


def entropy_gap(x: Floats) -> Floats:
    """`(1 + x) ln(1 + x) - x >= 0` for `x >= -1`, elementwise, by its series near 0."""
    small = np.abs(x) < 0.1
    near = np.where(small, x, 0.0)
    series = np.zeros(np.shape(x))
    for n in range(18, 1, -1):
        series = 1 / (n * (n - 1)) - near * series
    direct = np.where(small | (x <= -1), 1.0, x)
    far = np.where(x <= -1, 1.0, (1 + direct) * np.log1p(direct) - direct)
    return np.where(small, series * near * near, far)
