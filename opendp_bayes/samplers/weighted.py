"""Exact draws of a place by whole-number weights that sum to a power of two."""

import secrets
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.samplers.uniform import random_words

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
        for at in doubtful.tolist():
            drawn = int(words[at]) << self._later | secrets.randbits(self._later)
            places[at] = bisect_right(self._below, drawn)
        return places.astype(np.int64)
