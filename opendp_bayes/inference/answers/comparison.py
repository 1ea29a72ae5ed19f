"""Differences of two posteriors, and probabilities with the error of their simulation."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.display.sheet import Sheet, Shown
from opendp_bayes.display.tables import Table, figure
from opendp_bayes.inference.answers.by_label import Intervals
from opendp_bayes.inference.laws.beta_differences import BetaDifferences
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import Floats, RandomState, as_level, as_numbers, as_size
from opendp_bayes.release_format.data import Label


class Probability(NamedTuple):
    """A probability estimated from posterior draws, with its Monte Carlo standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class DrawnDifferences(UnderflowIsZero):
    """Laws of differences of which there are draws, shape `(draws, k)`; answers what
    `BetaDifferences` does.
    """

    drawn: Floats

    def mean(self) -> Floats:
        return np.asarray(self.drawn.mean(axis=0))

    def std(self) -> Floats:
        return np.asarray(self.drawn.std(axis=0))

    def cdf(self, values: ArrayLike) -> Floats:
        values = np.asarray(values)
        rows = values.reshape(-1, values.shape[-1])
        at_most = np.array([(self.drawn <= row).mean(axis=0) for row in rows])
        at_most = at_most.reshape(*values.shape[:-1], self.drawn.shape[1])
        return np.where(np.isnan(values), np.nan, at_most)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        lower, upper = np.quantile(self.drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return lower, upper


class Comparison(Shown):
    """The difference of the category probabilities of two posteriors, first minus second.

    Attributes
    ----------
    categories : tuple[str or int or bool or tuple, ...]
        The labels, in whose order all arrays of shape `(k,)` are.
    """

    def __init__(
        self,
        categories: tuple[Label, ...],
        laws: BetaDifferences | DrawnDifferences,
        draws: float,
        sample: Callable[[int, RandomState], Floats],
    ) -> None:
        self.categories = categories
        self._laws, self._draws, self._sample = laws, draws, sample

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._laws.mean()

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return self._laws.std()

    def cdf(self, values: ArrayLike) -> Floats:
        """Posterior probability of being at most the values, of shape `(...)`; shape `(..., k)`."""
        return self._laws.cdf(as_numbers(values, "values")[..., None])

    @cached_property
    def probability(self) -> Floats:
        """Posterior probability that the first is larger, shape `(k,)`."""
        return 1 - self.cdf(0.0)

    @property
    def standard_error(self) -> Floats:
        """Monte Carlo standard error of `probability`, shape `(k,)`; 0 where both posteriors are
        computed without draws.
        """
        return np.asarray(standard_error(self.probability, self._draws))

    def interval(self, level: float = 0.95) -> Intervals[Floats]:
        """Ends of the equal-tailed intervals of the differences, two arrays of shape `(k,)`;
        `interval()["yes"]` are those of one category.
        """
        return Intervals(*self._laws.interval(as_level(level)), self.categories)

    def sample(self, size: int = 1, random_state: RandomState = None) -> Floats:
        """Draws of all differences together, shape `(size, k)`; repeatable with a seed as
        `random_state`.
        """
        return self._sample(as_size(size, "size", "draws"), random_state)

    def sheet(self) -> Sheet:
        """A row for each category, with 95 % intervals."""
        std = self.std()
        columns = self.mean(), std, *self.interval()
        rows = [
            (
                str(label),
                *(figure(column[i], std[i]) for column in columns),
                f"{self.probability[i]:.3f}",
                f"{self.standard_error[i]:.2g}",
            )
            for i, label in enumerate(self.categories)
        ]
        headings = "difference", "mean", "std", "2.5 %", "97.5 %", "P(> 0)", "std. error of P"
        return Sheet((Table(headings, rows),))


def standard_error(share: Any, draws: float) -> Any:
    """Standard error of a share among so many independent draws, 0 if these are infinitely many;
    else not 0 where all of them agree.
    """
    if np.isinf(draws):
        return np.zeros_like(share, dtype=np.float64)
    safer = (share * draws + 1) / (draws + 2)
    return np.sqrt(safer * (1 - safer) / draws)
