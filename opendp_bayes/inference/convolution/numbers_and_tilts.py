"""Numbers of records that stand for all that matter, and a few tilts under which they are about
the mean of the sum of all counts.

Weights times `exp(tilt x)` are the same law once the sum of all counts is given, but under a tilt
that suits it the sum is probable, and a transform keeps its digits.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import special

from opendp_bayes.inference.convolution.number_of_records import Total
from opendp_bayes.inference.convolution.tilted_counts import Moments, NoisedCategories, TiltedCounts
from opendp_bayes.inference.laws.count_cells import NOTHING, cells_from
from opendp_bayes.inference.likelihood.drawn_counts import too_uncertain
from opendp_bayes.mathematics.validation import Floats, Integers

#: Rough cells are longer by this factor, each than the one before it.
_GROWTH = 2.0
#: Below those that matter tilts go so much further.
_STEEPEST = 45.0
#: Numbers that weigh less than `exp(-_DEPTH)` are left out; at the ends they have to be less than
#: `exp(-_ENDS)`.
_DEPTH, _ENDS = 18.0, 15.0
#: Deviations of the sum from one tilt to the next: of those that cells suit, and of those at which
#: the moments are known; and those by which ends are moved.
_APART, _KNOWN, _MOVED = 4.0, 0.5, 4.0
#: Steps from one tilt to the next for draws, whose number of records has to be near the mean.
_FINER = 3
#: Times that ends are moved, or looked at more closely, and tilts that are looked at then.
_ROUNDS, _AT_ONCE = 20, 32
#: Numbers at which weights are looked at, at once; those of the last look.
_GRID, _LAST_GRID = 1 << 9, 1 << 12
#: Parts of numbers of records are between so many deviations apart, fewer where they are more than
#: this share of what is not known of a probability, or so much of its logit that they skew its law;
#: small numbers this much of themselves. The most parts.
_SPACE, _SHARE, _SKEWED, _NEAREST, _SMALL, _MOST = (0.4, 4.0), 0.3, 0.1, 0.1, 5.0, 1000
#: Parts of rare numbers are longer, down to this share of the largest probability. As many numbers
#: have a part each; among some more those that are not rare have one.
_RARE, _FEW, _SOME = 1e-3, 64, 256
#: Means under two tilts are equal that differ by less than this share: of 1e9 records, by far less
#: than one.
_RISE = 1e-12
#: The variance of a whole number that is known.
_LEAST, _TINY = 1 / 12, 1e-300


@dataclass(frozen=True, eq=False)
class Curve:
    """The law of the sum of all counts, each there so many times, from its moments under ascending
    tilts, at real numbers between the smallest and the largest mean.
    """

    moments: Moments
    times: Integers

    @cached_property
    def known(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Means, tilts, variances and logarithms of the weight of all counts of about this sum."""
        means, variances = self.moments.mean @ self.times, self.moments.variance @ self.times
        rises = np.diff(np.maximum.accumulate(means), prepend=-1.0) > _RISE * (1 + means)
        means, tilts = means[rises], self.moments.tilts[rises]
        return means, tilts, variances[rises] + _LEAST, self.moments.log_sums(self.times)[rises]

    def at(self, values: Floats, which: int) -> Floats:
        """Tilts, `which=1`, or variances, `which=2`, where sums have these means."""
        return np.interp(values, self.known[0], self.known[which])

    def log_density(self, sizes: Floats) -> Floats:
        """About the logarithm of the weight of all counts that sum to each number, by the saddle
        point.
        """
        means, tilts, variances, log_sums = self.known
        logs = log_sums - tilts * means - np.log(2 * np.pi * variances) / 2
        return np.interp(sizes, means, logs)

    def spaced(self, low: float, high: float, apart: float, most: int = _MOST + 1) -> Floats:
        """Tilts between two that are at most so many deviations of the sum apart, if these are not
        more than `most`.
        """
        means, tilts, variances, _ = self.known
        grid = np.unique(np.concatenate([[low, high], tilts[(tilts > low) & (tilts < high)]]))
        # Variances are derivatives of means, of which they may miss a peak; none are known beyond.
        steps, moved = np.diff(grid), np.diff(np.interp(grid, tilts, means))
        rate = np.interp(grid, tilts, np.sqrt(variances))
        along = np.maximum(steps * (rate[1:] + rate[:-1]) / 2, np.sqrt(steps * moved))
        along = np.append(0.0, np.cumsum(along))
        number = min(max(int(np.ceil(along[-1] / apart)), 2) + 1, most)
        return np.interp(np.linspace(0, along[-1], number), along, grid)


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of records in parts, and tilts that suit these.

    Attributes
    ----------
    counts : TiltedCounts
        The weights of the counts of different categories.
    moments : Moments
        Their laws under each tilt.
    tilt : ndarray of int
        The tilt of each part, shape `(parts,)`, ascending; every tilt has a part.
    centres : ndarray
        The number about which each part is, shape `(parts,)`, ascending.
    sizes : ndarray
        Numbers of records that stand for all that matter, shape `(numbers,)`, ascending.
    masses : ndarray
        What the probability under the tilt of a part that the counts sum to each of these is to be
        multiplied by, shape `(parts, numbers)`.
    log_norm : float
        Logarithm of what all masses are to be multiplied by.
    mean : float
        About the mean of the number.
    shares : ndarray
        About the probabilities of the numbers of each tilt, shape `(tilts,)`.
    """

    counts: TiltedCounts
    moments: Moments
    tilt: Integers
    centres: Floats
    sizes: Floats
    masses: Floats
    log_norm: float
    mean: float
    shares: Floats

    @cached_property
    def middles(self) -> Floats:
        """The mean of the centres of each tilt's parts, shape `(tilts,)`."""
        return np.bincount(self.tilt, self.centres) / np.bincount(self.tilt)

    def chosen(self, start: int, end: int) -> "Numbers":
        """The parts of the tilts from one to before another."""
        some = slice(*np.searchsorted(self.tilt, [start, end]).tolist())
        return replace(
            self,
            moments=self.moments.chosen(slice(start, end)),
            tilt=self.tilt[some] - start,
            centres=self.centres[some],
            masses=self.masses[some],
            shares=self.shares[start:end],
        )

    @property
    def finer(self) -> "Numbers":
        """The counts under these tilts and others between them, without parts."""
        tilts, none = self.moments.tilts, slice(0)
        places = np.linspace(0, tilts.size - 1, _FINER * (tilts.size - 1) + 1)
        return replace(
            self,
            moments=self.counts.under(np.interp(places, np.arange(tilts.size), tilts)),
            tilt=self.tilt[none],
            centres=self.centres[none],
            masses=self.masses[none],
        )

    def some(self, rows: Integers) -> "Numbers":
        """Those of some of the categories, in their order."""
        return replace(self, counts=self.counts.some(rows), moments=self.moments.some(rows))


