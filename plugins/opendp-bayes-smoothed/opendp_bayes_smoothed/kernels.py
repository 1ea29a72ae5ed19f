"""Kernels from a sample's histogram to a release: noise on every count, or the average of a value.

Each is the laws of the histogram of a sample, times a kernel: a row of probabilities for each
histogram of the sample.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from opendp_bayes.extend import candidates, number_of_candidates
from opendp_bayes_smoothed.draws import Floats, Replacement
from opendp_bayes_smoothed.laws import Laws, histogram_laws, one_hot, outcomes_of

#: Entries of the matrices, and products of two numbers, of a release whose laws are computed.
_LARGEST_MATRIX, _LARGEST_PRODUCT = 1 << 23, 1 << 30


def feasible(size: int, samples: int, k: int, outcomes: int) -> bool:
    """True if the laws of all databases are few enough to be computed within about a second."""
    if max(k, size) > 1 << 20:
        return False
    databases, histograms = number_of_candidates(size, k), number_of_candidates(samples, k)
    return (
        max(databases * histograms, histograms * outcomes, databases * outcomes) <= _LARGEST_MATRIX
        and databases * histograms * outcomes <= _LARGEST_PRODUCT
    )


@lru_cache(maxsize=2)
def noised_laws(size: int, samples: int, k: int, scale: float) -> Laws | None:
    """The laws of the noised histogram of a sample (Algorithm 4) for all databases; None where they
    are too many.
    """
    if samples > 1 << 12 or not feasible(size, samples, k, (samples + 1) ** k):
        return None
    kernel = noise_kernel(samples, k, scale)
    # Exponents that are too small for floats are 0, with no relative error of their own.
    error = k * 2.0**-49 * (min(samples / scale, 746) + 8)
    return histogram_laws(size, samples, k, "without").then(kernel, error)


def noise_kernel(samples: int, k: int, scale: float) -> Floats:
    """`P(y | h) = q^|y - h| (1 - q) / (1 + q - q^(h + 1))`, `q = exp(-1 / scale)`, for each count;
    shape `(histograms, (samples + 1)^k)`.

    All counts of at least `samples` are one outcome. From there on the probability falls by the
    same factor whatever the true count, so which of them it is tells nothing.
    """
    rate = 1 / scale
    true, seen = np.arange(samples + 1)[:, None], np.arange(samples + 1)
    weights = np.exp(-rate * np.abs(seen - true))
    weights[:, :-1] *= -math.expm1(-rate)
    each = weights / (1 + math.exp(-rate) - np.exp(-rate * (true + 1)))
    histograms = candidates(samples, k)
    kernel = np.ones((len(histograms), 1))
    for column in histograms.T:
        kernel = (kernel[:, :, None] * each[column][:, None, :]).reshape(len(histograms), -1)
    return kernel


@lru_cache(maxsize=2)
def average_laws(
    size: int, samples: int, values: tuple[float, ...], replacement: Replacement
) -> Laws | None:
    """The laws of the average of a sample for all databases, if a record of category i counts as
    `values[i]`; None where they are too many.
    """
    k = len(values)
    if not feasible(size, samples, k, 1):
        return None
    outcomes = outcomes_of(lambda histogram: exact_sum(values, histogram), samples, k)
    if not feasible(size, samples, k, int(outcomes.max()) + 1):
        return None
    return histogram_laws(size, samples, k, replacement).then(one_hot(outcomes), 0.0)


def exact_sum(values: Sequence[float], histogram: Sequence[int]) -> Fraction:
    """The sum of the values of records, without rounding."""
    return sum((Fraction(v) * h for v, h in zip(values, histogram, strict=True)), Fraction(0))
