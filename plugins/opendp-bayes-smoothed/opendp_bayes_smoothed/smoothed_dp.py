"""Smoothed differential privacy of the sampling-histogram mechanism, exactly (paper, Definition 3,
Algorithm 1, Propositions 5 to 7).

    δ_SDP(ε) = sup over π_1, ..., π_n in Π of E[δ_ε(x)],  record i of x drawn from π_i.

Adding a record from π maps a function f of histograms to `(A_π f)(h) = sum_i π(i) f(h + e_i)`, and
the expectation is the product of n such operators, applied to δ_ε, at the empty histogram. The
operators commute, so only the number of records of each vertex of the convex hull of Π matters, and
all these numbers share their partial products (`docs/smoothed.md`, "Algorithm 1").
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import ConvexHull, QhullError

from opendp_bayes.extend import as_choice, as_size, candidates, number_of_candidates, round_up
from opendp_bayes_smoothed.draws import DRAWS, Floats, Integers, Replacement, log_factorial
from opendp_bayes_smoothed.profile import as_epsilon, exp_up, log_profiles, samples_of

#: Histograms whose profiles are tabulated.
LARGEST_TABLE = 2_000_000


def smoothed_delta(
    distributions: ArrayLike,
    size: int,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """The smoothed δ of the sampling-histogram mechanism at `epsilon`.

    Parameters
    ----------
    distributions : the set Π, shape `(l, m)`: rows of probabilities of the m categories. Only the
        vertices of their convex hull matter, and are used.
    size : the number of records n.
    rate, epsilon, replacement : as in `database_profile`.

    Returns a certified upper bound, relatively within about `n^2 2^-44` of the exact value. Raises
    `ValueError` where there are more than `LARGEST_TABLE` histograms. Where the value is below the
    range of floats, use `log_smoothed_delta`.

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
    """The natural logarithm of `smoothed_delta`, minus infinity where it is 0."""
    corners = vertices(distributions)
    size, k = as_size(size), corners.shape[1]
    samples = samples_of(rate, size)
    draw = DRAWS[as_choice(replacement, "replacement", ("without", "with"))]
    if size > LARGEST_TABLE or number_of_candidates(size, k) > LARGEST_TABLE:
        raise ValueError(
            f"size={size}: {k} categories have more than {LARGEST_TABLE} histograms of so many"
            " records; use fewer, or `sampling_bound`."
        )
    histograms = candidates(size, k)
    return log_largest_expectation(
        log_profiles(draw, samples, histograms, as_epsilon(epsilon)), histograms, corners
    )


