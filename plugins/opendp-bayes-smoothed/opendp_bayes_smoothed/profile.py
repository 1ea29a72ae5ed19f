"""The database-dependent privacy profile `δ_ε(x)` of the sampling-histogram mechanism (paper,
Definition 2; `docs/smoothed.md`, "The profile").

`x'` is `x` with one record moved from category i to category j. The ratio of their probabilities
depends on the two categories only, so

    d(x, x') = sum_s P(s) sum_k P(k | s) (1 - e^ε r(k, s))_+ ,

s drawn records from the two categories, k of them from i: tails (`tails`), mixed over s.
"""

from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from opendp_bayes.extend import as_counts
from opendp_bayes_smoothed.arguments import as_epsilon, exp_up, samples_of
from opendp_bayes_smoothed.draws import Draw, Floats, Integers, Replacement, draw_of, log_pmf_error
from opendp_bayes_smoothed.tails import log_tail

#: Records of three or more categories: there is a tail for every number drawn from two of them.
LARGEST_MIXED = 100_000


def database_profile(
    counts: ArrayLike,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
    log: bool = False,
) -> float:
    """`δ_ε(x)` of the sampling-histogram mechanism: the smallest δ for the database x and all its
    neighbours, in both directions.

    Parameters
    ----------
    counts : array_like of int
        Records of each category, shape `(m,)`: at most 10^9 in all of two categories, and 100 000
        of more.
    rate : float or Fraction
        Share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : float
        At least 0.
    replacement : {"without", "with"}
        How records are drawn: Algorithm 2, or Appendix F.
    log : bool
        Return the natural logarithm, where δ is below the range of floats; minus infinity for 0.

    Returns
    -------
    float
        A certified upper bound, relatively within about 1e-9 of the true value.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid, and for too many records.

    >>> database_profile([16_144_093, 9_139_661], 0.998, 0.04)
    1.64...e-08
    """
    array = as_counts(counts)
    size = int(array.sum())
    samples, draw = samples_of(rate, size), draw_of(replacement)
    if array.size > 2 and size > LARGEST_MIXED:
        raise ValueError(
            f"counts: hold {size} records of {array.size} categories; at most {LARGEST_MIXED} are"
            " taken of three or more. Use two categories, merging others, or a sample of them."
        )
    log_delta = float(log_profiles(draw, samples, array[None], as_epsilon(epsilon))[0])
    return log_delta if log else exp_up(log_delta)


def log_profiles(draw: Draw, samples: int, histograms: Integers, epsilon: float) -> Floats:
    """`ln δ_ε(x)` for every row x of `histograms`, shape `(c, m)`, all of the same number of
    records.

    One divergence for each number of records in a category that loses one, and in both of the
    categories: from x to a neighbour, and from there back to x.
    """
    size, k = int(histograms[0].sum()), histograms.shape[1]
    x, y = (
        np.array([histograms[:, pair[place]] for pair in permutations(range(k), 2)])
        for place in (0, 1)
    )
    codes = np.where(x >= 1, (x + y) * (size + 2) + np.array([x, y + 1]), 0)
    codes, places = np.unique(codes, return_inverse=True)
    pairs, a = np.divmod(codes, size + 2)
    logs = np.full(codes.shape, -np.inf)
    for both in np.unique(pairs[pairs > 0]).tolist():
        here = pairs == both
        logs[here] = _log_divergences(draw, size, samples, a[here], both, epsilon)
    return np.minimum(logs[places.reshape(-1, len(histograms))].max(axis=0), 0.0)


def _log_divergences(
    draw: Draw, size: int, samples: int, a: Integers, both: int, epsilon: float
) -> Floats:
    """`ln d(x, x')`, rounded up, for x with `a` of `both` records in the category that loses one
    and all others of them in the one that gains it; shape of `a`.
    """
    numbers = np.array(both), np.array(size - both), np.array(samples)
    low, high = map(int, draw.support(*numbers))
    s = np.arange(low, high + 1)
    log_p = draw.log_pmf(s, *numbers)
    grid_a, grid_s = (grid.ravel() for grid in np.meshgrid(a, s, indexing="ij"))
    tails = log_tail(draw, grid_a, both - grid_a, grid_s, epsilon).reshape(a.size, s.size)
    return logsumexp(tails + log_p + log_pmf_error(log_p), axis=1) + 2.0**-40
