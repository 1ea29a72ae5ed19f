"""Cells of whole numbers that are short near given points and grow with the distance from them."""

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from opendp_bayes.mathematics.validation import Integers

#: A cell at distance d from the nearest point holds about `d / _GROWTH` numbers, so a range of
#: length L has about `_GROWTH ln L` cells a point.
_GROWTH = 32


def graded_edges(last: int, around: Iterable[int]) -> Integers:
    """First numbers of consecutive cells that make up `0..last`, and `last + 1` at the end.

    Cells within `_GROWTH` of 0, of `last` or of a point of `around` hold one number each, and
    further away no more than `1 / _GROWTH` of the distance.

    >>> graded_edges(5, around=[2]).tolist()
    [0, 1, 2, 3, 4, 5, 6]
    """
    steps = _steps(last)
    edges = np.concatenate(
        [point + sign * steps for point in {0, last, *around} for sign in (1, -1)]
    )
    return np.append(np.unique(edges[(edges >= 0) & (edges <= last)]), last + 1)


@lru_cache(maxsize=16)
def _steps(reach: int) -> Integers:
    """Distances at which cells end: every whole number at first, then further and further apart."""
    places, place = list(range(min(reach, _GROWTH) + 1)), _GROWTH
    while place < reach:
        place += max(place // _GROWTH, 1)
        places.append(place)
    return np.array(places, dtype=np.int64)


def cell_of(values: Integers, edges: Integers) -> Integers:
    """The index of the cell that holds each value."""
    return np.searchsorted(edges, values, side="right") - 1