def smoothed_epsilon(
    distributions: ArrayLike,
    size: int,
    rate: float | Fraction,
    delta: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """The smallest ε, to a relative 2^-20 and rounded up, whose smoothed δ is at most `delta`;
    infinity if there is none.

    Outcomes that a neighbour cannot have keep the smoothed δ above a positive number at every ε.
    """
    if not 0 < delta <= 1:
        raise ValueError(f"delta={delta!r}: must be greater than 0 and at most 1.")

    def enough(epsilon: float) -> bool:
        return log_smoothed_delta(
            distributions, size, rate, epsilon, replacement=replacement
        ) <= math.log(delta)

    if enough(0.0):
        return 0.0
    if not enough(math.inf):
        return math.inf
    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 2.0**-20 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def composed(losses: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """`(ε, δ)` of several mechanisms on the same data under the same Π: the sums, rounded up
    (Proposition 5).

    The mechanisms are chosen before any of their outputs is seen. δ is at most 1.
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


def preprocessed(distributions: ArrayLike, categories: Sequence[int]) -> Floats:
    """`f(Π)` for a function of single records: `categories[i]` is the category that f gives a
    record of category i (Proposition 6).
    """
    rows = as_distributions(distributions)
    if len(categories) != rows.shape[1] or min(categories) < 0:
        raise ValueError(
            f"categories={list(categories)!r}: must give each of the {rows.shape[1]} categories a"
            " new number of at least 0."
        )
    result = np.zeros((len(rows), max(2, max(categories) + 1)))
    for old, new in enumerate(categories):
        result[:, new] += rows[:, old]
    return result


def as_distributions(distributions: ArrayLike) -> Floats:
    """Return Π as a float array of shape `(l, m)` with rows that sum to 1, or raise `ValueError`."""
    rows = np.asarray(distributions, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[0] < 1 or rows.shape[1] < 2:
        raise ValueError(
            f"distributions: have shape {rows.shape}; must be rows of at least 2 probabilities, one"
            " for each category."
        )
    sums = rows.sum(axis=1, keepdims=True)
    if not (np.all(rows >= 0) and np.all(np.abs(sums - 1) <= 1e-9)):
        raise ValueError(
            "distributions: every row must hold probabilities, at least 0 and with the sum 1."
        )
    return rows / sums


def vertices(distributions: ArrayLike) -> Floats:
    """The vertices of the convex hull of Π (Proposition 7), ascending, shape `(l*, m)`.

    Exact for two categories, where they are the two ends, and for points on a line. For more it is
    Qhull's hull; points that it finds on the boundary within rounding are kept, and so are all
    points of a set that is flat: more points than needed cost time and change no result.
    """
    rows = np.unique(as_distributions(distributions), axis=0)
    if len(rows) <= 2:
        return rows
    if rows.shape[1] == 2 or _on_a_line(rows):
        return rows[[0, -1]]  # ascending in the first coordinate that differs
    if len(rows) > rows.shape[1]:
        try:
            hull = ConvexHull(rows[:, :-1], qhull_options="Qc")
        except QhullError:
            return rows
        return rows[
            np.unique(np.concatenate([hull.vertices, hull.coplanar[:, 0]]).astype(np.int64))
        ]
    return rows


def _on_a_line(rows: Floats) -> bool:
    exact = [[Fraction(value) for value in row] for row in rows.tolist()]
    first = exact[0]
    direction = [x - y for x, y in zip(exact[1], first, strict=True)]
    lead = next(i for i, value in enumerate(direction) if value)
    return all(
        (row[i] - first[i]) * direction[lead] == (row[lead] - first[lead]) * direction[i]
        for row in exact
        for i in range(len(first))
    )


def log_largest_expectation(log_values: Floats, histograms: Integers, corners: Floats) -> float:
    """`ln max E[f(x)]` over the numbers of records drawn from each row of `corners`, for `f =
    exp(log_values)`, rounded up.

    `histograms` are all histograms of n records, shape `(c, m)`; `log_values` has shape `(c,)`.
    Takes `O(n^(l + m - 2))` steps.
    """
    size, k = int(histograms[0].sum()), histograms.shape[1]
    table = np.full((size + 1,) * (k - 1), -np.inf)  # indexed by all counts but the last
    table[tuple(histograms[:, :-1].T)] = log_values
    factorials = log_factorial(np.arange(size + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(corners)
        powers = np.where(
            np.arange(size + 1) > 0, np.arange(size + 1) * logs[:, :, None], 0.0
        )  # (l, k, size + 1): ln p^h
    best = _descend(table, size, logs, powers[-1] - factorials, factorials)
    if best == -math.inf:
        return best
    # A chain of n steps of k additions, on values of at most 2 `largest`; a multinomial
    # probability; a sum of at most 2^21 terms.
    largest = max(
        float(np.max(np.abs(values), initial=1.0, where=np.isfinite(values)))
        for values in (log_values, powers, factorials)
    )
    return best + 2.0**-50 * k * (size * (2 * largest + 8) + 8 * largest) + 2.0**-30


def _descend(table: Floats, size: int, logs: Floats, last: Floats, factorials: Floats) -> float:
    """The best split of `size` records over the distributions `logs`, whose last one has the
    single-count terms `last`.
    """
    if len(logs) == 1:
        return _log_sum(table + _log_multinomial(size, last)) + float(factorials[size])
    best = -math.inf
    for left in range(size, -1, -1):
        best = max(best, _descend(table, left, logs[1:], last, factorials))
        if left:
            table = _add_record(table, logs[0])
    return best


def _log_sum(values: Floats) -> float:
    """`ln sum e^values`; scipy's does more, and takes as long as all the rest."""
    largest = float(values.max())
    return (
        largest
        if largest == -math.inf
        else largest + math.log(float(np.exp(values - largest).sum()))
    )


def _add_record(table: Floats, log_p: Floats) -> Floats:
    """`ln (A f)` from `ln f`: one record fewer, drawn from the distribution. Beyond the simplex the
    table is minus infinity.
    """
    axes = table.ndim
    inner = (slice(None, -1),) * axes
    result = table[inner] + log_p[-1]
    for axis in range(axes):
        shifted = tuple(slice(1, None) if i == axis else slice(None, -1) for i in range(axes))
        result = np.logaddexp(result, table[shifted] + log_p[axis])
    return result


def _log_multinomial(size: int, terms: Floats) -> Floats:
    """`sum_i (h_i ln p_i - ln h_i!)` on the grid of all counts but the last; minus infinity beyond
    it; `terms` has shape `(k, >= size + 1)`.
    """
    axes = len(terms) - 1
    total: Floats = np.zeros((1,) * axes)
    used = np.zeros((1,) * axes, dtype=np.int64)
    for axis in range(axes):
        shape = [1] * axes
        shape[axis] = size + 1
        total = total + terms[axis, : size + 1].reshape(shape)
        used = used + np.arange(size + 1).reshape(shape)
    return np.where(used <= size, total + terms[-1][np.clip(size - used, 0, size)], -np.inf)
