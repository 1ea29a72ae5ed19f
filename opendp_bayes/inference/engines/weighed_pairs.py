"""Two categories and a public number of records, with any likelihood: a binomial count with a Beta
prior, whose weight is summed in cells that are halved until it is smooth.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from opendp_bayes.inference.engines.engine import Generator, Groups
from opendp_bayes.inference.engines.merged import ByLaws
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.count_cells import NOTHING, cells_from, graded_edges, refined
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.laws.mixtures_of_counts import binned, grouped, short_cells
from opendp_bayes.mathematics.validation import Floats, Integers


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
        self._around = [*around, self._mode()]

    def _log_weight(self, row: Integers, counts: Floats) -> Floats:
        """Weigh counts of the first, in row 0, or of the second."""
        first = np.floor(np.where(row == 0, counts, self._size - counts)).astype(np.int64)
        both = np.column_stack([first.ravel(), self._size - first.ravel()])
        log_weight = self._log_likelihood(both) + log_rising(both, self.prior).sum(axis=1)
        return np.maximum(log_weight, NOTHING).reshape(first.shape)

    def _mode(self) -> int:
        """Mode of the prior, where it has one between 0 and the size."""
        away = np.maximum(self.prior - 1, 0)
        return int(self._size * (away[0] / away.sum() if away.sum() else 0.5))

    @cached_property
    def _laws(self) -> tuple[CountLaws, BetaMixtures]:
        alpha, others, size = self.prior, self.prior[::-1], self._size
        edges = graded_edges(size, self._around)[:-1]
        start = cells_from(np.stack([edges, size - edges]), np.zeros(2), np.full(2, size))
        law = CountLaws.of(refined(self._log_weight, start, 2), self._log_weight)
        law = CountLaws.of(short_cells(law, alpha, others, size), self._log_weight)
        row, mass, x = binned(law, alpha, others, size, law.std())
        return law, grouped(alpha[row] + x, others[row] + (size - x), mass, x, size - x, row)

    @property
    def probabilities(self) -> BetaMixtures:
        return self._laws[1]

    @property
    def counts(self) -> CountLaws:
        return self._laws[0]

    @property
    def records(self) -> CountLaws:
        return CountLaws.of_number(self._size)

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixtures]]:
        raise AssertionError("no group of two categories holds both")

    def given(self, categories: Sequence[int]) -> ByLaws:
        ordered = list(categories) == [0, 1]
        return self if ordered else self.merged([[category] for category in categories])

    def sample(self, draws: int, rng: Generator) -> Integers:
        first = self.counts.draw(np.zeros(1, dtype=np.int64), draws, rng)[0]
        return np.column_stack([first, self._size - first])