def numbers_of(categories: NoisedCategories, times: Integers, total: Total) -> Numbers:
    """The numbers of records of categories, each of which is there so many times.

    Raises
    ------
    ValueError
        Where a public number is not reached, or a private one is too uncertain.
    """
    rough, tilts = _rough(categories, total.highest)
    curve, low, high = _nearer(rough, Curve(rough.under(tilts), times), total)
    moved = _MOVED
    for _ in range(_ROUNDS):
        suited = curve.spaced(low, high, _APART)
        if suited.size > _MOST:
            raise too_uncertain(float(categories.prior @ times))
        counts = TiltedCounts.of(categories, suited, total.highest)
        curve = Curve(counts.under(curve.spaced(low, high, _KNOWN)), times)
        means, (sizes, logs) = curve.known[0], _matters(curve, total)
        open_low = logs[0] > logs.max() - _ENDS and means[0] > max(total.lowest + 0.5, 0.1)
        open_high = logs[-1] > logs.max() - _ENDS and means[-1] < total.highest - 0.5
        if not (open_low or open_high):
            return _in_parts(counts, curve, total, sizes[[0, -1]])
        first, last = np.sqrt(curve.known[2][[0, -1]]).tolist()
        if open_low:
            low -= moved / first
        if open_high:  # where deviations grow with tilts
            beyond = Curve(counts.under(np.linspace(high, high + moved / last, _AT_ONCE)), times)
            high = float(beyond.at(means[-1] + moved * last, 1))
        moved *= 2
    prior = f"records_prior: {total.lowest} to {total.highest}"
    raise ValueError(
        f"{f'size: {total.lowest}' if total.is_point else prior} records are not compatible with"
        " what was drawn; check them and the scale of the noise."
    )


