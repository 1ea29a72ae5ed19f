"""Numbers that are known by their logarithms, and probabilities by their logits."""

import math

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers


def log_sum_exp(values: Floats, axis: int) -> Floats:
    """`ln sum exp(values)` along an axis; `-inf` where nothing is summed or all are `-inf`.

    The same as `scipy.special.logsumexp`, in fewer passes: several times faster on large arrays.

    Examples
    --------
    >>> import numpy as np
    >>> log_sum_exp(np.array([[0.0, 0.0], [-np.inf, -np.inf]]), axis=1).round(6).tolist()
    [0.693147, -inf]
    """
    largest = values.max(axis=axis, keepdims=True, initial=-np.inf)
    largest[~np.isfinite(largest)] = 0.0
    terms = values - largest
    with np.errstate(divide="ignore"):
        return np.log(np.exp(terms, out=terms).sum(axis=axis)) + largest.squeeze(axis)


def log_sums(group: Integers, values: Floats, groups: int) -> Floats:
    """`ln sum exp(values)` of each group, shape `(groups,)`; `group` has the number of every
    value's group, and no group is empty.

    Examples
    --------
    >>> log_sums(np.array([0, 1, 0]), np.log([1.0, 2.0, 3.0]), 2).round(6).tolist()
    [1.386294, 0.693147]
    """
    largest = np.full(groups, -np.inf)
    np.maximum.at(largest, group, values)
    return np.log(np.bincount(group, np.exp(values - largest[group]), groups)) + largest


def log_sum(terms: list[float]) -> float:
    """`ln sum exp(term)`, to the rounding of each term."""
    largest = max(terms)
    return largest + math.log(math.fsum(math.exp(term - largest) for term in terms))


def logistic(logit: Floats) -> Floats:
    """`1 / (1 + exp(-logit))`, down to the smallest float above 0.

    Examples
    --------
    >>> logistic(np.array([0.0, -740.0])).tolist()
    [0.5, 4.2e-322]
    """
    small = np.exp(-np.abs(logit))
    return np.where(logit < 0, small, 1.0) / (1 + small)
