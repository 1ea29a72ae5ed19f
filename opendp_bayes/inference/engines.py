"""The questions that every engine answers about the counts given a release; and the engines that
need no noise on counts. All data sets are listed, or draws of them. Groups of categories are
categories of an engine that computes their laws. Two categories and a public number of records have
a binomial count with a Beta prior, whose weight is summed in cells that are halved until it is
smooth. For noise on the counts the engine is `counts_given_noise`, and `markov_chain` and
`importance` draw.

The probabilities given the counts are Dirichlet, so nothing else is needed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.count_cells import NOTHING, cells_from, graded_edges, refined
from opendp_bayes.inference.laws.count_laws import CountLaws, binned, grouped, short_cells
from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet, log_rising
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.validation import Floats, Integers

Generator = np.random.Generator

#: Components of the mixture that the probability of a category is by draws of it.
_COMPONENTS = 128
#: Of draws of the probability itself. They are no nearer to 1, and no smaller, than these; nor is a
#: variance a smaller part of the mean times the largest that there may be.
_COMPONENTS_OF_SHARES, _NARROWEST, _SMALLEST = 64, 1e-14, 1e-100
#: Positions of the categories of each group.
Groups = Sequence[Sequence[int]]


class Engine(ABC):
    """One way to find the posterior of the counts that a release was made from, which are not
    known to it, and of the probabilities of their categories.

    Attributes
    ----------
    prior : ndarray
        Concentration of the prior of the probabilities, shape `(k,)`.
    draws_shares
        True where a prior was learned: draws are then of the probabilities themselves, up to a
        factor, in place of counts and prior, and `counted` has the counts.
    diagnostics : Any
        Of the draws that it rests on; None where it rests on none.
    learned : dict[str, ndarray]
        Draws of what describes a prior that was learned, by what it is.
    independent : float
        Independent draws that it rests on; infinite where it is computed.
    """

    prior: Floats
    draws_shares = False
    diagnostics: Any = None
    learned: Mapping[str, Floats] = {}
    _counted: "Engine | None" = None

    @property
    def independent(self) -> float:
        return np.inf if self.diagnostics is None else float(self.diagnostics.ess.min())

    @property
    def counted(self) -> "Engine":
        """An engine whose draws are of the counts: itself, but where `draws_shares`."""
        return self if self._counted is None else self._counted

    @property
    @abstractmethod
    def probabilities(self) -> BetaMixtures:
        """The posteriors of the probabilities of all categories."""

    @property
    @abstractmethod
    def counts(self) -> CountLaws:
        """The laws of the counts of all categories."""

    @property
    @abstractmethod
    def records(self) -> CountLaws:
        """The law of their sum, the number of records."""

    @abstractmethod
    def sample(self, draws: int, rng: Generator) -> Any:
        """Draw the counts, shape `(draws, k)`."""

    def sample_sums(self, groups: Groups, draws: int, rng: Generator) -> Any:
        """Draw the counts of groups, which have every category once, shape `(draws, groups)`."""
        return summed(self.sample(draws, rng), groups)

    def shares(self, counts: Any, rng: Generator) -> Floats:
        """Draw the probabilities given draws of the counts."""
        if self.draws_shares:
            return np.asarray(counts / counts.sum(axis=1, keepdims=True, dtype=np.float64))
        return dirichlet(counts + self.prior, rng)

    @abstractmethod
    def merged(self, groups: Groups) -> "Engine":
        """The counts of groups of categories; every category is in one group."""

    @abstractmethod
    def given(self, categories: Sequence[int]) -> "Engine":
        """The counts of two or more categories, and their probabilities divided by the sum of
        these.
        """

    def cumulative(self, ends: Integers) -> BetaMixtures:
        """The probabilities of the first categories together, for so many of them as `ends` says,
        each from 1 to k - 1.
        """
        halves = ([range(end), range(end, self.prior.size)] for end in ends.tolist())
        return BetaMixtures.joined([self.merged(both).probabilities[0] for both in halves])


class Listed(Engine):
    """Every data set, shape `(c, k)`, with its weight, or draws of them.

    Parameters
    ----------
    counts : Any
        The data sets; or draws of probabilities, up to a factor, in place of counts and prior.
    log_weights : ndarray, optional
        Logarithms of their weights; by default all weigh the same.
    prior : ndarray, optional
        Of the probabilities; by default there is none beside what is drawn.
    counted : Listed, optional
        The counts alone, in the same rows, where there are probabilities.
    """

    _counted: "Listed | None" = None

    def __init__(
        self,
        counts: Any,
        log_weights: Floats | None = None,
        prior: Floats | None = None,
        counted: "Listed | None" = None,
    ) -> None:
        self.rows, self._counted = counts, counted
        self.prior = np.zeros(counts.shape[1]) if prior is None else prior
        self._log_weights = np.zeros(len(counts)) if log_weights is None else log_weights
        self.weights = special.softmax(self._log_weights)

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The mixtures of `Beta(alpha_i + x_i, A - alpha_i + n - x_i)` over rows of counts x of sum
        n, with those put together that are nearly the same; or those of drawn probabilities.
        """
        if self.draws_shares:
            shares = self.rows / self.rows.sum(axis=1, keepdims=True)
            shares = np.clip(shares, _SMALLEST, 1 - _NARROWEST).T[:, None]
            # Betas that are next to no wider than a number.
            a = np.full(shares.shape[1:], 1 / _NARROWEST)
            pairs = [(a, (1 - share) / share / _NARROWEST) for share in shares]
            return BetaMixtures.joined(
                [mixtures_of_draws(*pair, _COMPONENTS_OF_SHARES, twice=True) for pair in pairs]
            )
        columns, row = self.rows.T, np.zeros(len(self.rows), dtype=np.int64)
        laws = zip(columns, all_but_one(columns), self.prior, all_but_one(self.prior), strict=True)
        return BetaMixtures.joined(
            [grouped(a + x, b + left, self.weights, x, left, row) for x, left, a, b in laws]
        )

    @cached_property
    def counts(self) -> CountLaws:
        return CountLaws.of_rows(self.rows, self.weights)

    @property
    def records(self) -> CountLaws:
        return CountLaws.of_rows(self.rows.sum(axis=1, keepdims=True), self.weights)

    def merged(self, groups: Groups) -> "Listed":
        return self._of(lambda values: summed(values, groups))

    def given(self, categories: Sequence[int]) -> "Listed":
        some = list(categories)
        return self._of(lambda values: values[..., some])

    def _of(self, part: Callable[[Any], Any]) -> "Listed":
        """Counts of what `part` makes of arrays whose last axis is the categories'."""
        counted = None if self._counted is None else self._counted._of(part)
        listed = type(self)(part(self.rows), self._log_weights, part(self.prior), counted)
        listed.diagnostics = self.diagnostics
        return listed

    def sample(self, draws: int, rng: Generator) -> Any:
        return self.rows[rng.choice(len(self.rows), size=draws, p=self.weights)]


