"""What may be left out of a sum: parts that hold next to nothing of the weight and of the variance.

A part without weight can decide a standard deviation: where all but a hundred-millionth of a
posterior is one count, the rest is what its deviation is made of.
"""

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.validation import Floats, Integers


def matters(weights: Floats, squares: Floats, owner: Integers, least: float) -> NDArray[np.bool_]:
    """Which parts hold more than the share `least` of the weight of their owner, or of the sum of
    the weights times the squares; shapes `(c,)`.

    >>> weights, squares = np.array([1.0, 1e-9, 1e-9]), np.array([1e-3, 1e6, 1e-3])
    >>> matters(weights, squares, np.zeros(3, dtype=int), 1e-6).tolist()
    [True, True, False]
    """
    kept = np.zeros(owner.shape, dtype=np.bool_)
    for share in (weights, weights * squares):
        kept |= share > (least * np.bincount(owner, share))[owner]
    return kept


def beta_squares(
    a: Floats, b: Floats, weights: Floats, owner: Integers, spread: Floats | float = 0.0
) -> Floats:
    """What the Betas of mixtures contribute to the variances of these, but for their weights, of
    which those of an owner sum to 1: their own variances, those of their means, and the squared
    distances of these from the mixture's.
    """
    total = a + b
    share, rest = a / total, b / total
    mean, other = (np.bincount(owner, weights * part)[owner] for part in (share, rest))
    off = np.where(mean < 0.5, share - mean, other - rest)
    return np.asarray(share * rest / (total + 1) + spread + off**2)