def _rough(categories: NoisedCategories, last: int) -> tuple[TiltedCounts, Floats]:
    """Cells that suit all tilts somewhat, and tilts from where there are no records to where there
    is nothing but.
    """
    steps = np.arange(np.log(last + 2.0) / np.log(_GROWTH) + 1)
    steps = np.unique(np.minimum(_GROWTH**steps, last + 1.0).astype(np.int64))
    away = np.concatenate([-steps[::-1], [0], steps])
    anchors = [np.clip(centre, 0, last) for centre in categories.centres]
    near = [*anchors, np.zeros_like(anchors[0]), np.full_like(anchors[0], last)]
    seeds = np.concatenate([each[:, None] + away for each in near], axis=1)
    rows = np.arange(categories.k)
    cells = cells_from(seeds.astype(float), np.zeros(rows.size), np.full(rows.size, float(last)))
    slope = categories.slope
    down = np.geomspace(slope + _STEEPEST, 1e-3 / (last + 1), 24)
    up = slope * np.concatenate(
        [np.geomspace(1e-3 / (slope * last + 1), 0.5, 8), 1 - 0.5 ** np.arange(2, 16, 2)]
    )
    grid = np.concatenate([-down, [0.0], up, [slope * (1 + 1e-3)]])
    return TiltedCounts(categories, anchors[0], cells), np.unique(grid)


def _nearer(rough: TiltedCounts, curve: Curve, total: Total) -> tuple[Curve, float, float]:
    """The curve at tilts that are not far apart where numbers of records matter, and the tilts
    between which these are.
    """
    done = False
    for _ in range(_ROUNDS):
        sizes, _ = _matters(curve, total)
        means, tilts, *_ = curve.known
        low = float(tilts[max(int(np.searchsorted(means, sizes[0], "right")) - 1, 0)])
        high = float(tilts[min(int(np.searchsorted(means, sizes[-1])), tilts.size - 1)])
        if done:
            break
        suited = curve.spaced(low, high, _APART, _AT_ONCE)
        done = suited.size < _AT_ONCE
        curve = Curve(rough.under(suited), curve.times)
    return curve, low, high


