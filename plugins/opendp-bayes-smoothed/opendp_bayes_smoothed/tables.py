"""The profiles of all databases of so many records at once, which Algorithm 1 averages."""

from itertools import permutations

import numpy as np
from scipy.special import logsumexp

from opendp_bayes_smoothed.draws import Draw, Floats, Integers, log_pmf_error
from opendp_bayes_smoothed.tails import log_tail

#: Rows of a table whose tails are summed together.
_ROWS = 1024


def log_profiles(draw: Draw, samples: int, histograms: Integers, epsilon: float) -> Floats:
    """`ln δ_ε(x)` for every row x of `histograms`, shape `(c, m)`, all of the same number of
    records.
    """
    size, k = int(histograms[0].sum()), histograms.shape[1]
    if k == 2:
        return _of_two_categories(draw, size, samples, epsilon)[histograms[:, 0]]
    table = divergence_table(draw, size, samples, epsilon)
    result = np.full(len(histograms), -np.inf)
    for i, j in permutations(range(k), 2):
        x, y = histograms[:, i], histograms[:, j]
        here = np.where(
            x >= 1,
            np.maximum(table[x, y], table[np.minimum(y + 1, size), np.maximum(x - 1, 0)]),
            -np.inf,
        )
        result = np.maximum(result, here)
    return result


def _of_two_categories(draw: Draw, size: int, samples: int, epsilon: float) -> Floats:
    """`ln δ_ε` of the databases with 0 to n records in the first category, shape `(size + 1,)`.

    Exchanging the categories changes nothing, so one divergence for each number of records in the
    category that loses one gives both directions of both neighbours.
    """
    losing = np.full(size + 2, -np.inf)  # none loses one of 0 records, nor of n + 1
    a = np.arange(1, size + 1)
    for part in np.array_split(a, size // _ROWS + 1):
        losing[part] = log_tail(draw, part, size - part, np.full_like(part, samples), epsilon)
    # From x to its neighbours, and from these back to x.
    away = np.maximum(losing[:-1], losing[-2::-1])
    back = np.concatenate([[-np.inf], losing[-2:0:-1]])
    return np.maximum(away, np.maximum(back, back[::-1]))


def divergence_table(draw: Draw, size: int, samples: int, epsilon: float) -> Floats:
    """`ln d(x, x')` for every `(a, b)` that can occur with three or more categories, shape `(size +
    1, size + 1)`; minus infinity elsewhere.
    """
    table = np.full((size + 1, size + 1), -np.inf)
    for both in range(1, size + 1):
        low, high = (
            int(end)
            for end in draw.support(np.array(both), np.array(size - both), np.array(samples))
        )
        s, a = np.arange(low, high + 1), np.arange(1, both + 1)
        log_p = draw.log_pmf(s, np.array(both), np.array(size - both), np.array(samples))
        grid_a, grid_s = (grid.ravel() for grid in np.meshgrid(a, s, indexing="ij"))
        tails = log_tail(draw, grid_a, both - grid_a, grid_s, epsilon).reshape(a.size, s.size)
        table[a, both - a] = logsumexp(tails + log_p + log_pmf_error(log_p), axis=1) + 2.0**-40
    return table
