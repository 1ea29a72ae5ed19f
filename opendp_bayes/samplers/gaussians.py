"""Exact samples of the discrete Gaussian law, many at a time."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.samplers.coins import Coins
from opendp_bayes.samplers.integers import discrete_laplaces


def discrete_gaussians(scale: Fraction, draws: int) -> NDArray[Any]:
    """Independent samples of `P(z) ∝ exp(-z^2 / (2 scale^2))`, shape `(draws,)`.

    A discrete Laplace sample y of scale `t = floor(scale) + 1` is kept with probability
    `exp(-(|y| - scale^2 / t)^2 / (2 scale^2))`, and otherwise drawn again (Canonne, Kamath and
    Steinke, "The discrete Gaussian", Algorithm 3). Python integers (dtype object) where those of
    numpy might overflow.

    Examples
    --------
    >>> discrete_gaussians(Fraction(1, 50), 3).tolist()
    [0, 0, 0]
    """
    wide, variance = int(scale) + 1, scale**2
    result = discrete_laplaces(Fraction(wide), draws)
    undecided = np.arange(draws)
    while undecided.size:
        magnitudes, place = np.unique(np.abs(result[undecided]), return_inverse=True)
        # Few magnitudes are many samples', so each probability is enclosed once.
        exponents = [(y - variance / wide) ** 2 / (2 * variance) for y in magnitudes.tolist()]
        kept = Coins(len(exponents), exponents.__getitem__).flip(place.ravel())
        undecided = undecided[~kept]
        drawn = discrete_laplaces(Fraction(wide), undecided.size)
        if drawn.dtype == object and result.dtype != object:
            result = result.astype(object)
        result[undecided] = drawn
    return result
