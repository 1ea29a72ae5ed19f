"""What the true counts are, given a release of which few enough data sets are possible: their
posterior by listing. That of noise on the counts is in `counts_given_noise`, those by draws in
`markov_chain` and `importance`.

Every one of them answers the same questions: the laws of the categories' probabilities and of the
counts, draws of the counts, and the same of merged categories and of some among themselves. The
probabilities given the counts are Dirichlet, so nothing else is needed.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import special

from opendp_bayes.inference.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.cells import NOTHING, Cells, cell_of, graded_edges
from opendp_bayes.inference.completions import ListedTotals
from opendp_bayes.inference.components import Prior
from opendp_bayes.inference.conditionals import marginal
from opendp_bayes.inference.count_given_sum import Joint
from opendp_bayes.inference.count_laws import CountLaws
from opendp_bayes.inference.merged import Counted, Groups, Merged, summed
from opendp_bayes.inference.peaks import Anything, Peaked
from opendp_bayes.inference.weights import log_rising
from opendp_bayes.mathematics.validation import Floats, Integers

Generator = np.random.Generator


class TrueCounts(Counted, Protocol):
    """The posterior distribution of the counts that a release was made from."""

    def merged(self, groups: Groups) -> "TrueCounts":
        """The counts of groups of categories; every category is in one group."""
        ...

    def given(self, categories: Sequence[int]) -> "TrueCounts":
        """The counts of two or more categories, and their probabilities divided by the sum of
        these.
        """
        ...


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


class Listed:
    """Every data set, shape `(c, k)`, with its weight, or draws of them."""

    #: Independent draws that the rows are; infinite where they are all data sets.
    independent = np.inf

    def __init__(self, counts: Integers, log_weights: Floats, prior: Floats) -> None:
        self.rows, self._log_weights, self._prior = counts, log_weights, prior
        self.weights = special.softmax(log_weights)

    @cached_property
    def probabilities(self) -> BetaMixtures:
        return marginals_of_draws(self.rows, self.weights, self._prior)

    @cached_property
    def counts(self) -> CountLaws:
        return CountLaws.of_rows(self.rows, self.weights)

    @property
    def size(self) -> CountLaws:
        return CountLaws.of_rows(self.rows.sum(axis=1, keepdims=True), self.weights)

    def merged(self, groups: Groups) -> "Listed":
        return self._of(summed(self.rows, groups), sums_of(self._prior, groups))

    def given(self, categories: Sequence[int]) -> "Listed":
        return self._of(self.rows[:, list(categories)], self._prior[list(categories)])

    def _of(self, counts: Integers, prior: Floats) -> "Listed":
        return Listed(counts, self._log_weights, prior)

    def sample(self, size: int, rng: Generator) -> Integers:
        return self.rows[rng.choice(len(self.rows), size=size, p=self.weights)]


class Drawn(Listed):
    """Independent draws of the counts, shape `(m, k)`."""

    def __init__(self, counts: Integers, prior: Floats) -> None:
        super().__init__(counts, np.zeros(len(counts)), prior)
        self.independent = len(counts)

    def _of(self, counts: Integers, prior: Floats) -> "Drawn":
        return Drawn(counts, prior)


def sums_of(prior: Floats, groups: Groups) -> Floats:
    """The prior of every group."""
    return np.array([prior[list(group)].sum() for group in groups])


def marginals_of_draws(counts: Integers, weights: Floats, prior: Floats) -> BetaMixtures:
    """The mixtures of `Beta(alpha_i + x_i, A - alpha_i + n - x_i)` over weighted rows of counts x
    of sum n, shape `(m, k)`, with components in cells of the count and of the rest.
    """
    mixtures, sizes = [], counts.sum(axis=1)
    for own, alpha in zip(counts.T, prior, strict=True):
        rest = sizes - own
        group = np.zeros_like(own)
        for part in (own, rest) if np.ptp(sizes) else (own,):
            edges = graded_edges(int(part.max()), around=[int(weights @ part)])
            group = group * edges.size + cell_of(part, edges)
        mixtures.append(
            BetaMixture.grouped(alpha + own, prior.sum() - alpha + rest, weights, group)
        )
    return BetaMixtures.joined(mixtures)
