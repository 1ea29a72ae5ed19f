"""Smoothed differential privacy of the sampling-histogram mechanism, exactly (paper, Definition 3,
Algorithm 1, Proposition 5).

    δ_SDP(ε) = sup over π_1, ..., π_n in Π of E[δ_ε(x)],  record i of x drawn from π_i.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from numpy.typing import ArrayLike

from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.validation import as_size
from opendp_bayes_smoothed.arguments import as_epsilon, exp_up, samples_of
from opendp_bayes_smoothed.distributions import vertices
from opendp_bayes_smoothed.draws import Replacement, draw_of
from opendp_bayes_smoothed.expectation import databases, log_largest_expectation
from opendp_bayes_smoothed.laws import Law, laws_of
from opendp_bayes_smoothed.tables import log_profiles


def smoothed_delta(
    distributions: ArrayLike,
    size: int,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """Return the smoothed δ of the sampling-histogram mechanism at `epsilon`.

    Parameters
    ----------
    distributions : the set Π, shape `(l, m)`: rows of probabilities of the m categories. Only the
        vertices of their convex hull matter, and are used.
    size : the number of records n, at least 1.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : at least 0.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    Returns a certified upper bound, relatively within about `2^-29 + n^2 2^-44` of the exact value;
    two categories take about n steps, of 10^5 records a few seconds. Where the value is below the
    range of floats, use `log_smoothed_delta`. Raises `ValueError`/`TypeError` for arguments that
    are not valid, and where there are too many histograms.

    >>> round(smoothed_delta([[0.5, 0.5], [0.9, 0.1]], size=50, rate=0.8, epsilon=3.0), 6)
    0.347648
    """
    return exp_up(log_smoothed_delta(distributions, size, rate, epsilon, replacement=replacement))


def log_smoothed_delta(
    distributions: ArrayLike,
    size: int,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """Return the natural logarithm of the smoothed δ of the sampling-histogram mechanism, minus
    infinity where that is 0.

    Parameters
    ----------
    distributions : the set Π, shape `(l, m)`: rows of probabilities of the m categories. Only the
        vertices of their convex hull matter, and are used.
    size : the number of records n, at least 1.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : at least 0.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    Raises `ValueError`/`TypeError` for arguments that are not valid, and where there are too many
    histograms.
    """
    corners = vertices(distributions)
    size, k = as_size(size), corners.shape[1]
    samples = samples_of(rate, size)
    draw = draw_of(replacement)
    histograms = databases(size, k)
    return log_largest_expectation(
        log_profiles(draw, samples, histograms, as_epsilon(epsilon)), histograms, corners
    )


def anonymous_delta(law: Law, distributions: ArrayLike, size: int, epsilon: float) -> float:
    """Return the smoothed δ of any anonymous mechanism, from the law of its outcome: Algorithm 1.

    Parameters
    ----------
    law : from the counts of a database, a tuple, to the probabilities of the outcomes: the same
        outcomes for every database, each probability within a relative 2^-35.
    distributions : the set Π, shape `(l, m)`: rows of probabilities of the m categories. Only the
        vertices of their convex hull matter, and are used.
    size : the number of records n, at least 1.
    epsilon : at least 0.

    Returns an upper bound, never exactly 0. Raises `ValueError`/`TypeError` for arguments that are
    not valid, for a `law` that is none, and where there are too many databases or outcomes.

    >>> def report(counts):
    ...     return [0.75, 0.25] if counts[0] > counts[1] else [0.25, 0.75]
    >>> round(anonymous_delta(report, [[0.5, 0.5], [0.9, 0.1]], 5, 0.5), 6)
    0.211137
    """
    corners = vertices(distributions)
    size, k = as_size(size), corners.shape[1]
    histograms = databases(size, k)
    logs = laws_of(law, size, k).log_profiles(as_epsilon(epsilon))
    return exp_up(log_largest_expectation(logs, histograms, corners))


def smoothed_epsilon(
    distributions: ArrayLike,
    size: int,
    rate: float | Fraction,
    delta: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """Return the smallest ε, to a relative 2^-20 and rounded up, whose smoothed δ is at most
    `delta`; infinity if there is none.

    Parameters
    ----------
    distributions : the set Π, shape `(l, m)`: rows of probabilities of the m categories. Only the
        vertices of their convex hull matter, and are used.
    size : the number of records n, at least 1.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    delta : greater than 0 and at most 1.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    Outcomes that a neighbour cannot have keep the smoothed δ above a positive number at every ε.
    Raises `ValueError`/`TypeError` for arguments that are not valid, and where there are too many
    histograms.
    """
    if not 0 < delta <= 1:
        raise ValueError(f"delta={delta!r}: must be greater than 0 and at most 1.")

    def enough(epsilon: float) -> bool:
        return log_smoothed_delta(
            distributions, size, rate, epsilon, replacement=replacement
        ) <= math.log(delta)

    return smallest_epsilon(enough, math.inf)


def smallest_epsilon(enough: Callable[[float], bool], last: float) -> float:
    """The smallest ε for which `enough` holds, to a relative 2^-20 and rounded up, at most `last`;
    infinity if there is none. `enough` holds from some ε on, from `last` if that is finite.
    """
    if enough(0.0):
        return 0.0
    if not math.isfinite(last) and not enough(math.inf):
        return math.inf
    low, high = 0.0, min(1.0, last)
    while high < last and not enough(high):
        low, high = high, min(2 * high, last)
    while high - low > 2.0**-20 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def composed(losses: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return `(ε, δ)` of several mechanisms on the same data under the same Π: the sums, rounded up
    (Proposition 5).

    Parameters
    ----------
    losses : a pair `(ε, δ)` for each mechanism, both at least 0.

    The mechanisms are chosen before any of their outputs is seen. δ is at most 1. Raises
    `ValueError`/`TypeError` for a negative loss.
    """
    pairs = [(as_epsilon(epsilon), as_epsilon(delta, "delta")) for epsilon, delta in losses]
    epsilons, deltas = ([pair[i] for pair in pairs] for i in (0, 1))
    epsilon = (
        math.inf if math.inf in epsilons else round_up(sum(map(Fraction, epsilons), Fraction(0)))
    )
    return epsilon, (
        1.0
        if max(deltas, default=0.0) >= 1
        else round_up(min(sum(map(Fraction, deltas), Fraction(0)), Fraction(1)))
    )
