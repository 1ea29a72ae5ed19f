"""Integer vectors that sum to 0, and counts that are nearest to integers which may be negative.

`||z||_1 / 2` is the norm: how many records a move by z changes.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.log_space import log_sum
from opendp_bayes.mathematics.simplex import branches
from opendp_bayes.mathematics.validation import Integers

#: Sums of up to 2^14 numbers below this, weighted by their places, fit into machine integers.
_SMALL = 2**40


def nearest_counts(noised: NDArray[Any], size: int, *, fair: bool = False) -> NDArray[Any]:
    """The non-negative integers, summing to `size`, with the smallest sum of squared differences to
    `noised`; shape `(..., k)`, like it.

    Every count is lowered by the same amount and not below 0. Where that amount is not whole, the
    largest counts are lowered by one less, the first of equal ones before the others; if `fair`,
    as many in a row of those that stay above 0, from a place that depends on what was noised and
    favours none. All are equally near, but noise makes counts large, and so would the first rule.
    Exact, for integers of numpy and for Python's (dtype object), which come back as such where
    they were given or needed.

    Examples
    --------
    >>> nearest_counts(np.array([[5, 4, -2], [3, 1, 3]]), 7).tolist()
    [[4, 3, 0], [3, 1, 3]]
    """
    noised = exact_integers(noised)
    order = np.argsort(-noised, axis=-1, kind="stable")
    descending = np.take_along_axis(noised, order, axis=-1)
    excess = np.cumsum(descending, axis=-1) - size
    rank = np.arange(1, noised.shape[-1] + 1)
    positive = (descending * rank >= excess).sum(axis=-1, keepdims=True)
    surplus = -np.take_along_axis(excess, positive - 1, axis=-1)
    position = rank
    if fair:
        start = (noised * rank).sum(axis=-1, keepdims=True)
        row = np.cumsum(
            np.take_along_axis(rank <= positive, np.argsort(order, axis=-1), -1), axis=-1
        )
        position = 1 + (np.take_along_axis(row, order, axis=-1) + start) % positive
    lowered = np.where(
        rank <= positive, descending + surplus // positive + (position <= surplus % positive), 0
    )
    result = np.empty_like(noised)
    np.put_along_axis(result, order, lowered, axis=-1)
    return result


def exact_integers(values: NDArray[Any]) -> NDArray[Any]:
    """Return values as Python's integers where sums and squares of machine ones might overflow."""
    return values if np.all(np.abs(values) < _SMALL) else values.astype(object)


def noise_vectors(largest: int, k: int) -> Integers:
    """Every z in Z^k with sum 0 and `||z||_1 / 2 <= largest`, shape `(c, k)`.

    Examples
    --------
    >>> noise_vectors(1, 2).tolist()
    [[-1, 1], [0, 0], [1, -1]]
    """
    result = np.zeros((1, 0), dtype=np.int64)
    risen = fallen = np.zeros(1, dtype=np.int64)
    for _ in range(k - 1):
        children = 2 * largest + 1 - risen - fallen  # from -(largest - fallen) to largest - risen
        parents, child = branches(children)
        column = child - (largest - fallen)[parents]
        risen, fallen = (
            risen[parents] + np.maximum(column, 0),
            fallen[parents] - np.minimum(column, 0),
        )
        result = np.column_stack([result[parents], column])
    return np.column_stack([result, fallen - risen])


def shell_size(norm: int, k: int) -> int:
    """Number of z in Z^k with sum 0 and `||z||_1 / 2 = norm`.

    Examples
    --------
    >>> [shell_size(norm, 3) for norm in range(4)]
    [1, 6, 12, 18]
    """
    return sum(
        math.comb(k - 1, i) ** 2 * math.comb(norm - i + k - 2, k - 2)
        for i in range(min(norm, k - 1) + 1)
    )


def norm_to_list(k: int, scale: float, log_rest: float, most: int) -> int | None:
    """The smallest norm beyond which all z weigh less than `exp(log_rest)`, each by its norm times
    `exp(-norm / scale)`; None if there are more than `most` vectors up to there.
    """
    norm, listed = 0, 1
    while listed <= most:
        following = shell_size(norm + 1, k)
        log_next = math.log((norm + 1) * following) - (norm + 1) / scale
        # Of the terms after that: shells grow as the power k - 2 of the norm, or less.
        log_ratio = k * math.log1p(1 / (norm + 1)) - 1 / scale
        if log_ratio < 0 and log_next - math.log(-math.expm1(log_ratio)) <= log_rest:
            return norm
        norm, listed = norm + 1, listed + following
    return None


def log_squares(j: int, scale: float) -> float:
    """`ln sum_i C(j, i)^2 exp(-i / scale)`, i = 0..j."""
    return log_sum([2 * binomial - i / scale for i, binomial in enumerate(log_binomials(j))])


def log_binomials(n: int) -> list[float]:
    """`ln C(n, i)` for i = 0..n, from exact integers, each by one step from the one before."""
    logs, binomial = [], 1
    for i in range(n + 1):
        logs.append(math.log(binomial))
        binomial = binomial * (n - i) // (i + 1)
    return logs
