"""Exact coins of probabilities `exp(-x)`, flipped many at a time, and indices that are chosen by
them.
"""

import secrets
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.samplers.inversion import exp_enclosure
from opendp_bayes.samplers.uniform import accepted, random_words, uniform_below

#: Above the error of a probability in floating point and of the first bits of a uniform number.
_DOUBT = 2.0**-40
#: Indices that are proposed at a time.
_PROPOSALS = 1 << 10


def flips(exponents: Floats, exact: Callable[[int], Fraction]) -> NDArray[np.bool_]:
    """Flip independent coins of probabilities `exp(-exact(i))`, exactly; True for heads.

    A coin shows heads if a uniform number is below its probability. Floating point decides where
    they differ by more than its error, and more bits of both elsewhere.

    Parameters
    ----------
    exponents : ndarray
        The exponents, at least 0, in floating point: such that no probability is off by more than
        `2^-42`, shape `(m,)`, which is that of the result.
    exact : Callable[[int], Fraction]
        From a place to the exact exponent.
    """
    words = random_words(exponents.size)
    excess = words * 2.0**-64 - np.exp(-np.minimum(exponents, 700.0))
    heads = excess < 0
    for place in np.flatnonzero(np.abs(excess) < _DOUBT).tolist():
        heads[place] = _is_below_exp(int(words[place]), exact(place))
    return heads


def _is_below_exp(word: int, x: Fraction) -> bool:
    """Decide if a uniform number whose first 64 bits are `word` is below `exp(-x)`, with more
    random bits as needed.
    """
    bits = 64
    while True:
        low, high = exp_enclosure(x, bits)
        if word < low or word >= high:
            return word < low
        word, bits = word << 64 | secrets.randbits(64), bits + 64


def among_heads(distances: Floats, scale: Fraction, draws: int) -> Integers:
    """A uniform choice, for each draw, among the coins that show heads, of probabilities
    `exp(-distance / scale)`, exactly, for distances of shape `(c,)`; shape `(draws,)`. One of the
    distances is 0.
    """
    exponents = distances / float(scale)
    chosen = np.empty(draws, dtype=np.int64)
    for draw in range(draws):
        heads = np.flatnonzero(flips(exponents, lambda i: Fraction(distances[i]) / scale))
        chosen[draw] = heads[secrets.randbelow(heads.size)]
    return chosen


def exact_categorical(exponents: Floats, draws: int) -> Integers:
    """Independent indices with probabilities in proportion to `exp(-exponents)`, floats taken at
    their exact rational values, shape `(draws,)`.

    Indices are drawn uniformly and kept where a coin of probability `exp(smallest - exponent)`
    shows heads. So a draw takes about as many of them as there are indices, divided by the sum of
    these probabilities.

    Raises
    ------
    ValueError
        For exponents that are not finite.
    """
    if not np.all(np.isfinite(exponents)):
        raise ValueError("exponents: every entry must be finite.")
    smallest = exponents.min()

    def kept(missing: int) -> Integers:
        index = uniform_below(exponents.size, max(missing, _PROPOSALS))
        above = exponents[index]
        heads = flips(above - smallest, lambda i: Fraction(above[i]) - Fraction(smallest))
        return index[heads][:missing]

    return accepted(kept, draws)
