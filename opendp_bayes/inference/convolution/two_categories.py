"""Two categories and a public number of records: a weight for every count of the first."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np

from opendp_bayes.inference.convolution.completions import ListedTotals
from opendp_bayes.inference.convolution.count_given_sum import Joint
from opendp_bayes.inference.convolution.marginal import marginal
from opendp_bayes.inference.convolution.peaks import Anything, Peaked
from opendp_bayes.inference.engines.merged import Groups, Merged, summed
from opendp_bayes.inference.laws.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.laws.grouped_components import Prior
from opendp_bayes.mathematics.validation import Floats, Integers

Generator = np.random.Generator


class TwoCategories:
    """Two categories and a public size: a weight for every count of the first, in cells.

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
        self._prior, self._size = prior, size

        def log_weight(counts: Floats) -> Floats:
            first = np.floor(np.ravel(counts)).astype(np.int64)
            both = np.column_stack([first, size - first])
            found = log_likelihood(both) + log_rising(both, prior).sum(axis=1)
            return np.maximum(found, NOTHING).reshape(np.shape(counts))

        self._first = Peaked.of(log_weight, size, around=[*around, self._mode()])

    def _mode(self) -> int:
        """Of the prior, where it has one between 0 and the size."""
        away = np.maximum(self._prior - 1, 0)
        return int(self._size * (away[0] / away.sum() if away.sum() else 0.5))

    @cached_property
    def _found(self) -> tuple[CountLaws, BetaMixture]:
        totals = ListedTotals(np.array([[float(self._size)]]), np.zeros(1))
        alpha, others = self._prior.tolist()
        law, parts = marginal(
            Joint(self._first, Anything(self._size), totals), Prior(alpha, others, self._size, 0.0)
        )
        return law, BetaMixture.grouped(parts.a, parts.b, parts.weights, parts.key)

    @cached_property
    def probabilities(self) -> BetaMixtures:
        first = self._found[1]
        return BetaMixtures.joined([first, BetaMixture(first.b, first.a, first.weights)])

    @cached_property
    def counts(self) -> CountLaws:
        law, cells = self._found[0], self._found[0].cells
        ends = self._size - cells.last[::-1], self._size - cells.first[::-1]
        mirrored = Cells(cells.category, *ends)
        masses = law.masses[::-1]
        odd = mirrored.length % 2 == 1  # a single middle stands in the same column
        masses = np.where(odd[:, None], masses[:, [3, 1, 2, 0]], masses[:, ::-1])
        return CountLaws.joined([law, CountLaws(mirrored, masses)])

    @property
    def size(self) -> CountLaws:
        return CountLaws.of_rows(np.array([[self._size]]), np.ones(1))

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixture]]:
        raise AssertionError("no group of two categories holds both")

    def merged(self, groups: Groups) -> Merged:
        return Merged(self, groups)

    def given(self, categories: Sequence[int]) -> "TwoCategories | Merged":
        ordered = list(categories) == [0, 1]
        return self if ordered else self.merged([[category] for category in categories])

    def sample(self, size: int, rng: Generator) -> Integers:
        first = self._found[0].draw(np.zeros(size, dtype=np.int64), rng)[0]
        return np.column_stack([first, self._size - first])

    def sample_sums(self, groups: Groups, size: int, rng: Generator) -> Integers:
        return summed(self.sample(size, rng), groups)
