"""Laws of counts in cells, what the true counts are, given a release; and the mixtures of Betas
that probabilities are, given these: Betas that are nearly the same are put together by their mean
and variance.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.laws.beta_mixture import NEGLIGIBLE, BetaMixtures
from opendp_bayes.inference.laws.count_cells import Cells, LogWeight
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers

#: More than any count, and with the number of a law still a whole number of the machine.
_SPAN = np.int64(1) << 41
#: Levels of all laws at which cells are known, for each cell.
_BEGINS = 8


@dataclass(frozen=True, eq=False)
class CountLaws:
    """`m` laws on the non-negative integers, law i in the cells of category i.

    `masses`, shape `(cells, 4)`, are those of the cells' nodes; they sum to 1 for every law. Within
    a cell the logarithm of the probability is linear.
    """

    cells: Cells
    masses: Floats

    @classmethod
    def of(cls, cells: Cells, log_weight: LogWeight) -> "CountLaws":
        """The laws that are proportional to a weight, of which the logarithm is given."""
        return cls.of_masses(cells, cells.log_masses(log_weight))

    @classmethod
    def of_masses(cls, cells: Cells, log_masses: Floats) -> "CountLaws":
        """The laws that are proportional to masses of the cells' nodes, shape `(cells, 4)`."""
        shares = Segments.of(np.repeat(cells.category, 4)).shares(log_masses.ravel())
        return cls(cells, shares.reshape(-1, 4))

    @classmethod
    def of_number(cls, number: int) -> "CountLaws":
        """The law of a number that is known."""
        return cls.of_rows(np.array([[number]]), np.ones(1))

    @classmethod
    def of_rows(cls, rows: Integers, weights: Floats) -> "CountLaws":
        """The laws of the columns of weighted rows of counts, shape `(m, k)`."""
        laws = []
        for column in rows.T:
            counts, count_of = np.unique(column, return_inverse=True)
            shares = np.bincount(count_of, weights)
            counts, shares = counts[shares > 0], shares[shares > 0] / shares.sum()
            laws.append(cls.of_numbers(np.zeros_like(counts), counts, shares))
        return cls.joined(laws)

    @classmethod
    def of_numbers(cls, law: Integers, numbers: Integers, shares: Floats) -> "CountLaws":
        """The laws of numbers, each in a cell of its own with its share; all shapes `(cells,)`."""
        masses = np.zeros((numbers.size, 4))
        masses[:, 1] = shares  # a cell of one number is its second node
        return cls(Cells(law, numbers, numbers), masses)

    @classmethod
    def joined(cls, laws: "Sequence[CountLaws]") -> "CountLaws":
        """Several laws, each of them one."""
        number = np.repeat(np.arange(len(laws)), [len(law.masses) for law in laws])
        cells = replace(Cells.joined([law.cells for law in laws]), category=number)
        return cls(cells, np.concatenate([law.masses for law in laws]))

    def chosen(self, laws: Integers) -> "CountLaws":
        """Some of the laws, which may repeat."""
        parts, entries = self._parts.chosen(laws)
        cells = Cells(parts.owner, self.cells.first[entries], self.cells.last[entries])
        return CountLaws(cells, self.masses[entries])

    @cached_property
    def _parts(self) -> Segments:
        return Segments.of(self.cells.category)

    @property
    def m(self) -> int:
        """Number of laws."""
        return len(self._parts)

    @cached_property
    def _slope(self) -> Floats:
        """Change of the logarithm of the probability over each cell."""
        low, high = np.maximum(self.masses[:, 0], 1e-300), np.maximum(self.masses[:, 3], 1e-300)
        length = self.cells.length
        slope = np.log(high / low) * length / np.maximum(length - 1, 1)
        return np.where(length > 1, np.clip(slope, -600.0, 600.0), 0.0)

    @cached_property
    def _mass(self) -> Floats:
        """Probability of each cell."""
        return self.masses.sum(axis=1)

    @cached_property
    def _ascending(self) -> Floats:
        """All cells in one ascending sequence: of law i from i to i + 1."""
        return np.asarray(self.cells.category + np.minimum(self._up_to, 1.0))

    @cached_property
    def _begins(self) -> Integers:
        """The first cells that reach even levels of each law, from which draws look on."""
        number = _BEGINS * self._mass.size // max(self.m, 1)
        levels = np.arange(self.m)[:, None] + np.arange(number) / number
        return np.searchsorted(self._ascending, levels.ravel())

    @cached_property
    def _up_to(self) -> Floats:
        """Probability of each cell and those of its law below it."""
        running = np.cumsum(self._mass)
        return running - np.append(0.0, running)[self._parts.start[:-1]][self.cells.category]

    def mean(self) -> Floats:
        """Expected counts, shape `(m,)`."""
        first = self.cells.nodes[self._parts.start[:-1], 0]
        return first + self._sums(self.masses * (self.cells.nodes - self._of_cells(first)))

    def std(self) -> Floats:
        """Standard deviations, shape `(m,)`."""
        away = self.cells.nodes - self._of_cells(self.mean())
        return np.asarray(np.sqrt(self._sums(self.masses * away**2)))

    def cdf(self, values: ArrayLike) -> Floats:
        """P(x <= value) at values of shape `(..., m)` or `(..., 1)`; shape `(..., m)`."""
        values = np.floor(np.asarray(values, dtype=np.float64))
        values = np.broadcast_to(values, (*values.shape[:-1], self.m))
        first, mass = self.cells.first, self._mass
        # All laws in one ascending sequence of whole numbers: law i from i * _SPAN on.
        within = np.clip(np.nan_to_num(values), 0, _SPAN - 1).astype(np.int64)
        key = np.arange(self.m) * _SPAN + within
        cell = np.searchsorted(self.cells.category * _SPAN + first, key, side="right") - 1
        cell = np.maximum(cell, self._parts.start[:-1])
        share = (values - first[cell] + 1) / self.cells.length[cell]
        inside = _risen(self._slope[cell], np.clip(share, 0, 1))
        return np.clip(self._up_to[cell] - mass[cell] * (1 - inside), 0.0, 1.0)

    def pmf(self, values: ArrayLike) -> Floats:
        """P(x = value) at whole numbers of shape `(..., m)` or `(..., 1)`; shape `(..., m)`."""
        values = np.asarray(values, dtype=np.float64)
        return np.maximum(self.cdf(values) - self.cdf(values - 1), 0.0)

    def quantile(self, probabilities: ArrayLike) -> Integers:
        """The smallest counts whose `cdf` is at least the probabilities, of shape `()`, `(..., 1)`
        or `(..., m)`; shape `(..., m)`.
        """
        wanted = np.asarray(probabilities, dtype=np.float64)
        wanted = np.broadcast_to(wanted, (*wanted.shape[:-1], self.m))
        return self._counts_at(np.arange(self.m), wanted)

    def draw(self, laws: Integers, draws: int, rng: np.random.Generator) -> Integers:
        """So many draws from each of some laws, shape `(laws, draws)`."""
        return self._counts_at(laws[:, None], rng.random((laws.size, draws)))

    def _counts_at(self, laws: Integers, level: Floats) -> Integers:
        """The counts at levels of the cumulative probabilities of laws, which are broadcast."""
        end = self._parts.start[laws + 1] - 1
        level = level * self._up_to[end]  # the last is 1 but for rounding
        key = laws + level * (1 - 1e-15)
        place = (key * (self._begins.size // max(self.m, 1))).astype(np.int64)
        cell = self._begins.take(place, mode="clip")
        late = self._ascending[cell] < key
        cell[late] = np.searchsorted(self._ascending, key[late])
        cell = np.clip(cell, self._parts.start[laws], end)  # rounding may miss the law
        counts = self.cells.first[cell]
        inside = self.cells.length[cell] > 1
        cell, level = cell[inside], level[inside]
        below = (self._up_to[cell] - level) / np.maximum(self._mass[cell], 1e-300)
        share, length = _place(self._slope[cell], np.clip(1 - below, 0, 1)), self.cells.length[cell]
        offset = np.clip(np.ceil(share * length - 1e-9) - 1, 0, length - 1)
        counts[inside] += offset.astype(np.int64)
        return counts

    def _of_cells(self, values: Floats) -> Floats:
        """Values of the laws for each of their cells, shape `(cells, 1)`."""
        return values[self.cells.category][:, None]

    def _sums(self, values: Floats) -> Floats:
        return self._parts.sums(values.sum(axis=1))


def _risen(slope: Floats, share: Floats) -> Floats:
    """The part of a cell's probability in the first `share` of its length."""
    steep = np.abs(slope) > 1e-9
    safe = np.where(steep, slope, 1.0)
    # Mirrored where the slope is positive, so that nothing overflows.
    falling = -np.abs(safe)
    position = np.where(slope > 0, 1 - share, share)
    risen = np.expm1(falling * position) / np.expm1(falling)
    return np.where(steep, np.where(slope > 0, 1 - risen, risen), share)


def _place(slope: Floats, risen: Floats) -> Floats:
    """Inverse of `_risen`."""
    steep = np.abs(slope) > 1e-9
    falling = -np.abs(np.where(steep, slope, 1.0))
    mirrored = np.where(slope > 0, 1 - risen, risen)
    position = np.log1p(mirrored * np.expm1(falling)) / falling
    return np.where(steep, np.where(slope > 0, 1 - position, position), risen)


#: The share of a cell that is longer than its Beta is wide, at most.
_LARGEST_SHARE = 1 / 300
#: Betas are put together that lie within this share of their own deviation, with deviations so near
#: in logarithms of variances, and none wider than this in logits; those of small counts only with
#: others of the same count.
_NEAR, _NEARLY, _WIDEST, _SMALL = 0.7, 0.5, 0.2, 6.0
#: Bins of counts are as wide as this part of the deviation of their Betas, or of the counts.
_WIDTH, _PART = 0.5, 0.5
#: An odd number without a pattern, for keys.
_MIXER = np.int64(-7046029254386353131)


def short_cells(law: CountLaws, alpha: Floats, others: Floats, size: float) -> Cells:
    """Cut cells of the laws until those that are longer than their Betas are wide hold little.

    `alpha` and `others`, shape `(m,)`, are the priors of each law's category and of all other
    categories; `size` is about the number of records.
    """
    cells, shares = law.cells, law.masses.sum(axis=1)
    row, middle = cells.category, (cells.first + cells.last) / 2
    left = np.minimum(np.maximum(size - middle, 0.0), np.maximum(size - law.mean(), 0.0)[row])
    slope = 1 / (alpha[row] + middle) + 1 / (others[row] + left)
    # Relative to the deviations of their Betas.
    lengths = cells.length * np.sqrt(slope)
    seen = shares > NEGLIGIBLE
    pieces = np.ceil(np.minimum(lengths, shares / _LARGEST_SHARE))[seen].astype(np.int64)
    return cells.where(seen).cut(pieces)


def binned(
    law: CountLaws, alpha: Floats, others: Floats, size: float, given: Floats
) -> tuple[Integers, Floats, Floats]:
    """Real counts that stand for those in bins, two for each, with its mean and variance: the law
    of each, its probability and the count.

    Bins are short beside their Betas, and beside the deviations of the counts given the number of
    records, `given`, shape `(m,)`.
    """
    cells = law.cells
    row, middle = cells.category, (cells.first + cells.last) / 2
    # In deviations of Betas, at least, whatever the number of records.
    place = 2 * np.sqrt(alpha[row] + middle)
    place -= 2 * np.sqrt(others[row] + np.maximum(size - middle, 0.0))
    place += middle / np.sqrt(others + np.maximum(size - law.mean(), 0.0))[row]
    new = np.diff(row, prepend=-1) != 0
    bins = np.floor(place / _WIDTH + middle / (_PART * np.maximum(given[row], 0.1)))
    parts = Segments.of(np.cumsum(new | (np.diff(bins, prepend=-1) != 0)))
    mass = parts.sums(law.masses.sum(axis=1))
    mean = parts.sums((law.masses * cells.nodes).sum(axis=1)) / np.maximum(mass, 1e-300)
    off = law.masses * (cells.nodes - mean[parts.owner, None]) ** 2
    away = np.sqrt(parts.sums(off.sum(axis=1)) / np.maximum(mass, 1e-300))
    several = np.flatnonzero(away > 0)
    every = np.append(np.arange(mass.size), several)  # the second number of a bin comes at the end
    mass[several] /= 2
    mean[several] -= away[several]
    x = np.append(mean, mean[several] + 2 * away[several])
    return row[parts.start[:-1]][every], mass[every], np.maximum(x, 0.0)


def grouped(
    a: Floats, b: Floats, weights: Floats, counts: Floats, left: Floats, row: Integers
) -> BetaMixtures:
    """Mixtures of the rows, with Betas put together that are nearly the same; all shapes `(c,)`.

    `counts` and `left` are the records in the category and in the others: Betas of few records stay
    apart.
    """
    order = np.argsort(row, kind="stable")
    a, b, weights, row = a[order], b[order], weights[order], row[order]
    counts, left = counts[order], np.maximum(left[order], 0)
    width = np.floor(np.logaddexp(-np.log(a), -np.log(b)) / _NEARLY)
    deviation = np.minimum(np.exp((width + 0.5) * _NEARLY / 2), _WIDEST)
    place = np.floor((np.log(a) - np.log(b)) / (_NEAR * deviation))
    key = np.zeros(a.shape, dtype=np.int64)
    small = [np.where(x < _SMALL, np.rint(4 * np.maximum(x, 0)), -1) for x in (counts, left)]
    for column in (width, place, *small):  # two of the 2^64 keys hardly ever agree
        key = (key ^ column.astype(np.int64)) * _MIXER
        key ^= key >> 29
    return BetaMixtures.grouped(a, b, weights, key, row)
