"""The database-dependent privacy profile `δ_ε(x)` of the sampling-histogram mechanism (paper,
Definition 2; `docs/research/smoothed.md`, "The profile").

`x'` is `x` with one record moved from category i to category j. The ratio of their probabilities
depends on the two categories only, so

    d(x, x') = sum_s P(s) sum_k P(k | s) (1 - e^ε r(k, s))_+ ,

s drawn records from the two categories, k of them from i: tails (`tails`), and for three or more
categories a mixture of them (`mixture`).
"""

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import as_counts
from opendp_bayes_smoothed.arguments import as_epsilon, exp_up, samples_of
from opendp_bayes_smoothed.draws import Replacement, draw_of
from opendp_bayes_smoothed.mixture import log_mixture
from opendp_bayes_smoothed.tails import log_tail


def database_profile(
    counts: ArrayLike,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """`δ_ε(x)` of the sampling-histogram mechanism: the smallest δ for the database x and all its
    neighbours, in both directions.

    Parameters
    ----------
    counts : records of each category, shape `(m,)`, at most 10^9 in all.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : at least 0.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    Returns a certified upper bound, relatively within about 1e-9 of the true value; for three or
    more categories of more than about 10^7 records within about 1e-3 (`docs/research/smoothed.md`,
    "Numerics"). Where that is below the range of floats, use `log_database_profile`.

    >>> database_profile([16_144_093, 9_139_661], 0.998, 0.04)
    1.64...e-08
    """
    return exp_up(log_database_profile(counts, rate, epsilon, replacement=replacement))


def log_database_profile(
    counts: ArrayLike,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """Return the natural logarithm of the profile `δ_ε(x)` of the sampling-histogram mechanism,
    minus infinity where the profile is 0.

    Parameters
    ----------
    counts : records of each category, shape `(m,)`, at most 10^9 in all.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : at least 0.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    Raises `ValueError`/`TypeError` for arguments that are not valid.
    """
    array = as_counts(counts)
    size = int(array.sum())
    samples = samples_of(rate, size)
    draw = draw_of(replacement)
    pairs = sorted(
        {
            pair
            for x, y in permutations(array.tolist(), 2)
            for pair in ((x, y), (y + 1, x - 1))
            if pair[0] >= 1 and pair[1] >= 0
        }
    )
    if not pairs:
        return -math.inf
    epsilon = as_epsilon(epsilon)
    if array.size == 2:
        a, b = np.array(pairs).T
        return float(np.max(log_tail(draw, a, b, np.full_like(a, samples), epsilon)))
    worst = -math.inf
    for a, b in pairs:  # ascending: the rarest categories, which tell most, first
        worst = max(worst, log_mixture(draw, size, samples, a, b, epsilon, worst))
    return worst
