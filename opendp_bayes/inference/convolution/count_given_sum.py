"""A count, or a sum of counts, given the sum of all: its law."""

from dataclasses import dataclass

import numpy as np

from opendp_bayes.inference.convolution.completions import (
    Law,
    ListedTotals,
    OneCount,
    WeightedTotals,
    runs,
)
from opendp_bayes.inference.convolution.smooth_totals import SmoothTotals
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.refinement import refined
from opendp_bayes.mathematics.validation import Floats, Integers


@dataclass(frozen=True, eq=False)
class Joint:
    """`own(x) rest(N - x)` times the weight of N, summed over N; for listed totals with several
    rows, x has a law of its own for every row.
    """

    own: Law
    rest: Law
    totals: ListedTotals | WeightedTotals | SmoothTotals

    def log_weight(self, row: Integers, counts: Floats) -> Floats:
        """Logarithms of the sums of the products."""
        rest = self.totals.log_sums(self.rest, row, counts)
        return np.maximum(self.own.log_density(counts) + rest, NOTHING)

    def cells(self) -> Cells:
        """Cells in which the sums of products are smooth, of every row."""
        own, rest, some = self.own, self.rest, self.totals.some
        if isinstance(own, OneCount) and rest.is_smooth:
            if len(some) == 1:
                return own.cells
            row = np.repeat(np.arange(len(some)), own.cells.first.size)
            ends = (np.tile(end, len(some)) for end in (own.cells.first, own.cells.last))
            return Cells(row, *ends)
        totals = self.totals
        least, most = some[:, 0], some[:, -1]
        if isinstance(totals, WeightedTotals):
            least, most = np.full(1, totals.lowest), np.full(1, totals.highest)
        lowest = np.broadcast_to(np.maximum(own.lowest, least - rest.highest), len(some))
        highest = np.broadcast_to(np.minimum(own.highest, most - rest.lowest), len(some))
        mirrored = np.floor(some[:, :, None] - rest.seeds).reshape(len(some), -1)
        own_seeds = np.broadcast_to(own.seeds, (len(some), own.seeds.size))
        starts = np.concatenate([own_seeds, mirrored], axis=1)
        return refined(self.log_weight, runs(starts, lowest, highest), len(some))

    def laws(self, cells: Cells) -> CountLaws:
        """The laws of the rows in the cells."""
        if isinstance(self.own, OneCount) and cells is self.own.cells:
            used, log_masses = cells.used, self.own.log_masses.copy()
            row = cells.category[np.nonzero(used)[0]]
            log_masses[used] += self.totals.log_sums(self.rest, row, cells.nodes[used])
        else:
            log_masses = cells.log_masses(self.log_weight)
        start = np.flatnonzero(np.diff(cells.category, prepend=-1))
        top = np.maximum.reduceat(log_masses.max(axis=1), start)
        masses = np.exp(log_masses - top[cells.category][:, None])
        total = np.add.reduceat(masses.sum(axis=1), start)
        return CountLaws(cells, masses / total[cells.category][:, None])
