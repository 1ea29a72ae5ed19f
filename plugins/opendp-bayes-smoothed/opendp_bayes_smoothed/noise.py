"""The profiles of the noised histogram of a sample (paper, Algorithm 4), from the laws of its
outcome for every database (`docs/smoothed.md`, "Differential privacy").
"""

import math
from functools import lru_cache
from itertools import combinations

import numpy as np

from opendp_bayes.extend import candidates, number_of_candidates
from opendp_bayes_smoothed.draws import DRAWS, Floats, log_sampled

#: Entries of the matrices, and products of two numbers, of laws that are computed.
_LARGEST_MATRIX, _LARGEST_PRODUCT = 1 << 23, 1 << 30
#: Relative error of the law of a sample.
_OF_A_LAW = 2.0**-35
#: Beyond, `e^ε` times a float is no float; δ falls with ε, so a smaller ε gives a bound.
_LARGEST_EPSILON = 700.0
#: More than all probabilities together that were too small for floats.
_UNDERFLOW = 2.0**-900


def log_noised_profiles(
    size: int, samples: int, k: int, scale: float, epsilon: float
) -> Floats | None:
    """`ln δ_ε(x)` for each of `candidates(size, k)`, rounded up; None where the laws are too many.

    Every probability that counts for an event is enlarged by its error, and every one that counts
    against it reduced, so outcomes in doubt count.
    """
    laws = _noised_laws(size, samples, k, scale)
    if laws is None:
        return None
    matrix, error = laws
    histograms = candidates(size, k)
    rank = {tuple(row): place for place, row in enumerate(histograms.tolist())}
    worst = np.zeros(len(histograms))
    for i, j in combinations(range(k), 2):
        here = np.flatnonzero(histograms[:, i])
        moved = histograms[here] + np.eye(k, dtype=np.int64)[j] - np.eye(k, dtype=np.int64)[i]
        there = np.array([rank[tuple(row)] for row in moved.tolist()])
        for x, y in zip(here, there, strict=True):
            pair = (matrix[x], matrix[y])
            delta = max(hockey_stick(*p, epsilon, error) for p in (pair, pair[::-1]))
            worst[[x, y]] = np.maximum(worst[[x, y]], delta)
    return np.log(np.clip(worst, _UNDERFLOW, 1.0)) + 2.0**-50


def hockey_stick(p: Floats, q: Floats, epsilon: float, error: float) -> float:
    """`max_S P(S) - e^ε Q(S)`, rounded up, for probabilities with that relative error. Never
    exactly 0: a probability may have been too small for a float.
    """
    factor = math.exp(min(epsilon, _LARGEST_EPSILON)) * (1 - 2.0**-50)
    gains = np.maximum(p * (1 + error + 2.0**-50) - q * (factor * (1 - error)), 0.0)
    return float(gains.sum()) * (1 + 2.0**-50 * (p.size + 2)) + _UNDERFLOW


@lru_cache(maxsize=2)
def _noised_laws(size: int, samples: int, k: int, scale: float) -> tuple[Floats, float] | None:
    """A row of probabilities for each database, and their relative error."""
    if samples > 1 << 12 or max(k, size) > 1 << 20:
        return None
    rows, histograms = number_of_candidates(size, k), number_of_candidates(samples, k)
    outcomes = (samples + 1) ** k
    if (
        max(rows * histograms, histograms * outcomes, rows * outcomes) > _LARGEST_MATRIX
        or rows * histograms * outcomes > _LARGEST_PRODUCT
    ):
        return None
    drawn, draw = candidates(samples, k), DRAWS["without"]
    sampled = np.exp([log_sampled(draw, x, drawn) for x in candidates(size, k)])
    # Exponents that are too small for floats are 0, with no relative error of their own.
    error = k * 2.0**-49 * (min(samples / scale, 746) + 8) + 2.0**-50 * histograms
    return sampled @ noise_kernel(samples, k, scale), _OF_A_LAW + error


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
