"""Checks of the arguments that the functions of this package share, and the last rounding of a
probability.
"""

import math
from fractions import Fraction

import numpy as np

from opendp_bayes_smoothed.draws import LARGEST_SIZE


def samples_of(rate: float | Fraction, size: int) -> int:
    """`T = ceil(rate n)`, the paper's number of samples: T itself for the float `T / n`, otherwise
    of the decimal that a float prints as. `ValueError` unless `0 < rate <= 1`.
    """
    if isinstance(rate, bool) or not isinstance(rate, (float, int, Fraction, np.floating)):
        raise TypeError(f"rate={rate!r}: must be a number, not {type(rate).__name__}.")
    if not 0 < rate <= 1:
        raise ValueError(
            f"rate={rate!r}: must be greater than 0 and at most 1, the share of the records that is"
            " drawn."
        )
    if not 1 <= size <= LARGEST_SIZE:
        raise ValueError(f"counts: hold {size} records; must be from 1 to {LARGEST_SIZE:.0e}.")
    if isinstance(rate, Fraction):
        return math.ceil(rate * size)
    rate = float(rate)
    samples = round(rate * size)
    return samples if samples / size == rate else math.ceil(Fraction(repr(rate)) * size)


def as_epsilon(value: float, name: str = "epsilon") -> float:
    """Return `value` as a float of at least 0, or raise `ValueError`/`TypeError` naming it;
    infinity is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating, np.integer)):
        raise TypeError(f"{name}={value!r}: must be a number, not {type(value).__name__}.")
    if not value >= 0:
        raise ValueError(f"{name}={value!r}: must be at least 0.")
    return float(value)


def exp_up(log_value: float) -> float:
    """`e^log_value`, rounded up, at most 1: all that a probability can be."""
    return (
        min(1.0, math.nextafter(math.exp(log_value) * (1 + 2.0**-50), math.inf))
        if log_value > -math.inf
        else 0.0
    )
