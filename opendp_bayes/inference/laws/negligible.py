"""Parts of a sum that may be left out: they hold next to nothing of the weight and the variance.

A part without weight can decide a standard deviation: where all but a hundred-millionth of a
posterior is one count, the rest is what its deviation is made of.
"""

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.validation import Floats, Integers


def matters(weights: Floats, squares: Floats, owner: Integers, least: float) -> NDArray[np.bool_]:
    """True for parts that hold more than the share `least` of the weight of their owner, or of its
    sum of the weights times the squares; shapes `(c,)`.

    >>> weights, squares = np.array([1.0, 1e-9, 1e-9]), np.array([1e-3, 1e6, 1e-3])
    >>> matters(weights, squares, np.zeros(3, dtype=int), 1e-6).tolist()
    [True, True, False]
    """
    kept = np.zeros(owner.shape, dtype=np.bool_)
    for share in (weights, weights * squares):
        kept |= share > (least * np.bincount(owner, share))[owner]
    return kept


def beta_squares(a: Floats, b: Floats, weights: Floats, owner: Integers) -> Floats:
    """Contributions of Betas to the variances of their mixtures, not yet multiplied by `weights`;
    the weights of an owner sum to 1.

    A contribution is the Beta's own variance and the squared distance of its mean from the
    mixture's.
    """
    total = a + b
    share, rest = a / total, b / total
    mean, other = (np.bincount(owner, weights * part)[owner] for part in (share, rest))
    off = np.where(mean < 0.5, share - mean, other - rest)
    return np.asarray(share * rest / (total + 1) + off**2)
