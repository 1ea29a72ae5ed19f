"""What completes a count: the sum of the others, and the number of records."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from opendp_bayes.inference.convolution.tilted_counts import Windows
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells
from opendp_bayes.inference.laws.refinement import refined
from opendp_bayes.mathematics.validation import Floats, Integers

#: Counts whose completions are found at once.
_ROWS = 128


class Law(Protocol):
    """A law on the whole numbers from `lowest` to `highest`."""

    @property
    def lowest(self) -> float:
        """Smallest number."""
        ...

    @property
    def highest(self) -> float:
        """Largest number."""
        ...

    @property
    def seeds(self) -> Integers:
        """Numbers between which it has no narrow peak."""
        ...

    @property
    def is_smooth(self) -> bool:
        """Whether it hardly changes over a small part of its deviation."""
        ...

    @property
    def deviation(self) -> float:
        """Its standard deviation, about."""
        ...

    @property
    def log_peak(self) -> float | None:
        """Logarithm of its largest probability; None where that is not known."""
        ...

    def log_density(self, values: Floats) -> Floats:
        """Logarithms of the probabilities, also between whole numbers."""
        ...


@dataclass(frozen=True, eq=False)
class OneCount:
    """The law of one row of windows."""

    windows: Windows
    row: int

    @cached_property
    def _part(self) -> slice:
        return slice(*np.searchsorted(self.windows.cells.category, [self.row, self.row + 1]))

    @cached_property
    def cells(self) -> Cells:
        """The cells of the row."""
        return self.windows.cells.alone(self._part)

    @property
    def log_masses(self) -> Floats:
        """Logarithms of the probabilities of their nodes."""
        return self.windows.log_masses[self._part]

    @property
    def lowest(self) -> float:
        return float(self.cells.first[0])

    @property
    def highest(self) -> float:
        return float(self.cells.last[-1])

    @property
    def seeds(self) -> Integers:
        return np.append(self.cells.first, self.cells.last[-1:])

    @property
    def is_smooth(self) -> bool:
        return False

    @property
    def deviation(self) -> float:
        return float(np.sqrt(self.windows.variance[self.row]))

    @cached_property
    def log_peak(self) -> float | None:
        return float(self.log_density(self.seeds.astype(np.float64)).max())  # modes are seeds

    def log_density(self, values: Floats) -> Floats:
        inside = (values >= self.lowest) & (values <= self.highest)
        safe = np.clip(values, self.lowest, self.highest)
        row = np.full(safe.shape, self.row)
        return np.where(inside, self.windows.log_probability(row, safe), NOTHING)


#: Places, numbers and logarithms of weights: of what completes the counts, one count after another.
Pairs = tuple[Integers, Floats, Floats]


@dataclass(frozen=True, eq=False)
class ListedTotals:
    """Totals one by one, shape `(rows, B)`, with the logarithms of their weights, shape `(B,)`."""

    totals: Floats
    log_weights: Floats

    @property
    def some(self) -> Floats:
        """The ends and the middle, shape `(rows, 3)` at most."""
        last = self.totals.shape[1] - 1
        return self.totals[:, np.unique([0, last // 2, last])]

    @property
    def is_point(self) -> bool:
        """Whether there is only one."""
        return self.totals.size == 1

    def pairs(self, rest: Law, row: Integers, counts: Floats) -> Pairs:
        """What the others can sum to, given the counts."""
        left = self.totals[row] - counts[:, None]
        place = np.repeat(np.arange(counts.size), left.shape[1])
        return place, left.ravel(), (self.log_weights + rest.log_density(left)).ravel()

    def log_sums(self, rest: Law, row: Integers, counts: Floats) -> Floats:
        """Logarithms of the sums of the weights of what completes the counts."""
        if self.is_point:
            return self.pairs(rest, row, counts)[2]
        return _summed(*self.pairs(rest, row, counts))


@dataclass(frozen=True, eq=False)
class WeightedTotals:
    """Totals with a weight that is smooth between its seeds, from `lowest` to `highest`; `some` are
    where they probably are, shape `(1, m)`.
    """

    log_weight: Callable[[Floats], Floats]
    seeds: Integers
    lowest: float
    highest: float
    some: Floats

    def pairs(self, rest: Law, row: Integers, counts: Floats) -> Pairs:
        """What the others can sum to, given the counts: in cells for each count."""
        found = []
        for start in range(0, counts.size, _ROWS):
            place, left, log_weights = self._pairs(rest, counts[start : start + _ROWS])
            found.append((place + start, left, log_weights))
        place, left, log_weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return place, left, log_weights

    def _pairs(self, rest: Law, counts: Floats) -> Pairs:
        lowest = np.maximum(rest.lowest, np.ceil(self.lowest - counts))
        highest = np.maximum(np.minimum(rest.highest, np.floor(self.highest - counts)), lowest)
        seeds = np.broadcast_to(rest.seeds, (counts.size, rest.seeds.size))
        starts = np.concatenate([seeds, np.floor(self.seeds - counts[:, None])], axis=1)

        def log_weight(place: Integers, left: Floats) -> Floats:
            total = left + counts[place]
            inside = (total >= self.lowest) & (total <= self.highest)
            weight = self.log_weight(np.clip(total, self.lowest, self.highest))
            return np.maximum(np.where(inside, weight, NOTHING) + rest.log_density(left), NOTHING)

        cells = refined(log_weight, runs(starts, lowest, highest), counts.size)
        log_masses = cells.log_masses(log_weight)
        used = cells.used
        place = np.broadcast_to(cells.category[:, None], used.shape)[used]
        return place, cells.nodes[used], log_masses[used]

    def log_sums(self, rest: Law, row: Integers, counts: Floats) -> Floats:
        """Logarithms of the sums of the weights of what completes the counts."""
        return _summed(*self.pairs(rest, row, counts))


def _summed(place: Integers, left: Floats, log_weights: Floats) -> Floats:
    del left
    start = np.flatnonzero(np.diff(place, prepend=-1))
    top = np.maximum.reduceat(log_weights, start)
    total = np.add.reduceat(np.exp(log_weights - top[place]), start)
    return np.maximum(top + np.log(total), NOTHING)


def runs(starts: Floats, lowest: Floats, highest: Floats) -> Cells:
    """Cells of every row from each of its starts to the next, between its bounds."""
    every = np.concatenate([starts, lowest[:, None]], axis=1)
    clipped = np.clip(every, lowest[:, None], highest[:, None])
    first: Integers = np.sort(clipped, axis=1).astype(np.int64)
    ends = np.concatenate([first[:, 1:] - 1, highest[:, None].astype(np.int64)], axis=1)
    row = np.repeat(np.arange(len(first)), first.shape[1])
    cells = Cells(row, first.ravel(), ends.ravel())
    return cells.where(cells.first <= cells.last)
