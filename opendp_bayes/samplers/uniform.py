"""Uniform random words and logarithms of uniform variables, from `secrets`."""

import math
import secrets

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.validation import Floats


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
        found = words > 0
        _, exponents = np.frexp(last_one[found].astype(np.float64))
        halvings[undecided[found]] += exponents
        undecided = undecided[~found]
        halvings[undecided] += 64
    mantissas = (random_words(number) >> np.uint64(12)).astype(np.float64) + 0.5
    return np.log1p(mantissas * 2.0**-52) - halvings * math.log(2)
