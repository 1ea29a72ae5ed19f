"""Exponential tilts of the weights of counts, by Newton's steps in a bracket, that together reach
all numbers of records that weigh anything.

Weights times `exp(tilt x)` are the same law once the sum of all counts is given. But then other
sums are probable, and a transform loses what is improbable.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from opendp_bayes.inference.convolution.noised_categories import NoisedCategories
from opendp_bayes.inference.convolution.number_of_records import Total
from opendp_bayes.inference.convolution.tilted_counts import TiltedCounts
from opendp_bayes.inference.likelihood.envelope import too_uncertain
from opendp_bayes.mathematics.validation import Integers

#: The mean of the sum may be so many of its standard deviations from where it should be.
_OFF = 0.3
#: Deviations are not taken to be smaller than this, in records; of sums by which tilts are placed.
_SMALLEST_DEVIATION, _SMALLEST_SPREAD = 1e-3, 0.25
_MOST_STEPS = 200
#: Two tilts put the sum about so many deviations apart.
_APART = 6.4
#: Numbers of records are reached by a tilt within so many deviations of its mean.
_REACHED = 4.0
#: Of a skew law, sums below this share of the mean, and within so many deviations, are lost if the
#: probability of none is less than `exp(-_DIGITS)`.
_FEW, _FAR, _DIGITS = 0.2, 6.5, 25.0
#: Numbers that weigh less than `exp(-_DEPTH)` need no tilt.
_DEPTH = 12.0
#: The outermost tilts serve numbers up to so many deviations of their sum away, or so many records
#: if that is more: beyond, there is only what a transform rounds to, times the number's weight.
_OUTERMOST, _FEWEST = 7.0, 16.0
#: The most tilts of a private number of records.
_MOST_TILTS = 1000

#: The counts under a tilt, with the smallest and the largest number of records that it serves.
Served = tuple[TiltedCounts, tuple[float, float]]
#: Tilt, mean and deviation of the sum to the distance of the mean below where it should be, in
#: deviations.
Pull = Callable[[float, float, float], float]


@dataclass(frozen=True, eq=False)
class Tilt:
    """The sum of all counts under one tilt: its mean and deviation, the logarithm of the sum of all
    weights (`TiltedCounts.log_sum`), and that of the probability that the sum is 0.
    """

    counts: TiltedCounts
    mean: float
    deviation: float
    log_sum: float
    log_none: float

    def reaches(self, end: float) -> bool:
        """True if all sums up to an end are known."""
        near = abs(end - self.mean) < _REACHED * self.deviation
        return near and not self.loses(end)

    def loses(self, end: float) -> bool:
        """True if sums of a few records are too improbable for a transform, though not many
        deviations below the mean.
        """
        near = end < self.mean < end + _FAR * self.deviation
        return near and end < _FEW * self.mean and self.log_none < -_DIGITS

    def height(self, total: Total) -> float:
        """Logarithm of about what the numbers near the mean weigh."""
        at = min(max(self.mean, total.lowest), total.highest)
        return self.log_sum + float(total.log_weight(np.array([at]))[0]) - self.counts.tilt * at


@dataclass(frozen=True, eq=False)
class TiltSearch:
    """The search for tilts that together reach all numbers of records.

    Attributes
    ----------
    categories : NoisedCategories
        Those that are different.
    times : ndarray of int
        How often each of them is there.
    origin : ndarray of int
        A count of each, whose weight is 1: logarithms of weights are relative to it.
    total : {"remainder", "private", "bounded"}
        The number of records.
    """

    categories: NoisedCategories
    times: Integers
    origin: Integers
    total: Total

    def all(self) -> list[Served]:
        """The counts under all tilts that are needed, each with the numbers of records it serves.

        Raises
        ------
        ValueError
            Where they are too many, or a number is not reached.
        """
        best = self._balanced(self.total.pull)
        if not self.total.is_point:
            return self._covering(best)
        size = self.total.lowest
        if abs(best.mean - size) > _REACHED * best.deviation:
            raise ValueError(
                f"size: {size} records are not compatible with what was drawn; check the size and"
                " the scale of the noise."
            )
        return [(best.counts, (size, size))]

    def _balanced(self, pull: Pull, start: float = 0.0) -> Tilt:
        counts = balanced(self.categories, self.times, self.total.most_counts, pull, start)
        mean = float(self.times @ counts.mean)
        deviation = max(math.sqrt(self.times @ counts.variance), _SMALLEST_SPREAD)
        rows = np.arange(self.times.size)
        none = float(self.times @ counts.log_probability(rows, np.zeros(rows.size)))
        log_sum = counts.log_sum(self.times, self.origin)
        return Tilt(counts, mean, deviation, log_sum, none)

    def _covering(self, best: Tilt) -> list[Served]:
        """Tilts on both sides of the best, until what is beyond weighs nothing."""
        top, found = best.height(self.total), [best]
        for end in (self.total.lowest, self.total.highest):
            last = best
            while not last.reaches(end):
                self._check_number(len(found))
                last = self._towards(end, last)
                top = max(top, last.height(self.total))
                if last.height(self.total) < top - _DEPTH:
                    break
                found.append(last)
        found = [each for each in found if each.height(self.total) >= top - _DEPTH]
        return _parted(sorted(found, key=lambda each: each.mean))

    def _towards(self, end: int, last: Tilt) -> Tilt:
        """A tilt nearer to an end than another, whose sums overlap a little with those of this."""
        away = _APART * last.deviation
        if end > last.mean:
            goal = min(last.mean + away, end)
        else:  # of a skew law the deviation falls with the mean
            goal = max(last.mean / (1 + away / last.mean), end)
        start = last.counts.tilt + (goal - last.mean) / last.deviation**2
        return self._balanced(lambda _, mean, deviation: (goal - mean) / deviation, start)

    def _check_number(self, tilts: int) -> None:
        if tilts >= _MOST_TILTS:
            raise too_uncertain(float(self.categories.prior @ self.times))


def _parted(found: list[Tilt]) -> list[Served]:
    """Tilts, each with the numbers that it serves: neighbours meet between their means."""
    means = np.array([each.mean for each in found])
    deviations = np.array([each.deviation for each in found])
    left, right = deviations[:-1], deviations[1:]
    middles = np.floor((means[:-1] * right + means[1:] * left) / (left + right))
    far = np.maximum(_OUTERMOST * deviations, _FEWEST)
    low = np.append(np.floor(means[0] - far[0]), middles + 1).tolist()
    high = np.append(middles, means[-1] + far[-1]).tolist()
    ends = zip(found, low, high, strict=True)
    return [(each.counts, (first, last)) for each, first, last in ends if first <= last]


def balanced(
    categories: NoisedCategories, times: Integers, most: int, pull: Pull, tilt: float = 0.0
) -> TiltedCounts:
    """The counts, up to `most`, under the tilt at which nothing pulls the mean of their sum."""
    low, high, step = -math.inf, math.inf, 0.0
    for turn in range(_MOST_STEPS):
        counts = TiltedCounts.of(categories, tilt, most)
        mean = float(times @ counts.mean)
        deviation = max(math.sqrt(times @ counts.variance), _SMALLEST_DEVIATION)
        off = pull(tilt, mean, deviation)
        if abs(off) <= _OFF or high - low <= 1e-15 * abs(tilt):
            break
        low, high = (tilt, high) if off > 0 else (low, tilt)
        newton = off / max(deviation, 1.0 if abs(off) < 1e3 else deviation)
        if math.isinf(high - low):
            # Newton's step may be far too long, or too short where the sum hardly varies.
            step = min(max(4 * step, 1 / deviation), 1e3 * max(step, 1.0))
            tilt += math.copysign(step if turn % 2 else min(step, abs(newton)), off)
        elif turn % 2 and low < tilt + newton < high:
            tilt += newton
        else:
            tilt = (low + high) / 2
    return counts
