"""Laws of sums of independent counts: one product of transforms for each.

Every law is held where it is and as finely as it needs: in steps of about a tenth of the narrowest
thing in it, and finer where it reaches 0.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import fft

from opendp_bayes.inference.convolution.lattices import Lattices, Row, aligned, quantiles, spread
from opendp_bayes.inference.convolution.tilted_counts import TiltedCounts
from opendp_bayes.mathematics.all_but_one import products_of_others
from opendp_bayes.mathematics.validation import Floats, Integers

#: Steps are no longer than this share of the narrowest deviation in a law, nor of its range.
_STEP, _SHARE = 0.14, 1 / 40
#: Deviations of a sum that are added to the reach of its widest count.
_REACH = 9.0
#: Where nothing is within so many deviations of the mean, narrow is this part of the deviation: the
#: Betas of small sums differ.
_FAR, _PART = 4.0, 1 / 16
#: Points that a cubic reads beyond the end of a law.
_END = 4
#: The most points of a lattice, about.
_MOST_POINTS = 1 << 17
#: The most points of any transform; where counts would take more, steps are longer.
_LONGEST = 1 << 20
#: Counts go on for this share of their range beyond what is needed of them, and laws for so many
#: steps, so that they have no edge there.
_MORE, _BEYOND = 1 / 6, 6
#: The fourth cumulants of so many counts change by about the fourth power of their steps, for a
#: relative change of their sum's density of 1e-4.
_CUMULANT = 3e-3
#: Numbers of transforms that are made at once.
_BLOCK = 1 << 22
#: Of the largest mass, the error of a transform.
_ROUNDING = 1e-15

_NO_LAW: Row = (0, 1, np.zeros(4))
#: Rows of counts, and how often each is in a sum; all of them but one of each row are None.
Part = tuple[Integers, Integers]
Parts = Sequence[Part] | None


@dataclass(frozen=True, eq=False)
class Outline:
    """Moments, ends and the narrowest deviations of laws that are not computed yet, from which
    their lattices follow; arrays of shape `(laws,)`.
    """

    mean: Floats
    variance: Floats
    low: Floats
    high: Floats
    narrow: Floats

    @classmethod
    def of_sums(cls, known: Floats) -> "Outline":
        """Those of sums, of which is known, shape `(7, laws)`: mean and variance, the ends of all
        their counts together, the sum of the squares of what is narrow in each count, and how far
        the ends of the widest count are from its mean.
        """
        mean, variance, lowest, highest, squares, below, above = known
        variance = np.maximum(variance, 0.0)
        deviation = np.sqrt(variance)
        far = _REACH * deviation
        low = np.maximum(lowest, np.floor(mean - below - far))
        high = np.maximum(np.minimum(highest, np.ceil(mean + above + far)), low)
        longest = np.maximum(_SHARE * (high - low), 1.0) / _STEP
        narrow = np.maximum(mean - _FAR * deviation, _PART * deviation)
        narrow = np.minimum(narrow, np.sqrt(np.maximum(squares, 0.0)))
        return cls(mean, variance, low, high, np.minimum(narrow, longest))

    def within(self, low: Floats, high: Floats) -> "Outline":
        """Cut the ends off a few steps beyond bounds."""
        beyond = _BEYOND * self.step
        new_low = np.minimum(np.maximum(self.low, np.floor(low - beyond)), self.high)
        new_high = np.maximum(np.minimum(self.high, np.ceil(high + beyond)), new_low)
        return replace(self, low=new_low, high=new_high)

    @property
    def step(self) -> Integers:
        """Steps of their lattices, powers of two."""
        wanted = np.floor(np.log2(np.maximum(_STEP * self.narrow, 1.0)))
        least = np.ceil(np.log2(np.maximum((self.high - self.low) / _MOST_POINTS, 1.0)))
        return np.exp2(np.maximum(wanted, least)).astype(np.int64)

    def lattice(self, step: int, some: Integers) -> tuple[Integers, Integers]:
        """Origins and numbers of points of some of them with this step."""
        origin = np.floor(self.low[some] / step).astype(np.int64) * step
        points = np.ceil((self.high[some] - origin) / step).astype(np.int64) + 1
        return origin, np.maximum(points, 4)


@dataclass(frozen=True, eq=False)
class SumLaws:
    """Laws of sums, a row each: on lattices, and of single counts as they are.

    Attributes
    ----------
    whole : Lattices
        Each on a lattice; nothing for counts whose law is read from `counts`.
    leaf : ndarray of int
        The row of `counts` that a sum of one is, or -1.
    counts : TiltedCounts
        The laws of single counts.
    outline : Outline
        Moments and ends.
    """

    whole: Lattices
    leaf: Integers
    counts: TiltedCounts
    outline: Outline

    def density(self, row: Integers, sums: Floats) -> Floats:
        """The probability of each sum in each row, elementwise."""
        found, single = self.whole.density(row, sums), self.leaf[row]
        exact = single >= 0
        if np.any(exact):
            log_found = self.counts.log_probability(single[exact], np.maximum(sums[exact], 0.0))
            found[exact] = np.where(sums[exact] >= 0, np.exp(log_found), 0.0)
        return found

    @property
    def narrow(self) -> Floats:
        """The least that a deviation within each law can be, but near 0, shape `(rows,)`."""
        return np.where(self.whole.step > 1, self.whole.step / _STEP, 1.0)

    def seeds(self) -> Floats:
        """Sums between which no law has a narrow peak, shape `(rows, m)`."""
        near = np.append(0.0, 2.0 ** np.arange(int(np.log2(self.whole.step.max())) + 8))
        beside = np.broadcast_to(near, (self.whole.step.size, near.size))
        return np.concatenate([quantiles(self.whole), beside], axis=1)

    def starts(self) -> tuple[Integers, Floats]:
        """Rows, and sums at which cells of their laws may begin: between these no law has a narrow
        peak. Single counts have them where their own cells begin and end.
        """
        laws, cells = self.leaf.size, self.counts.cells
        single = np.flatnonzero(self.leaf >= 0)
        place = np.full(self.counts.mean.size, -1)
        place[self.leaf[single]] = single
        row, seeds = place[cells.category], np.zeros((laws, 0))
        if single.size < laws:
            seeds = self.seeds()
        every = np.concatenate([row, row, np.repeat(np.arange(laws), seeds.shape[1])])
        first = np.concatenate([cells.first, cells.last + 1, seeds.ravel()])
        return every[every >= 0], first[every >= 0]


class Sums:
    """Sums of independent counts, of some rows or of all but one of each row.

    Parameters
    ----------
    counts : TiltedCounts
        The laws of different counts, which are cut where nothing of them is needed.
    times : ndarray of int
        How often each is there.
    lowest, highest : float
        Of the sum of all that matters.
    """

    def __init__(
        self, counts: TiltedCounts, times: Integers, lowest: float, highest: float
    ) -> None:
        self._times, self._lowest, self._highest = times, lowest, highest
        for _ in range(3):
            low, high = (end.astype(np.float64) for end in counts.ends)
            least, most = (times @ end - end for end in (low, high))
            at_least, at_most = lowest - most, highest - least
            at_least = at_least - _MORE * np.maximum(high - at_least, 32.0)
            at_most = at_most + _MORE * np.maximum(at_most - low, 32.0)
            if np.all((low >= at_least) & (high <= at_most)):
                break
            counts = counts.within(np.maximum(low, at_least), np.minimum(high, at_most))
        self.counts = counts
        self._low, self._high = (end.astype(np.float64) for end in counts.ends)
        self._narrow = np.minimum(np.sqrt(counts.variance), counts.categories.bend)

    @property
    def all(self) -> Part:
        """All counts."""
        return np.arange(self._times.size), self._times

    def outline(self, parts: Parts) -> Outline:
        """Moments and ends of such sums, cut where nothing of them is needed."""
        return self._cut(parts, self._known(parts))

    @property
    def each(self) -> SumLaws:
        """The laws of the single counts."""
        every, rest = self.all[0], Outline.of_sums(self._known(None))
        moments, ends = (self.counts.mean, self.counts.variance), (self._low, self._high)
        outline = Outline(*moments, *ends, self._narrow)
        outline = outline.within(self._lowest - rest.high, self._highest - rest.low)
        return SumLaws(Lattices.gathered([_NO_LAW] * every.size), every, self.counts, outline)

    def of(self, parts: Parts, alone: bool = False) -> SumLaws:
        """The laws of such sums. Those of one count are on lattices, too, if they are wanted
        `alone`: to be multiplied with others.
        """
        known, leaf = self._known(parts), self._leaf(parts)
        outline, uncut = self._cut(parts, known), Outline.of_sums(known)
        wanted = alone | (leaf < 0)
        step = np.where(wanted, outline.step, 1)
        rows = [_NO_LAW] * leaf.size
        for each in np.unique(step[wanted]).tolist():
            some = np.flatnonzero(wanted & (step == each))
            for at, row in self._on(each, some, outline, uncut, parts):
                rows[at] = row
        return SumLaws(Lattices.gathered(rows), leaf, self.counts, outline)

    # -- outlines -----------------------------------------------------------------------------

    def _leaf(self, parts: Parts) -> Integers:
        """The row of counts that each sum of one is, or -1."""
        if parts is not None:
            return np.array([int(rows[0]) if t.sum() == 1 else -1 for rows, t in parts])
        if self._times.sum() != 2:
            return np.full(self._times.size, -1)
        return np.array([0]) if self._times.size == 1 else np.array([1, 0])

    def _cut(self, parts: Parts, known: Floats) -> Outline:
        """Outlines of sums of which so much is known, where they are needed."""
        if parts is None:
            rest = _ends(self._low, self._high)
        else:  # of which the widest count may be one of the sum's
            whole = self._known([self.all])
            reach = np.broadcast_to(whole[5:], (2, len(parts)))
            rest = Outline.of_sums(np.concatenate([whole[:5] - known[:5], reach]))
        found = Outline.of_sums(known)
        return found.within(self._lowest - rest.high, self._highest - rest.low)

    def _known(self, parts: Parts) -> Floats:
        """Known facts that `Outline.of_sums` needs."""
        mean, variance, t = self.counts.mean, self.counts.variance, self._times
        every = np.stack([mean, variance, self._low, self._high, self._narrow**2])
        reach = np.stack([mean - self._low, self._high - mean])
        if parts is None:
            most = [_largest_but_one(each, t) for each in reach]
            return np.vstack([(every @ t)[:, None] - every, *most])
        made = [
            np.append(every[:, rows] @ times, reach[:, rows].max(axis=1)) for rows, times in parts
        ]
        return np.stack(made, axis=1)

    # -- lattices -----------------------------------------------------------------------------

    def _on(
        self, step: int, some: Integers, outline: Outline, uncut: Outline, parts: Parts
    ) -> Iterator[tuple[int, Row]]:
        """Some sums on lattices of one step, each with its place."""
        rows = self._members(some, parts)
        origin, own = _ends(self._low, self._high).lattice(step, rows)
        start, points = outline.lattice(step, some)
        _, needed = uncut.lattice(step, some)
        length = fft.next_fast_len(int(max(needed.max(), own.max())) + _END, real=True)
        if length > _LONGEST:  # of counts that may be anything, beside some that are known
            yield from self._on(2 * step, some, outline, uncut, parts)
            return
        finer = self._finer(rows, step)
        waves = np.empty((rows.size, length // 2 + 1), dtype=np.complex128)
        block = max(1, _BLOCK // (finer * length))
        for first in range(0, rows.size, block):
            here = slice(first, first + block)
            masses = self._counts_on(
                rows[here], origin[here], step // finer, finer * int(own.max()), None
            )
            waves[here] = fft.rfft(masses, finer * length)[:, : length // 2 + 1]
        products = self._products(waves, rows, some, parts, origin)
        for at, (product, first) in enumerate(products):
            law = fft.irfft(product, length)
            law = law[((int(start[at]) - first) // step + np.arange(int(points[at]))) % length]
            law[np.abs(law) < _ROUNDING * law.max(initial=0.0)] = 0.0
            yield int(some[at]), (int(start[at]), step, law)

    def _finer(self, rows: Integers, step: int) -> int:
        """Say how many times finer lattices of counts are than that of their sum. A lattice changes
        the fourth cumulant of each, and these add up.
        """
        finer = max(_STEP * float(self._times[rows].sum() / _CUMULANT) ** 0.25, 1.0)
        return min(1 << math.ceil(math.log2(finer)), step)

    def _members(self, some: Integers, parts: Parts) -> Integers:
        """The rows that some sums are of."""
        if parts is not None:
            return np.unique(np.concatenate([parts[at][0] for at in some.tolist()]))
        every = self.all[0]
        return np.delete(every, some) if some.size == 1 and self._times[some[0]] == 1 else every

    def _products(
        self, waves: Any, rows: Integers, some: Integers, parts: Parts, origin: Integers
    ) -> Iterator[tuple[Any, int]]:
        """Transforms of some sums, and their origins, from those of single counts."""
        times = self._times[rows]
        if parts is not None or rows.size < self._times.size:
            several = [(rows, times)] if parts is None else [parts[at] for at in some.tolist()]
            for members, number in several:
                place = np.searchsorted(rows, members)
                powers = waves[place] ** number[:, None]
                yield np.prod(powers, axis=0), int(number @ origin[place])
            return
        rest = products_of_others(waves, times)
        for row in some.tolist():
            yield rest[row], int(times @ origin - origin[row])

    def _counts_on(
        self, rows: Integers, origin: Integers, step: int, points: int, last: int | None
    ) -> Floats:
        """Laws of single counts on lattices, up to a last count; shape `(rows, points)`."""
        counts, steps = self.counts.chosen(rows), np.full(rows.size, step)
        cells = counts.cells if last is None else counts.cells.within(origin, origin + last)
        cells = aligned(cells, origin, steps)
        used = cells.used
        category = np.broadcast_to(cells.category[:, None], used.shape)[used]
        masses = np.exp(cells.log_masses(counts.log_probability)[used])
        return spread(category, cells.nodes[used], masses, origin, steps, points).masses


def part_of(times: Integers) -> Part:
    """The part in which every row is so often."""
    rows = np.flatnonzero(times)
    return rows, times[rows]


def _ends(low: Floats, high: Floats) -> Outline:
    """Outlines that only their ends are asked of."""
    return Outline(low, low, low, high, low)


def _largest_but_one(values: Floats, times: Integers) -> Floats:
    """The largest value of all rows but one of each."""
    most = int(np.argmax(values))
    found = np.full(values.size, values[most])
    if times[most] == 1:
        found[most] = np.max(np.delete(values, most), initial=-np.inf)
    return found
