"""Smoothed differential privacy of the sampling-histogram mechanism, exactly (paper, Definition 3,
Algorithm 1, Proposition 5).

    δ_SDP(ε) = sup over π_1, ..., π_n in Π of E[δ_ε(x)],  record i of x drawn from π_i.
"""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

from numpy.typing import ArrayLike

from opendp_bayes.extend import as_size, round_up
from opendp_bayes_smoothed.arguments import as_epsilon, exp_up, samples_of
from opendp_bayes_smoothed.distributions import vertices
from opendp_bayes_smoothed.draws import Replacement, draw_of
from opendp_bayes_smoothed.expectation import databases, log_largest_expectation
from opendp_bayes_smoothed.profile import log_profiles


def smoothed_delta(
    distributions: ArrayLike,
    size: int,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
    log: bool = False,
) -> float:
    """Return the smoothed δ of the sampling-histogram mechanism at `epsilon`.

    Parameters
    ----------
    distributions : array_like of float
        The set Π, shape `(l, m)`: rows of probabilities of the m categories.
    size : int
        The number of records n, at least 1.
    rate : float or Fraction
        Share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : float
        At least 0.
    replacement : {"without", "with"}
        How records are drawn: Algorithm 2, or Appendix F.
    log : bool
        Return the natural logarithm, where δ is below the range of floats; minus infinity for 0.

    Returns
    -------
    float
        A certified upper bound, relatively within about `2^-29 + n^2 2^-44` of the exact value.
        Two categories of 10^4 records take a few seconds, of 10^5 some minutes.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid, and for too many records.

    >>> round(smoothed_delta([[0.5, 0.5], [0.9, 0.1]], size=50, rate=0.8, epsilon=3.0), 6)
    0.347648
    """
    corners, size = vertices(distributions), as_size(size)
    samples, draw = samples_of(rate, size), draw_of(replacement)
    histograms = databases(size, corners)
    logs = log_profiles(draw, samples, histograms, as_epsilon(epsilon))
    log_delta = log_largest_expectation(logs, histograms, corners)
    return log_delta if log else exp_up(log_delta)


def smoothed_epsilon(
    distributions: ArrayLike,
    size: int,
    rate: float | Fraction,
    delta: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """Return the smallest ε whose smoothed δ is at most `delta`.

    Parameters
    ----------
    distributions : array_like of float
        The set Π, shape `(l, m)`: rows of probabilities of the m categories.
    size : int
        The number of records n, at least 1.
    rate : float or Fraction
        Share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    delta : float
        Greater than 0 and at most 1.
    replacement : {"without", "with"}
        How records are drawn: Algorithm 2, or Appendix F.

    Returns
    -------
    float
        To a relative 2^-20 and rounded up; infinity if there is none. Outcomes that a neighbour
        cannot have keep the smoothed δ above a positive number at every ε.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid, and for too many records.
    """

    def at(epsilon: float) -> float:
        return smoothed_delta(distributions, size, rate, epsilon, replacement=replacement)

    return smallest_epsilon(at, delta, math.inf)


def smallest_epsilon(delta_at: Callable[[float], float], delta: float, last: float) -> float:
    """The smallest ε with a δ of at most `delta`, to a relative 2^-20 and rounded up, at most
    `last`; infinity if there is none. From `last` on, if that is finite, δ is 0.
    """
    if not 0 < delta <= 1:
        raise ValueError(f"delta={delta!r}: must be greater than 0 and at most 1.")
    if delta_at(0.0) <= delta:
        return 0.0
    if not math.isfinite(last) and delta_at(math.inf) > delta:
        return math.inf
    low, high = 0.0, min(1.0, last)
    while high < last and delta_at(high) > delta:
        low, high = high, min(2 * high, last)
    while high - low > 2.0**-20 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle) <= delta else (middle, high)
    return high


def composed(losses: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return `(ε, δ)` of several mechanisms on the same data under the same Π: the sums
    (Proposition 5).

    Parameters
    ----------
    losses : iterable of (float, float)
        A pair `(ε, δ)` for each mechanism, both at least 0. The mechanisms are chosen before any of
        their outputs is seen.

    Returns
    -------
    tuple of float
        The sums, rounded up; δ is at most 1.

    Raises
    ------
    ValueError, TypeError
        For a negative loss.

    >>> composed([(0.5, 0.25), (1.0, 0.125)])
    (1.5, 0.375)
    """
    pairs = [(as_epsilon(epsilon), as_epsilon(delta, "delta")) for epsilon, delta in losses]
    epsilon, delta = (_sum_up([pair[side] for pair in pairs]) for side in (0, 1))
    return epsilon, min(1.0, delta)


def _sum_up(values: list[float]) -> float:
    return (
        math.inf if math.inf in values else round_up(sum(map(Fraction, values), start=Fraction(0)))
    )
