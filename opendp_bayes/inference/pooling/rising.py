"""Logarithms of the factors of Dirichlet-multinomial probabilities, one for each category."""

from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial
from opendp_bayes.mathematics.validation import Floats, Integers

#: A table may have so many times as many entries as are asked for at once.
_WORTH = 8


class Runs:
    """Points of all rows, `number` of each, shape `(rows,)`, one row after another; those of a row
    are from `start` to `last`.
    """

    def __init__(self, number: Integers) -> None:
        self.number = number
        end = np.cumsum(number)
        self.start, self.last = end - number, end - 1
        self._place = np.arange(number.sum())

    def of(self, values: Any) -> Any:
        """At every point the value of its row."""
        return np.repeat(values, self.number)

    def line(self, first: Integers, step: int | Integers) -> Integers:
        """Values from the `first` of every row by `step`, which is one for all or one for each."""
        every = step if isinstance(step, int) else self.of(step)
        return np.asarray(self.of(first - step * self.start) + every * self._place)

    @property
    def size(self) -> int:
        """The number of all points."""
        return int(self._place.size)


class Rising:
    """`ln Γ(x + a) - ln Γ(a) - ln x!` of whole x for `a` of shape `(chains, columns)`, from a table
    where much is asked; for counts small enough for the difference to have its digits.
    """

    def __init__(self, a: Floats) -> None:
        self._a, self._table = a, np.empty((*a.shape, 0))

    def __call__(self, counts: Integers, chain: Any, column: Any) -> Floats:
        """Values at counts, given their chains and their columns, which broadcast."""
        if not self._tabulated(int(counts.max(initial=0)), counts.size):
            return _rising(counts, self._a[chain, column])
        return self._table.ravel().take(self._row(chain, column) + counts)

    def along(
        self, runs: Runs, first: Integers, step: int | Integers, chain: Integers, column: int
    ) -> Floats:
        """Values at counts from the `first` of every row by `step`; `first` and `chain` of shape
        `(rows,)`.
        """
        last = first + step * (runs.number - 1)
        if not self._tabulated(int(np.maximum(first, last).max(initial=0)), runs.size):
            return _rising(runs.line(first, step), self._a[runs.of(chain), column])
        return self._table.ravel().take(runs.line(first + self._row(chain, column), step))

    def _row(self, chain: Any, column: Any) -> Any:
        """Index in the flat table at which a row begins."""
        return (chain * self._table.shape[1] + column) * self._table.shape[2]

    def _tabulated(self, largest: int, asked: int) -> bool:
        """True if a table reaches the largest count; it is made here where that is worth it."""
        if largest < self._table.shape[-1]:
            return True
        length = largest + largest // 4 + 1
        if length * self._a.size > _WORTH * asked:
            return False
        before = np.arange(length - 1)
        of_one_more = np.log((self._a[..., None] + before) / (before + 1))
        self._table = np.zeros((*self._a.shape, length))
        np.cumsum(of_one_more, axis=-1, out=self._table[..., 1:])
        return True


def _rising(counts: Integers, a: Floats) -> Floats:
    return log_rising_factorial(a, counts) - special.gammaln(counts + 1.0)
