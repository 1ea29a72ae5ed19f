"""The largest expectation of a function of histograms over all choices of a distribution from Π for
every record: Algorithm 1 of the paper.

Adding a record from π maps a function f of histograms to `(A_π f)(h) = sum_i π(i) f(h + e_i)`, and
the expectation is the product of n such operators, applied to f, at the empty histogram. The
operators commute, so only the number of records of each vertex of the convex hull of Π matters, and
all these numbers share their partial products (`docs/smoothed.md`, "Algorithm 1").
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.extend import as_size, candidates, number_of_candidates
from opendp_bayes_smoothed.arguments import exp_up
from opendp_bayes_smoothed.distributions import vertices
from opendp_bayes_smoothed.draws import Floats, Integers, log_factorial

#: Entries of a table of histograms, and steps of Algorithm 1: some minutes.
LARGEST_TABLE, LARGEST_WORK = 1 << 22, 1 << 34


def smoothed_value(
    function: Callable[[tuple[int, ...]], float], distributions: ArrayLike, size: int
) -> float:
    """Return the largest expectation of a function of the counts of a database over all choices of
    a distribution from Π for each record: Algorithm 1 for any function.

    Parameters
    ----------
    function : callable
        From the counts of a database, a tuple, to a number from 0 to 1, such as the δ of another
        mechanism.
    distributions : array_like of float
        The set Π, shape `(l, m)`: rows of probabilities of the m categories.
    size : int
        The number of records n, at least 1.

    Returns
    -------
    float
        An upper bound for the values as they are, relatively within about `2^-29 + n^2 2^-44`.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid, for a value that is not between 0 and 1, and for too many
        records.

    >>> def tie(counts):
    ...     return counts[0] == counts[1]
    >>> round(smoothed_value(tie, [[0.5, 0.5], [0.6, 0.4]], 10), 6)
    0.246094
    """
    corners = vertices(distributions)
    histograms = databases(as_size(size), corners)
    values = np.array([float(function(tuple(row))) for row in histograms.tolist()])
    if not np.all((values >= 0) & (values <= 1)):
        wrong = int(np.flatnonzero(~((values >= 0) & (values <= 1)))[0])
        raise ValueError(
            f"function: gives {float(values[wrong])!r} for {tuple(histograms[wrong].tolist())};"
            " must give a number between 0 and 1."
        )
    with np.errstate(divide="ignore"):
        # A logarithm of up to 745 is within 2^-43.
        logs = np.log(values) + 2.0**-43
    return exp_up(log_largest_expectation(logs, histograms, corners))


def databases(size: int, corners: Floats) -> Integers:
    """All histograms of `size` records, shape `(c, k)`; `ValueError` where they, or the choices of
    a distribution for each record, are too many for Algorithm 1.
    """
    choices, k = corners.shape
    grid = (size + 1) ** (k - 1)
    if grid > LARGEST_TABLE or grid * number_of_candidates(size, choices) > LARGEST_WORK:
        raise ValueError(
            f"size={size}: Algorithm 1 has too much to average over for so many records of {k}"
            f" categories from {choices} distributions. Use fewer records, categories or"
            " distributions."
        )
    return candidates(size, k)


def log_largest_expectation(log_values: Floats, histograms: Integers, corners: Floats) -> float:
    """`ln max E[f(x)]` over the numbers of records drawn from each row of `corners`, for `f =
    exp(log_values)`, rounded up.

    `histograms` are all histograms of n records, shape `(c, m)`; `log_values` has shape `(c,)`.
    """
    size, k = int(histograms[0].sum()), histograms.shape[1]
    table = np.full((size + 1,) * (k - 1), -np.inf)  # indexed by all counts but the last
    table[tuple(histograms[:, :-1].T)] = log_values
    factorials = log_factorial(np.arange(size + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(corners)
        # (l, k, size + 1): ln p^h.
        powers = np.where(np.arange(size + 1) > 0, np.arange(size + 1) * logs[:, :, None], 0.0)
    best = _descend(table, size, logs, powers[-1] - factorials, factorials)
    if best == -math.inf:
        return best
    # A chain of steps of k additions, on values of at most 2 `largest`; a multinomial
    # probability; a sum of at most 2^22 terms.
    chain = size if len(corners) > 1 else 0
    largest, term = _largest(log_values, powers), _largest(factorials)
    return best + 2.0**-50 * k * (chain * (2 * largest + 8) + 8 * max(largest, term)) + 2.0**-30


def _largest(*arrays: Floats) -> float:
    return max(
        float(np.max(np.abs(values), initial=1.0, where=np.isfinite(values))) for values in arrays
    )


def _descend(table: Floats, size: int, logs: Floats, last: Floats, factorials: Floats) -> float:
    """The best split of `size` records over the distributions `logs`, whose last one has the
    single-count terms `last`.
    """
    if len(logs) == 1:
        return _log_sum(table + _log_multinomial(size, last)) + float(factorials[size])
    best = -math.inf
    for left in range(size, -1, -1):
        best = max(best, _descend(table, left, logs[1:], last, factorials))
        if left:
            table = _add_record(table, logs[0])
    return best


def _log_sum(values: Floats) -> float:
    """`ln sum e^values`; scipy's does more, and takes as long as all the rest."""
    largest = float(values.max())
    return (
        largest
        if largest == -math.inf
        else largest + math.log(float(np.exp(values - largest).sum()))
    )


def _add_record(table: Floats, log_p: Floats) -> Floats:
    """`ln (A f)` from `ln f`: one record fewer, drawn from the distribution. Beyond the simplex the
    table is minus infinity.
    """
    axes = table.ndim
    result = table[(slice(None, -1),) * axes] + log_p[-1]
    for axis in range(axes):
        shifted = tuple(slice(1, None) if i == axis else slice(None, -1) for i in range(axes))
        result = np.logaddexp(result, table[shifted] + log_p[axis])
    return result


def _log_multinomial(size: int, terms: Floats) -> Floats:
    """`sum_i (h_i ln p_i - ln h_i!)` on the grid of all counts but the last; minus infinity beyond
    it; `terms` has shape `(k, >= size + 1)`.
    """
    axes = len(terms) - 1
    total: Floats = np.zeros((1,) * axes)
    used = np.zeros((1,) * axes, dtype=np.int64)
    for axis in range(axes):
        shape = [1] * axes
        shape[axis] = size + 1
        total = total + terms[axis, : size + 1].reshape(shape)
        used = used + np.arange(size + 1).reshape(shape)
    return np.where(used <= size, total + terms[-1][np.clip(size - used, 0, size)], -np.inf)
