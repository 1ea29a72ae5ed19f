"""The terms of an exponential mechanism on distances: chords of its exponent, blocks of moves, and
integer weights that share out a power of two.
"""

import math

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.mathematics.validation import Floats, Integers

# Of a chord below H / width, about: where its term is the largest it exceeds f by a factor of up to
# e^0.5
_CHORD_GAP = 0.5
# Candidates that have less than e^-40 of the probability together share one term.
_NEGLIGIBLE = 40.0
BITS = 44  # integer weights sum to 2^44
# Added to logarithms of bounds: far above their rounding errors, far below what costs acceptance.
MARGIN = 2.0**-20


def chords(largest: float, log_candidates: float) -> tuple[Floats, Floats]:
    """Logarithms of P and slopes j of terms with `sum of P exp(-j D) >= exp(-largest H)`, `H =
    sqrt(1 - exp(-D))`, for every `D >= 0`.

    Each is a chord of `largest * H` as a function of D, between two of the points `H = sin^2(m
    step)`, for which all chords are at nearly the same distance below it; the last is a constant
    from where all candidates together weigh less than `exp(-_NEGLIGIBLE)`.

    Examples
    --------
    >>> log_weights, slopes = chords(2.0, 100.0)
    >>> log_weights.round(3).tolist(), slopes.round(3).tolist()
    ([0.0, -0.415, -1.5], [7.747, 1.312, 0.0])
    """
    number = max(math.ceil(math.pi / 2 / math.sqrt(2 * _CHORD_GAP / largest)), 1)
    step = math.pi / 2 / number
    reach = min((log_candidates + _NEGLIGIBLE) / largest, 1.0)
    used = min(math.ceil(math.asin(math.sqrt(reach)) / step), number - 1)
    distance = np.sin(step * np.arange(used + 1)) ** 2
    divergence = -np.log1p(-(distance**2))
    slopes = np.append(largest * np.diff(distance) / np.diff(divergence), 0.0)
    return slopes * divergence - largest * distance + MARGIN, slopes


def blocks(largest: int, precision: int) -> tuple[Integers, Integers]:
    """Blocks of the numbers from 1 to `largest` or a little more: their first number, and the
    logarithm to base 2 of how many they hold.

    They widen as the spacing of floating-point numbers of `precision` bits does, so that a block is
    short beside its distance from 0.

    Examples
    --------
    >>> start, bits = blocks(20, 1)
    >>> start.tolist(), bits.tolist()
    ([1, 2, 3, 4, 6, 8, 12, 16], [0, 0, 0, 1, 1, 2, 2, 3])
    """
    octaves = range(max(largest.bit_length() - precision, 1))
    # The first octave holds the numbers below 2^precision too.
    start = np.concatenate(
        [
            np.arange(1 << precision if octave else 1, 2 << precision, dtype=np.int64) << octave
            for octave in octaves
        ]
    )
    bits = np.concatenate(
        [
            np.full((1 << precision) if octave else (2 << precision) - 1, octave)
            for octave in octaves
        ]
    )
    needed = start <= largest
    return start[needed], bits[needed]


def integer_weights(logs: Floats) -> Integers:
    """Integers along the last axis that sum to `2^BITS` and are at least `exp(logs)`, relative to
    their sum, times `exp(log_scale)`; 0 for -inf.
    """
    logs = logs - np.max(logs, axis=-1, keepdims=True)
    relative = np.exp(logs)
    relative /= relative.sum(axis=-1, keepdims=True)
    weights = np.maximum(np.ceil(relative * math.exp(log_scale(logs))), logs > -np.inf).astype(
        np.int64
    )
    surplus = (1 << BITS) - weights.sum(axis=-1, keepdims=True)
    largest = np.argmax(weights, axis=-1, keepdims=True)
    np.put_along_axis(
        weights, largest, np.take_along_axis(weights, largest, axis=-1) + surplus, axis=-1
    )
    return weights


def log_scale(weights: Integers | Floats) -> float:
    """Logarithm of the total that `integer_weights` shares out before it rounds up: below `2^BITS`
    by more than rounding up adds.
    """
    return math.log((1 << BITS) - 8 * weights.shape[-1])


def leading_bits(words: NDArray[np.uint64]) -> Integers:
    return (words >> np.uint64(64 - BITS)).astype(np.int64)