def _in_parts(counts: TiltedCounts, curve: Curve, total: Total, ends: Floats) -> Numbers:
    """The number of records between two ends, in parts that overlap."""
    prior, times = counts.categories.prior, curve.times
    sizes, lengths = _listed(*np.rint(ends).tolist())
    known = total.log_weight(sizes) + np.log(lengths)
    about = special.softmax(curve.log_density(sizes) + known)
    mean = float(about @ sizes)
    deviation = np.sqrt(about @ (sizes - mean) ** 2)
    apart = deviation * _space(counts.under(curve.at(np.array([mean]), 1)), prior, times, deviation)
    widths = np.sqrt(curve.at(sizes, 2))
    apart = min(apart, _SPACE[1] * (about @ widths))
    rate = np.maximum(1 / max(apart, 1.0), np.minimum(_SMALL / (1 + sizes), 1.0))
    rare = np.maximum(about / lengths / (about / lengths).max(), _RARE) ** 0.25
    rate = np.maximum(rate * rare, 1 / np.maximum(_SPACE[1] * widths, 1.0))
    if sizes.size <= _SOME:
        rate = np.where((rare > _RARE**0.25) | (sizes.size <= _FEW), 1.0, rate)
    along = np.append(0.0, np.cumsum(np.diff(sizes) * (rate[1:] + rate[:-1]) / 2))
    number = int(np.ceil(along[-1])) + 1
    if number > _MOST:
        raise too_uncertain(float(prior @ times))
    centres = np.unique(np.rint(np.interp(np.linspace(0, along[-1], number), along, sizes)))
    first, last = curve.at(centres[[0, -1]], 1).tolist()
    suited = curve.spaced(first, last, _APART)
    # The tilt whose mean suits both ends of a part, in deviations of the sum under it or there.
    of_tilts = counts.under(suited)
    means, under = of_tilts.mean @ times, np.sqrt(of_tilts.variance @ times + _TINY)
    before, after = np.append(centres[0], centres[:-1]), np.append(centres[1:], centres[-1])
    there = np.minimum(under, np.sqrt(curve.at(after, 2))[:, None])
    tilt = (np.maximum(after[:, None] - means, means - before[:, None]) / there).argmin(axis=1)
    used, tilt = np.unique(np.maximum.accumulate(tilt), return_inverse=True)
    moments = of_tilts.chosen(used)
    # Straight from 1 at the centre of a part to 0 at the next ones.
    parts = np.arange(centres.size)
    hats = np.maximum(1 - np.abs(np.interp(sizes, centres, parts) - parts[:, None]), 0.0)
    logs = (moments.log_sums(times)[:, None] - moments.tilts[:, None] * sizes)[tilt] + known
    log_norm = float(logs[hats > 0].max())
    with np.errstate(over="ignore", invalid="ignore"):
        masses = np.where(hats > 0, hats * np.exp(logs - log_norm), 0.0)
    shares = np.asarray(np.bincount(tilt, hats @ about), dtype=np.float64)
    return Numbers(counts, moments, tilt, centres, sizes, masses, log_norm, mean, shares)


def _space(known: Moments, prior: Floats, times: Integers, deviation: float) -> float:
    """The distance of parts of the number, in its deviations: by the largest share of these in what
    is not known of the logit of a probability, and by how large they are in it.
    """
    mean, variance = known.mean[0], known.variance[0]
    a, b = mean + prior, np.maximum(mean @ times - mean, 0.0) + prior @ times - prior
    moved = deviation / b
    share = float((moved / np.sqrt(1 / a + 1 / b + variance / a**2)).max())
    space = np.clip(_SHARE / max(share, _TINY), *_SPACE)
    return float(np.minimum(space, np.maximum(_SKEWED / max(moved.max(), _TINY), _NEAREST)))


def _matters(curve: Curve, total: Total) -> tuple[Floats, Floats]:
    """Numbers of records that matter, ascending, some among others, and logarithms of weights."""
    sizes = np.concatenate([total.seeds.astype(np.float64), curve.known[0]])
    low, high = (np.clip(curve.known[0][end], total.lowest, total.highest) for end in (0, -1))
    for _ in range(4):
        sizes = np.unique(np.clip(np.append(sizes, [low, high]), low, high))
        logs = np.maximum(curve.log_density(sizes) + total.log_weight(sizes), NOTHING)
        seen = np.flatnonzero(logs > logs.max() - _DEPTH)
        ends = max(int(seen[0]) - 1, 0), min(int(seen[-1]) + 1, sizes.size - 1)
        low, high = sizes[ends[0]], sizes[ends[1]]
        kept = slice(ends[0], ends[1] + 1)
        known = sizes[kept], logs[kept]
        if low == high:
            break
        sizes = np.append(known[0], np.linspace(low, high, _GRID))
    return known


def _listed(first: float, last: float) -> tuple[Floats, Floats]:
    """All numbers of records between two, or some with how many each stands for."""
    step = max((last - first) // _LAST_GRID, 1.0)
    starts = np.arange(first, last + 1, step)
    lengths = np.minimum(starts + step, last + 1) - starts
    return starts + (lengths - 1) / 2, lengths
