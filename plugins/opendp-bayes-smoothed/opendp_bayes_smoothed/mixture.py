"""Divergence between a database of three or more categories and a neighbour: the tails of two
categories, mixed over the number s of records that are drawn from the two.

    d(x, x') = sum_s P(s) d_s ,   d_s the tail for s records.

`d_s` grows with s: the histogram of fewer records is that of more, of which some are dropped. So a
stretch of s is bounded by its probability times the tail at its end, and whole stretches far from
where `P(s) d_s` is large cost one tail each.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from opendp_bayes_smoothed.draws import Draw, Floats, Integers, log_pmf_error
from opendp_bayes_smoothed.tails import NEGLIGIBLE, first_positive, log_tail, log_tail_ceiling

#: Stretches that a first look divides the possible s into, on either side of the mean.
_STRETCHES = 256
#: Terms that a mixture sums; beyond, neighbouring s share the larger tail.
_LARGEST_SUM = 1 << 24


@dataclass(frozen=True)
class Pair:
    """A database of `size` records with `a >= 1` records in the category that loses one and `b` in
    the one that gains it, of which `samples` are drawn.
    """

    draw: Draw
    size: int
    samples: int
    a: int
    b: int
    epsilon: float

    @property
    def _numbers(self) -> tuple[Integers, Integers, Integers]:
        """The records of the two categories, all others, and those that are drawn."""
        both = self.a + self.b
        return np.array(both), np.array(self.size - both), np.array(self.samples)

    def log_pmf(self, s: Integers) -> Floats:
        """Upper bounds on `ln P(s)`."""
        log_p = self.draw.log_pmf(s, *self._numbers)
        return log_p + log_pmf_error(log_p)

    def step(self, s: Integers) -> Floats:
        """`P(s + 1) / P(s)`, which falls with s."""
        return self.draw.step(s, *self._numbers)

    def support(self) -> tuple[int, int]:
        low, high = self.draw.support(*self._numbers)
        return int(low), int(high)

    def tail(self, s: Integers) -> Floats:
        return log_tail(self.draw, self.a + 0 * s, self.b + 0 * s, s, self.epsilon)

    def ceiling(self, s: Integers) -> Floats:
        return log_tail_ceiling(self.draw, self.a + 0 * s, self.b + 0 * s, s, self.epsilon)

    def columns(self, s: int) -> float:
        """About how many terms the tail at s takes."""
        at, a, b = np.array([s]), np.array([self.a]), np.array([self.b])
        low, high = self.draw.support(a, b, at)
        start = first_positive(self.draw, a, b, at, low, high, self.epsilon)
        if start[0] >= high[0]:
            return 1.0
        ratio = float(self.draw.step(start, a, b, at)[0])
        reach = 8 * self.draw.spread(self.a, self.b, s) + 16
        return min(reach, 28 / -math.log(ratio) + 16) if ratio < 1 else 2 * reach


def log_mixture(
    draw: Draw, size: int, samples: int, a: int, b: int, epsilon: float, floor: float
) -> float:
    """`ln d(x, x')`, rounded up, for x with a and b records in two of its categories and x' with
    one less and one more; minus infinity for no `a`. Where it cannot exceed `floor`, some bound
    that does not either.
    """
    pair = Pair(draw, size, samples, a, b, epsilon)
    low, high = pair.support()
    if np.isneginf(pair.tail(np.array([high]))[0]):
        return -math.inf  # the more records are drawn from the two, the more can be told
    ends = _ends(pair, low, high)
    first = np.concatenate([[low], ends[:-1] + 1])
    bounds = _log_stretch(pair, first, ends) + pair.ceiling(ends)
    ceiling = float(logsumexp(bounds)) + 2.0**-40
    if ceiling <= floor:
        return ceiling  # far below another pair: no need to know how far
    inner = _inner(bounds)
    total = _log_sum(pair, int(first[inner][0]), int(ends[inner][-1]))
    outside = np.concatenate([bounds[: inner.start], bounds[inner.stop :], [-math.inf]])
    return float(np.logaddexp(total, logsumexp(outside) + 2.0**-40)) + 2.0**-50


def _ends(pair: Pair, low: int, high: int) -> Integers:
    """The last s of each stretch, ascending, ending with `high`: a quarter of a standard deviation
    long around the mean, and longer and longer away from it.
    """
    share = (pair.a + pair.b) / pair.size
    spread = pair.draw.spread(pair.a + pair.b, pair.size - pair.a - pair.b, pair.samples) + 1
    # Half of the stretches reach 32 standard deviations, and the last the end.
    steps = np.arange(1, _STRETCHES + 1) / 4
    away = spread * np.where(steps <= 32, steps, 32 * 1.25 ** (4 * (steps - 32)))
    away = np.minimum(away, float(2 * pair.size))
    centre = pair.samples * share
    ends = np.floor(np.concatenate([centre - away, [centre], centre + away])).astype(np.int64)
    return np.unique(np.append(np.clip(ends, low, high), high))


def _log_stretch(pair: Pair, first: Integers, last: Integers) -> Floats:
    """Upper bounds on `ln P(first <= s <= last)`: the number of values times the largest
    probability, or a geometric series from the end where it is largest.
    """
    log_first, log_last = pair.log_pmf(first), pair.log_pmf(last)
    count = np.log((last - first + 1).astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(first < last, pair.step(first), 0.0) * (1 + 2.0**-48)
        down = np.where(first < last, 1 / pair.step(np.maximum(last - 1, first)), 0.0)
        down = down * (1 + 2.0**-48)
        falling = np.where(up < 1, -np.log1p(-np.minimum(up, 1 - 2.0**-53)), np.inf)
        rising = np.where(down < 1, -np.log1p(-np.minimum(down, 1 - 2.0**-53)), np.inf)
    bounds = np.where(up < 1, log_first + np.minimum(falling, count), np.inf)
    bounds = np.minimum(bounds, np.where(down < 1, log_last + np.minimum(rising, count), np.inf))
    return np.minimum(bounds + 2.0**-40, 0.0)


def _inner(bounds: Floats) -> slice:
    """Choose the stretches that count. Those below `NEGLIGIBLE` of the largest on either side are
    left out, and added as they are bounded.
    """
    relative = bounds - bounds.max() - math.log(NEGLIGIBLE) + math.log(len(bounds)) + 12
    counting = np.flatnonzero(relative >= min(0.0, float(relative.max())))
    return slice(int(counting[0]), int(counting[-1]) + 1)


def _log_sum(pair: Pair, first: int, last: int) -> float:
    """`ln sum_s P(s) d_s` over a window, rounded up: every tail, or, where these have too many
    terms, one for each few neighbouring s.
    """
    s = np.arange(first, last + 1)
    terms = len(s) * max(pair.columns(first), pair.columns(last))
    width = max(1, math.ceil(terms / _LARGEST_SUM))
    ends = np.minimum(np.arange(first + width - 1, last + width, width), last)
    tails = np.concatenate(
        [pair.tail(part) for part in np.array_split(ends, len(ends) // 4096 + 1)]
    )
    return float(logsumexp(pair.log_pmf(s) + np.repeat(tails, width)[: len(s)])) + 2.0**-40
