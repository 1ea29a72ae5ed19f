"""The posterior of counts whose sum is known, or known to be where one tilt serves it."""

from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from opendp_bayes.inference.convolution.completions import (
    Law,
    ListedTotals,
    OneCount,
    WeightedTotals,
)
from opendp_bayes.inference.convolution.count_given_sum import Joint
from opendp_bayes.inference.convolution.even_totals import evenly
from opendp_bayes.inference.convolution.grid import Grid, tails, trimmed
from opendp_bayes.inference.convolution.grids import coarsest_of, grids_of
from opendp_bayes.inference.convolution.group_sums import on_one_grid
from opendp_bayes.inference.convolution.marginal import marginal
from opendp_bayes.inference.convolution.noised_categories import Categories
from opendp_bayes.inference.convolution.number_of_records import Total, balanced
from opendp_bayes.inference.convolution.sequential_draws import draws_given
from opendp_bayes.inference.convolution.smooth_totals import SmoothTotals
from opendp_bayes.inference.convolution.sum_laws import SHORT, SumLaw
from opendp_bayes.inference.convolution.tilted_counts import Windows
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.grouped_components import Components, Prior
from opendp_bayes.inference.laws.refinement import refined
from opendp_bayes.mathematics.validation import Floats, Integers

#: Numbers of records whose relative weight is below this are left out.
_NEGLIGIBLE = 1e-15
#: A sum of others at least so wide, relative to the sum of all, varies less than this does.
_WIDE = 0.5
#: Sums whose tilted probability is below `exp(-_FAR)` of the largest are left to another tilt.
_FAR = 28.0
#: The slope of a law at an end is looked at over this share of the way to the mean.
_NEAR_END = 1 / 8


