"""What every category contributes to Dirichlet-multinomial probabilities, for many counts."""

from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.mathematics.validation import Floats, Integers

#: A table may have so many times as many entries as are asked for at once.
_WORTH = 8


class Rising:
    """`ln Γ(x + a) - ln x!` of whole x for `a` of shape `(chains, columns)`, from a table where
    much is asked; for counts small enough for the difference to have its digits.
    """

    def __init__(self, a: Floats) -> None:
        self._a, self._table = a, np.empty((*a.shape, 0))

    def __call__(self, counts: Integers, chain: Any, column: Any) -> Floats:
        """Of counts, their chains and their columns, which broadcast."""
        most = int(counts.max(initial=0)) + 1
        if most > self._table.shape[-1]:
            if most * self._a.size > _WORTH * counts.size:
                return _rising(counts, self._a[chain, column])
            self._table = _rising(np.arange(most + most // 2), self._a[..., None])
        _, columns, length = self._table.shape
        return self._table.ravel().take((chain * columns + column) * length + counts)


def _rising(counts: Integers, a: Floats) -> Floats:
    return np.asarray(special.gammaln(counts + a) - special.gammaln(counts + 1.0))
