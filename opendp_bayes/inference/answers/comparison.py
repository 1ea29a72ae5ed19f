"""Probabilities and differences estimated from posterior draws, with the simulation's error."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from opendp_bayes.display.as_table import Shown, figure, table
from opendp_bayes.display.sheet import Sheet
from opendp_bayes.mathematics.validation import Floats, as_level
from opendp_bayes.release_format.data import Label


class Probability(NamedTuple):
    """A probability estimated from posterior draws, with its Monte Carlo standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """The difference of the category probabilities of two releases, first minus second; every array
    has shape `(k,)`.

    Attributes
    ----------
    categories : the labels.
    mean, std : posterior mean and standard deviation of each difference.
    probability : posterior probability that the first is larger.
    standard_error : Monte Carlo standard error of `probability`.
    """

    categories: tuple[Label, ...]
    mean: Floats
    std: Floats
    probability: Floats
    standard_error: Floats
    _draws: Floats = field(repr=False)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Ends of the equal-tailed intervals of the differences, two arrays of shape `(k,)`, from
        draws.
        """
        level = as_level(level)
        lower, upper = np.quantile(self._draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return lower, upper

    def sheet(self) -> Sheet:
        """A row for each category, with 95 % intervals."""
        columns = self.mean, self.std, *self.interval()
        rows = [
            (
                str(label),
                *(figure(column[i], self.std[i]) for column in columns),
                f"{self.probability[i]:.3f}",
                f"{self.standard_error[i]:.2g}",
            )
            for i, label in enumerate(self.categories)
        ]
        headings = "difference", "mean", "std", "2.5 %", "97.5 %", "P(> 0)", "± of it"
        return Sheet((table(headings, rows),))


def standard_error(share: Any, draws: float) -> Any:
    """Standard error of a share among so many independent draws; not 0 where all of them agree."""
    safer = (share * draws + 1) / (draws + 2)
    return np.sqrt(safer * (1 - safer) / draws)
