"""Posterior of the true counts given a release, by listing all possible data sets where they are
few enough. The posterior given noise on the counts is in `counts_given_noise`; those by draws are
in `markov_chain` and `importance`.

Every one of them answers the same questions: the laws of the categories' probabilities and of the
counts, draws of the counts, and the same of merged categories and of some among themselves. The
probabilities given the counts are Dirichlet, so nothing else is needed.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import special

from opendp_bayes.inference.engines.merged import Counted, Groups, summed
from opendp_bayes.inference.laws.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.laws.count_cells import cell_of, graded_edges
from opendp_bayes.inference.laws.count_laws import CountLaws
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

    def cumulative(self, ends: Integers) -> BetaMixtures:
        """The probabilities of the first categories together, for so many of them as `ends` says,
        each from 1 to k - 1.
        """
        ...


class Listed:
    """Every data set, shape `(c, k)`, with its weight, or draws of them."""

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
    def independent(self) -> float:
        """Independent draws that the rows are worth; infinite where they are all data sets."""
        return np.inf

    @property
    def size(self) -> CountLaws:
        return CountLaws.of_rows(self.rows.sum(axis=1, keepdims=True), self.weights)

    def merged(self, groups: Groups) -> "Listed":
        return self._of(summed(self.rows, groups), summed(self._prior, groups))

    def given(self, categories: Sequence[int]) -> "Listed":
        return self._of(self.rows[:, list(categories)], self._prior[list(categories)])

    def cumulative(self, ends: Integers) -> BetaMixtures:
        k = self.rows.shape[1]
        each = [self.merged([range(end), range(end, k)]).probabilities[0] for end in ends.tolist()]
        return BetaMixtures.joined(each)

    def _of(self, counts: Integers, prior: Floats) -> "Listed":
        return Listed(counts, self._log_weights, prior)

    def sample(self, size: int, rng: Generator) -> Integers:
        return self._chosen(self.rows, size, rng)

    def sample_sums(self, groups: Groups, size: int, rng: Generator) -> Integers:
        return self._chosen(summed(self.rows, groups), size, rng)

    def _chosen(self, rows: Integers, size: int, rng: Generator) -> Integers:
        return rows[rng.choice(len(rows), size=size, p=self.weights)]


class Drawn(Listed):
    """Independent draws of the counts, shape `(m, k)`."""

    def __init__(self, counts: Integers, prior: Floats) -> None:
        super().__init__(counts, np.zeros(len(counts)), prior)

    @property
    def independent(self) -> float:
        return len(self.rows)

    def _of(self, counts: Integers, prior: Floats) -> "Drawn":
        return Drawn(counts, prior)


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
