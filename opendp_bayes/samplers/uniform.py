"""Uniform random words, logarithms of uniform variables, and places with exact weights, from
`secrets`.
"""

import math
import secrets
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.validation import Floats, Integers


def random_words(number: int) -> NDArray[np.uint64]:
    """`number` independent uniform 64-bit words."""
    return np.frombuffer(secrets.token_bytes(8 * number), dtype=np.uint64)


def log_uniforms(number: int) -> Floats:
    """Logarithms of `number` uniform variables on (0, 1), each with 52 bits after its first,
    however small it is.

    The number of halvings is that of the zeros before the first one in a sequence of random bits.
    So `P(log_uniform < x)` is `exp(x)` within a relative error of `2^-51 + |x| 2^-52` for every `x
    <= 0`, not only for those that a fixed number of bits can resolve.
    """
    halvings = np.zeros(number, dtype=np.int64)
    undecided = np.arange(number)
    while undecided.size:
        words = random_words(undecided.size)
        last_one = words & (~words + np.uint64(1))
        has_one = words > 0
        _, exponents = np.frexp(last_one[has_one].astype(np.float64))
        halvings[undecided[has_one]] += exponents
        undecided = undecided[~has_one]
        halvings[undecided] += 64
    mantissas = (random_words(number) >> np.uint64(12)).astype(np.float64) + 0.5
    return np.log1p(mantissas * 2.0**-52) - halvings * math.log(2)


_WORD = 64


class WeightedPlaces:
    """Sampler of a place with probability `weights[place] / 2^bits`, exactly.

    The place is the number of ends, sums of the weights up to each, that a uniform number of `bits`
    bits, at least 64, has reached. Its first 64 bits are compared with those of the ends; only
    where they equal one of those are the others drawn.

    Examples
    --------
    >>> WeightedPlaces([0, 1 << 64, 0], 64).draws(3).tolist()
    [1, 1, 1]
    """

    def __init__(self, weights: Sequence[int], bits: int) -> None:
        self._ends = list(accumulate(weights))
        if self._ends[-1] != 1 << bits:
            raise ValueError(f"weights: sum to {self._ends[-1]}; must sum to 2^{bits}.")
        self._later = bits - _WORD
        # Nothing reaches an end of 2^bits, whose head would not fit.
        self._below = [end for end in self._ends if end >> bits == 0]
        self._heads = np.array([end >> self._later for end in self._below], dtype=np.uint64)

    def draws(self, number: int) -> Integers:
        """Independent places, shape `(number,)`."""
        words = random_words(number)
        places = np.searchsorted(self._heads, words, side="left")
        doubtful = np.flatnonzero(places < np.searchsorted(self._heads, words, side="right"))
        for position in doubtful.tolist():
            number_drawn = int(words[position]) << self._later | secrets.randbits(self._later)
            places[position] = bisect_right(self._below, number_drawn)
        return places.astype(np.int64)
