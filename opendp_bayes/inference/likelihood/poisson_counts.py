"""Poisson counts of given rates, and what was drawn of them with noise: the laws of the counts
given the draws, at points that stand for all; and the probability that they have a sum.

The laws are log-concave, as is every noise on counts: one peak, and ends on both sides beyond which
nothing matters. So their cost depends neither on the counts nor on the scale of the noise. For the
sum, and for the means of the counts given it, characteristic functions are inverted at equally
spaced frequencies.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.count_cells import Cells, cells_from, refined
from opendp_bayes.inference.laws.dirichlet_multinomial import stirling_correction
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers

#: Counts that weigh less than `exp(-_DEPTH)` of the largest are left out.
_DEPTH = 42.0
#: Rows of counts from a shorter range are listed one by one, and without looking for their peaks.
_LISTED, _SHORT = 1 << 10, 1 << 8
#: Larger rates are taken for this one, which no count reaches.
_LARGEST = 1e15
#: Below so many records the terms of a logarithm are small enough to be subtracted.
_FEW = 1 << 16


@dataclass(frozen=True, eq=False)
class PoissonCounts:
    """Laws of counts with Poisson rates, one a row, given what was drawn of them.

    `noisy` are the draws, of which a row has that at `place`; `log_rate` is the logarithm of its
    rate. Both have the shape `(rows,)`. `cells` hold all counts that matter.
    """

    noisy: DrawnCounts
    place: Integers
    log_rate: Floats
    cells: Cells

    @classmethod
    def of(cls, noisy: DrawnCounts, place: Integers, log_rate: Floats) -> "PoissonCounts":
        """Find the counts that matter."""
        rows = np.arange(place.size)
        laws = cls(noisy, place, log_rate, Cells(rows, rows, rows))
        between = laws._around_peak()
        low, high = _beyond(between[0])[0], _beyond(between[1])[1]
        if np.max(high - low) >= _SHORT:
            peak = laws._peak(*between)
            low, high = laws._ends(peak)
        if np.max(high - low) < _LISTED:
            parts = Segments(np.append(0, np.cumsum(high - low + 1)))
            all_counts = np.arange(parts.start[-1]) + (low - parts.start[:-1])[parts.owner]
            return cls(noisy, place, log_rate, Cells(parts.owner, all_counts, all_counts))
        kinks = [kink[place] for kink in noisy.kinks]
        seeds = np.stack([centre + more for centre in (peak, *kinks) for more in (0, 1)], axis=1)
        start = cells_from(seeds.astype(np.float64), low.astype(float), high.astype(float))
        return cls(noisy, place, log_rate, refined(laws.log_weight, start, rows.size))

    def cut(self, longest: float) -> "PoissonCounts":
        """Cut cells that are longer."""
        if self.are_listed:
            return self
        pieces = np.ceil(self.cells.length / max(longest, 1.0)).astype(np.int64)
        return PoissonCounts(self.noisy, self.place, self.log_rate, self.cells.cut(pieces))

    def log_weight(self, row: Integers, counts: Floats | Integers) -> Floats:
        """Log-probability of counts and of what was drawn of them, elementwise."""
        log_mass = self.noisy.log_mass(counts, self.place[row])
        return log_mass + log_poisson(counts, self.log_rate[row], self._rate[row])

    @cached_property
    def _rate(self) -> Floats:
        return np.exp(np.minimum(self.log_rate, np.log(_LARGEST)))

    def _around_peak(self) -> tuple[Integers, Integers]:
        """Two counts of each row between which the most probable one is: its rate and its draw."""
        noisy_counts = np.maximum(self.noisy.drawn[self.place], 0.0)
        noisy_counts = np.where(self.noisy.noised[self.place], noisy_counts, self._rate)
        low, high = np.minimum(self._rate, noisy_counts), np.maximum(self._rate, noisy_counts)
        return np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)

    def _peak(self, low: Integers, high: Integers) -> Integers:
        """Most probable count of each row, between two."""
        while np.any(low < high):
            middle = (low + high) // 2
            rise = self.log_rate - np.log(middle + 1.0)
            rising = rise + self.noisy.log_ratio(middle, 1.0, self.place) > 0
            low, high = np.where(rising, middle + 1, low), np.where(rising, high, middle)
        return low

    def _ends(self, peak: Integers) -> tuple[Integers, Integers]:
        """The least and the largest count of each row that matters."""
        rows, ends = np.arange(peak.size), []
        least = self.log_weight(rows, peak) - _DEPTH
        for outside in _beyond(peak):
            inside = peak
            while np.any(np.abs(outside - inside) > 1):
                middle = (inside + outside) // 2
                seen = self.log_weight(rows, middle) >= least
                inside, outside = np.where(seen, middle, inside), np.where(seen, outside, middle)
            ends.append(np.where(self.log_weight(rows, outside) >= least, outside, inside))
        return ends[0], ends[1]

    @cached_property
    def are_listed(self) -> bool:
        """True if every count that matters is a point of its own."""
        return bool(np.all(self.cells.length == 1))

    @cached_property
    def _log_masses(self) -> tuple[Floats, Floats]:
        """Counts, row by row, and logarithms of the weights that they stand for; `(points,)`."""
        cells = self.cells
        if self.are_listed:
            return cells.first.astype(np.float64), self.log_weight(cells.category, cells.first)
        log_masses = cells.log_masses(self.log_weight)
        return cells.nodes[cells.used], log_masses[cells.used]

    @cached_property
    def parts(self) -> Segments:
        """The points of each row."""
        cells = self.cells
        if self.are_listed:
            return Segments.of(cells.category)
        return Segments.of(np.repeat(cells.category, cells.used.sum(axis=1)))

    @cached_property
    def log_evidence(self) -> Floats:
        """Log-probability of what was drawn of each row, shape `(rows,)`."""
        largest = self.parts.largest(self._log_masses[1])
        weights = np.exp(self._log_masses[1] - largest[self.parts.owner])
        return largest + np.log(self.parts.sums(weights))

    @cached_property
    def points(self) -> tuple[Floats, Floats]:
        """Counts and their probabilities, row by row, of shape `(points,)`."""
        counts, log_masses = self._log_masses
        return counts, np.exp(log_masses - self.log_evidence[self.parts.owner])

    @cached_property
    def mean(self) -> Floats:
        """Expected counts, shape `(rows,)`."""
        counts, shares = self.points
        first = counts[self.parts.start[:-1]]
        return first + self.parts.sums(shares * (counts - first[self.parts.owner]))

    @cached_property
    def variance(self) -> Floats:
        """Their variances, shape `(rows,)`."""
        counts, shares = self.points
        return self.parts.sums(shares * (counts - self.mean[self.parts.owner]) ** 2)


def _beyond(peak: Integers) -> tuple[Integers, Integers]:
    """Counts below and above which nothing matters: the logarithm of a weight is bent at least as
    much as that of the Poisson law, by `1 / x`.
    """
    square = 2 * _DEPTH * (peak + 1.0)
    below = np.maximum(peak - np.ceil(np.sqrt(square)) - 1, 0).astype(np.int64)
    return below, peak + np.ceil(_DEPTH + np.sqrt(_DEPTH**2 + square)).astype(np.int64) + 1


def log_poisson(counts: Floats | Integers, log_rate: Floats, rate: Floats) -> Floats:
    """Log-probability of Poisson counts, real numbers at least 0, with all digits near the rate.

    Source: Loader, "Fast and accurate computation of binomial probabilities" (2000).
    """
    counts = np.asarray(counts, dtype=np.float64)
    if counts.max(initial=0.0) < _FEW:
        return np.asarray(counts * log_rate - rate - special.gammaln(counts + 1))
    away, large = counts - rate, np.maximum(counts, 1.0)
    near = np.abs(away) <= 0.5 * rate
    ratio = np.log1p(np.where(near, away, 0.0) / np.maximum(rate, 1e-300))
    ratio = np.where(near, ratio, np.log(large) - log_rate)
    # `ln x! - (x ln x - x)`, without large terms.
    few = special.gammaln(counts + 1) - np.where(counts > 0, large * np.log(large) - large, 0.0)
    many = 0.5 * np.log(2 * np.pi * large) + stirling_correction(large)
    return np.asarray(away - counts * ratio - np.where(counts < 64, few, many))


#: Of a sum: deviations that its law may fill on each side, and of its characteristic function, one
#: over how many deviations is looked at first, and below which size it has vanished, at so many
#: frequencies on end.
_WIDE, _FIRST, _VANISHED, _ENDS = 24.0, 4.0, 1e-8, 4
#: Deviations are not taken to be smaller, in records.
_SMALLEST = 0.01
#: Waves that are added up at once; shares of points that do not matter.
_BLOCK, _NEGLIGIBLE = 1 << 21, 1e-17


def given_sum(laws: PoissonCounts, size: int) -> tuple[float, Floats]:
    """Log-probability that the counts of all rows, two or more, sum to a number near their expected
    sum; and their means given that, shape `(rows,)`.
    """
    return (_of_two if laws.place.size == 2 else _of_several)(laws, size)


def _of_two(laws: PoissonCounts, size: int) -> tuple[float, Floats]:
    """Log-probability that the two counts sum to a number, and their means given that."""
    cells, is_first = laws.cells, laws.cells.category == 0
    first, last = cells.first[is_first], cells.last[is_first]
    mirrored = size - cells.last[~is_first][::-1], size - cells.first[~is_first][::-1]
    low, high = max(first[0], mirrored[0][0]), min(last[-1], mirrored[1][-1])
    starts = np.unique(np.concatenate([first, mirrored[0], [low]]))
    starts = starts[(starts >= low) & (starts <= high)]
    none = np.zeros_like(starts)
    both = Cells(none, starts, np.append(starts[1:] - 1, high))

    def log_weight(row: Integers, counts: Floats) -> Floats:
        return laws.log_weight(row, counts) + laws.log_weight(row + 1, size - counts)

    log_masses = both.log_masses(log_weight)
    log_sum = float(both.log_sums(log_masses)[0])
    mean = low + float(np.sum(np.exp(log_masses - log_sum) * (both.nodes - low)))
    return log_sum - float(laws.log_evidence.sum()), np.array([mean, size - mean])


def _of_several(laws: PoissonCounts, size: int) -> tuple[float, Floats]:
    """Log-probability that the counts sum to a number, and their means given that: an integral of
    their characteristic functions.
    """
    deviation = max(math.sqrt(float(laws.variance.sum())), _SMALLEST)
    # An odd number of frequencies around the circle, so that nothing that weighs anything meets.
    number = 2 * math.ceil(_WIDE * deviation + 8) + 1
    unit, most = 2 * math.pi / number, number // 2
    last = min(math.ceil(_FIRST / (unit * deviation)), most)
    fine = laws.cut(1 / (unit * last))
    while last < most and not _vanishes(fine, unit * np.arange(last - _ENDS, last + 0.0)):
        last = min(2 * last, most)
        fine = laws.cut(1 / (unit * last))
    frequency = unit * np.arange(last + 1.0)
    if last == most and fine.are_listed:
        value, first = _around_the_circle(fine, number)
    else:
        value, first = _characteristic(fine, frequency)
    others, centre = all_but_one(value, np.multiply), np.rint(fine.mean)
    turned = np.exp(-1j * frequency * (size - float(centre.sum()))) / number
    turned[1:] *= 2
    density = float(np.sum(others[0] * value[0] * turned).real)
    means = centre + (first * others @ turned).real / density
    return math.log(density), means


def _vanishes(laws: PoissonCounts, frequency: Floats) -> bool:
    """True if the characteristic function of the sum is next to nothing."""
    value, _ = _characteristic(laws, frequency)
    return bool(np.max(np.abs(np.prod(value, axis=0))) < _VANISHED)


def _characteristic(laws: PoissonCounts, frequency: Floats) -> tuple[Any, Any]:
    """Characteristic functions of the counts about their rounded means, and of the counts times
    these, shape `(k, frequencies)`; the frequencies are equally spaced.
    """
    counts, shares = laws.points
    seen = np.flatnonzero(shares > _NEGLIGIBLE)
    parts, shares = Segments.of(laws.parts.owner[seen]), shares[seen]
    away, blocks = counts[seen] - np.rint(laws.mean)[parts.owner], []
    # A frequency is that of its block and one that all blocks share: waves of both are multiplied.
    block = min(math.isqrt(frequency.size), _BLOCK // seen.size) + 1
    shared = shares * _waves(frequency[:block] - frequency[0], away)
    for start in frequency[::block]:
        waves = _waves(start, away) * shared
        blocks.append([parts.sums(waves).T, parts.sums(waves * away).T])
    value, first = (
        np.concatenate(arrays, axis=1)[:, : frequency.size] for arrays in zip(*blocks, strict=True)
    )
    return value, first


def _waves(frequency: Floats, away: Floats) -> Any:
    """A wave of each frequency at each point, shape `(..., points)` for frequencies `(...)`."""
    phase = np.multiply.outer(frequency, away)
    return np.cos(phase) + 1j * np.sin(phase)


def _around_the_circle(laws: PoissonCounts, number: int) -> tuple[Any, Any]:
    """Answer as `_characteristic` does, for listed counts, at all frequencies around the circle."""
    counts, shares = laws.points
    owner = laws.parts.owner
    away = (counts - np.rint(laws.mean)[owner]).astype(np.int64)
    entry, rows = owner * number + away % number, len(laws.parts)
    dense = [np.bincount(entry, weights, rows * number) for weights in (shares, shares * away)]
    value, first = (np.conj(np.fft.rfft(weights.reshape(rows, number))) for weights in dense)
    return value, first
