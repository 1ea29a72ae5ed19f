"""Conjugate updates of the two models, as plain functions of counts."""

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import Floats, as_counts, as_number, as_prior


def binomial_beta(*, n: int, x: int, prior: ArrayLike = 1.0) -> Floats:
    """Posterior `(a, b)` of a success probability: a Beta prior updated with `x` successes in `n`
    trials.

    Parameters
    ----------
    n : number of trials.
    x : number of successes, from 0 to `n`.
    prior : `(a, b)`, positive numbers, successes first; or one number for both.

    Returns an array of shape `(2,)`: successes first. Raises `ValueError` unless `0 <= x <= n`, and
    `ValueError`/`TypeError` for a prior that is not valid.

    Source: tailoring paper, section 2.

    >>> binomial_beta(n=10, x=7, prior=[1, 1]).tolist()
    [8.0, 4.0]
    """
    if not 0 <= as_number(x, "x") <= as_number(n, "n"):
        raise ValueError(f"x={x!r}: must be between 0 and n={n!r}.")
    return multinomial_dirichlet(x=[x, n - x], prior=prior)


def multinomial_dirichlet(*, x: ArrayLike, prior: ArrayLike = 1.0) -> Floats:
    """Posterior concentration of category probabilities: a Dirichlet prior updated with counts.

    Parameters
    ----------
    x : the counts, non-negative whole numbers, shape `(k,)`.
    prior : positive numbers, shape `(k,)`, or one number for all.

    Returns `prior + x`. Raises `ValueError`/`TypeError` for counts or a prior that are not valid.

    Source: tailoring paper, section 2.

    >>> multinomial_dirichlet(x=[3, 0, 2], prior=0.5).tolist()
    [3.5, 0.5, 2.5]
    """
    counts = as_counts(x, name="x")
    return np.asarray(as_prior(prior, counts.size) + counts, dtype=np.float64)
