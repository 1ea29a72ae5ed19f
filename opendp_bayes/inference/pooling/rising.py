"""Logarithms of the factors of Dirichlet-multinomial probabilities, one for each category."""

from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial
from opendp_bayes.mathematics.validation import Floats, Integers

#: A table may have so many times as many entries as are asked for at once.
_WORTH = 8


class Rising:
    """`ln Γ(x + a) - ln Γ(a) - ln x!` of whole x for `a` of shape `(chains, columns)`, from a table
    where much is asked; for counts small enough for the difference to have its digits.
    """

    def __init__(self, a: Floats) -> None:
        self._a, self._table = a, np.empty((*a.shape, 0))

    def __call__(self, counts: Integers, chain: Any, column: Any) -> Floats:
        """Values at counts, given their chains and their columns, which broadcast."""
        if not self._tabulated(int(counts.max(initial=0)), counts.size):
            of_counts = log_rising_factorial(self._a[chain, column], counts)
            return of_counts - special.gammaln(counts + 1.0)
        _, columns, length = self._table.shape
        return self._table.ravel().take((chain * columns + column) * length + counts)

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