class IndependentDraws(Listed):
    """Independent draws of the counts, shape `(m, k)`."""

    @property
    def independent(self) -> float:
        return len(self.rows)


def mixtures_of_draws(
    a: Floats, b: Floats, components: int = _COMPONENTS, *, twice: bool = False
) -> BetaMixtures:
    """Mixtures of the Betas of all draws, shape `(k, draws)`, one component for every few that are
    next to each other, with their mean and variance.

    Betas far narrower than their distances are cut `twice`, the second time between the cuts of the
    first, so that the density of both together has no waves.
    """
    order, draws = np.argsort(a / b, axis=1), a.shape[1]
    a, b = (np.tile(np.take_along_axis(values, order, axis=1), 1 + twice) for values in (a, b))
    cuts = np.arange(number := min(components, draws)) * draws // number
    if twice:
        cuts = np.unique([*cuts, draws, *(cuts + draws + draws // number // 2)])
    sizes = np.diff(cuts, append=a.shape[1])
    total = a + b
    mean, left = (np.add.reduceat(x / total, cuts, axis=1) / sizes for x in (a, b))
    middle, beside = (np.repeat(x, sizes, axis=1) for x in (mean, left))
    off = np.where(middle < 0.5, a / total - middle, beside - b / total)
    variance = (a / total) * (b / total) / (total + 1) + off**2
    new_a, new_b = BetaMixtures.parameters(
        mean, left, np.add.reduceat(variance, cuts, axis=1) / sizes
    )
    shares = np.tile(sizes / a.shape[1], len(a))
    return BetaMixtures(new_a.ravel(), new_b.ravel(), shares, np.arange(len(a) + 1) * cuts.size)


def summed(values: Any, groups: Groups) -> Any:
    """The sums over the groups of counts, or of a prior, of shape `(..., k)`."""
    return np.stack([values[..., list(group)].sum(axis=-1) for group in groups], axis=-1)


class ByLaws(Engine):
    """An engine that computes the laws of single categories and of groups of them."""

    @abstractmethod
    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixtures]]:
        """The laws of the counts of groups of categories, and of their probabilities; of no group
        that holds all categories, or none.
        """

    @abstractmethod
    def given(self, categories: Sequence[int]) -> "ByLaws": ...

    def merged(self, groups: Groups) -> "Merged":
        return Merged(self, groups)

    def cumulative(self, ends: Integers) -> BetaMixtures:
        return self.merged([range(end) for end in ends.tolist()]).probabilities


class Merged(ByLaws):
    """The counts of groups of categories, each of them a sum."""

    def __init__(self, whole: ByLaws, groups: Groups) -> None:
        self._whole, self._groups = whole, groups
        self.prior = summed(whole.prior, groups)

    @cached_property
    def _laws(self) -> list[tuple[CountLaws, BetaMixtures]]:
        counts, probabilities = self._whole.counts, self._whole.probabilities
        groups = [group for group in self._groups if len(group) > 1]
        several = iter(self._whole.together(groups) if groups else [])
        return [
            next(several)
            if len(group) > 1
            else (counts.chosen(np.array(group)), probabilities[group[0]])
            for group in self._groups
        ]

    @cached_property
    def probabilities(self) -> BetaMixtures:
        return BetaMixtures.joined([mixture for _, mixture in self._laws])

    @cached_property
    def counts(self) -> CountLaws:
        return CountLaws.joined([law for law, _ in self._laws])

    @property
    def records(self) -> CountLaws:
        return self._whole.records

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixtures]]:
        return self._whole.together([self._members(group) for group in groups])

    def merged(self, groups: Groups) -> "Merged":
        return Merged(self._whole, [self._members(group) for group in groups])

    def given(self, categories: Sequence[int]) -> "Merged":
        """The categories of these groups among themselves."""
        inside = sorted(self._members(categories))
        place = {category: position for position, category in enumerate(inside)}
        some = [[place[member] for member in self._groups[group]] for group in categories]
        return Merged(self._whole.given(inside), some)

    def sample(self, draws: int, rng: np.random.Generator) -> Any:
        return self._whole.sample_sums(self._groups, draws, rng)

    def sample_sums(self, groups: Groups, draws: int, rng: np.random.Generator) -> Any:
        return self._whole.sample_sums([self._members(group) for group in groups], draws, rng)

    def _members(self, groups: Sequence[int]) -> list[int]:
        return [member for group in groups for member in self._groups[group]]


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
