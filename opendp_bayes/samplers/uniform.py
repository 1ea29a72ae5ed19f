"""Uniform random words and integers, logarithms of uniform variables, and places with exact
weights, from `secrets`.
"""

import math
import secrets
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.validation import Floats, Integers

_WORD = 64


def random_words(number: int) -> NDArray[np.uint64]:
    """`number` independent uniform 64-bit words."""
    return np.frombuffer(secrets.token_bytes(8 * number), dtype=np.uint64)


def accepted(proposals: Callable[[int], NDArray[Any]], number: int) -> NDArray[Any]:
    """`number` accepted values, shape `(number, ...)`, of a function that makes independent
    proposals and returns those that it accepts, at most so many as it is asked for.
    """
    values = proposals(number)
    while len(values) < number:
        values = np.concatenate([values, proposals(number - len(values))])
    return values


def uniform_below(bound: int, number: int) -> NDArray[Any]:
    """`number` independent uniform integers from 0 to below a positive bound, shape `(number,)`;
    Python's (dtype object) where the bound is beyond machine integers.
    """
    if bound >> (_WORD - 1):
        return np.array([secrets.randbelow(bound) for _ in range(number)], dtype=object)
    last_fair = np.uint64((1 << _WORD) - (1 << _WORD) % bound - 1)

    def fair_words(missing: int) -> NDArray[np.uint64]:
        words = random_words(missing)
        return words[words <= last_fair]

    return (accepted(fair_words, number) % np.uint64(bound)).astype(np.int64)


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
        halvings[undecided] += _WORD
    mantissas = (random_words(number) >> np.uint64(12)).astype(np.float64) + 0.5
    return np.log1p(mantissas * 2.0**-52) - halvings * math.log(2)


def weighted_places(weights: Sequence[int], bits: int, number: int) -> Integers:
    """Independent places, each with probability `weights[place] / 2^bits`, exactly; shape
    `(number,)`. The weights sum to `2^bits`.

    The place is the number of ends, sums of the weights up to each, that a uniform number of `bits`
    bits, at least 64, has reached. Its first 64 bits are compared with those of the ends; only
    where they equal one of those are the others drawn.

    Examples
    --------
    >>> weighted_places([0, 1 << 64, 0], 64, 3).tolist()
    [1, 1, 1]
    """
    ends, later = list(accumulate(weights)), bits - _WORD
    # Nothing reaches an end of 2^bits, whose head would not fit.
    heads = np.array([min(end, (1 << bits) - 1) >> later for end in ends], dtype=np.uint64)
    words = random_words(number)
    places = np.searchsorted(heads, words, side="left")
    doubtful = places < np.searchsorted(heads, words, side="right")
    for position in np.flatnonzero(doubtful).tolist():
        number_drawn = int(words[position]) << later | secrets.randbits(later)
        places[position] = bisect_right(ends, number_drawn)
    return places.astype(np.int64)
