"""The candidates of the exponential mechanisms: every way to split `size` records over `k`
categories, in lexicographic order.
"""

from collections.abc import Iterator, Sequence
from math import comb, lgamma, log

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers

#: Enumeration limits: candidates for two categories, and for three or more.
LARGEST_SIZE_TWO = 100_000
LARGEST_ENUMERATION = 1_000_000


def number_of_candidates(size: int, k: int) -> int:
    """`C(size + k - 1, k - 1)`."""
    return comb(size + k - 1, k - 1)


def log_number_of_candidates(size: int, k: int) -> float:
    """Its logarithm, in floating point and without the large integer."""
    return lgamma(size + k) - lgamma(size + 1) - lgamma(k)


def check_enumerable(size: int, k: int) -> None:
    """Raise `ValueError` if the candidates for `size` records and `k` categories are too many to
    enumerate.
    """
    if k == 2 and size > LARGEST_SIZE_TWO:
        raise ValueError(
            f"size={size}: enumerating the candidates for 2 categories needs size <="
            f" {LARGEST_SIZE_TWO}. Use fewer records, or only what enumerates nothing, such as"
            " LaplaceParameters."
        )
    if log_number_of_candidates(size, k) > log(LARGEST_ENUMERATION + 0.5):
        raise ValueError(
            f"size={size}, {k} categories: enumerating the C(size + k - 1, k - 1) candidates needs"
            f" at most {LARGEST_ENUMERATION} of them. Use fewer categories or records, or only what"
            " enumerates nothing, such as LaplaceParameters."
        )


def candidates(size: int, k: int) -> Integers:
    """All candidates as an int64 array of shape `(c, k)`, lexicographically ascending.

    Examples
    --------
    >>> candidates(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    result = np.zeros((1, 0), dtype=np.int64)
    for parents, column in _columns(size, k):
        result = np.column_stack([result[parents], column])
    return np.column_stack([result, size - result.sum(axis=1)])


def candidate_sums(tables: Sequence[Floats]) -> Floats:
    """`sum_i tables[i][y_i]` for every candidate `y`, shape `(c,)`, without storing the candidates;
    each table has shape `(size + 1,)`.
    """
    k, size = len(tables), len(tables[0]) - 1
    sums, remaining = np.zeros(1), np.array([size])
    for table, (parents, column) in zip(tables, _columns(size, k), strict=False):
        sums = sums[parents] + table[column]
        remaining = remaining[parents] - column
    return sums + tables[-1][remaining]


def candidate(index: int, size: int, k: int) -> list[int]:
    """The candidate at `index` of the lexicographic order (unranking).

    Examples
    --------
    >>> [candidate(i, 2, 2) for i in range(3)]
    [[0, 2], [1, 1], [2, 0]]
    """
    result = []
    for parts in range(k - 1, 0, -1):
        value = 0
        while index >= (block := comb(size - value + parts - 1, parts - 1)):
            index -= block
            value += 1
        result.append(value)
        size -= value
    return [*result, size]


def ranks(counts: Integers, size: int) -> Integers:
    """The index of each row of `counts`, shape `(c, k)`, in `candidates(size, k)`."""
    k = counts.shape[1]
    remaining = np.full(len(counts), size, dtype=np.int64)
    rank = np.zeros(len(counts), dtype=np.int64)
    for position in range(k - 1):
        # With r left for this place and the p after it, C(r + p, p) candidates begin as this row
        # does; those with less than this entry precede it.
        following = k - 1 - position
        begin = np.array([comb(r + following, following) for r in range(size + 1)], dtype=np.int64)
        left = remaining - counts[:, position]
        rank += begin[remaining] - begin[left]
        remaining = left
    return rank


def _columns(size: int, k: int) -> Iterator[tuple[Integers, Integers]]:
    """For each of the first k - 1 categories: the row of the previous column that each partial
    candidate extends, and its new entry.
    """
    remaining = np.array([size], dtype=np.int64)
    for _ in range(k - 1):
        parents, column = branches(remaining + 1)
        remaining = remaining[parents] - column
        yield parents, column


def branches(children: Integers) -> tuple[Integers, Integers]:
    """For rows with so many children each: the row of every child, and which of its row's children
    it is, from 0.

    Examples
    --------
    >>> [array.tolist() for array in branches(np.array([2, 1]))]
    [[0, 0, 1], [0, 1, 0]]
    """
    parents = np.repeat(np.arange(children.size), children)
    return parents, np.arange(parents.size) - np.repeat(np.cumsum(children) - children, children)
