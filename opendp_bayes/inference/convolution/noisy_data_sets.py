"""Data sets of different records with the same probabilities, each released with its own noise: the
weights of one category's counts, and the windows that hold what they weigh.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.validation import Floats, Integers

#: Noise less probable than `exp(-_DEPTH)` of the largest is left out, unless a prior asks for it:
#: windows grow until what is at their ends weighs less than `exp(-_LEAST)` of the largest.
_DEPTH, _LEAST = 25.0, 30.0
#: Points of a grid on which the weights at the ends are looked at, at most, of all data sets.
_GRID = 1 << 12
#: Entries of all tables that are transformed.
_LARGEST = 1 << 25

Window = tuple[int, int]


def check_entries(entries: float) -> None:
    """Raise `ValueError` where tables of so many entries take too long."""
    if entries > _LARGEST:
        raise ValueError(
            f"releases: the tables of their counts take {entries:.2g} entries together, more than"
            f" {_LARGEST:.2g}. Combine fewer releases, or releases of less noise."
        )


@dataclass(frozen=True, eq=False)
class NoisyDataSet:
    """One data set: its counts with noise, and its number of records where that is public."""

    noisy: DrawnCounts
    size: int | None

    @property
    def highest(self) -> int:
        """No count is larger."""
        return np.iinfo(np.int64).max // 4 if self.size is None else self.size

    def middle(self, category: int) -> int:
        """The possible count that is nearest to what was drawn."""
        return min(max(int(self.noisy.drawn[category]), 0), self.highest)

    def window(self, category: int) -> Window:
        """The least and the largest of the counts of a category that the noise leaves."""
        noisy, k = self.noisy, self.noisy.drawn.size
        reach = noisy.noise.reach(_DEPTH)
        if not noisy.noised[category]:  # what the others leave
            reach = int(np.ceil(reach * np.sqrt(k - 1)))
        middle = self.middle(category)
        return max(middle - reach, 0), min(middle + reach, self.highest)

    def log_weights(self, category: int, counts: Integers) -> Floats:
        """Logarithms of `f(drawn - x) / x!`."""
        return self.noisy.log_mass(counts, category) - special.gammaln(counts + 1.0)


def widened(
    data_sets: Sequence[NoisyDataSet],
    category: int,
    alpha: float,
    rates: Floats,
    windows: Sequence[Window],
) -> tuple[list[Window], float]:
    """Windows of a category's counts in all data sets that hold the weights with a further factor
    `exp(rate x)` of the count x in each: a strong prior moves counts far from what was drawn. Also
    the sum of the counts where they weigh most.

    Raises
    ------
    ValueError
        Where that takes too large a table.
    """
    current = list(windows)
    while True:
        check_entries(float(np.prod([last - first + 1.0 for first, last in current])))
        peak, heights = _at_ends(data_sets, category, alpha, rates, current)
        wider = [
            (
                max(first - (last - first + 1), 0) if lower > -_LEAST else first,
                min(last + (last - first + 1), data_set.highest) if upper > -_LEAST else last,
            )
            for data_set, (first, last), (lower, upper) in zip(
                data_sets, current, heights, strict=True
            )
        ]
        if wider == current:
            return current, peak
        current = wider


def _at_ends(
    data_sets: Sequence[NoisyDataSet],
    category: int,
    alpha: float,
    rates: Floats,
    windows: list[Window],
) -> tuple[float, list[tuple[float, float]]]:
    """The sum of the counts of the largest weight; and for each data set the largest logarithms of
    weights at both ends of its window, relative to that. On a grid that is fine near what was
    drawn.
    """
    points = max(int(_GRID ** (1 / len(data_sets))), 5)
    pairs = zip(data_sets, windows, strict=True)
    axes = [_spread(data_set.middle(category), window, points) for data_set, window in pairs]
    grid = np.meshgrid(*axes, indexing="ij", sparse=True)
    sums = sum(grid)
    log_weights = special.gammaln(alpha + sums)
    for data_set, counts, rate in zip(data_sets, grid, rates.tolist(), strict=True):
        log_weights = log_weights + data_set.log_weights(category, counts) + rate * counts
    log_weights = log_weights - log_weights.max()
    heights = []
    for axis in range(len(axes)):
        lower, upper = (float(np.take(log_weights, end, axis).max()) for end in (0, -1))
        heights.append((lower, upper))
    peak = float(np.ravel(sums)[log_weights.argmax()])
    return peak, heights


def _spread(middle: int, window: Window, points: int) -> Integers:
    """Some of the counts of a window, its ends among them."""
    first, last = window
    if last - first < points:
        return np.arange(first, last + 1)
    away = np.geomspace(1, last - first + 1, points // 4).astype(np.int64)
    even = np.linspace(first, last, points // 2).astype(np.int64)
    counts = np.unique(np.concatenate([even, middle + away, middle - away, [middle]]))
    return counts[(counts >= first) & (counts <= last)]


def counts_of(windows: Sequence[Window]) -> list[Integers]:
    """All the counts of windows."""
    return [np.arange(first, last + 1) for first, last in windows]


def table_of(
    data_sets: Sequence[NoisyDataSet], category: int, alpha: float, windows: Sequence[Window]
) -> Floats:
    """Logarithms of the weights of a category's counts, with an axis for each data set."""
    grid = np.meshgrid(*counts_of(windows), indexing="ij", sparse=True)
    log_table = special.gammaln(alpha + sum(grid))
    for data_set, counts in zip(data_sets, grid, strict=True):
        log_table = log_table + data_set.log_weights(category, counts)
    return np.asarray(log_table)