class Tilted:
    """The counts of k categories, with a total that is cut to where the tilt serves it.

    `row`, of shape `(k,)`, tells which of the rows of `categories` each of them is, since
    categories of which the same is known are computed once; `origin` is a count of every row, from
    which all logarithms count; `tilt` is where the search for a tilt begins. Raises
    `ValueError` where the weights have too few digits for any.
    """

    def __init__(
        self, categories: Categories, row: Integers, total: Total, origin: Integers, tilt: float
    ) -> None:
        self._row, self._origin = row, origin
        self._multiplicity = np.bincount(row)
        self._tilted_to(categories, total, tilt)
        if not total.is_point:
            lowest, highest = self._whole.bulk(_FAR)
            part = total.between(lowest, highest)
            if not part.seeds.size:  # between two of the only possible numbers
                middle = (lowest + highest) / 2
                nearest = int(total.seeds[np.argmin(np.abs(total.seeds - middle))])
                part = total.between(nearest, nearest)
                del self._grids, self._whole
                self._tilted_to(categories, part, tilt)
            self.total = part

    def _tilted_to(self, categories: Categories, total: Total, tilt: float) -> None:
        self.total = total
        windows = balanced(categories, self._multiplicity, total, tilt)
        self._windows, self._bounds = trimmed(windows, self._multiplicity, total)
        least, most = self._bounds[0][0], self._bounds[1][0]
        if total.lowest > most or total.highest < least:
            raise ValueError(
                "drawn: so far from any counts that sum to the number of records that their "
                "probabilities are beyond floating point."
            )

    @property
    def tilt(self) -> float:
        """The tilt of the weights."""
        return self._windows.tilt

    @cached_property
    def _grids(self) -> list[Grid]:
        return coarsest_of(self._windows, self._multiplicity, *self._bounds)

    def _rests(self) -> Iterator[Law]:
        """The law of the sum of all but one count of each row."""
        if self._row.size == 2:
            rows = np.arange(self._multiplicity.size)
            for row in rows.tolist():
                yield OneCount(self._windows, row if rows.size == 1 else 1 - row)
            return
        lowest, highest = self._bounds
        for row, laws in enumerate(zip(*(grid.others() for grid in self._grids), strict=True)):
            ends = float(lowest[row + 1]), float(highest[row + 1])
            deviation = float(self._deviations_of_others[row])
            yield SumLaw(list(laws), *ends, deviation, self._row.size - 1)

    @cached_property
    def _typical(self) -> tuple[float, float]:
        """A probable number of records and the logarithm of its weight."""
        mean = float(self._multiplicity @ self._windows.mean)
        sizes = np.append(self.total.seeds, mean).clip(self.total.lowest, self.total.highest)
        weights = np.asarray(self.total.log_weight(sizes)), self._windows.tilt * (sizes - mean)
        best = int(np.argmax(weights[0] - weights[1]))
        return float(sizes[best]), float(weights[0][best])

    @cached_property
    def log_constant(self) -> float:
        """What the logarithms of its weights have to be raised by to compare it with another."""
        return self._constant(self._multiplicity)

    def _constant(self, multiplicity: Integers) -> float:
        size, log_weight = self._typical
        return self._windows.log_sum(multiplicity, self._origin) + log_weight - self.tilt * size

    def _log_size(self, sizes: Floats) -> Floats:
        """Logarithms of the weights of numbers of records, relative to a typical one and without
        those of the windows' tilt.
        """
        size, log_weight = self._typical
        relative = np.maximum(self.total.log_weight(sizes) - log_weight, NOTHING)
        return np.asarray(relative - self._windows.tilt * (sizes - size))

    def _log_total(self, _category: Integers, sizes: Floats) -> Floats:
        """The same with the weights of the sum of all counts."""
        return np.maximum(self._log_size(sizes) + self._whole.log_density(sizes), NOTHING)

    @cached_property
    def _size_cells(self) -> Cells:
        """Cells of the number of records."""
        total = self.total
        if total.all or total.is_point:
            points = total.seeds
            return Cells(np.zeros_like(points), points, points)
        whole, log_weight = self._whole, self._log_total
        lowest = int(max(total.lowest, whole.lowest))
        highest = int(min(total.highest, whole.highest))
        starts = np.unique(np.clip([*total.seeds, *whole.seeds, lowest], lowest, highest))
        cells = Cells(np.zeros_like(starts), starts, np.append(starts[1:] - 1, highest))
        cells = refined(log_weight, cells, 1)
        log_masses = cells.log_masses(log_weight).max(axis=1)
        return cells.where(log_masses > log_masses.max() + np.log(_NEGLIGIBLE))

    @cached_property
    def _listed(self) -> ListedTotals:
        cells = self._size_cells
        log_weights = cells.log_masses(lambda _, sizes: self._log_size(sizes))
        return ListedTotals(cells.nodes[cells.used][None], log_weights[cells.used])

    @cached_property
    def _even(self) -> ListedTotals:
        return evenly(self._listed, self.size, self._log_size, self._log_total)

    @cached_property
    def _weighted(self) -> WeightedTotals:
        ends = float(self.total.lowest), float(self.total.highest)
        some = np.array(self.size.quantile([[0.001], [0.5], [0.999]]).T, dtype=np.float64)
        return WeightedTotals(self._log_size, self.total.seeds, *ends, some)

    def _joint(self, own: Law, rest: Law, prior: Prior) -> Joint:
        """With the numbers of records one by one where that is all of them, or where their nodes
        are as good for the sum of the others as they are for the sum of all.
        """
        if self.total.all or self.total.is_point:
            return Joint(own, rest, self._listed)
        if not rest.is_smooth or rest.deviation < _WIDE * self._whole.deviation:
            return Joint(own, rest, self._weighted)
        alphas = prior.alpha, prior.others
        return Joint(own, rest, SmoothTotals.of(self._listed, self._even, own, rest, *alphas))

    @cached_property
    def _short_windows(self) -> Windows:
        """Windows whose cells are short beside the deviation of the sum of the others."""
        return self._windows.cut(SHORT * self._deviations_of_others)

    @cached_property
    def _deviations_of_others(self) -> Floats:
        """Of the sum of all counts but one of each row."""
        variance = float(self._multiplicity @ self._windows.variance) - self._windows.variance
        return np.sqrt(np.maximum(variance, 0.0))

    @cached_property
    def _whole(self) -> SumLaw:
        """The law of the sum of all counts."""
        ends = float(self._bounds[0][0]), float(self._bounds[1][0])
        deviation = float(np.sqrt(self._multiplicity @ self._windows.variance))
        laws = [grid.whole() for grid in self._grids]
        return SumLaw(laws, *ends, deviation, self._row.size)

    @cached_property
    def size(self) -> CountLaws:
        """The law of the number of records."""
        cells = self._size_cells
        return CountLaws(cells, special.softmax(cells.log_masses(self._log_total)))

    @cached_property
    def log_evidence(self) -> float:
        """Logarithm of the sum of all weights, comparable between tilts."""
        masses = self._size_cells.log_masses(self._log_total)
        return float(special.logsumexp(masses)) + self.log_constant

    def log_ends(self) -> Floats:
        """Logarithms of the weights of the smallest and the largest number of records."""
        ends = np.array([self.total.lowest, self.total.highest], dtype=np.float64)
        return self._log_total(np.zeros(2, dtype=np.int64), ends) + self.log_constant

    def end_tilts(self) -> tuple[float, float]:
        """Tilts that would put the sum at about the smallest and the largest number of records."""
        mean = float(self._multiplicity @ self._windows.mean)
        found = []
        for end in (self.total.lowest, self.total.highest):
            near = end + _NEAR_END * (mean - end)
            heights = self._whole.log_density(np.array([end, near], dtype=np.float64))
            found.append(self.tilt - float(heights[1] - heights[0]) / ((near - end) or 1.0))
        return found[0], found[1]

    @property
    def reaches_zero(self) -> bool:
        """Whether some category of a prior below 1 may have no records."""
        return bool(np.any((self._windows.ends[0] == 0) & (self._windows.categories.prior < 1)))

    def marginals(self, others: Floats) -> tuple[list[CountLaws], list[Components]]:
        """The law of the count of each row and the components of its probability, `others` being
        the sum of all priors but its own.
        """
        alpha = self._windows.categories.prior
        found = []
        for row, rest in enumerate(self._rests()):
            own = OneCount(self._short_windows if rest.is_smooth else self._windows, row)
            found.append(self._marginal(own, rest, float(alpha[row]), float(others[row])))
        laws, parts = zip(*found, strict=True)
        return list(laws), list(parts)

    def merged(self, groups: NDArray[np.bool_]) -> list[tuple[CountLaws, Components]]:
        """The same for the sums of groups of categories, shape `(groups, k)`."""
        alpha, rows = self._windows.categories.prior[self._row], self._multiplicity.size
        times = np.stack([np.bincount(self._row[inside], minlength=rows) for inside in groups])
        shared = on_one_grid(self._grids, times, *self._bounds) if self._row.size > 2 else None
        found = []
        for inside in groups:
            own, rest = next(shared) if shared else (self.sum_of(inside), self.sum_of(~inside))
            priors = float(alpha[inside].sum()), float(alpha[~inside].sum())
            found.append(self._marginal(own, rest, *priors))
        return found

    def _marginal(
        self, own: Law, rest: Law, alpha: float, others: float
    ) -> tuple[CountLaws, Components]:
        prior = Prior.given(alpha, others, self.size)
        return marginal(self._joint(own, rest, prior), prior)

    def weight_of_rest(self, inside: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        """The logarithms of the weights that the other categories and the number of records give
        to sums of the counts of some.
        """
        rest = self.sum_of(~inside)
        outside = np.bincount(self._row[~inside], minlength=self._multiplicity.size)
        constant, tilt = self._constant(outside), self.tilt
        sizes, log_sizes = self._listed.totals[0], self._listed.log_weights

        def log_weight_of(sums: Floats) -> Floats:
            left = log_sizes + rest.log_density(sizes - sums[..., None])
            found = np.maximum(special.logsumexp(left, axis=-1), NOTHING)
            return np.where(found > NOTHING / 2, found + tilt * sums + constant, NOTHING)

        return log_weight_of

    def sums_of_some(self, inside: NDArray[np.bool_]) -> Integers:
        """Sums of the counts of some categories between which their law has no narrow peak, and
        the smallest and the largest.
        """
        own, rest, sizes = self.sum_of(inside), self.sum_of(~inside), self._listed.totals[0]
        lowest = max(own.lowest, float(sizes.min()) - rest.highest)
        highest = min(own.highest, float(sizes.max()) - rest.lowest)
        picked = np.unique(np.floor(np.quantile(sizes, [0, 0.25, 0.5, 0.75, 1])))
        seeds = [own.seeds, *(size - rest.seeds for size in picked)]
        return np.unique(np.clip(np.concatenate(seeds), lowest, highest)).astype(np.int64)

    def sum_of(self, inside: NDArray[np.bool_]) -> Law:
        """The law of the sum of some categories before the sum of all is known."""
        times = np.bincount(self._row[inside], minlength=self._multiplicity.size)
        rows = np.flatnonzero(times)
        if times.sum() == 1:
            return OneCount(self._windows, int(rows[0]))
        windows, times = self._windows.chosen(rows), times[rows]
        lowest, highest = tails(windows, times)
        laws = [grid.whole() for grid in grids_of(windows, times, lowest[:1], highest[:1])]
        deviation = float(np.sqrt(times @ windows.variance))
        return SumLaw(laws, float(lowest[0]), float(highest[0]), deviation, int(times.sum()))

    def sample(self, size: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the counts, shape `(size, k)`."""
        sizes = self.size.draw(np.zeros(size, dtype=np.int64), rng)[0]
        return draws_given(self._windows.chosen(self._row), sizes, rng)
