"""Exact samplers on integers, with randomness from the operating system's CSPRNG (`secrets`).

No rounding of floating point reaches a sample: parameters are floats taken at their exact rational
value, and the stated laws are returned exactly. Samples are Python integers (dtype object), of any
length.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.samplers.coins import flips
from opendp_bayes.samplers.uniform import accepted, uniform_below


def geometrics(rate: Fraction, draws: int) -> NDArray[Any]:
    """Independent samples of `P(t) = (1 - q) q^t`, `t = 0, 1, ...`, `q = exp(-rate)`, shape
    `(draws,)` (Canonne, Kamath and Steinke, "The discrete Gaussian", Algorithm 2), in expected
    constant time each.

    Examples
    --------
    >>> geometrics(Fraction(50), 3).tolist()
    [0, 0, 0]
    """
    s, t = rate.numerator, rate.denominator

    def remainders(missing: int) -> NDArray[Any]:
        below = uniform_below(t, missing)
        exponents = (below / t).astype(np.float64)
        return below[flips(exponents, lambda i: Fraction(int(below[i]), t))]

    quotient, going = np.zeros(draws, dtype=object), np.arange(draws)
    while going.size:
        going = going[flips(np.ones(going.size), lambda _: Fraction(1))]
        quotient[going] += 1
    return (accepted(remainders, draws) + t * quotient) // s


def floored_laplaces(scale: Fraction, draws: int) -> NDArray[Any]:
    """Independent samples of `floor(Laplace(scale))`, shape `(draws,)`: a fair sign and a
    geometric, `G` or `-1 - G` (docs: Mechanisms, "Floored Laplace").
    """
    magnitude = geometrics(1 / scale, draws)
    return np.where(uniform_below(2, draws), magnitude, -1 - magnitude)


def discrete_laplaces(scale: Fraction, draws: int) -> NDArray[Any]:
    """Independent samples of `P(t) = tanh(1 / (2 scale)) exp(-|t| / scale)`, shape `(draws,)`: a
    sign and a geometric, but for "minus zero".
    """

    def signed(missing: int) -> NDArray[Any]:
        magnitude, sign = geometrics(1 / scale, missing), 2 * uniform_below(2, missing) - 1
        return (sign * magnitude)[(sign > 0) | (magnitude > 0)]

    return accepted(signed, draws)


def discrete_gaussians(scale: Fraction, draws: int) -> NDArray[Any]:
    """Independent samples of `P(z) ∝ exp(-z^2 / (2 scale^2))`, shape `(draws,)`.

    A discrete Laplace sample y of scale `t = floor(scale) + 1` is kept with probability
    `exp(-(|y| - scale^2 / t)^2 / (2 scale^2))` (the same paper, Algorithm 3).

    Examples
    --------
    >>> discrete_gaussians(Fraction(1, 50), 3).tolist()
    [0, 0, 0]
    """
    wide, variance = int(scale) + 1, scale**2

    def kept(missing: int) -> NDArray[Any]:
        y = discrete_laplaces(Fraction(wide), missing)
        standard = (np.abs(y).astype(np.float64) - float(variance / wide)) / float(scale)
        return y[
            flips(standard**2 / 2, lambda i: (abs(y[i]) - variance / wide) ** 2 / (2 * variance))
        ]

    return accepted(kept, draws)
