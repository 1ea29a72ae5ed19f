"""The adversary's adjusted utility (paper, Justification 3, Lemmas 1, 2 and 10; `docs/smoothed.md`,
"The adversary").

The adversary knows all records but one, holds every value of that one for equally likely, sees the
output and guesses the likeliest value. His adjusted utility with threshold t counts a guess by how
far his confidence in it exceeds t, relative to `1 - t`, and takes the worst true value.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.extend import as_choice, as_counts
from opendp_bayes_smoothed.draws import DRAWS, Draw, Floats, Replacement
from opendp_bayes_smoothed.profile import as_epsilon, exp_up, log_tail, samples_of


def threshold_of(epsilon: float) -> float:
    """The threshold `t = e^ε / (e^ε + 1)` that belongs to ε: the confidence in one of two values
    whose likelihood ratio is `e^ε`.
    """
    return 1 / (1 + math.exp(-as_epsilon(epsilon)))


def adjusted_utility(laws: ArrayLike, threshold: float) -> float:
    """`u(t, x_-i)` of any mechanism, by its definition (paper, Eq. 3).

    `laws` has shape `(m, outcomes)`: row X is the law of the output if the missing record is X. `0
    < threshold < 1`.

    # The output is the record, three times in four
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
    """`d_ε(p, q) = max_S (P(S) - e^ε Q(S))` of two laws over the same outcomes, shape `(outcomes,)`
    each.
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
    """The largest adjusted utility against the sampling-histogram mechanism on two categories, over
    the neighbours of x; `t = e^ε / (e^ε + 1)`.

    With `w = (1 - e^ε r)_+`, r the likelihood ratio, the utility for the true database x and its
    neighbour x' is `E_x[w / (1 + r)] + E_x'[w' r' / (1 + r')]`: two tails like those of the
    profile. Arguments, size limits and rounding are those of `database_profile`; `counts` has two
    entries, as the papers' elections have.
    """
    return exp_up(log_database_utility(counts, rate, epsilon, replacement=replacement))


def log_database_utility(
    counts: ArrayLike,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """The natural logarithm of `database_utility`."""
    array = as_counts(counts, 2)
    size = int(array.sum())
    samples, draw = (
        samples_of(rate, size),
        DRAWS[as_choice(replacement, "replacement", ("without", "with"))],
    )
    utilities = [
        _log_utility(draw, size, samples, x, as_epsilon(epsilon)) for x in array.tolist() if x
    ]
    return max(utilities, default=-math.inf)


def _log_utility(draw: Draw, size: int, samples: int, a: int, epsilon: float) -> float:
    """For the pair of a database with `a >= 1` records in one category and the neighbour with `a -
    1`; the worse of the two as the truth.
    """
    fewer = np.array([a, size - a + 1])
    arguments = (fewer, size - fewer, np.full_like(fewer, samples), epsilon)
    own = log_tail(draw, *arguments, lambda gain, ratio: gain / (1 + ratio))
    other = log_tail(draw, *arguments, lambda gain, ratio: gain * ratio / (1 + ratio))
    return float(max(np.logaddexp(own[0], other[1]), np.logaddexp(own[1], other[0]))) + 2.0**-50
