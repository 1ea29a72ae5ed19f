"""What the true counts are, given a release of which few enough data sets are possible: their
posterior by listing. That of noise on the counts is in `counts_given_noise`, those by draws in
`markov_chain` and `importance`.

Every one of them answers the same questions: the laws of the categories' probabilities and of the
counts, draws of the counts, and the same of merged categories and of some among themselves. The
probabilities given the counts are Dirichlet, so nothing else is needed.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy import special

from opendp_bayes.inference.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.cells import cell_of, graded_edges, halved_to
from opendp_bayes.inference.count_laws import CountLaws
from opendp_bayes.inference.merged import Groups, Merged, summed
from opendp_bayes.inference.windows import Cells
from opendp_bayes.mathematics.validation import Floats, Integers

#: Largest public size for which every count is listed when there are two categories; above, counts
#: are taken in cells.
_LARGEST_LISTED_SIZE = 1 << 15

Generator = np.random.Generator


class TrueCounts(Protocol):
    """The posterior distribution of the counts that a release was made from."""

    @property
    def probabilities(self) -> BetaMixtures:
        """The posteriors of the probabilities of all categories."""
        ...

    @property
    def counts(self) -> CountLaws:
        """The laws of the counts of all categories."""
        ...

    @property
    def size(self) -> CountLaws:
        """The law of the number of records."""
        ...

    def merged(self, groups: Groups) -> "TrueCounts":
        """The counts of groups of categories; every category is in one group."""
        ...

    def given(self, categories: Sequence[int]) -> "TrueCounts":
        """The counts of two or more categories, and their probabilities divided by the sum of
        these.
        """
        ...

    def sample(self, size: int, rng: Generator) -> Integers:
        """Draws of the counts, shape `(size, k)`."""
        ...


def log_prior_weight(counts: Integers, alpha: float | Floats) -> Floats:
    """`ln G(x + alpha) - ln x!` up to a constant: what one category contributes to the
    Dirichlet-multinomial probability of the counts.

    As a logarithm of a beta function, which does not lose the difference of the two in the rounding
    of each.
    """
    counts, alpha = np.broadcast_arrays(np.asarray(counts, dtype=np.float64), alpha)
    weight, curved = np.zeros(counts.shape), alpha != 1
    x, a = counts[curved], alpha[curved]
    weight[curved] = np.where(a < 1, 1.0, -1.0) * special.betaln(
        x + np.minimum(a, 1), np.abs(a - 1)
    )
    return weight


class TwoCategories:
    """Two categories and a public size: a weight for every count of the first, or for cells of
    counts.
    """

    def __init__(
        self, log_likelihood: Callable[[Integers], Floats], released: int, prior: Floats, size: int
    ) -> None:
        self._prior, self._size = prior, size
        if size <= _LARGEST_LISTED_SIZE:
            self._edges = np.arange(size + 2)
        else:
            edges = graded_edges(size, around=[released])
            # A cell is at most as long as two standard deviations of what the data tell, or 1/2000
            # of the range.
            deviation = np.sqrt((edges[:-1] + 1.0) * (size - edges[:-1] + 1.0) / size)
            self._edges = halved_to(edges, np.maximum(2 * deviation, size / 2000))
        lengths = np.diff(self._edges)
        self._counts = self._edges[:-1] + (lengths - 1) // 2
        counts = np.column_stack([self._counts, size - self._counts])
        log_weights = (
            log_likelihood(counts) + log_prior_weight(counts, prior).sum(axis=1) + np.log(lengths)
        )
        self._weights = special.softmax(log_weights)
        self._released = released

    @cached_property
    def probabilities(self) -> BetaMixtures:
        lengths = np.diff(self._edges)
        group = np.arange(lengths.size)
        if self._size <= _LARGEST_LISTED_SIZE:
            around = [self._released, int(self._weights @ self._counts)]
            group = cell_of(self._counts, graded_edges(self._size, around))
        spread = (lengths.astype(np.float64) ** 2 - 1) / 12 / (self._size + self._prior.sum()) ** 2
        a, b = self._prior[0] + self._counts, self._prior[1] + self._size - self._counts
        first = BetaMixture.grouped(a, b, self._weights, group, spread)
        return BetaMixtures.joined([first, BetaMixture(first.b, first.a, first.weights)])

    @cached_property
    def counts(self) -> CountLaws:
        first, last = self._edges[:-1], self._edges[1:] - 1
        cells = Cells(np.zeros_like(first), first, last)
        masses = cells.node_weights * (self._weights / cells.length)[:, None]
        mirrored = Cells(cells.category, self._size - last[::-1], self._size - first[::-1])
        return CountLaws.joined([CountLaws(cells, masses), CountLaws(mirrored, masses[::-1])])

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
        cells = rng.choice(self._weights.size, size=size, p=self._weights)
        first = rng.integers(self._edges[cells], self._edges[cells + 1])
        return np.column_stack([first, self._size - first])


class Listed:
    """Every data set, shape `(c, k)`, with its weight, or draws of them."""

    def __init__(self, counts: Integers, log_weights: Floats, prior: Floats) -> None:
        self._counts, self._log_weights, self._prior = counts, log_weights, prior
        self._weights = special.softmax(log_weights)

    @cached_property
    def probabilities(self) -> BetaMixtures:
        return marginals_of_draws(self._counts, self._weights, self._prior)

    @cached_property
    def counts(self) -> CountLaws:
        return CountLaws.of_rows(self._counts, self._weights)

    @property
    def size(self) -> CountLaws:
        return CountLaws.of_rows(self._counts.sum(axis=1, keepdims=True), self._weights)

    def merged(self, groups: Groups) -> "Listed":
        return self._of(summed(self._counts, groups), sums_of(self._prior, groups))

    def given(self, categories: Sequence[int]) -> "Listed":
        return self._of(self._counts[:, list(categories)], self._prior[list(categories)])

    def _of(self, counts: Integers, prior: Floats) -> "Listed":
        return Listed(counts, self._log_weights, prior)

    def sample(self, size: int, rng: Generator) -> Integers:
        return self._counts[rng.choice(len(self._counts), size=size, p=self._weights)]


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
