"""Two categories and a public number of records, with any likelihood: a binomial count with a Beta
prior, whose peaks are climbed and whose weight is summed in cells.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from opendp_bayes.inference.engines.engine import Generator, Groups
from opendp_bayes.inference.engines.merged import ByLaws
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells, graded_edges
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.laws.mixtures_of_counts import binned, grouped, short_cells
from opendp_bayes.inference.laws.refinement import cells_from, refined
from opendp_bayes.mathematics.validation import Floats, Integers

#: Points into which an interval beside a local maximum is cut, and the change of the logarithm of
#: the weight over it that is small enough.
_PIECES, _CHANGE = 16, 0.5


class TwoCategories(ByLaws):
    """The engine of two categories and a public size: only the count of the first is unknown.

    `log_likelihood` takes counts of shape `(m, 2)`; near the counts of the first in `around` it may
    have a peak or a kink.
    """

    def __init__(
        self,
        log_likelihood: Callable[[Integers], Floats],
        around: Iterable[int],
        prior: Floats,
        size: int,
    ) -> None:
        self._log_likelihood, self.prior, self._size = log_likelihood, prior, size
        self._seeds = peaks(self._log_weight, size, around=[*around, self._mode()])

    def _log_weight(self, counts: Floats) -> Floats:
        first = np.floor(np.ravel(counts)).astype(np.int64)
        both = np.column_stack([first, self._size - first])
        found = self._log_likelihood(both) + log_rising(both, self.prior).sum(axis=1)
        return np.maximum(found, NOTHING).reshape(np.shape(counts))

    def _mode(self) -> int:
        """Mode of the prior, where it has one between 0 and the size."""
        away = np.maximum(self.prior - 1, 0)
        return int(self._size * (away[0] / away.sum() if away.sum() else 0.5))

    @cached_property
    def _found(self) -> tuple[CountLaws, BetaMixtures]:
        alpha, others, size = self.prior[:1], self.prior[1:], self._size

        def log_weight(_row: Integers, counts: Floats) -> Floats:
            return self._log_weight(counts)

        start = cells_from(self._seeds[None].astype(float), np.zeros(1), np.full(1, float(size)))
        law = CountLaws.of(refined(log_weight, start, 1), log_weight)
        law = CountLaws.of(short_cells(law, alpha, others, size), log_weight)
        row, mass, first = binned(law, alpha, others, size, law.std())
        return law, grouped(alpha + first, others + (size - first), mass, first, size - first, row)

    @cached_property
    def probabilities(self) -> BetaMixtures:
        first = self._found[1]
        return BetaMixtures.joined([first, first.mirrored])

    @cached_property
    def counts(self) -> CountLaws:
        law, cells = self._found[0], self._found[0].cells
        ends = self._size - cells.last[::-1], self._size - cells.first[::-1]
        mirrored = Cells(cells.category, *ends)
        masses = law.masses[::-1]
        single = np.isin(mirrored.length, (1, 3))  # its middle stands in the same column
        masses = np.where(single[:, None], masses[:, [3, 1, 2, 0]], masses[:, ::-1])
        return CountLaws.joined([law, CountLaws(mirrored, masses)])

    @property
    def records(self) -> CountLaws:
        return CountLaws.of_number(self._size)

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixtures]]:
        raise AssertionError("no group of two categories holds both")

    def given(self, categories: Sequence[int]) -> ByLaws:
        ordered = list(categories) == [0, 1]
        return self if ordered else self.merged([[category] for category in categories])

    def sample(self, draws: int, rng: Generator) -> Integers:
        first = self._found[0].draw(np.zeros(draws, dtype=np.int64), rng)
        return np.column_stack([first, self._size - first])


def peaks(log_weight: Callable[[Floats], Floats], size: int, around: Iterable[int]) -> Integers:
    """Find numbers up to `size` between which a weight has no peak, if its logarithm is bent most
    around some numbers, and at the ends.

    Between two points of which one is higher than its other neighbour there may be a peak: such
    intervals are cut until their ends are alike or neighbours.
    """
    points = graded_edges(size, around)[:-1]
    heights = log_weight(points.astype(np.float64))
    while True:
        steps = np.diff(points)
        unlike = (np.abs(np.diff(heights)) > _CHANGE) & (steps > 1)
        left = np.append(-np.inf, heights[:-1])
        right = np.append(heights[1:], -np.inf)
        peak = (heights >= left) & (heights >= right)
        cut = np.flatnonzero(unlike & (peak[:-1] | peak[1:]))
        if not cut.size:
            return points
        places = points[cut, None] + steps[cut, None] * np.arange(1, _PIECES) // _PIECES
        new = np.setdiff1d(places, points)
        points = np.append(points, new)
        heights = np.append(heights, log_weight(new.astype(np.float64)))
        order = np.argsort(points)
        points, heights = points[order], heights[order]
