"""Records in all other categories that complete a count to a number of records: sums over both, of
listed numbers, or as correlations on lattices in bins of the records.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import fft

from opendp_bayes.inference.convolution.lattices import Lattices, quantiles
from opendp_bayes.inference.convolution.sums import Outline, Parts, SumLaws
from opendp_bayes.inference.convolution.tilted_sums import TiltedSums
from opendp_bayes.inference.laws.mixtures_of_counts import Bins, in_bins
from opendp_bayes.mathematics.validation import Floats, Integers

#: Numbers of records are listed where their range is below so many steps of a lattice; or below
#: the second, where the others have next to no records with more than this probability: between
#: listed numbers that peak would be missed.
_FEW_STEPS, _FEWEST_STEPS, _PEAK = 8.0, 3.0, 0.04
#: Points at which laws are read at once.
_BLOCK = 1 << 21
#: Relative weight of what is left out.
_NEGLIGIBLE = 1e-13
#: So many points of a lattice from 0 on are too few to tell small counts apart.
_CLOSE_STEPS = 16
#: How much the logarithm of a weight may bend in a step.
_BEND = 0.15
_FIELDS = ("point", "weight", "mean", "variance")


@dataclass(frozen=True, eq=False)
class Completions:
    """Records in other categories that complete counts to numbers of records, in parts of similar
    ones; shapes `(m,)`.

    `point` is the place of the count; `weight` is that of the part, `mean` and `variance` those of
    the records in other categories.
    """

    point: Integers
    weight: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def joined(cls, several: "list[Completions]") -> "Completions":
        """Put several lists together."""
        return cls(*(np.concatenate([getattr(x, name) for x in several]) for name in _FIELDS))

    def binned(self, bins: Integers) -> "Completions":
        """Make one part of those that complete the same count and are in the same bin."""
        number = int(bins.max(initial=0)) + 1
        used, place = np.unique(self.point * number + bins, return_inverse=True)
        weight, mean, variance = in_bins(place, self.weight, self.mean)
        within = in_bins(place, self.weight, self.variance)[1]
        return Completions(used // number, weight, mean, variance + within)


class ListedBeside:
    """The weight `sum_j weight_j rest(n_j - x)` of what completes a count x to listed numbers of
    records `n_j`; `rest` is the law of the sum of all others, a row of `laws` for each node.
    """

    #: The least that a deviation within these weights can be, for each row; one number of records
    #: alone does not blur what is narrow.
    narrow: Floats | float = np.inf

    def __init__(self, laws: SumLaws, sizes: Floats, log_weights: Floats, bins: Bins) -> None:
        self._bins, self.log_scale = bins, float(log_weights.max())
        self._laws, self._sizes = laws, sizes
        if sizes.size == 1:
            self.narrow = laws.narrow
        self._weights = np.exp(log_weights - self.log_scale)

    def seeds(self, outline: Outline) -> Floats:
        """Counts between which there is no narrow peak, for each row; shape `(rows, m)`."""
        own = self._laws.seeds()
        some = np.unique(np.quantile(self._sizes, [0, 0.25, 0.5, 0.75, 1]).round())
        return np.concatenate([size - own for size in some], axis=1)

    def _pairs(self, row: Integers, counts: Floats) -> tuple[Floats, Floats]:
        """Records left to the others, and their weights, shapes `(counts, sizes)`."""
        left = self._sizes - counts[:, None]
        rows = np.broadcast_to(row[:, None], left.shape)
        density = self._laws.density(rows.ravel(), left.ravel()).reshape(left.shape)
        return left, self._weights * density

    def weights(self, row: Integers, counts: Floats) -> Floats:
        """The weight of what completes each count, elementwise, over `exp(log_scale)`."""
        found = np.empty(counts.shape)
        for part in self._blocks(counts.size):
            found[part] = self._pairs(row[part], counts[part])[1].sum(axis=1)
        return found

    def completions(self, row: Integers, counts: Floats) -> Completions:
        """Records in the other categories beside each count, in parts of similar ones."""
        found = []
        for part in self._blocks(counts.size):
            rest, weights = self._pairs(row[part], counts[part])
            seen = weights > _NEGLIGIBLE * weights.sum(axis=1, keepdims=True)
            point = np.nonzero(seen)[0]
            rest, point = rest[seen], point + part.start
            known = Completions(point, weights[seen], rest, np.zeros(rest.size))
            found.append(known.binned(self._bins.of(row[point], rest)))
        return Completions.joined(found)

    def _blocks(self, size: int) -> list[slice]:
        block = max(1, _BLOCK // self._sizes.size)
        return [slice(start, start + block) for start in range(0, size, block)]


class SmoothBeside:
    """The weight `sum_r rest(r) weight(x + r)` of what completes a count x, each bin of r apart: on
    lattices with the steps of the rest, but one by one where these steps are too long to tell small
    r apart. Answers what `ListedBeside` does.
    """

    narrow = np.inf

    def __init__(self, tilted: TiltedSums, laws: SumLaws, outline: Outline, bins: Bins) -> None:
        self._tilted, self.log_scale = tilted, float(tilted.listed[1].max())
        whole = laws.whole
        ends = np.where((whole.step > 1) & (whole.origin == 0), _CLOSE_STEPS * whole.step, 0)
        self._near = _Near.of(laws, ends, bins)
        rest = whole.origin[:, None] + whole.step[:, None] * np.arange(whole.points)
        far = np.where(rest < ends[:, None], 0.0, np.where(rest == ends[:, None], 0.5, 1.0))
        far[ends == 0] = 1.0
        fewest, most = (end(tilted.listed[0]) for end in (np.min, np.max))
        seen = (whole.masses > _NEGLIGIBLE) & (rest <= most - outline.low[:, None])
        last = int(np.flatnonzero(np.any(seen, axis=0)).max(initial=0)) + 1
        rest, masses = rest[:, :last].astype(np.float64), np.where(seen, whole.masses * far, 0.0)
        high = np.minimum(outline.high, most - np.minimum(whole.origin, ends))
        low = np.minimum(np.maximum(outline.low, fewest - rest[:, -1]), high)
        self._set(rest, masses[:, :last], whole, replace(outline, low=low, high=high), bins)

    def _set(
        self, rest: Floats, masses: Floats, whole: Lattices, outline: Outline, known: Bins
    ) -> None:
        """Lattices of the sums over each bin, and of its first and second moments."""
        step, rows = whole.step, np.arange(whole.step.size)
        origin = np.floor(outline.low / step).astype(np.int64) * step
        points = int(np.max((outline.high - origin) / step)) + 4
        bins = known.of(rows[:, None], rest)
        bins -= np.where(masses > 0, bins, bins.max()).min(axis=1, keepdims=True)
        number = int(np.where(masses > 0, bins, 0).max()) + 1
        bins = np.clip(bins, 0, number - 1)
        key, size = (rows[:, None] * number + bins).ravel(), rows.size * number
        _, centres, variances = in_bins(key, masses.ravel(), rest.ravel(), size)
        self._centres = centres.reshape(rows.size, number)
        self._units = np.maximum(np.sqrt(variances), 1e-9).reshape(rows.size, number)
        off = rest - np.take_along_axis(self._centres, bins, axis=1)
        off /= np.take_along_axis(self._units, bins, axis=1)
        needed = points + rest.shape[1] - 1
        begin = origin + whole.origin
        table = {
            each: self._tilted.lattice(each, int(begin[step == each].min()), int(extent))
            for each in np.unique(step).tolist()
            for extent in [np.ptp(begin[step == each]) // each + needed]
        }
        found = np.zeros((3, number, rows.size, points))
        for row, each in enumerate(step.tolist()):
            start = int(begin[row] - begin[step == each].min()) // each
            moments = masses[row] * off[row] ** np.arange(3)[:, None]
            used, sums_of_bins = _correlated(moments, bins[row], table[each][start:][:needed])
            found[:, used, row] = sums_of_bins
        self._moments = Lattices(origin, step, found)
        self._whole = Lattices(origin, step, found[0].sum(axis=0))

    def seeds(self, outline: Outline) -> Floats:
        whole = self._whole
        weights = np.maximum(self._moments.masses[0], 0).sum(axis=0)
        places = whole.origin[:, None] + whole.step[:, None] * np.arange(whole.points)
        beyond = (places > outline.high[:, None]) | (places < outline.low[:, None])
        far = quantiles(Lattices(whole.origin, whole.step, np.where(beyond, 0.0, weights)))
        around = np.sqrt(outline.variance)[:, None] * np.linspace(-4, 4, 17)
        return np.concatenate([far, outline.mean[:, None] + around], axis=1)

    def weights(self, row: Integers, counts: Floats) -> Floats:
        far = np.maximum(self._whole.read(row, counts), 0.0)
        return far + self._close(row, counts).sum(axis=1)

    def _close(self, row: Integers, counts: Floats) -> Floats:
        """Weights of the bins close to 0, shape `(counts, bins)`."""
        masses = self._near.masses[row]
        found, seen = np.zeros(masses.shape), masses > 0
        sizes = (self._near.sums[row] + counts[:, None])[seen]
        found[seen] = masses[seen] * np.exp(self._tilted.log_size(sizes) - self.log_scale)
        return found

    def completions(self, row: Integers, counts: Floats) -> Completions:
        close = self._close(row, counts)
        far = self._moments.read(row, counts)
        least = 1e-10 * (close.sum(axis=1) + np.maximum(far[0].sum(axis=0), 0.0))
        point, near = np.nonzero(close > least[:, None])
        sums = self._near.sums[row[point], near]
        one_by_one = Completions(point, close[point, near], sums, np.zeros(sums.size))
        place, point = np.nonzero(far[0] > least)
        weight, first, second = far[:, place, point]
        unit = self._units[row[point], place]
        mean = self._centres[row[point], place] + unit * first / weight
        variance = unit**2 * np.maximum(second / weight - (first / weight) ** 2, 0.0)
        return Completions.joined([one_by_one, Completions(point, weight, mean, variance)])


Beside = ListedBeside | SmoothBeside


def beside_of(tilted: TiltedSums, own: Outline, rest: Parts, bins: Bins) -> Beside:
    """Choose how to sum over the records of the rest, beside categories with an outline, which
    `bins` tell apart: number by number where these numbers are few, else on lattices.
    """
    laws = tilted.sums.of(rest, alone=True)
    if tilted.total.is_point or _is_narrow(tilted, laws.whole):
        return ListedBeside(laws, *tilted.listed, bins)
    return SmoothBeside(tilted, laws, own, bins)


def _is_narrow(tilted: TiltedSums, whole: Lattices) -> bool:
    """True if the weights of numbers of records are too narrow or too bent for the steps of sums
    over the other categories.
    """
    step = int(whole.step.max())
    if step == 1:
        return False
    sizes, none = tilted.listed[0], whole.masses[whole.origin == 0, 0]
    few = _FEWEST_STEPS if np.any(none > _PEAK) else _FEW_STEPS
    if np.ptp(sizes) < few * step:
        return True
    inside = (sizes - step > tilted.lowest) & (sizes + step < tilted.highest)
    inside &= sizes >= _CLOSE_STEPS * step
    sizes = sizes[inside]
    known = tilted.total.log_weight
    bend = known(sizes - step) + known(sizes + step) - 2 * known(sizes)
    return bool(np.any(np.abs(bend) > _BEND))


def _correlated(factors: Floats, bins: Integers, weights: Floats) -> tuple[Integers, Floats]:
    """Sums of rows of factors, shape `(3, n)`, over each run of the same of `bins`, times as many
    weights from each one on; returns the bins and an array of shape `(3, bins, points)`.
    """
    size = factors.shape[1]
    points = weights.size - size + 1
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    if size * points <= _BLOCK:
        windows = sliding_window_view(weights, points)
        found = [np.add.reduceat(each[:, None] * windows, starts, axis=0) for each in factors]
        return bins[starts], np.stack(found)
    run = np.repeat(np.arange(starts.size), np.diff(starts, append=size))
    apart = np.zeros((3, starts.size, size))
    apart[:, run, np.arange(size)] = factors
    length = fft.next_fast_len(weights.size, real=True)
    product = fft.rfft(weights, length) * np.conj(fft.rfft(apart, length))
    return bins[starts], fft.irfft(product, length)[..., :points]


@dataclass(frozen=True, eq=False)
class _Near:
    """Laws of sums close to 0, in bins of two points each; shapes `(rows, points)`."""

    masses: Floats
    sums: Floats

    @classmethod
    def of(cls, laws: SumLaws, ends: Integers, known: Bins) -> "_Near":
        """Gather sums up to the ends of each row, in bins that are no longer than its steps."""
        row, sums, masses = laws.close(ends)
        bins = known.of(row, sums) - known.of(row, np.zeros(row.size))
        bins += (sums / laws.whole.step[row]).astype(np.int64)
        number = int(bins.max(initial=0)) + 1
        key, shape = row * number + bins, (ends.size, number)
        found = in_bins(key, masses, sums, ends.size * number)
        whole, means, variances = (each.reshape(shape) for each in found)
        whole, deviations = np.where(whole > _NEGLIGIBLE, whole, 0.0), np.sqrt(variances)
        # A weight is then averaged over a bin up to its third derivative, about.
        wide = deviations > 0
        both = np.where(wide, whole / 2, whole), np.where(wide, whole / 2, 0.0)
        sums = np.concatenate([means - deviations, means + deviations], axis=1)
        return cls(np.concatenate(both, axis=1), sums)
