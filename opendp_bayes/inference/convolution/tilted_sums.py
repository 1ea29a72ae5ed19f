"""The sums of counts under one tilt, and the weights of the numbers of records that it serves."""

from functools import cached_property

import numpy as np
from scipy import special

from opendp_bayes.inference.convolution.lattices import aligned, spread
from opendp_bayes.inference.convolution.number_of_records import Total
from opendp_bayes.inference.convolution.sums import Outline, SumLaws, Sums
from opendp_bayes.inference.convolution.tilted_counts import TiltedCounts
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells, log_or_nothing
from opendp_bayes.inference.laws.refinement import refined
from opendp_bayes.mathematics.validation import Floats, Integers

#: Numbers of records that weigh less than `exp(-_DEPTH)` of the largest are left out.
_DEPTH = 24.0


class TiltedSums:
    """Sums of the counts under one tilt, which serves some numbers of records.

    Parameters
    ----------
    tilted : TiltedCounts
        The laws of the counts of different categories.
    times : ndarray of int
        How many categories each stands for.
    total : {"remainder", "private", "bounded"}
        The number of records, with its weights.
    origin : ndarray of int
        A count of each, whose weight is 1: logarithms are relative to it.
    ends : tuple[float, float]
        The smallest and the largest number that it serves.
    """

    def __init__(
        self,
        tilted: TiltedCounts,
        times: Integers,
        total: Total,
        origin: Integers,
        ends: tuple[float, float],
    ) -> None:
        self.total = total
        self._constant = tilted.log_sum(times, origin)
        self.lowest = max(float(total.lowest), ends[0])
        self.highest = min(float(total.highest), ends[1])
        self.sums = Sums(tilted, times, self.lowest, self.highest)
        self.counts = self.sums.counts

    @cached_property
    def _whole(self) -> SumLaws:
        return self.sums.of([self.sums.all])

    def log_size(self, sizes: Floats) -> Floats:
        """Logarithms of the weights of numbers of records, each divided by what the tilt and the
        norms of the counts multiply all their ways to this sum by.
        """
        inside = (sizes >= self.lowest) & (sizes <= self.highest)
        known = self.total.log_weight(np.clip(sizes, self.total.lowest, self.total.highest))
        weight = known - self.counts.tilt * sizes + self._constant
        return np.maximum(np.where(inside, weight, NOTHING), NOTHING)

    def log_total(self, _row: Integers, sizes: Floats) -> Floats:
        """Logarithms of the weights of numbers of records, times the probability that the counts
        sum to them: what each weighs in the posterior. A `LogWeight` of one row.
        """
        whole = self._whole.density(np.zeros(sizes.shape, dtype=np.int64), sizes)
        return np.maximum(self.log_size(sizes) + log_or_nothing(whole), NOTHING)

    @cached_property
    def size_cells(self) -> Cells:
        """Cells of the number of records."""
        total = self.total
        if total.is_point:
            return Cells(np.zeros_like(total.seeds), total.seeds, total.seeds)
        outline = self._whole.outline
        lowest = int(max(self.lowest, outline.low[0]))
        highest = int(max(min(self.highest, outline.high[0]), lowest))
        mean, deviation = outline.mean[0], np.sqrt(outline.variance[0])
        around = mean + deviation * np.linspace(-9, 9, 37)
        starts = np.clip([*total.seeds, *around, lowest], lowest, highest)
        starts = np.unique(starts.astype(np.int64))
        cells = Cells(np.zeros_like(starts), starts, np.append(starts[1:] - 1, highest))
        return refined(self.log_total, cells, 1)

    @cached_property
    def _log_masses(self) -> Floats:
        """Logarithms of what the nodes of `size_cells` stand for, shape `(cells, 4)`."""
        return self.size_cells.log_masses(self.log_total)

    @cached_property
    def listed(self) -> tuple[Floats, Floats]:
        """Numbers of records that stand for all that matter, and logarithms of the weights that
        they stand for, as in `log_size`.
        """
        cells = self.size_cells
        whole = self._log_masses[cells.used]
        found = cells.log_masses(lambda _, sizes: self.log_size(sizes))[cells.used]
        kept = whole > whole.max() - _DEPTH
        return cells.nodes[cells.used][kept], found[kept]

    @cached_property
    def log_evidence(self) -> float:
        """Logarithm of the sum of all weights, comparable between tilts."""
        return float(special.logsumexp(self._log_masses))

    def deviations(self, own: Outline, alpha: Floats, others: Floats) -> Floats:
        """About the deviations of the logits of the probabilities of some, shape `(2, laws)`:
        without what is not known of the other categories, and of this alone. `alpha` and `others`
        are the priors of theirs and of all other categories.
        """
        whole = self._whole.outline
        a, b = alpha + own.mean, np.maximum(whole.mean - own.mean, 0.0) + others
        masses, sizes = special.softmax(self._log_masses), self.size_cells.nodes
        of_size = np.sum(masses * (sizes - np.sum(masses * sizes)) ** 2)
        rest = np.clip(whole.variance - own.variance, 0.0, of_size)  # given the node's own count
        return np.sqrt(np.stack([1 / a + 1 / b + own.variance / a**2, rest / b**2]))

    def lattice(self, step: int, origin: int, points: int) -> Floats:
        """The weights of numbers of records, over the largest, at `origin + step * point`."""
        cells = self.size_cells.within(np.array([origin]), np.array([origin + step * points]))
        cells = aligned(cells, np.array([origin]), np.array([step]))
        used = cells.used
        log_masses = cells.log_masses(lambda _, sizes: self.log_size(sizes))[used]
        masses = np.exp(log_masses - self.listed[1].max())
        row = np.zeros(masses.size, dtype=np.int64)
        made = spread(row, cells.nodes[used], masses, np.array([origin]), np.array([step]), points)
        return made.masses[0] / step
