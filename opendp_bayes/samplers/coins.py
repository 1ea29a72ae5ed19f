"""Exact coins of probabilities `exp(-x)`, flipped many at a time: the discrete Gaussian law, and
indices with given weights.
"""

from collections.abc import Callable
from fractions import Fraction
from secrets import randbits
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.samplers.integers import discrete_laplaces, uniform_below
from opendp_bayes.samplers.inversion import exp_enclosure
from opendp_bayes.samplers.uniform import random_words

#: Of a uniform number and of a probability, at first.
_COIN_BITS = 62
#: Flips of so many coins are remembered at a time.
_LARGEST_BLOCK = 1 << 24
#: Indices that are proposed at a time.
_PROPOSALS = 1 << 10


def first_heads(coins: "Coins", draws: int) -> Integers:
    """The index of the first coin that shows heads in random order, shape `(draws,)`.

    Indices are drawn until one has heads; one that was drawn before is passed over, so that those
    which are not are in random order.
    """
    number = coins.number
    chosen = np.empty(draws, dtype=np.int64)
    rows = max(1, _LARGEST_BLOCK // number)
    for start in range(0, draws, rows):
        undecided = np.arange(min(rows, draws - start))
        flipped = np.zeros((undecided.size, number), dtype=np.bool_)
        while undecided.size:
            index = uniform_below(np.full(undecided.size, number))
            fresh = ~flipped[undecided, index]
            flipped[undecided, index] = True
            heads = np.zeros(undecided.size, dtype=np.bool_)
            heads[fresh] = coins.flip(index[fresh])
            chosen[start + undecided[heads]] = index[heads]
            undecided = undecided[~heads]
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
    values, value_of = np.unique(exponents, return_inverse=True)
    rationals = list(map(Fraction, values.tolist()))
    coins = Coins(values.size, lambda i: rationals[i] - rationals[0])
    kept = np.empty(0, dtype=np.int64)
    while kept.size < draws:
        index = uniform_below(np.full(_PROPOSALS, exponents.size))
        kept = np.append(kept, index[coins.flip(value_of[index])])
    return kept[:draws]


class Coins:
    """`number` coins of probabilities `exp(-exponent(i))`, exactly; exponents are at least 0.

    A coin shows heads if a uniform number, of which so many bits are drawn as are needed, is below
    an integer enclosure of its probability, and tails if it is above.
    """

    def __init__(self, number: int, exponent: Callable[[int], Fraction]) -> None:
        self.number, self._exponent = number, exponent
        self._low = np.full(number, -1, dtype=np.int64)
        self._high = np.empty(number, dtype=np.int64)

    def flip(self, index: Integers) -> NDArray[np.bool_]:
        """Flip these coins, shape `(m,)`, independently of each other; True for heads."""
        for i in np.unique(index[self._low[index] < 0]).tolist():
            self._low[i], self._high[i] = exp_enclosure(self._exponent(i), _COIN_BITS)
        words = (random_words(index.size) >> np.uint64(64 - _COIN_BITS)).astype(np.int64)
        heads = words < self._low[index]
        for position in np.flatnonzero(~heads & (words < self._high[index])).tolist():
            heads[position] = _is_below_exp(
                int(words[position]), self._exponent(int(index[position]))
            )
        return heads


def distance_coins(distances: Floats, scale: Fraction) -> Coins:
    """Coins of probabilities `exp(-distance / scale)`, for distances of shape `(c,)`."""
    return Coins(distances.size, lambda i: Fraction(float(distances[i])) / scale)


def _is_below_exp(word: int, x: Fraction) -> bool:
    """Decide if a uniform number whose first `_COIN_BITS` bits are `word` is below `exp(-x)`, with
    more random bits as needed.
    """
    if x == 0:
        return True
    bits = _COIN_BITS
    while True:
        word, bits = word << 64 | randbits(64), bits + 64
        low, high = exp_enclosure(x, bits)
        if word < low or word >= high:
            return word < low


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
        magnitudes, magnitude_of = np.unique(np.abs(result[undecided]), return_inverse=True)
        # Few magnitudes are many samples', so each probability is enclosed once.
        exponents = [(y - variance / wide) ** 2 / (2 * variance) for y in magnitudes.tolist()]
        accepted = Coins(len(exponents), exponents.__getitem__).flip(magnitude_of.ravel())
        undecided = undecided[~accepted]
        candidates = discrete_laplaces(Fraction(wide), undecided.size)
        if candidates.dtype == object and result.dtype != object:
            result = result.astype(object)
        result[undecided] = candidates
    return result
