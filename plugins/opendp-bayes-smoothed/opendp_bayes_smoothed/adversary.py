"""The adversary's adjusted utility (paper, Justification 3, Lemmas 1, 2 and 10;
`docs/research/smoothed.md`, "The adversary").

The adversary knows all records but one, holds every value of that one for equally likely, sees the
output and guesses the likeliest value. His adjusted utility with threshold t counts a guess by how
far his confidence in it exceeds t, relative to `1 - t`, and takes the worst true value.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import as_counts, as_size
from opendp_bayes_smoothed.arguments import as_epsilon, exp_up, samples_of
from opendp_bayes_smoothed.distributions import vertices
from opendp_bayes_smoothed.draws import Draw, Floats, Integers, Replacement, draw_of
from opendp_bayes_smoothed.expectation import databases, log_largest_expectation
from opendp_bayes_smoothed.tails import log_tail


def threshold_of(epsilon: float) -> float:
    """Return the threshold `t = e^ε / (e^ε + 1)` that belongs to ε: the confidence in one of two
    values whose likelihood ratio is `e^ε`.

    Parameters
    ----------
    epsilon : at least 0.

    Raises `ValueError`/`TypeError` for another ε.
    """
    return 1 / (1 + math.exp(-as_epsilon(epsilon)))


def adjusted_utility(laws: ArrayLike, threshold: float) -> float:
    """Return `u(t, x_-i)` of any mechanism, by its definition (paper, Eq. 3).

    Parameters
    ----------
    laws : probabilities, shape `(m, outcomes)`: row X is the law of the output if the missing
        record is X.
    threshold : t, between 0 and 1.

    Raises `ValueError` for rows that are no laws, or another threshold.

    The output is the record, three times in four:

    >>> adjusted_utility([[0.75, 0.25], [0.25, 0.75]], 0.5)
    0.5
    """
    p = as_laws(laws)
    if not 0 < threshold < 1:
        raise ValueError(f"threshold={threshold!r}: must be between 0 and 1.")
    total = p.sum(axis=0)
    confidence = np.divide(p.max(axis=0), total, out=np.zeros_like(total), where=total > 0)
    return float(np.max(p @ np.maximum(confidence - threshold, 0.0)) / (1 - threshold))


def divergence(p: Sequence[float] | Floats, q: Sequence[float] | Floats, epsilon: float) -> float:
    """Return `d_ε(p, q) = max_S (P(S) - e^ε Q(S))`.

    Parameters
    ----------
    p, q : two laws over the same outcomes, shape `(outcomes,)` each.
    epsilon : at least 0.

    Raises `ValueError`/`TypeError` for rows that are no laws, or another ε.
    """
    laws = as_laws(np.array([p, q], dtype=np.float64))
    return float(np.sum(np.maximum(laws[0] - math.exp(as_epsilon(epsilon)) * laws[1], 0.0)))


def as_laws(laws: ArrayLike) -> Floats:
    """Return laws as a float array of shape `(m, outcomes)` with rows that sum to 1, or raise
    `ValueError`.
    """
    array = np.asarray(laws, dtype=np.float64)
    if (
        array.ndim != 2
        or array.shape[0] < 2
        or not (np.all(array >= 0) and np.all(np.abs(array.sum(axis=1) - 1) <= 1e-9))
    ):
        raise ValueError(
            f"laws: have shape {array.shape}; must be at least 2 rows of probabilities over the"
            " same outcomes, each with the sum 1."
        )
    return array


def database_utility(
    counts: ArrayLike,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """Return the largest adjusted utility against the sampling-histogram mechanism on two
    categories, over the neighbours of x; `t = e^ε / (e^ε + 1)`.

    Parameters
    ----------
    counts : records of each of the two categories, shape `(2,)`, at most 10^9 in all.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : at least 0.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    With `w = (1 - e^ε r)_+`, r the likelihood ratio, the utility for the true database x and its
    neighbour x' is `E_x[w / (1 + r)] + E_x'[w' r' / (1 + r')]`: two tails like those of the
    profile. Returns a certified upper bound. Raises `ValueError`/`TypeError` for arguments that are
    not valid.
    """
    return exp_up(log_database_utility(counts, rate, epsilon, replacement=replacement))


def log_database_utility(
    counts: ArrayLike,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """Return the natural logarithm of the largest adjusted utility against the sampling-histogram
    mechanism on two categories, over the neighbours of x.

    Parameters
    ----------
    counts : records of each of the two categories, shape `(2,)`, at most 10^9 in all.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : at least 0.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    Raises `ValueError`/`TypeError` for arguments that are not valid.
    """
    array = as_counts(counts, 2)
    size = int(array.sum())
    samples, draw = samples_of(rate, size), draw_of(replacement)
    present = array[array > 0]
    return float(np.max(_log_utility(draw, size, samples, present, as_epsilon(epsilon))))


def smoothed_utility(
    distributions: ArrayLike,
    size: int,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """Return the smoothed utility of the adversary against the sampling-histogram mechanism on two
    categories (paper, Justification 3): the largest expectation of `database_utility`.

    Parameters
    ----------
    distributions : the set Π, shape `(l, 2)`: rows of probabilities of the two categories. Only the
        vertices of their convex hull matter, and are used.
    size : the number of records n, at least 1.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : at least 0.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    Returns an upper bound, at most twice the smoothed δ. Raises `ValueError`/`TypeError` for
    arguments that are not valid, and for more than two categories.

    >>> round(smoothed_utility([[0.5, 0.5], [0.9, 0.1]], size=50, rate=0.8, epsilon=3.0), 6)
    0.347648
    """
    corners = vertices(distributions)
    size = as_size(size)
    if corners.shape[1] != 2:
        raise ValueError(
            f"distributions: have {corners.shape[1]} categories; the utility is computed for 2."
            " For another mechanism average `adjusted_utility` with `smoothed_value`."
        )
    samples = samples_of(rate, size)
    draw = draw_of(replacement)
    histograms = databases(size, 2)
    pairs = np.full(size + 2, -np.inf)  # of a and a - 1 records in the first category
    for part in np.array_split(np.arange(1, size + 1), size // 1024 + 1):
        pairs[part] = _log_utility(draw, size, samples, part, as_epsilon(epsilon))
    logs = np.maximum(pairs[:-1], pairs[1:])[histograms[:, 0]]
    return exp_up(log_largest_expectation(np.minimum(logs, 0.0), histograms, corners))


def _log_utility(draw: Draw, size: int, samples: int, a: Integers, epsilon: float) -> Floats:
    """For the pairs of a database with `a >= 1` records in one category and the neighbour with `a -
    1`, shape of `a`; the worse of the two as the truth.
    """
    fewer = np.stack([a, size - a + 1])
    arguments = (fewer.ravel(), size - fewer.ravel(), np.full(fewer.size, samples), epsilon)
    own = log_tail(draw, *arguments, lambda gain, ratio: gain / (1 + ratio)).reshape(fewer.shape)
    other = log_tail(draw, *arguments, lambda gain, ratio: gain * ratio / (1 + ratio))
    other = other.reshape(fewer.shape)
    return np.maximum(np.logaddexp(own[0], other[1]), np.logaddexp(own[1], other[0])) + 2.0**-50


def likelihood_ratio_test(
    p: Sequence[float] | Floats, q: Sequence[float] | Floats, epsilon: float
) -> tuple[float, float]:
    """Return the errors `(E_I, E_II)` of the test that rejects the law p where q is more than `e^ε`
    times as likely (paper, Justification 1).

    Parameters
    ----------
    p, q : two laws over the same outcomes, shape `(outcomes,)` each.
    epsilon : at least 0.

    It has the smallest `e^ε E_I + E_II` of all tests, which is `1 - divergence(q, p, ε)`. Raises
    `ValueError`/`TypeError` for rows that are no laws, or another ε.

    >>> likelihood_ratio_test([0.75, 0.25], [0.25, 0.75], 0.5)
    (0.25, 0.25)
    """
    laws = as_laws(np.array([p, q], dtype=np.float64))
    rejected = laws[1] > math.exp(as_epsilon(epsilon)) * laws[0]
    return float(laws[0][rejected].sum()), float(laws[1][~rejected].sum())


def insensitivity(
    p: Sequence[float] | Floats, q: Sequence[float] | Floats, epsilon: float
) -> float:
    """Return the probability, under the law p, of an outcome whose probabilities under p and q have
    a ratio from `e^-ε / 2` to `2 e^ε` (paper, Justification 2).

    Parameters
    ----------
    p, q : two laws over the same outcomes, shape `(outcomes,)` each.
    epsilon : at least 0.

    At least `1 - (2 + e^-ε) δ` if p and q are `(ε, δ)`-indistinguishable
    (`docs/research/smoothed.md`, "The adversary"); the paper's `1 - 2 δ` fails. Raises
    `ValueError`/`TypeError` for rows that are no laws, or another ε.

    >>> insensitivity([0.2, 0.0999, 0.7001], [0.0999, 0.2, 0.7001], 0.0)
    0.7001
    """
    laws = as_laws(np.array([p, q], dtype=np.float64))
    factor = 2 * math.exp(as_epsilon(epsilon))
    inside = (laws[0] <= factor * laws[1]) & (laws[1] <= factor * laws[0])
    return float(laws[0][inside].sum())
