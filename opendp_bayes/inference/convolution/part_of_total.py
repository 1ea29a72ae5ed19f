"""Counts whose sum is public, or private and near where one tilt puts it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft, special

from opendp_bayes.inference.convolution.lattices import Lattices, quantiles, without_rounding
from opendp_bayes.inference.convolution.number_of_records import Total
from opendp_bayes.inference.convolution.plan_of_sums import PlanOfSums
from opendp_bayes.inference.convolution.sums_by_pairs import Shape, SumLaws, SumsByPairs
from opendp_bayes.inference.convolution.tilted_counts import Windows
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells
from opendp_bayes.inference.laws.refinement import cells_from, refined
from opendp_bayes.mathematics.validation import Floats, Integers

#: Numbers of records are listed where their deviation is below so many steps of a lattice.
_FEW_STEPS = 3.0
#: Numbers of records are told apart that differ by this share of what a probability is divided by,
#: and where that is below so many, all are.
_ALIKE, _ALL_APART = 0.12, 24.0
#: Numbers of records that weigh less than `exp(-_DEPTH)` of the largest are left out.
_DEPTH = 24.0
#: Points at which laws are read at once.
_BLOCK = 1 << 21
#: Relative weight of what is left out.
_NEGLIGIBLE = 1e-13
#: A tilt reaches so many deviations of the sum of all.
_REACH = 6.5
#: So many points of a lattice from 0 on are too few to tell small counts apart.
_FIRST = 16
#: Where they have this probability.
_FEW = 1e-6
#: Numbers of records of which all weigh less than `exp(-_FAINT)` of the best need not be smooth.
_FAINT = 14.0


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


class PartOfTotal:
    """Counts of the rows of `windows`, whose tilt suits the numbers of records that `fade` leaves.

    `row`, shape `(k,)`, tells the row of each category; `origin` is a count of every row from which
    logarithms count; `groups` of categories are nodes of the tree, too.
    """

    def __init__(
        self,
        windows: Windows,
        row: Integers,
        total: Total,
        origin: Integers,
        concentration: float,
        fade: Fade = NO_FADE,
        groups: Sequence[Sequence[int]] = (),
    ) -> None:
        self.windows, self.total, self._fade = windows, total, fade
        self.concentration = concentration
        multiplicity = np.bincount(row)
        self._constant = windows.log_sum(multiplicity, origin)
        plan = PlanOfSums.of(row, np.sqrt(windows.variance), groups)
        self.plan = plan
        lowest = max(float(total.lowest), fade.first)
        highest = min(float(total.highest), fade.fourth)
        self.sums = SumsByPairs(windows, plan, lowest, highest)
        self._ends = lowest, highest

    @property
    def tilt(self) -> float:
        """The tilt of the weights."""
        return self.windows.tilt

    @cached_property
    def _whole(self) -> SumLaws:
        return self.sums.inside.composite(np.array([self.plan.root]))

    def log_size(self, sizes: Floats) -> Floats:
        """Logarithms of the weights of numbers of records, without those of the counts' tilt."""
        inside = (sizes >= self._ends[0]) & (sizes <= self._ends[1])
        known = self.total.log_weight(np.clip(sizes, self.total.lowest, self.total.highest))
        with np.errstate(divide="ignore"):
            log_fade = np.log(self._fade(sizes))
        weight = known + log_fade - self.tilt * sizes + self._constant
        return np.maximum(np.where(inside, weight, NOTHING), NOTHING)

    def log_total(self, _row: Integers, sizes: Floats) -> Floats:
        """Logarithms of the weights of numbers of records, with those of all counts."""
        with np.errstate(divide="ignore"):
            log_whole = np.log(self._whole.density(np.zeros(sizes.shape, dtype=np.int64), sizes))
        return np.maximum(self.log_size(sizes) + log_whole, NOTHING)

    @cached_property
    def size_cells(self) -> Cells:
        """Cells of the number of records."""
        total = self.total
        if total.all or total.is_point:
            points = total.seeds[(total.seeds >= self._ends[0]) & (total.seeds <= self._ends[1])]
            return Cells(np.zeros_like(points), points, points)
        shape, root = self.sums.inside.shape, self.plan.root
        lowest = int(max(self._ends[0], shape.low[root]))
        highest = int(max(min(self._ends[1], shape.high[root]), lowest))
        mean, deviation = shape.mean[root], np.sqrt(shape.variance[root])
        around = mean + deviation * np.linspace(-9, 9, 37)
        starts = np.clip([*total.seeds, *around, lowest], lowest, highest)
        starts = np.unique(starts.astype(np.int64))
        cells = Cells(np.zeros_like(starts), starts, np.append(starts[1:] - 1, highest))
        return refined(self.log_total, cells, 1)

    @cached_property
    def listed(self) -> tuple[Floats, Floats]:
        """Numbers of records that stand for all, and logarithms of their weights without those of
        the counts.
        """
        cells = self.size_cells
        whole = cells.log_masses(self.log_total)[cells.used]
        found = cells.log_masses(lambda _, sizes: self.log_size(sizes))[cells.used]
        kept = whole > whole.max() - _DEPTH
        return cells.nodes[cells.used][kept], found[kept]

    @cached_property
    def log_evidence(self) -> float:
        """Logarithm of the sum of all weights, comparable between tilts."""
        return float(special.logsumexp(self.size_cells.log_masses(self.log_total)))

    def holds_all(self, depth: float) -> bool:
        """True if numbers of records where the sum of all is out of this tilt's reach weigh less
        than `exp(-depth)` of all.
        """
        shape, root = self.sums.inside.shape, self.plan.root
        mean, deviation = shape.mean[root], np.sqrt(shape.variance[root])
        ends = mean + _REACH * deviation * np.array([-1.0, 1.0])
        inside = (ends > self._ends[0]) & (ends < self._ends[1])
        heights = self.log_total(np.zeros(2, dtype=np.int64), np.round(ends))
        least = self.log_evidence - depth - np.log(deviation + 1)
        return bool(np.all(~inside | (heights < least)))

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of the number of records."""
        cells = self.size_cells
        masses = special.softmax(cells.log_masses(self.log_total))
        mean = float(np.sum(masses * cells.nodes))
        return float(np.sqrt(np.sum(masses * (cells.nodes - mean) ** 2)))

    def beside(self, nodes: Integers, others: Floats) -> "Beside":
        """Choose how to sum over the records beside the counts of some nodes; `others` are the sums
        of all priors but theirs.
        """
        rests = self.sums.rests(nodes)
        longest = int(rests.whole.step.max())
        narrow = longest > 1 and self.deviation < _FEW_STEPS * longest
        if self.total.is_point or self.total.all or narrow:
            return Listed.of(self, rests, others)
        if longest > 1 and self._is_near_none(rests.whole, others):
            return Spelled.of(self, rests, others)
        return Smooth.of(self, rests, self.sums.inside.shape.of(nodes), others)

    def _is_near_none(self, rest: Lattices, others: Floats) -> bool:
        """True if steps are too long to tell apart numbers of records near 0, where their weight
        bends, or the records of the other categories, where these are next to none.
        """
        sizes, log_weights = self.listed
        log_weights = log_weights + np.log(self._whole.density(np.zeros_like(sizes, int), sizes))
        lowest = float(sizes[log_weights > log_weights.max() - _FAINT].min())
        smooth = lowest / max(math.sqrt(self.concentration) / 2, _FIRST)
        few = rest.masses[:, :_FIRST].sum(axis=1) * (rest.origin == 0) * (others < 2 * rest.step)
        return bool(np.any((rest.step > max(smooth, 1.0)) | (few > _FEW)))


def bin_of(rest: Floats, others: Floats) -> Integers:
    """The number of the bin of what is left to the other categories: small ones have one each, and
    larger ones bins of a share of them and of their prior.
    """
    whole = rest + others
    large = _ALL_APART + np.log(np.maximum(whole, _ALL_APART) / _ALL_APART) / _ALIKE
    return np.where(whole < _ALL_APART, whole, large).astype(np.int64)


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


class Beside(ABC):
    """Weights of counts, summed over the records in the other categories and all numbers of
    records.
    """

    log_scale: float

    @abstractmethod
    def seeds(self, shape: Shape) -> Floats:
        """Counts between which there is no narrow peak, for each row; shape `(rows, m)`."""

    @abstractmethod
    def weights(self, row: Integers, counts: Floats) -> Floats:
        """The weight of what completes each count, elementwise, over `exp(log_scale)`."""

    @abstractmethod
    def completions(self, row: Integers, counts: Floats) -> Completions:
        """Records in the other categories beside each count, in parts of similar ones."""


class Pairs(Beside):
    """Sums over pairs of a count and the records of the others, one by one."""

    def __init__(self, others: Floats, log_scale: float) -> None:
        self._others, self.log_scale = others, log_scale

    @abstractmethod
    def pairs(self, row: Integers, counts: Floats) -> tuple[Floats, Floats]:
        """Records left to the others, and their weights, shapes `(counts, m)`."""

    def weights(self, row: Integers, counts: Floats) -> Floats:
        found = np.empty(counts.shape)
        for part in self._blocks(counts.size):
            found[part] = self.pairs(row[part], counts[part])[1].sum(axis=1)
        return found

    def completions(self, row: Integers, counts: Floats) -> Completions:
        found = []
        for part in self._blocks(counts.size):
            rest, weights = self.pairs(row[part], counts[part])
            seen = weights > _NEGLIGIBLE * weights.sum(axis=1, keepdims=True)
            point = np.nonzero(seen)[0]
            rest, weights = rest[seen], weights[seen]
            bins = bin_of(rest, self._others[row[part]][point])
            key = point * (int(bins.max(initial=0)) + 1) + bins
            _, first, place = np.unique(key, return_index=True, return_inverse=True)
            weight = np.bincount(place, weights)
            mean = np.bincount(place, weights * rest) / weight
            variance = np.bincount(place, weights * (rest - mean[place]) ** 2) / weight
            found.append((point[first] + part.start, weight, mean, variance))
        return Completions(*(np.concatenate(each) for each in zip(*found, strict=True)))

    @property
    @abstractmethod
    def _most(self) -> int:
        """Pairs of one count."""

    def _blocks(self, size: int) -> list[slice]:
        block = max(1, _BLOCK // max(self._most, 1))
        return [slice(start, start + block) for start in range(0, size, block)]


class Listed(Pairs):
    """`sum_j weight_j rest(n_j - x)` over listed numbers of records."""

    def __init__(self, rests: SumLaws, sizes: Floats, log_weights: Floats, others: Floats) -> None:
        super().__init__(others, float(log_weights.max()))
        self._rests, self._sizes = rests, sizes
        self._weights = np.exp(log_weights - self.log_scale)

    @classmethod
    def of(cls, part: PartOfTotal, rests: SumLaws, others: Floats) -> "Listed":
        """The numbers of a part."""
        return cls(rests, *part.listed, others)

    def seeds(self, shape: Shape) -> Floats:
        own = self._rests.seeds()
        some = np.unique(np.quantile(self._sizes, [0, 0.25, 0.5, 0.75, 1]).round())
        return np.concatenate([size - own for size in some], axis=1)

    def pairs(self, row: Integers, counts: Floats) -> tuple[Floats, Floats]:
        left = self._sizes - counts[:, None]
        rows = np.broadcast_to(row[:, None], left.shape)
        density = self._rests.density(rows.ravel(), left.ravel()).reshape(left.shape)
        return left, self._weights * density

    @property
    def _most(self) -> int:
        return int(self._sizes.size)


class Spelled(Pairs):
    """`sum_j rest_j weight(x + r_j)` over what the others may have, r_j with its probability."""

    def __init__(
        self, part: PartOfTotal, nodes: Floats, masses: Floats, others: Floats, log_scale: float
    ) -> None:
        super().__init__(others, log_scale)
        self._part, self._nodes, self._masses = part, nodes, masses

    @classmethod
    def of(cls, part: PartOfTotal, rests: SumLaws, others: Floats) -> "Spelled":
        """List the sums of the others that matter, one cell node each."""
        whole = rests.whole
        size = whole.step.size
        high = whole.origin + whole.step * (whole.points - 1)

        def log_weight(row: Integers, sums: Floats) -> Floats:
            with np.errstate(divide="ignore"):
                return np.maximum(np.log(rests.density(row, sums)), NOTHING)

        cells = refined(
            log_weight, cells_from(rests.seeds(), np.zeros(size), high.astype(np.float64)), size
        )
        used = cells.used
        row = np.broadcast_to(cells.category[:, None], used.shape)[used]
        masses = np.exp(cells.log_masses(log_weight)[used])
        keep = masses > _NEGLIGIBLE
        row, node, masses = row[keep], cells.nodes[used][keep], masses[keep]
        start = np.searchsorted(row, np.arange(size + 1))
        place = np.arange(row.size) - start[row]
        shape = size, int(np.diff(start).max())
        nodes, weights = np.zeros(shape), np.zeros(shape)
        nodes[row, place], weights[row, place] = node, masses
        return cls(part, nodes, weights, others, float(part.listed[1].max()))

    def seeds(self, shape: Shape) -> Floats:
        return shape.mean[:, None] + np.sqrt(shape.variance)[:, None] * np.linspace(-4, 4, 17)

    def pairs(self, row: Integers, counts: Floats) -> tuple[Floats, Floats]:
        rest = self._nodes[row]
        log_weights = self._part.log_size(rest + counts[:, None]) - self.log_scale
        return rest, self._masses[row] * np.exp(log_weights)

    @property
    def _most(self) -> int:
        return int(self._nodes.shape[1])


class Smooth(Beside):
    """`sum_r rest(r) weight(x + r)` on lattices with the steps of the rest, each bin of r apart."""

    def __init__(
        self, laws: list[Lattices], centres: Floats, units: Floats, log_scale: float
    ) -> None:
        self._laws, self._centres, self._units, self.log_scale = laws, centres, units, log_scale

    @classmethod
    def of(cls, part: PartOfTotal, rests: SumLaws, shape: Shape, others: Floats) -> "Smooth":
        """For counts of these shapes."""
        whole, log_scale = rests.whole, float(part.listed[1].max())
        step = whole.step
        origin = np.floor(shape.low / step).astype(np.int64) * step
        points = int(np.max((shape.high - origin) / step)) + 4
        rest = whole.origin[:, None] + step[:, None] * np.arange(whole.points)
        masses = np.where(whole.masses > _NEGLIGIBLE, whole.masses, 0.0)
        bins = bin_of(rest.astype(np.float64), others[:, None])
        first = np.where(masses > 0, bins, bins.max()).min(axis=1, keepdims=True)
        bins = np.where(masses > 0, bins - first, -1)
        number = int(bins.max()) + 1
        own = bins[:, None, :] == np.arange(number)[:, None]
        share = own * masses[:, None, :]
        weight = np.maximum(share.sum(axis=2), 1e-300)
        centres = (share @ rest[..., None].astype(np.float64))[..., 0] / weight
        off = np.where(own, rest[:, None, :] - centres[..., None], 0.0)
        units = np.maximum(np.sqrt((share * off**2).sum(axis=2) / weight), 1e-9)
        off /= units[..., None]
        factors = np.stack([share, share * off, share * off**2], axis=2)
        factors = factors.reshape(step.size, 3 * number, whole.points)
        needed = points + whole.points - 1
        length = int(fft.next_fast_len(needed, real=True))
        found = np.empty((3 * number, step.size, points))
        block = max(1, _BLOCK // (length * 3 * number))
        for start in range(0, step.size, block):
            some = slice(start, start + block)
            begin = origin[some] + whole.origin[some]
            sizes = begin[:, None] + step[some, None] * np.arange(needed, dtype=np.float64)
            inside = (sizes >= part.listed[0].min()) & (sizes <= part.listed[0].max())
            weights = np.where(inside, np.exp(part.log_size(sizes) - log_scale), 0.0)
            transformed = fft.rfft(factors[some], length).conj()
            mixed = fft.irfft(fft.rfft(weights, length)[:, None] * transformed, length)
            mixed = without_rounding(mixed[..., :points], weights[:, None], factors[some])
            found[:, some] = mixed.swapaxes(0, 1)
        laws = [Lattices(origin, step, each) for each in found]
        return cls(laws, centres, units, log_scale)

    def seeds(self, shape: Shape) -> Floats:
        whole = self._laws[0]
        weights = np.sum([np.maximum(law.masses, 0) for law in self._laws[::3]], axis=0)
        places = whole.origin[:, None] + whole.step[:, None] * np.arange(whole.points)
        beyond = (places > shape.high[:, None]) | (places < shape.low[:, None])
        return quantiles(Lattices(whole.origin, whole.step, np.where(beyond, 0.0, weights)))

    def weights(self, row: Integers, counts: Floats) -> Floats:
        return np.maximum(sum(law.read(row, counts) for law in self._laws[::3]), 0.0)

    def completions(self, row: Integers, counts: Floats) -> Completions:
        found = []
        total = self.weights(row, counts)
        for place in range(len(self._laws) // 3):
            weight, first, second = (
                law.read(row, counts) for law in self._laws[3 * place : 3 * place + 3]
            )
            seen = np.flatnonzero(weight > 1e-10 * total)
            weight, first, second = weight[seen], first[seen], second[seen]
            unit = self._units[row[seen], place]
            mean = self._centres[row[seen], place] + unit * first / weight
            variance = unit**2 * np.maximum(second / weight - (first / weight) ** 2, 0.0)
            found.append((seen, weight, mean, variance))
        return Completions(*(np.concatenate(each) for each in zip(*found, strict=True)))
