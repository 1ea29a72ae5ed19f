"""Negative binomial counts: probabilities, and counts at quantiles.

A count of shape parameter `a` that stops with probability `stop` has the probability
`Γ(x + a) / (Γ(a) x!) stop^a (1 - stop)^x`.
"""

from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.mathematics.validation import Floats, Integers

#: Counts are looked for so far from where they are first.
_NEAR = 3


def log_rising(counts: Floats, a: Floats) -> Floats:
    """`ln Γ(x + a) - ln x!`; of counts small enough for the difference to have its digits."""
    return np.asarray(special.gammaln(counts + a) - special.gammaln(counts + 1.0))


def log_mass(counts: Integers, a: Floats, stop: Floats) -> Floats:
    """The logarithm of the probability, where counts are not negative."""
    possible = np.maximum(counts, 0).astype(np.float64)
    powers = special.xlogy(a, stop) + special.xlog1py(possible, -stop)
    return np.asarray(log_rising(possible, a) - special.gammaln(a) + powers)


def up_to(counts: Integers, a: Floats, stop: Floats) -> Floats:
    """The probability of at most so many."""
    return np.asarray(special.betainc(a, np.maximum(counts, 0) + 1.0, stop))


def ends(counts: Integers, a: Floats, stop: Floats) -> tuple[Floats, Floats]:
    """The probabilities of less and of at most so many, for counts that are not negative."""
    upto = up_to(counts, a, stop)
    below = np.where(counts > 0, upto - np.exp(log_mass(counts, a, stop)), 0.0)
    return np.maximum(below, 0.0), upto


def at_quantile(
    quantile: Floats, a: Floats, stop: Floats, near: Integers, limits: tuple[Integers, Integers]
) -> tuple[Integers, Any]:
    """The counts at quantiles, looked for between `limits` and first where they are `near`, and
    whether they are between them.
    """
    least, most = (np.broadcast_to(limit, near.shape) for limit in limits)
    below, upto = ends(near, a, stop)
    found = near.copy()
    left = (quantile <= below) | (quantile > upto)
    a, stop = np.broadcast_to(a, near.shape)[left], np.broadcast_to(stop, near.shape)[left]
    found[left] = _searched(quantile[left], a, stop, near[left], least[left], most[left])
    # At an end of where it was looked for, it may be beyond.
    return found, (found < most) & (found >= least) & ((found > least) | (least == 0))


def _searched(
    wanted: Floats, a: Floats, stop: Floats, start: Integers, least: Integers, most: Integers
) -> Integers:
    """The counts at quantiles, all of shape `(c,)`, by halving."""
    # The answer is above `low` and at most `high`; first it is looked for nearby.
    low, high = least - 1, most.copy()
    for guess in (start + _NEAR, start - _NEAR - 1):
        guess = np.clip(guess, least, most)
        enough = up_to(guess, a, stop) >= wanted
        high = np.where(enough, np.minimum(high, guess), high)
        low = np.where(enough, low, np.maximum(low, guess))
    active = np.flatnonzero(high - low > 1)
    while active.size:
        middle = (low[active] + high[active]) // 2
        enough = up_to(middle, a[active], stop[active]) >= wanted[active]
        high[active] = np.where(enough, middle, high[active])
        low[active] = np.where(enough, low[active], middle)
        active = active[high[active] - low[active] > 1]
    return high
