"""Exponential tilts of the weights of counts, by Newton's steps in a bracket, that together reach
all numbers of records that weigh anything.

Weights times `exp(tilt x)` are the same law once the sum of all counts is given. But then other
sums are probable, and a transform loses what is improbable.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from opendp_bayes.inference.convolution.noised_categories import NoisedCategories
from opendp_bayes.inference.convolution.number_of_records import Total
from opendp_bayes.inference.convolution.tilted_counts import TiltedCounts
from opendp_bayes.inference.likelihood.envelope import too_uncertain
from opendp_bayes.mathematics.validation import Floats, Integers

#: The mean of the sum may be so many of its standard deviations from where it should be.
_OFF = 0.3
#: Deviations are not taken to be smaller than this, in records; of sums by which tilts are placed.
_SMALLEST_DEVIATION, _SMALLEST_SPREAD = 1e-3, 0.25
_MOST_STEPS = 200
#: Two tilts put the sum at least, about and at most twice so many deviations apart (the geometric
#: mean of both), and fade into each other over so many deviations of the narrower on each side.
_APART, _RAMP = (2.2, 3.2, 4.0), 1.2
#: Numbers of records are reached by a tilt within so many deviations of its mean.
_REACHED = 4.0
#: Of a skew law, sums below this share of the mean, and within so many deviations, are lost if the
#: probability of none is less than `exp(-_DIGITS)`.
_FEW, _FAR, _DIGITS = 0.2, 6.5, 25.0
#: Numbers that weigh less than `exp(-_DEPTH)` need no tilt.
_DEPTH = 23.0
#: The outermost tilts serve numbers up to so many deviations of their sum away, or so many records
#: if that is more: beyond, there is only what a transform rounds to, times the number's weight.
_OUTERMOST, _FEWEST = 7.0, 16.0
#: Tilts that make numbers more probable by less than `exp(_RISE)` are as good as each other.
_RISE = 0.1
#: One tilt is enough where numbers more than so many deviations away weigh at most `exp(-_HELD)`.
_REACH, _HELD = 6.5, 18.0
#: The most tilts of a private number of records.
_MOST_TILTS = 1000


@dataclass(frozen=True, eq=False)
class Fade:
    """A weight that rises smoothly from 0 at `first` to 1 at `second`, and falls from `third` to
    `fourth`; the fades of neighbours add up to 1.
    """

    first: float
    second: float
    third: float
    fourth: float

    def __call__(self, sizes: Floats) -> Floats:
        rising = _smooth(sizes, self.first, self.second)
        return np.maximum(rising * (1 - _smooth(sizes, self.third, self.fourth)), 0.0)


def _smooth(values: Floats, start: float, end: float) -> Floats:
    if not np.isfinite(start) or not np.isfinite(end):
        return np.full(values.shape, 1.0 if start < 0 else 0.0)
    u = np.clip((values - start) / max(end - start, 1e-9), 0, 1)
    return np.asarray(u**3 * (u * (6 * u - 15) + 10))


NO_FADE = Fade(-np.inf, -np.inf, np.inf, np.inf)


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

    @property
    def step(self) -> float:
        """About how much the next tilt differs."""
        return 2 * _APART[1] / self.deviation

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

    def most(self, total: Total, first: float, second: float) -> float:
        """Upper bound of the logarithm of what a number from one to another weighs."""
        low, high = max(min(first, second), total.lowest), min(max(first, second), total.highest)
        if low > high:
            return -math.inf
        bound = total.log_weight.most(math.floor(low), math.ceil(high), self.counts.tilt)
        return self.log_sum + bound

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
    _known: dict[float, Tilt] = field(default_factory=dict, init=False)

    def all(self) -> list[tuple[TiltedCounts, Fade]]:
        """The counts under all tilts that are needed, each with where it is used.

        Raises
        ------
        ValueError
            Where they are too many, or a number is not reached.
        """
        best = self._of(balanced(self.categories, self.times, self.total))
        if not self.total.is_point:
            return self._covering(best)
        size = self.total.lowest
        if abs(best.mean - size) > _REACHED * best.deviation:
            raise ValueError(
                f"size: {size} records are not compatible with what was drawn; check the size and"
                " the scale of the noise."
            )
        return [(best.counts, NO_FADE)]

    def _tilted(self, tilt: float) -> Tilt:
        if tilt not in self._known:
            counts = TiltedCounts.of(self.categories, tilt, self.total.most_counts)
            self._known[tilt] = self._of(counts)
        return self._known[tilt]

    def _of(self, counts: TiltedCounts) -> Tilt:
        mean = float(self.times @ counts.mean)
        deviation = max(math.sqrt(self.times @ counts.variance), _SMALLEST_SPREAD)
        rows = np.arange(self.times.size)
        none = float(self.times @ counts.log_probability(rows, np.zeros(rows.size)))
        log_sum = counts.log_sum(self.times, self.origin)
        return Tilt(counts, mean, deviation, log_sum, none)

    def _covering(self, best: Tilt) -> list[tuple[TiltedCounts, Fade]]:
        """Tilts on both sides of the best, until what is beyond weighs nothing."""
        total, best = self.total, self._climbed(best)
        top, found = best.height(total), [best]
        for sign in (-1, 1):
            end = total.lowest if sign < 0 else total.highest
            last, step, kept = best, best.step, best
            while not last.reaches(end):
                self._check_number(len(found))
                if last.height(total) < top - _DEPTH:
                    last, step = self._across(last, sign * step, end, top)
                    if sign * (end - last.mean) <= 0:
                        break
                before, last = last, self._apart(last, sign * step)
                step = abs(last.counts.tilt - before.counts.tilt)
                step *= before.deviation / last.deviation
                top = max(top, last.height(total))
                if before is best and not best.loses(end):
                    beyond = best.mean + sign * _REACH * best.deviation
                    if last.most(total, beyond, end) < top - _HELD:
                        break
                near = max(before.height(total), last.height(total)) >= top - _DEPTH
                if near and abs(last.mean - kept.mean) > kept.deviation:
                    found.append(last)
                    kept = last
                if last.most(total, last.mean + sign * last.deviation, end) < top - _DEPTH:
                    break
        found = sorted(found, key=lambda each: each.mean)
        return [
            (each.counts, fade)
            for each, fade in _faded(found)
            if each.most(total, fade.first, fade.fourth) >= top - _DEPTH
        ]

    def _climbed(self, start: Tilt) -> Tilt:
        """The highest of some tilts, ever farther away: where the numbers weigh nearly the same for
        many deviations, the most probable ones may be far from the first tilt.
        """
        total = self.total
        for sign in (-1, 1):
            step, end = sign * start.step, total.lowest if sign < 0 else total.highest
            while not start.reaches(end):
                near = self._tilted(start.counts.tilt + step)
                possible = total.lowest <= near.mean <= total.highest
                if not possible or near.height(total) < start.height(total) + _RISE:
                    break
                start, step = near, 2 * step
        return start

    def _across(self, start: Tilt, step: float, end: float, top: float) -> tuple[Tilt, float]:
        """The farthest tilt before which nothing weighs anything, in steps that double, and the
        last step.
        """
        while True:
            far = self._tilted(start.counts.tilt + 2 * step)
            meet = (far.log_sum - start.log_sum) / (far.counts.tilt - start.counts.tilt)
            most = start.most(self.total, start.mean, meet), far.most(self.total, meet, far.mean)
            if max(most) >= top - _DEPTH:
                return start, abs(step)
            start, step = far, 2 * step
            if (end - start.mean) * step <= 0:
                return start, abs(step)

    def _apart(self, start: Tilt, step: float) -> Tilt:
        """A tilt, about a step from another, whose sums overlap a little with those of this."""
        near, far = 0.0, math.inf
        while True:
            found = self._tilted(start.counts.tilt + step)
            apart = abs(found.mean - start.mean) / 2
            apart /= math.sqrt(found.deviation * start.deviation)
            near, far = (abs(step), far) if apart < _APART[0] else (near, abs(step))
            narrow = far - near <= 1e-12 * (abs(start.counts.tilt) + far)
            if _APART[0] <= apart <= _APART[2] or narrow:
                return found
            wanted = abs(step) * min(max(_APART[1] / max(apart, 1e-3), 1 / 8), 8)
            if not near < wanted < far or (near > 0 and far < math.inf):
                wanted = (near + far) / 2
            step = math.copysign(wanted, step)

    def _check_number(self, tilts: int) -> None:
        if tilts >= _MOST_TILTS:
            raise too_uncertain(float(self.categories.prior @ self.times))


def _faded(found: list[Tilt]) -> list[tuple[Tilt, Fade]]:
    """Tilts with where they are used: they fade into each other between their means."""
    means = np.array([each.mean for each in found])
    deviations = np.array([each.deviation for each in found])
    left, right = deviations[:-1], deviations[1:]
    middles = (means[:-1] * right + means[1:] * left) / (left + right)
    gaps = np.diff(np.concatenate([[-np.inf], middles, [np.inf]]))
    ramps = np.minimum(_RAMP * np.minimum(left, right), 0.45 * np.minimum(gaps[:-1], gaps[1:]))
    ends = np.column_stack([middles - ramps, middles + ramps])
    far = np.maximum(_OUTERMOST * deviations, _FEWEST)
    outermost = (means[0] - far[0], means[-1] + far[-1])
    borders = [(outermost[0],) * 2, *map(tuple, ends.tolist()), (outermost[1],) * 2]
    return [
        (each, Fade(*below, *above))
        for each, below, above in zip(found, borders[:-1], borders[1:], strict=True)
    ]


def balanced(categories: NoisedCategories, times: Integers, total: Total) -> TiltedCounts:
    """The counts under the tilt that puts the mean of their sum about where the total is."""
    tilt, low, high, step = 0.0, -math.inf, math.inf, 0.0
    for turn in range(_MOST_STEPS):
        counts = TiltedCounts.of(categories, tilt, total.most_counts)
        mean = float(times @ counts.mean)
        deviation = max(math.sqrt(times @ counts.variance), _SMALLEST_DEVIATION)
        pull = total.pull(tilt, mean, deviation)
        if abs(pull) <= _OFF or high - low <= 1e-15 * abs(tilt):
            break
        low, high = (tilt, high) if pull > 0 else (low, tilt)
        newton = pull / max(deviation, 1.0 if abs(pull) < 1e3 else deviation)
        if math.isinf(high - low):
            # Newton's step may be far too long, or too short where the sum hardly varies.
            step = min(max(4 * step, 1 / deviation), 1e3 * max(step, 1.0))
            tilt += math.copysign(step if turn % 2 else min(step, abs(newton)), pull)
        elif turn % 2 and low < tilt + newton < high:
            tilt += newton
        else:
            tilt = (low + high) / 2
    return counts
