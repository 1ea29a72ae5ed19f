"""The sampling-average mechanism on whole numbers (paper, Algorithm 3): its profile and its
smoothed δ.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import exp

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import as_size
from opendp_bayes_smoothed.arguments import as_epsilon, exp_up, samples_of
from opendp_bayes_smoothed.distributions import vertices
from opendp_bayes_smoothed.draws import Floats
from opendp_bayes_smoothed.expectation import databases, log_largest_expectation
from opendp_bayes_smoothed.kernels import average_laws

#: The laws of the sum of t records, a row for each t, and the number of records that they were
#: drawn from.
State = tuple[Floats, int]


def average_profile(
    records: Sequence[int], levels: int, rate: float | Fraction, epsilon: float
) -> float:
    """Return `δ_ε(x)` of the average of `T = ceil(rate n)` records drawn without replacement.

    Parameters
    ----------
    records : the value of every record, whole numbers from 0 to `levels - 1`, shape `(n,)`, at
        least 2.
    levels : number of values that a record may have.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : at least 0.

    It is the maximum over all records that could have changed and all values they could have had
    instead, in both directions. Raises `ValueError`/`TypeError` for arguments that are not valid.
    """
    return float(average_profiles(records, levels, rate, [epsilon])[0])


def average_profiles(
    records: Sequence[int], levels: int, rate: float | Fraction, epsilons: Sequence[float]
) -> Floats:
    """Return `δ_ε(x)` of the average of `T = ceil(rate n)` records drawn without replacement at
    several ε, shape of `epsilons`.

    Parameters
    ----------
    records : the value of every record, whole numbers from 0 to `levels - 1`, shape `(n,)`, at
        least 2.
    levels : number of values that a record may have.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilons : values of ε, each at least 0.

    With B the law of the sum of T of the other records and A that of T - 1, a record of value v
    gives the sum the law `(1 - T/n) B + (T/n) A(· - v)`. Sums of positive terms, exact up to
    rounding; for figures: unlike everything else here they are not rounded up. Raises
    `ValueError`/`TypeError` for arguments that are not valid.
    """
    values = np.asarray(records, dtype=np.int64)
    if values.ndim != 1 or values.size < 2 or values.min() < 0 or values.max() >= levels:
        raise ValueError(f"records: must be at least 2 whole numbers from 0 to {levels - 1}.")
    factors = [exp(as_epsilon(epsilon)) for epsilon in epsilons]
    samples = samples_of(rate, values.size)
    share, width = samples / values.size, samples * (levels - 1) + 1
    empty = np.zeros((samples + 1, width))
    empty[0, 0] = 1
    kinds, counts = np.unique(values, return_counts=True)
    worst = np.zeros(len(factors))
    for value, law in _without_each(
        (empty, 0), list(zip(kinds.tolist(), counts.tolist(), strict=True))
    ):
        laws = np.tile((1 - share) * law[samples], (levels, 1))
        for other in range(levels):
            laws[other, other:] += share * law[samples - 1, : width - other]
        here = laws[value]
        for i, factor in enumerate(factors):
            for gain in (here - factor * laws, laws - factor * here):
                worst[i] = max(worst[i], np.maximum(gain, 0, out=gain).sum(axis=1).max())
    return worst


def smoothed_average_delta(
    distributions: ArrayLike, size: int, rate: float | Fraction, epsilon: float
) -> float:
    """Return the smoothed δ of the sampling average, by Algorithm 1, where there are few enough
    levels to go through all histograms of the data and of the sample.

    Parameters
    ----------
    distributions : the set Π, shape `(l, levels)`: rows of probabilities of the values 0, 1, 2 and
        so on.
    size : the number of records n, at least 1.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.
    epsilon : at least 0.

    Returns an upper bound, never exactly 0. Raises `ValueError`/`TypeError` for arguments that are
    not valid, and where there are too many histograms.
    """
    corners = vertices(distributions)
    size, levels = as_size(size), corners.shape[1]
    laws = average_laws(size, samples_of(rate, size), tuple(map(float, range(levels))), "without")
    if laws is None:
        raise ValueError(
            f"size={size}: {levels} levels have too many histograms of so many records, and of the"
            " sample. Use fewer, or `average_profile` for one database."
        )
    logs = laws.log_profiles(as_epsilon(epsilon))
    return exp_up(log_largest_expectation(logs, databases(size, levels), corners))


def _without_each(state: State, kinds: list[tuple[int, int]]) -> Iterator[tuple[int, Floats]]:
    """For each `(value, count)`, the value, and the laws of the sums of the records of `state` and
    `kinds` without one of that value.

    Halves of the kinds are added in turn, so that a record is added a logarithmic number of times.
    """
    if len(kinds) == 1:
        value, count = kinds[0]
        yield value, _added(state, [(value, count - 1)])[0]
        return
    left, right = kinds[: len(kinds) // 2], kinds[len(kinds) // 2 :]
    yield from _without_each(_added(state, right), left)
    yield from _without_each(_added(state, left), right)


def _added(state: State, kinds: list[tuple[int, int]]) -> State:
    """Add records of the given kinds, one by one: of r records, a subset of t contains the last
    with probability t / r.
    """
    laws, seen = state
    chosen = np.arange(len(laws))[:, None]
    for value, count in kinds:
        for _ in range(count):
            seen += 1
            share = np.minimum(chosen / seen, 1.0)
            laws, before = laws * (1 - share), laws
            laws[1:, value:] += share[1:] * before[:-1, : before.shape[1] - value]
    return laws, seen
