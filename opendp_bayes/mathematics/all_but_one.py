"""Sums and products of all values but one, without an inverse that would lose digits."""

from typing import Any

import numpy as np


def all_but_one(values: Any, operation: np.ufunc = np.add) -> Any:
    """Combine, for each entry of the first axis, all the others.

    Examples
    --------
    >>> all_but_one(np.array([1.0, 2.0, 4.0])).tolist()
    [6.0, 5.0, 3.0]
    >>> all_but_one(np.array([0.0, 2.0, 4.0]), np.multiply).tolist()
    [8.0, 0.0, 0.0]
    """
    combined = np.empty_like(values)
    combined[:1] = operation.identity
    operation.accumulate(values[:-1], out=combined[1:])
    combined[:-1] = operation(combined[:-1], operation.accumulate(values[:0:-1])[::-1])
    return combined
