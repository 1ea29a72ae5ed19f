"""Records in all other categories that complete a count to a number of records: of a private one,
correlations on lattices in bins of the records.
"""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy import fft

from opendp_bayes.inference.convolution.lattices import Lattices, quantiles
from opendp_bayes.inference.convolution.sums import Outline, Parts, SumLaws
from opendp_bayes.inference.convolution.tilted_sums import TiltedSums
from opendp_bayes.inference.laws.mixtures_of_counts import Bins, in_bins
from opendp_bayes.mathematics.validation import Floats, Integers

#: Points at which laws are read at once.
_BLOCK = 1 << 21
#: Relative weight of what is left out.
_NEGLIGIBLE = 1e-13
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


class PublicBeside:
    """The weight of what completes a count to a public number of records: `laws` is that of the sum
    of all others, a row for each.
    """

    def __init__(self, tilted: TiltedSums, laws: SumLaws) -> None:
        sizes, log_weights = tilted.listed
        self._laws, self._size, self.log_scale = laws, float(sizes[0]), float(log_weights[0])
        #: The least that a deviation within these weights can be, for each row.
        self.narrow: Floats | float = laws.narrow

    def seeds(self, outline: Outline) -> Floats:
        """Counts between which there is no narrow peak, for each row; shape `(rows, m)`."""
        return self._size - self._laws.seeds()

    def weights(self, row: Integers, counts: Floats) -> Floats:
        """The weight of what completes each count, elementwise, over `exp(log_scale)`."""
        return self._laws.density(row, self._size - counts)


class PrivateBeside:
    """The weight `sum_r rest(r) weight(x + r)` of what completes a count x, each bin of r apart: on
    lattices with the steps of the rest. Answers what `PublicBeside` does.
    """

    narrow: Floats | float = np.inf

    def __init__(self, tilted: TiltedSums, laws: SumLaws, outline: Outline, known: Bins) -> None:
        sizes, log_weights = tilted.listed
        self.log_scale, whole = float(log_weights.max()), laws.whole
        rest = whole.origin[:, None] + whole.step[:, None] * np.arange(whole.points)
        seen = (whole.masses > _NEGLIGIBLE) & (rest <= sizes.max() - outline.low[:, None])
        last = int(np.flatnonzero(np.any(seen, axis=0)).max(initial=0)) + 1
        rest, masses = (
            rest[:, :last].astype(np.float64),
            np.where(seen, whole.masses, 0.0)[:, :last],
        )
        high = np.minimum(outline.high, sizes.max() - whole.origin)
        low = np.minimum(np.maximum(outline.low, sizes.min() - rest[:, -1]), high)
        step, rows = whole.step, np.arange(whole.step.size)
        origin = np.floor(low / step).astype(np.int64) * step
        points = int(np.max((high - origin) / step)) + 4
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
            each: tilted.lattice(each, int(begin[step == each].min()), int(extent))
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
        return np.maximum(self._whole.read(row, counts), 0.0)

    def completions(self, row: Integers, counts: Floats) -> Completions:
        """Records in the other categories beside each count, in parts of similar ones."""
        moments = self._moments.read(row, counts)
        least = 1e-10 * np.maximum(moments[0].sum(axis=0), 0.0)
        place, point = np.nonzero(moments[0] > least)
        weight, first, second = moments[:, place, point]
        unit = self._units[row[point], place]
        mean = self._centres[row[point], place] + unit * first / weight
        variance = unit**2 * np.maximum(second / weight - (first / weight) ** 2, 0.0)
        return Completions(point, weight, mean, variance)


Beside = PublicBeside | PrivateBeside


def beside_of(tilted: TiltedSums, own: Outline, rest: Parts, bins: Bins) -> Beside:
    """Sums over the records of the rest, beside categories with an outline, which `bins` tell
    apart.
    """
    laws = tilted.sums.of(rest, alone=True)
    if tilted.total.is_point:
        return PublicBeside(tilted, laws)
    return PrivateBeside(tilted, laws, own, bins)


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
