"""Exact samplers on integers, with randomness from the operating system's CSPRNG (`secrets`).

No floating-point operation stands between the random bits and a sample: parameters are floats taken
at their exact rational value, and the stated laws are returned exactly.
"""

import secrets
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.samplers.uniform import random_words

#: Up to such a numerator and denominator of a rate, int64 holds nearly every integer of
#: `geometrics`.
_LARGEST_TERM = 1 << 57
_LARGEST_INT64 = (1 << 63) - 1


def uniform_below(bounds: NDArray[Any]) -> NDArray[Any]:
    """Independent uniform integers from 0 to below each bound, an array of shape `(m,)`.

    Bounds are positive, of int64 or Python integers of any length (dtype object).
    """
    if bounds.dtype == object:
        return np.array([secrets.randbelow(bound) for bound in bounds.tolist()], dtype=bounds.dtype)
    mask = bounds - 1
    for shift in (1, 2, 4, 8, 16, 32):
        mask = mask | mask >> shift
    result = np.empty(bounds.size, dtype=np.int64)
    undecided = np.arange(bounds.size)
    while undecided.size:
        words = (random_words(undecided.size) >> np.uint64(1)).astype(np.int64)
        candidates = words & mask[undecided]
        inside = candidates < bounds[undecided]
        result[undecided[inside]] = candidates[inside]
        undecided = undecided[~inside]
    return result


def _bernoulli_exp_units(numerators: NDArray[Any], denominator: int) -> NDArray[np.bool_]:
    """True with probability `exp(-x)` for `x = numerator / denominator` in [0, 1], for every
    numerator, shape `(m,)`: the parity of the first failure of Bernoulli(x / j) (Canonne, Kamath
    and Steinke, "The discrete Gaussian", Algorithm 1).
    """
    result = np.empty(numerators.size, dtype=np.bool_)
    going, j = np.arange(numerators.size), 1
    while going.size:
        bound = denominator * j
        dtype = numerators.dtype if bound <= _LARGEST_INT64 else object
        bounds = np.full(going.size, bound, dtype=dtype)
        successes = (uniform_below(bounds) < numerators[going]).astype(np.bool_)
        result[going[~successes]] = j % 2 == 1
        going, j = going[successes], j + 1
    return result


def geometrics(rate: Fraction, draws: int) -> NDArray[Any]:
    """Independent samples of `P(t) = (1 - q) q^t`, `t = 0, 1, ...`, `q = exp(-rate)`, shape
    `(draws,)` (the same paper, Algorithm 2), in expected constant time each.

    Python integers (dtype object) where those of numpy might overflow.

    Examples
    --------
    >>> geometrics(Fraction(50), 3).tolist()
    [0, 0, 0]
    """
    s, t = rate.numerator, rate.denominator
    dtype: Any = np.int64 if max(s, t) <= _LARGEST_TERM else object
    remainder, undecided = np.empty(draws, dtype=dtype), np.arange(draws)
    while undecided.size:
        candidates = uniform_below(np.full(undecided.size, t, dtype=dtype))
        accepted = _bernoulli_exp_units(candidates, t)
        remainder[undecided[accepted]] = candidates[accepted]
        undecided = undecided[~accepted]
    quotient, going = np.zeros(draws, dtype=np.int64), np.arange(draws)
    while going.size:
        going = going[_bernoulli_exp_units(np.ones(going.size, dtype=np.int64), 1)]
        quotient[going] += 1
    if t * (1 + int(quotient.max(initial=0))) > _LARGEST_INT64:
        remainder, quotient = remainder.astype(object), quotient.astype(object)
    return (remainder + t * quotient) // s


def floored_laplaces(scale: Fraction, draws: int) -> NDArray[Any]:
    """Independent samples of `floor(Laplace(scale))`, shape `(draws,)`: a fair sign and a
    geometric, `G` or `-1 - G` (docs: Mechanisms, "Floored Laplace").
    """
    magnitude = geometrics(1 / scale, draws)
    return np.where(_signs(draws), magnitude, -1 - magnitude)


def discrete_laplaces(scale: Fraction, draws: int) -> NDArray[Any]:
    """Independent samples of `P(t) = tanh(1 / (2 scale)) exp(-|t| / scale)`, shape `(draws,)`: a
    sign and a geometric, with "minus zero" drawn again.
    """
    result = geometrics(1 / scale, draws)
    undecided = np.arange(draws)
    while undecided.size:
        negative = undecided[~_signs(undecided.size)]
        result[negative] = -result[negative]
        undecided = negative[result[negative] == 0]
        result[undecided] = geometrics(1 / scale, undecided.size)
    return result


def _signs(draws: int) -> NDArray[np.bool_]:
    """Independent fair coins, shape `(draws,)`."""
    return np.asarray(random_words(draws) >> np.uint64(63), dtype=np.bool_)
