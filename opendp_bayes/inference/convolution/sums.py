"""Laws of sums of independent counts under tilts, by transforms on one lattice.

Many laws are held at once, a row each, with a step and an origin of its own. A step is a power of
two and an origin a multiple of it; between its points a law is a cubic of Lagrange's.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import fft, sparse

from opendp_bayes.inference.convolution.numbers_and_tilts import Numbers
from opendp_bayes.inference.laws.count_cells import Cells
from opendp_bayes.inference.likelihood.drawn_counts import too_uncertain
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.validation import MOST_BYTES, Floats, Integers


@dataclass(frozen=True, eq=False)
class Lattices:
    """`masses`, shape `(..., rows, points)`, at `origin + step * point`; nothing beyond them."""

    origin: Integers
    step: Integers
    masses: Floats

    @classmethod
    def joined(cls, several: "list[Lattices]") -> "Lattices":
        """The rows of several, with as many points each. The list is emptied, so that memory does
        not hold them twice.
        """
        origin, step = (
            np.concatenate([getattr(lattices, field) for lattices in several])
            for field in ("origin", "step")
        )
        points = max(lattices.points for lattices in several)
        masses = np.zeros((*several[0].masses.shape[:-2], origin.size, points))
        first = 0
        while several:
            lattices = several.pop(0)
            rows = slice(first, first := first + lattices.origin.size)
            masses[..., rows, : lattices.points] = lattices.masses
        return cls(origin, step, masses)

    @property
    def points(self) -> int:
        """Number of points of each row."""
        return self.masses.shape[-1]

    def read(self, row: Integers, sums: Floats) -> Floats:
        """The values at real numbers between the points, 0 beyond them, elementwise; shape `(...,
        *row.shape)`.
        """
        position = (sums - self.origin[row]) / self.step[row]
        first, weights = _stencil(position, self.points)
        flat = self.masses.reshape(*self.masses.shape[:-2], -1)
        start = row * self.points + first
        values = sum(weight * flat.take(start + i, axis=-1) for i, weight in enumerate(weights))
        # Where points are far apart, a law between them reaches below 0, which no sum is.
        inside = (sums >= 0) & (position >= 0) & (position <= self.points - 1)
        return np.where(inside, values, 0.0)

    def of_all(self, rows: int, row: Integers, sums: Floats) -> Floats:
        """The values at sums, shape `(m,)`, of one of so many `rows` for each tilt, or part of the
        numbers of records; shape `(..., tilts, m)`.
        """
        rows_of_tilts = rows * np.arange(self.origin.size // rows)[:, None] + row
        return self.read(*np.broadcast_arrays(rows_of_tilts, sums))


def _stencil(position: Floats, points: int) -> tuple[Integers, list[Floats]]:
    """The first of the four points about each position that are nearest to it, all of them on the
    lattice, and the weights of a cubic through them.
    """
    first = np.clip(np.floor(position) - 1, 0, points - 4).astype(np.int64)
    return first, cubic(position - first)


def cubic(u: Floats) -> list[Floats]:
    """The weights at u of a cubic through points at 0, 1, 2 and 3."""
    a, b, c = u - 1, u - 2, u - 3
    return [a * b * c / -6, u * b * c / 2, u * a * c / -2, u * a * b / 6]


def aligned(cells: Cells, origin: Integers, step: int) -> Cells:
    """Cells cut before every point of lattices of one step."""
    row = cells.category
    first = (cells.first - origin[row]) // step
    pieces = (cells.last - origin[row]) // step - first + 1
    cell = np.repeat(np.arange(pieces.size), pieces)
    piece = np.arange(cell.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    row = row[cell]
    start = origin[row] + step * (first[cell] + piece)
    end = start + step - 1
    return Cells(row, np.maximum(cells.first[cell], start), np.minimum(cells.last[cell], end))


def spreading(row: Integers, position: Floats, rows: int, points: int) -> sparse.csc_array:
    """The matrix that hands masses at positions of rows to the four lattice points nearest to
    each; shape `(rows * points, positions)`.
    """
    first, weights = _stencil(position, points)
    entry = (row * points + first)[:, None] + np.arange(4)
    entries, ends = np.stack(weights, axis=1).ravel(), np.arange(0, 4 * position.size + 1, 4)
    return sparse.csc_array((entries, entry.ravel(), ends), shape=(rows * points, position.size))


#: Steps are at most this part of the smallest deviation of a sum; and of many counts so short that
#: their fourth cumulants, which change by about the fourth power of steps, change its density by
#: about 1e-4.
_STEP, _CUMULANT = 0.07, 3e-3
#: Of so few counts sums have the kinks of the noise, and steps are at most this part of its scale.
_SEEN, _KINK = 4, 0.3
#: The probability of sums at which steps may be too long.
_SELDOM = 1e-5
#: The most points of a transform, and deviations of a sum that a lattice holds beside the widest
#: count.
_LONGEST, _WIDE = 1 << 18, 18.0
#: Of the largest probability, the error of a transform.
_ROUNDING = 1e-15
#: Numbers of transforms that are made at once; and of those that are kept for other sums.
_BLOCK, _KEPT = 1 << 19, 1 << 23
#: Counts so many of their deviations, and records, from the mean are left out.
_FAR = 45.0
#: In place of a transform that is less, far below its rounding, so that it can be divided by that
#: of so many counts: their product is above the least float.
_NOT_NOTHING, _DIVIDED = 1e-20, 12
#: Points beyond both ends that a cubic reads.
_END = 4


class Sums:
    """Sums of counts, each there so many times: those in which every count is as often as a column
    of `sums` says, shape `(k, sums)`; by default single counts, and the sum of all.
    """

    def __init__(self, numbers: Numbers, times: Integers) -> None:
        self._numbers, self._times = numbers, times
        self._laws_by_range: dict[tuple[int, int, int], _OfOneStep] = {}

    def beside(self, low: Floats, high: Floats, sums: Integers | None = None) -> Lattices:
        """The weights of what completes sums between ends to numbers of records, on lattices of the
        sums, a row for each tilt and each sum.
        """
        lattices, left = [], MOST_BYTES
        for laws in self._by_step(sums):
            for of_tilts in laws.beside(low, high, sums):
                if (left := left - of_tilts.masses.nbytes) < 0:
                    raise too_uncertain(float(self._numbers.counts.categories.prior @ self._times))
                lattices.append(of_tilts)
        return Lattices.joined(lattices)

    def beside_of_parts(self, row: Integers, x: Floats, sums: Integers | None = None) -> Floats:
        """The weights of what completes the sum of a row to the numbers of each part, at values
        `x` of it, and their first two moments about the centre of the part; shape `(3, parts, m)`.
        """
        rows = self._times.size if sums is None else sums.shape[1]
        low, high = np.full(rows, np.inf), np.full(rows, -np.inf)
        np.minimum.at(low, row, x)
        np.maximum.at(high, row, x)
        values, last = np.empty((3, self._numbers.centres.size, x.size)), 0
        for laws in self._by_step(sums):
            for lattices in laws.beside_of_parts(low, high, sums):
                parts = slice(last, last := last + lattices.origin.size // rows)
                values[:, parts] = lattices.of_all(rows, row, x)
        return values

    def laws(self, sums: Integers | None = None) -> Lattices:
        """The probabilities of the sums, or of that of all; a row for each tilt and each sum."""
        return Lattices.joined([laws.laws(sums) for laws in self._by_step(sums)])

    def _by_step(self, sums: Integers | None) -> "list[_OfOneStep]":
        """The counts on lattices whose steps suit the sums and all others."""
        numbers, times = self._numbers, self._times
        moments, prior = numbers.moments, numbers.counts.categories.prior
        others = [_of_others(x, times, sums) for x in (moments.variance, moments.mean, prior)]
        if sums is not None:
            of_sums = (x @ sums for x in (moments.variance, moments.mean, prior))
            others = [np.concatenate(x, axis=-1) for x in zip(of_sums, others, strict=True)]
        # Nothing is beside a sum of all.
        variance, mean, prior = (x[..., others[2] > 0] for x in others)
        deviation = np.sqrt(variance)
        share = min(_STEP, (_CUMULANT / float(times.sum())) ** 0.25)
        # Near 0 its law is not smooth, unless a large prior makes sums far below their mean rare.
        least = np.maximum(mean - 4 * deviation, mean * _SELDOM ** (1 / prior)) + prior
        longest = np.minimum(share * deviation, np.maximum(least / 4, 1.0)).min(axis=1)
        looks = numbers.counts.categories.looks
        kinks = [look.noise.scale for look in looks if look.noise.kinks]
        if kinks and times.sum() <= _SEEN:
            longest = np.minimum(longest, min(kinks) * _KINK)
        steps = 2 ** np.floor(np.log2(np.maximum(longest, 1.0))).astype(np.int64)
        starts = np.flatnonzero(np.diff(steps, prepend=0)).tolist()
        laws = []
        for start, end in zip(starts, [*starts[1:], steps.size], strict=True):
            key = start, end, int(steps[start])
            if key not in self._laws_by_range:
                self._laws_by_range[key] = _OfOneStep(numbers.chosen(start, end), times, key[-1])
            laws.append(self._laws_by_range[key])
        return laws


class _OfOneStep:
    """Laws of counts, each there so many times, and of their sums, on lattices of one step."""

    def __init__(self, numbers: Numbers, times: Integers, step: int) -> None:
        moments, deviation = numbers.moments, np.sqrt(numbers.moments.variance)
        low = (moments.mean - _FAR * deviation).min(axis=0) - _FAR
        high = (moments.mean + _FAR * deviation).max(axis=0) + _FAR
        self._waves_by_start: dict[int, Any] = {}
        self.numbers, self.times, counts = numbers, times, numbers.counts.within(low, high)
        low, high = counts.ends
        widest = float((high - low).max())
        wide = widest + _WIDE * math.sqrt(float((moments.variance @ times).max()))
        while wide / step > _LONGEST:
            step *= 2
        self.step = step
        self._points = int(widest) // step + 2 * _END
        self._length = fft.next_fast_len(int(wide) // step + 4 * _END, real=True)
        self._origin = (np.floor(low / step).astype(np.int64) - 1) * step
        cells = aligned(counts.cells, self._origin, step)
        used = cells.used
        row = np.broadcast_to(cells.category[:, None], used.shape)[used]
        nodes = cells.nodes[used]
        self._row, self._away = row, nodes - counts.anchor[row]
        self._log_masses = cells.log_masses(counts.log_weight)[used]
        self._spread = spreading(row, (nodes - self._origin[row]) / step, times.size, self._points)

    def _waves(self, some: slice) -> tuple[Any, Any]:
        """Transforms of the laws of single counts under some tilts, shape `(k, tilts, waves)`; and
        of that of their sum.
        """
        if some.start in self._waves_by_start:
            return self._waves_by_start[some.start]
        moments = self.numbers.moments
        logs = self._log_masses[:, None] + self._away[:, None] * moments.tilts[some]
        masses = np.exp(logs - moments.log_norm[some].T[self._row])
        laws = (self._spread @ masses).reshape(self.times.size, self._points, -1)
        waves = fft.rfft(np.ascontiguousarray(laws.swapaxes(1, 2)), self._length)
        waves[np.abs(waves) < _NOT_NOTHING] = _NOT_NOTHING
        both = waves, _product(waves, self.times)
        if self.times.size * moments.tilts.size * self._length <= _KEPT:
            self._waves_by_start[some.start] = both
        return both

    def _blocks(self) -> Iterator[slice]:
        tilts = self.numbers.moments.tilts.size
        parts = max(-(-self.numbers.centres.size // tilts), 1)
        number = max(_BLOCK // (self.times.size * self._length * parts), 1)
        for start in range(0, tilts, number):
            yield slice(start, min(start + number, tilts))

    @cached_property
    def _numbers_of_records(self) -> tuple[int, sparse.csr_array]:
        """The begin of the lattice of numbers of records, and the matrix that hands their masses to
        the points of a transform, shape `(length, numbers)`.
        """
        sizes, step = self.numbers.sizes, self.step
        origin = (int(sizes[0]) // step - 1) * step
        points = int(sizes[-1] - origin) // step + _END
        row = np.zeros(sizes.size, dtype=np.int64)
        matrix = spreading(row, (sizes - origin) / step, 1, points).tocoo()
        places = matrix.row % self._length, matrix.col
        return origin, sparse.csr_array((matrix.data, places), shape=(self._length, sizes.size))

    def _spectra(self, parts: slice | Integers, powers: int) -> Any:
        """Transforms of the masses of the numbers of records in some parts, times so many powers of
        their distance from the centre of the part, shape `(powers, parts, waves)`.
        """
        numbers, (_, matrix) = self.numbers, self._numbers_of_records
        off = numbers.sizes - numbers.centres[parts, None]
        laws = [(matrix @ (numbers.masses[parts] * off**power).T).T for power in range(powers)]
        return fft.rfft(np.ascontiguousarray(laws), self._length) / self.step

    def beside(self, low: Floats, high: Floats, sums: Integers | None) -> Iterator[Lattices]:
        for products, (begin, *window), parts, tilt in self._beside(low, high, sums):
            first = np.flatnonzero(np.diff(tilt, prepend=-1))
            spectra = np.add.reduceat(self._spectra(parts, 1)[0], first)
            yield self._lattices(begin, self._read(products * spectra[:, None], *window))

    def beside_of_parts(
        self, low: Floats, high: Floats, sums: Integers | None
    ) -> Iterator[Lattices]:
        for products, window, parts, tilt in self._beside(low, high, sums):
            number = products[0].size * tilt.size // _BLOCK + 1
            for some in np.array_split(np.arange(tilt.size), min(number, tilt.size)):
                begin, *places = (array[tilt[some]] for array in window)
                spectra, others = self._spectra(parts.start + some, 3), products[tilt[some]]
                laws = [self._read(others * spectrum[:, None], *places) for spectrum in spectra]
                yield self._lattices(begin, np.stack(laws))

    def _beside(self, low: Floats, high: Floats, sums: Integers | None) -> Iterator[Any]:
        """Yield, for some tilts at a time, transforms of what is beside the sums, shape `(tilts,
        sums, waves)`, their windows, the parts of these tilts, and the tilt of each.
        """
        moments, (begin, _) = self.numbers.moments, self._numbers_of_records
        origin = begin - _of_others(self._origin, self.times, sums)
        mean = _of_others(moments.mean, self.times, sums)
        for some in self._blocks():
            others = self._others(some, sums)
            parts = slice(*np.searchsorted(self.numbers.tilt, [some.start, some.stop]).tolist())
            middle = self.numbers.middles[some, None] - mean[some]
            window = self._window(origin, middle, *np.broadcast_arrays(low, high, middle)[:2])
            tilt = self.numbers.tilt[parts] - some.start
            yield np.conj(np.swapaxes(others, 0, 1)), window, parts, tilt

    def _others(self, some: slice, sums: Integers | None) -> Any:
        """Transforms of what is beside the sums, shape `(sums, tilts, waves)`: beside few counts
        that of all divided by their own, by which it was multiplied, so that no digits are lost.
        """
        waves, whole = self._waves(some)
        if sums is None:
            return whole / waves
        return np.stack(
            [
                whole / _product(waves[one > 0], one[one > 0])
                if one.sum() <= _DIVIDED
                else _product(waves, self.times - one)
                for one in sums.T
            ]
        )

    def laws(self, sums: Integers | None) -> Lattices:
        moments, lattices = self.numbers.moments, []
        within = self.times[:, None] if sums is None else sums
        for some in self._blocks():
            waves, _ = self._waves(some)
            products = np.stack([_product(waves, number) for number in within.T], axis=1)
            mean = moments.mean[some] @ within
            reach = self._points * self.step + _WIDE / 2 * np.sqrt(moments.variance[some] @ within)
            begins, *window = self._window(self._origin @ within, mean, mean - reach, mean + reach)
            lattices.append(self._lattices(begins, self._read(products / self.step, *window)))
        return Lattices.joined(lattices)

    def _window(
        self, origin: Integers, mean: Floats, low: Floats, high: Floats
    ) -> tuple[Integers, Integers, Any]:
        """Begins of lattices about means between ends, shape `(tilts, sums)`, and their points in
        transforms that begin at origins, shape `(tilts, sums, points)`.
        """
        half = self._length // 2 * self.step
        low, high = np.maximum(low, mean - half), np.minimum(high, mean + half)
        low = np.minimum(low, high)
        first = np.floor((low - origin) / self.step).astype(np.int64) - 1
        points = max(int(np.max(np.ceil((high - origin) / self.step) - first)) + 2, _END)
        position = first[..., None] + np.arange(points)
        value = position * self.step + origin[:, None]
        unknown = np.abs(value - mean[..., None]) > half
        return first * self.step + origin, position % self._length, unknown

    def _read(self, waves: Any, position: Integers, unknown: Any) -> Floats:
        laws = fft.irfft(waves, self._length)
        laws[np.abs(laws) < _ROUNDING * laws.max(axis=-1, keepdims=True)] = 0.0
        values = np.take_along_axis(laws, position, axis=-1)
        values[unknown] = 0.0
        return values

    def _lattices(self, begin: Integers, laws: Floats) -> Lattices:
        """Lattices of all tilts, or parts, and of all sums of each."""
        begin, points = begin.ravel(), laws.shape[-1]
        laws = laws.reshape(*laws.shape[:-3], begin.size, points)
        return Lattices(begin, np.full(begin.size, self.step), laws)


def _of_others(values: Any, times: Integers, sums: Integers | None) -> Any:
    """Sums of values, shape `(..., k)`, of all counts but those of each sum, shape `(k, sums)`, or
    but one of each count.
    """
    if sums is not None:
        return values @ (times[:, None] - sums)
    others = all_but_one(np.moveaxis(times * values, -1, 0))
    return np.moveaxis(others, 0, -1) + (times - 1) * values


def _product(waves: Any, times: Integers) -> Any:
    """The product of transforms, each so many times."""
    several, once = times > 1, (times == 1).reshape(-1, 1, 1)
    powers = waves[several] ** times[several].reshape(-1, 1, 1)
    return np.prod(waves, axis=0, where=once) * np.prod(powers, axis=0)
