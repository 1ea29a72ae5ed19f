"""Where the counts can be: cells of counts of every category, placed and tilted by the weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.weights import Categories
from opendp_bayes.mathematics.validation import Floats, Integers

#: Cells that together weigh less than about `exp(-_DEPTH)` of all are left out.
_DEPTH = 42.0
#: How much the logarithm of a weight may change over a cell that matters, and bend in it.
_CHANGE, _BEND = 0.5, 0.04
#: Cells of `exp(-_COARSER)` of the weight may be twice as coarse.
_COARSER = 24.0
#: Below every logarithm of a weight that matters; stands for minus infinity.
NOTHING = -1e300

#: `(category, counts)` to the logarithm of a weight, elementwise, for real counts.
LogWeight = Callable[[Integers, Floats], Floats]


@dataclass(frozen=True, eq=False)
class Cells:
    """Runs of counts `first..last` of categories, in the order of category and count."""

    category: Integers
    first: Integers
    last: Integers

    @property
    def length(self) -> Integers:
        """Counts in each cell."""
        return self.last - self.first + 1

    @cached_property
    def nodes(self) -> Floats:
        """Four whole numbers for each cell, its ends and its middle, shape `(cells, 4)`."""
        half = (self.length - 1) // 2
        return np.stack([self.first, self.first + half, self.last - half, self.last], axis=1) * 1.0

    @cached_property
    def node_weights(self) -> Floats:
        """The weights with which the sum over the nodes is the sum over the cell, shape
        `(cells, 4)`: exact for polynomials of degree 3. A node that is not needed has weight 0.
        """
        length = self.length.astype(np.float64)
        middle = np.where(self.length % 2, 0.0, 0.5)  # of the inner nodes from the middle
        spread = (length**2 - 1) / 12 - middle**2
        reach = (length - 1) ** 2 / 4 - middle**2
        outer = np.divide(spread, reach, out=np.zeros_like(length), where=reach > 0) / 2
        outer[self.length == 2] = 0.5
        outer *= length
        inner = (length - 2 * outer) / 2
        odd = self.length % 2 == 1
        weights = np.stack([outer, inner * (1 + odd), inner * ~odd, outer], axis=1)
        return weights

    @cached_property
    def used(self) -> NDArray[np.bool_]:
        """Which nodes have a weight, shape `(cells, 4)`."""
        return self.node_weights > 0

    def log_masses(self, log_weight: LogWeight) -> Floats:
        """The logarithms of the sums of weights that the nodes stand for, shape `(cells, 4)`."""
        used = self.used
        values = np.full(used.shape, -np.inf)
        category = np.broadcast_to(self.category[:, None], used.shape)
        found = log_weight(category[used], self.nodes[used])
        values[used] = found + np.log(self.node_weights[used])
        return values

    def where(self, chosen: Integers | NDArray[np.bool_] | slice) -> "Cells":
        """Some of the cells."""
        return Cells(self.category[chosen], self.first[chosen], self.last[chosen])

    def alone(self, part: slice) -> "Cells":
        """The cells of one category, as category 0, with what was found of all of them."""
        one = Cells(np.zeros_like(self.first[part]), self.first[part], self.last[part])
        for name in ("node_weights", "nodes", "used"):
            one.__dict__[name] = getattr(self, name)[part]
        return one

    def within(self, lower: Integers, upper: Integers) -> "Cells":
        """The parts of the cells between bounds of each category, of shape `(k,)`."""
        first = np.maximum(self.first, lower[self.category])
        last = np.minimum(self.last, upper[self.category])
        return Cells(self.category, first, last).where(first <= last)

    def cut(self, pieces: Integers) -> "Cells":
        """Every cell cut evenly into so many pieces, at most one for each count."""
        pieces = np.clip(pieces, 1, self.length)
        cell = np.repeat(np.arange(pieces.size), pieces)
        place = np.arange(cell.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        # The quotient and the remainder apart: their product could leave the machine's integers.
        each, more = np.divmod(self.length, pieces)
        first = self.first[cell] + place * each[cell] + np.minimum(place, more[cell])
        last = first + each[cell] - 1 + (place < more[cell])
        return Cells(self.category[cell], first, last)


def between(seeds: Integers) -> Cells:
    """The seeds of every category, shape `(k, m)`, one cell each, and the runs between them."""
    seeds = np.sort(seeds, axis=1)
    k, m = seeds.shape
    category = np.repeat(np.arange(k), 2 * m - 1)
    first, last = np.empty((k, 2 * m - 1), dtype=np.int64), np.empty((k, 2 * m - 1), dtype=np.int64)
    first[:, ::2] = last[:, ::2] = seeds
    first[:, 1::2], last[:, 1::2] = seeds[:, :-1] + 1, seeds[:, 1:] - 1
    last[:, ::2][:, 1:][np.diff(seeds, axis=1) == 0] = -1  # a seed that is there twice
    cells = Cells(category, first.ravel(), last.ravel())
    return cells.where(cells.first <= cells.last)


def refined(log_weight: LogWeight, cells: Cells, k: int) -> Cells:
    """The cells halved until the weight is smooth in each, without those that weigh nothing.

    No cell may hold a mode of the weight in its inside.
    """
    best = np.full(k, NOTHING)
    done: list[Cells] = []
    left, right = (
        log_weight(cells.category, ends.astype(float)) for ends in (cells.first, cells.last)
    )
    while True:
        category, length = cells.category, cells.length
        middle = log_weight(category, (cells.first + cells.last) / 2)
        low, high = np.minimum(np.minimum(left, right), middle), np.maximum(left, right)
        log_length = np.log(length)
        np.maximum.at(best, category, np.maximum(low + log_length, high))
        deficit = best[category] - high - log_length
        slack = 1 + np.maximum(deficit, 0) / _COARSER
        smooth = (np.abs(left - right) <= _CHANGE * slack) & (
            np.abs(left + right - 2 * middle) <= _BEND * slack
        )
        kept = deficit <= _DEPTH
        done.append(cells.where(kept & (smooth | (length == 1))))
        split = kept & ~smooth & (length > 1)
        if not np.any(split):
            break
        cells, left, right = _halved(log_weight, cells.where(split), left[split], right[split])
    whole = Cells(*(np.concatenate([getattr(part, name) for part in done]) for name in _FIELDS))
    # Cells from early rounds were kept while better ones were not yet known.
    return whole.where(np.lexsort((whole.first, whole.category)))


_FIELDS = ("category", "first", "last")


def _halved(
    log_weight: LogWeight, cells: Cells, left: Floats, right: Floats
) -> tuple[Cells, Floats, Floats]:
    middle = cells.first + (cells.last - cells.first) // 2
    inner = log_weight(cells.category, middle.astype(float))
    outer = log_weight(cells.category, middle + 1.0)
    halves = Cells(
        np.concatenate([cells.category, cells.category]),
        np.concatenate([cells.first, middle + 1]),
        np.concatenate([middle, cells.last]),
    )
    return halves, np.concatenate([left, outer]), np.concatenate([inner, right])


def modes(categories: Categories, tilt: float, last: int) -> Integers:
    """For every category, the inner mode of the weights times `exp(tilt x)` on `0..last`, or an end
    where there is none, shape `(k,)`.

    A prior below 1 adds a mode at 0; then the inner one is at least `bend sqrt(1 - prior)`, and
    the weight has no other beyond, for Laplace noise but its kinks.
    """
    rows = np.arange(categories.k)
    start = categories.bend * np.sqrt(np.maximum(1 - categories.prior, 0))
    low = np.minimum(np.ceil(start), last).astype(np.int64)
    high = np.full(categories.k, last)
    while np.any(low < high):
        middle = low + (high - low) // 2
        rising = categories.log_step(rows, middle) + tilt > 0
        low, high = (
            np.where(rising, np.minimum(middle + 1, high), low),
            np.where(rising, high, middle),
        )
    return low


@dataclass(frozen=True, eq=False)
class Windows:
    """The weights of every category times `exp(tilt x)`, made probabilities, in cells.

    `anchor`, of shape `(k,)`, is a count of each category relative to which its logarithms are
    taken, `log_norm` that of the sum; `mean` and `variance` are the law's.
    """

    categories: Categories
    tilt: float
    anchor: Integers
    cells: Cells
    log_norm: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, categories: Categories, tilt: float, last: int) -> "Windows":
        """Windows on `0..last`."""
        k, rows = categories.k, np.arange(categories.k)
        mode = modes(categories, tilt, last)
        columns = [mode, *categories.kinks, np.zeros(k, dtype=np.int64), np.full(k, last)]
        seeds = np.stack([np.clip(column, 0, last) for column in columns], axis=1)

        def tilted(anchor: Integers) -> LogWeight:
            def log_weight(category: Integers, counts: Floats) -> Floats:
                along = tilt * (counts - anchor[category])
                return categories.log_weight(category, counts, anchor) + along

            return log_weight

        heights = tilted(mode)(np.repeat(rows, seeds.shape[1]), seeds.ravel().astype(float))
        anchor = seeds[rows, np.argmax(heights.reshape(seeds.shape), axis=1)]
        cells = refined(tilted(anchor), between(seeds), k)
        log_masses = cells.log_masses(tilted(anchor))
        return cls(categories, tilt, anchor, cells, *_moments(cells, log_masses, anchor))

    def log_probability(self, category: Integers, counts: Floats) -> Floats:
        """The logarithm of the probability of each count of each category."""
        along = self.tilt * (counts - self.anchor[category])
        weight = self.categories.log_weight(category, counts, self.anchor)
        return np.asarray(weight + along - self.log_norm[category])

    def log_sum(self, multiplicity: Integers, origin: Integers) -> float:
        """The logarithm of the sum, over all counts, of the products of weights times
        `exp(tilt sum)`: every category is there so many times, and `origin` has weight 1.
        """
        rows = np.arange(multiplicity.size)
        at_anchor = self.categories.log_weight(rows, self.anchor, origin)
        return float(multiplicity @ (at_anchor + self.log_norm + self.tilt * self.anchor))

    def within(self, lower: Integers, upper: Integers) -> "Windows":
        """The same probabilities with cells only between bounds, of shape `(k,)`; mean and
        variance are those of the part.
        """
        part = replace(self, cells=self.cells.within(lower, upper))
        _, mean, variance = _moments(part.cells, part.log_masses, part.anchor)
        return replace(part, mean=mean, variance=variance)

    def cut(self, longest: Floats) -> "Windows":
        """The same probabilities in cells no longer than so many counts, of shape `(k,)`."""
        pieces = np.ceil(self.cells.length / np.maximum(longest, 1.0)[self.cells.category])
        return replace(self, cells=self.cells.cut(pieces.astype(np.int64)))

    @cached_property
    def log_masses(self) -> Floats:
        """Logarithms of the probabilities that the nodes of the cells stand for."""
        return self.cells.log_masses(self.log_probability)

    def chosen(self, rows: Integers) -> "Windows":
        """Those of some rows."""
        edges = np.searchsorted(self.cells.category, np.arange(self.categories.k + 1))
        place = np.concatenate([np.arange(edges[row], edges[row + 1]) for row in rows])
        category = np.repeat(np.arange(rows.size), np.diff(edges)[rows])
        cells = Cells(category, self.cells.first[place], self.cells.last[place])
        chosen = self.anchor[rows], cells, self.log_norm[rows], self.mean[rows], self.variance[rows]
        return Windows(self.categories.chosen(rows), self.tilt, *chosen)

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """The smallest and the largest count of each category that has a cell."""
        edges = np.searchsorted(self.cells.category, np.arange(self.categories.k + 1))
        return self.cells.first[edges[:-1]], self.cells.last[edges[1:] - 1]


def _moments(cells: Cells, log_masses: Floats, anchor: Integers) -> tuple[Floats, Floats, Floats]:
    """Logarithm of the sum of the masses, mean and variance for each category."""
    starts = np.flatnonzero(np.diff(cells.category, prepend=-1))
    largest = np.maximum.reduceat(log_masses.max(axis=1), starts)
    masses = np.exp(log_masses - largest[cells.category][:, None])
    total = np.add.reduceat(masses.sum(axis=1), starts)
    masses /= total[cells.category][:, None]
    away = cells.nodes - anchor[cells.category][:, None]
    shift = np.add.reduceat((masses * away).sum(axis=1), starts)
    spread = (masses * (away - shift[cells.category][:, None]) ** 2).sum(axis=1)
    variance: Floats = np.add.reduceat(spread, starts)
    return np.log(total) + largest, np.asarray(anchor + shift), variance
