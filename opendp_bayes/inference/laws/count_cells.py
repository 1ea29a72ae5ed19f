"""Cells: runs of whole numbers over which a weight is smooth, so that four of them stand for all,
by a discrete rule of Gauss and Lobatto. They are halved until the logarithm of the weight is nearly
linear in each of those that matter.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers

#: A cell at distance d from the nearest point holds about `d / _GROWTH` numbers, so a range of
#: length L has about `_GROWTH ln L` cells a point.
_GROWTH = 32
#: Below every logarithm of a weight that matters; stands for minus infinity.
NOTHING = -1e300
#: Cells that together hold less than about `exp(-_DEPTH)` of the weight are left out.
_DEPTH = 42.0
#: How much the logarithm of a weight may change over a cell that matters, and bend in it.
_CHANGE, _BEND = 0.5, 0.01
#: Cells of `exp(-_COARSER)` of it may be twice as coarse.
_COARSER = 24.0

#: `(category, counts)` to the logarithm of a weight, elementwise, for real counts.
LogWeight = Callable[[Integers, Floats], Floats]


def log_or_nothing(weights: Floats) -> Floats:
    """Logarithms of weights, `NOTHING` for 0."""
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(weights), NOTHING)


def graded_edges(last: int, around: Iterable[int]) -> Integers:
    """First numbers of consecutive cells that make up `0..last`, and `last + 1` at the end.

    Cells within `_GROWTH` of 0, of `last` or of a point of `around` hold one number each, and
    further away no more than `1 / _GROWTH` of the distance.

    Examples
    --------
    >>> graded_edges(5, around=[2]).tolist()
    [0, 1, 2, 3, 4, 5, 6]
    """
    steps = _steps(last)
    edges = np.concatenate(
        [point + sign * steps for point in {0, last, *around} for sign in (1, -1)]
    )
    return np.append(np.unique(edges[(edges >= 0) & (edges <= last)]), last + 1)


@lru_cache(maxsize=16)
def _steps(reach: int) -> Integers:
    """Distances at which cells end: every whole number at first, then further and further apart."""
    places, end = list(range(min(reach, _GROWTH) + 1)), _GROWTH
    while end < reach:
        end += max(end // _GROWTH, 1)
        places.append(end)
    return np.array(places, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Cells:
    """Runs of counts `first..last` of several laws, in the order of law and count; `category` tells
    the law, also where that is one of a sum.
    """

    category: Integers
    first: Integers
    last: Integers

    @classmethod
    def joined(cls, parts: "Sequence[Cells]") -> "Cells":
        """All cells of several, one after the other."""
        columns = [(cells.category, cells.first, cells.last) for cells in parts]
        return cls(*map(np.concatenate, zip(*columns, strict=True)))

    @cached_property
    def length(self) -> Integers:
        """Counts in each cell."""
        return self.last - self.first + 1

    @cached_property
    def nodes(self) -> Floats:
        """Four whole numbers for each cell, its ends and two inside, shape `(cells, 4)`."""
        middle, inside = (self.first + self.last) / 2, self._inside
        return np.stack([self.first, middle - inside, middle + inside, self.last], axis=1)

    @cached_property
    def node_weights(self) -> Floats:
        """The weights with which the sum over the nodes is the sum over the cell, shape
        `(cells, 4)`: exact for polynomials of degree 3, and of long cells nearly so of degree 5 (a
        discrete rule of Gauss and Lobatto). A node that is not needed has weight 0.
        """
        length = self.length.astype(np.float64)
        inside = self._inside**2
        spread, reach = (length**2 - 1) / 12 - inside, ((length - 1) / 2) ** 2 - inside
        outer = np.divide(spread, reach, out=np.zeros_like(length), where=reach > 0) / 2 * length
        outer[self.length == 2] = 1.0  # the ends are all there is
        inner = length / 2 - outer
        single = inside == 0  # both inner nodes are the middle
        return np.stack([outer, inner * (1 + single), inner * ~single, outer], axis=1)

    @cached_property
    def _inside(self) -> Floats:
        """Distances of the inner nodes from the middle at which the means of x² and x⁴ over a cell
        are those over its nodes, moved to whole numbers; 0 for a single middle.
        """
        length = self.length.astype(np.float64)
        end, square = ((length - 1) / 2) ** 2, (length**2 - 1) / 12
        fourth = square * (3 * length**2 - 7) / 20
        long, parity = length > 3, (length + 1) % 2 / 2
        squared = np.divide(
            end * square - fourth, end - square, out=np.zeros_like(length), where=long
        )
        return np.where(long, np.rint(np.sqrt(squared) - parity) + parity, parity)

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """True for nodes that have a weight, shape `(cells, 4)`."""
        return self.node_weights > 0

    def log_masses(self, log_weight: LogWeight) -> Floats:
        """The logarithms of the sums of weights that the nodes stand for, shape `(cells, 4)`."""
        used = self.used
        values = np.full(used.shape, -np.inf)
        category = np.broadcast_to(self.category[:, None], used.shape)
        log_values = log_weight(category[used], self.nodes[used])
        values[used] = log_values + np.log(self.node_weights[used])
        return values

    def log_sums(self, log_masses: Floats) -> Floats:
        """The logarithm of the sum of the masses of each category's cells."""
        parts = Segments.of(self.category)
        largest = parts.largest(log_masses.max(axis=1))
        masses = np.exp(log_masses - largest[parts.owner, None])
        return largest + np.log(parts.sums(masses.sum(axis=1)))

    def where(self, chosen: Integers | NDArray[np.bool_] | slice) -> "Cells":
        """Some of the cells."""
        return Cells(self.category[chosen], self.first[chosen], self.last[chosen])

    def within(self, lower: Integers, upper: Integers) -> "Cells":
        """The parts of the cells between bounds of each category, of shape `(k,)`."""
        first = np.maximum(self.first, lower[self.category])
        last = np.minimum(self.last, upper[self.category])
        return Cells(self.category, first, last).where(first <= last)

    def cut(self, pieces: Integers) -> "Cells":
        """Every cell cut evenly into so many pieces, at most one for each count."""
        pieces = np.clip(pieces, 1, self.length)
        cell = np.repeat(np.arange(pieces.size), pieces)
        position = np.arange(cell.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        # The quotient and the remainder apart: their product could leave the machine's integers.
        length, more = np.divmod(self.length, pieces)
        first = self.first[cell] + position * length[cell] + np.minimum(position, more[cell])
        last = first + length[cell] - 1 + (position < more[cell])
        return Cells(self.category[cell], first, last)


def cells_from(seeds: Floats, low: Floats, high: Floats) -> Cells:
    """Cells of every row from each of its seeds, shape `(rows, m)`, to the next."""
    rows = np.repeat(np.arange(low.size), seeds.shape[1])
    return cells_between(rows, seeds.ravel(), low, high)


def cells_between(row: Integers, first: Floats, low: Floats, high: Floats) -> Cells:
    """Cells of rows that begin at numbers in any order, and at the lowest of each."""
    kept = (first > low[row]) & (first <= high[row])
    row, start = row[kept], np.floor(first[kept]).astype(np.int64)
    row = np.append(row, np.arange(low.size))
    start = np.append(start, np.floor(low).astype(np.int64))
    order = np.lexsort((start, row))
    row, start = row[order], start[order]
    new = (np.diff(row, prepend=-1) != 0) | (np.diff(start, prepend=-1) != 0)
    row, start = row[new], start[new]
    last = np.append(start[1:] - 1, 0)
    final = np.diff(row, append=-1) != 0
    last[final] = np.floor(high[row[final]]).astype(np.int64)
    return Cells(row, start, last)


def refined(log_weight: LogWeight, cells: Cells, k: int, coarse: float = 1.0) -> Cells:
    """The cells halved until the weight is smooth in each, without those that matter nothing; it
    may change and bend more where they are `coarse`.

    No cell may hold a mode of the weight in its inside.
    """
    largest, done = np.full(k, NOTHING), list[Cells]()
    while cells.first.size:
        category, length = cells.category, cells.length
        counts = np.concatenate([cells.first, (cells.first + cells.last) / 2, cells.last])
        left, middle, right = np.split(log_weight(np.tile(category, 3), counts), 3)
        low, high = np.minimum(np.minimum(left, right), middle), np.maximum(left, right)
        log_length = np.log(length)
        np.maximum.at(largest, category, low + log_length)
        deficit = largest[category] - (high + log_length)
        slack = coarse * (1 + np.maximum(deficit, 0) / _COARSER)
        smooth = (np.abs(left - right) <= _CHANGE * slack) & (
            np.abs(left + right - 2 * middle) <= _BEND * slack
        )
        kept, smooth = deficit <= _DEPTH, smooth | (length == 1)
        done.append(cells.where(kept & smooth))
        cells = cells.where(kept & ~smooth)
        cells = cells.cut(np.full_like(cells.first, 2))
    whole = Cells.joined(done)
    # Cells from early rounds were kept while better ones were not yet known.
    return whole.where(np.lexsort((whole.first, whole.category)))
