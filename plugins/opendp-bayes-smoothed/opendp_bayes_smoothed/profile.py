"""The database-dependent privacy profile `δ_ε(x)` of the sampling-histogram mechanism (paper,
Definition 2; `docs/smoothed.md`, "The profile").

`x'` is `x` with one record moved from category i to category j. The ratio of their probabilities
depends on the two categories only, so

    d(x, x') = sum_s P(s) sum_k P(k | s) (1 - e^ε r(k, s))_+ ,

s drawn records from the two categories, k of them from i. The ratio r falls as k grows, so each
inner sum is an upper tail of positive terms.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from opendp_bayes.extend import as_choice, as_counts
from opendp_bayes_smoothed.draws import (
    DRAWS,
    LARGEST_SIZE,
    Draw,
    Floats,
    Integers,
    Replacement,
    log_pmf_error,
)

#: Relative part of a sum that may be left out; what is left out is bounded and added.
_NEGLIGIBLE = 2.0**-40
#: Elements of the largest array of a tail sum.
_BLOCK = 1 << 18

#: A factor of the terms of a tail: from `(1 - e^ε r, r)` to what is summed.
Weight = Callable[[Floats, Floats], Floats]


def database_profile(
    counts: ArrayLike,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """`δ_ε(x)` of the sampling-histogram mechanism: the smallest δ for the database x and all its
    neighbours, in both directions.

    Parameters
    ----------
    counts : records of each category, shape `(m,)`, at most 10^9 in all.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, a float being taken
        for the decimal that it prints as.
    epsilon : at least 0.
    replacement : `"without"` (Algorithm 2) or `"with"` (Appendix F).

    Returns a certified upper bound, within about 1e-9 of the true value. Where that is below the
    range of floats, use `log_database_profile`.

    >>> database_profile([16_144_093, 9_139_661], 0.998, 0.04)
    1.64...e-08
    """
    return exp_up(log_database_profile(counts, rate, epsilon, replacement=replacement))


def log_database_profile(
    counts: ArrayLike,
    rate: float | Fraction,
    epsilon: float,
    *,
    replacement: Replacement = "without",
) -> float:
    """The natural logarithm of `database_profile`, minus infinity where the profile is 0."""
    array = as_counts(counts)
    size = int(array.sum())
    samples = samples_of(rate, size)
    draw = DRAWS[as_choice(replacement, "replacement", ("without", "with"))]
    pairs = sorted(
        {
            pair
            for x, y in permutations(array.tolist(), 2)
            for pair in ((x, y), (y + 1, x - 1))
            if pair[0] >= 1 and pair[1] >= 0
        }
    )
    if not pairs:
        return -math.inf
    epsilon = as_epsilon(epsilon)
    if array.size == 2:
        a, b = np.array(pairs).T
        return float(np.max(log_tail(draw, a, b, np.full_like(a, samples), epsilon)))
    worst = -math.inf
    for a, b in pairs:  # ascending: the rarest categories, which tell most, first
        worst = max(worst, _log_mixture(draw, size, samples, a, b, epsilon, worst))
    return worst


def samples_of(rate: float | Fraction, size: int) -> int:
    """`T = ceil(rate n)`, the paper's number of samples, from the decimal value of the rate;
    `ValueError` unless `0 < rate <= 1`.
    """
    if isinstance(rate, bool) or not isinstance(rate, (float, int, Fraction, np.floating)):
        raise TypeError(f"rate={rate!r}: must be a number, not {type(rate).__name__}.")
    if not 0 < rate <= 1:
        raise ValueError(
            f"rate={rate!r}: must be greater than 0 and at most 1, the share of the records that is"
            " drawn."
        )
    if not 1 <= size <= LARGEST_SIZE:
        raise ValueError(f"counts: hold {size} records; must be from 1 to {LARGEST_SIZE:.0e}.")
    exact = rate if isinstance(rate, Fraction) else Fraction(repr(float(rate)))
    return math.ceil(exact * size)


def as_epsilon(value: float, name: str = "epsilon") -> float:
    """Return `value` as a float of at least 0, or raise `ValueError`/`TypeError` naming it;
    infinity is allowed.
    """
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating, np.integer)):
        raise TypeError(f"{name}={value!r}: must be a number, not {type(value).__name__}.")
    if not value >= 0:
        raise ValueError(f"{name}={value!r}: must be at least 0.")
    return float(value)


def exp_up(log_value: float) -> float:
    """`e^log_value`, rounded up, at most 1: all that a probability can be."""
    return (
        min(1.0, math.nextafter(math.exp(log_value) * (1 + 2.0**-50), math.inf))
        if log_value > -math.inf
        else 0.0
    )


def _log_mixture(
    draw: Draw, size: int, samples: int, a: int, b: int, epsilon: float, floor: float
) -> float:
    """`ln d(x, x')`, rounded up, for x with a and b records in two of its categories and x' with
    one less and one more; minus infinity for no `a`.

    The sum over the number s of records that are drawn from the two categories, in a window of s
    that is widened until the rest is negligible, or until the result cannot exceed `floor`.
    """
    both, others = np.array(a + b), np.array(size - a - b)
    low, high = (int(end) for end in draw.support(both, others, np.array(samples)))
    if np.isneginf(log_tail(draw, np.array([a]), np.array([b]), np.array([high]), epsilon)[0]):
        return -math.inf  # the more records are drawn from the two, the more can be told
    centre, spread = samples * ((a + b) / size), draw.spread(a + b, size - a - b, samples) + 1
    width = 12.0
    while True:
        first, last = (
            max(low, math.floor(centre - width * spread)),
            min(high, math.ceil(centre + width * spread)),
        )
        s = np.arange(first, last + 1)
        log_p = draw.log_pmf(s, both, others, np.array(samples))
        log_p = log_p + log_pmf_error(log_p)
        ceiling = float(
            logsumexp(log_p + _log_tail_ceiling(draw, a + 0 * s, b + 0 * s, s, epsilon))
        )
        if ceiling > floor:
            chunks = [
                log_tail(draw, np.full_like(part, a), np.full_like(part, b), part, epsilon)
                for part in np.array_split(s, len(s) // 4096 + 1)
            ]
            total = float(logsumexp(log_p + np.concatenate(chunks))) + 2.0**-40
        else:
            total = ceiling  # far below another pair: no need to know how far
        # Beyond an end the probabilities fall at least as fast as at it; every tail is at most 1.
        left_out = -math.inf
        for end, outer, edge in ((last, high, log_p[-1]), (first, low, log_p[0])):
            if end != outer:
                inner = end - 1 if end == last else end
                ratio = float(draw.step(np.array(inner), both, others, np.array(samples))) ** (
                    1 if end == last else -1
                )
                left_out = (
                    math.inf
                    if ratio >= 1
                    else float(np.logaddexp(left_out, edge - math.log1p(-ratio)))
                )
        bound = float(np.logaddexp(total, left_out))
        if bound <= floor or left_out <= total + math.log(_NEGLIGIBLE):
            return bound
        width *= 2


def log_tail(
    draw: Draw, a: Integers, b: Integers, s: Integers, epsilon: float, weight: Weight | None = None
) -> Floats:
    """`ln sum_k P(k) (1 - e^ε r(k))_+` for each row of `a`, `b`, `s`: certified upper bounds, shape
    of `a`.

    `a >= 1` records of the category that loses one, `b` of the one that gains it, `s` drawn from
    the two.
    """
    low, high = draw.support(a, b, s)
    start = _first_positive(draw, a, b, s, low, high, epsilon)
    result = np.full(a.shape, -np.inf)
    active = start <= high
    if np.any(active):
        result[active] = _sum_upwards(
            draw, start[active], high[active], a[active], b[active], s[active], epsilon, weight
        )
    return result


def _log_tail_ceiling(draw: Draw, a: Integers, b: Integers, s: Integers, epsilon: float) -> Floats:
    """An upper bound on `log_tail` from its first probability alone: a geometric series with every
    gain 1.
    """
    low, high = draw.support(a, b, s)
    start = _first_positive(draw, a, b, s, low, high, epsilon)
    at = np.minimum(start, high)
    log_p = draw.log_pmf(at, a, b, s)
    with np.errstate(divide="ignore"):
        ratio = np.where(at < high, draw.step(at, a, b, s), 0.0)
    series = np.where(ratio < 1, -np.log1p(-np.minimum(ratio, 1 - 2.0**-53)), np.inf)
    return np.where(
        start > high, -np.inf, np.minimum(log_p + log_pmf_error(log_p) + series + 2.0**-40, 0.0)
    )


def _excess(
    draw: Draw,
    k: Integers,
    a: Integers,
    b: Integers,
    s: Integers,
    factor: float,
    relative_error: Floats,
) -> tuple[Floats, Floats, Floats]:
    """`1 - e^ε r(k)`, a bound on its error where it is positive, and r itself."""
    ratio = draw.ratio(k, a, b, s)
    with np.errstate(invalid="ignore"):
        scaled = np.where(
            ratio > 0, factor * ratio, 0.0
        )  # an outcome that the neighbour cannot have counts in full, at an infinite ε too
    return 1 - scaled, np.minimum(scaled, 1.0) * relative_error + 2.0**-53, ratio


def _factor(epsilon: float) -> float:
    return math.exp(epsilon) if epsilon < 709 else math.inf


def _first_positive(
    draw: Draw, a: Integers, b: Integers, s: Integers, low: Integers, high: Integers, epsilon: float
) -> Integers:
    """The smallest k with `e^ε r(k) < 1`, or with a doubt about it, by bisection; `high + 1` if
    there is none. r decreases.
    """
    below, above = low - 1, high + 1
    factor, relative_error = _factor(epsilon), draw.ratio_error(a, b, s) + 2.0**-51
    while np.any(above - below > 1):
        middle = np.clip((below + above) // 2, low, high)
        excess, error, _ = _excess(draw, middle, a, b, s, factor, relative_error)
        positive = excess > -error
        open_ = above - below > 1
        above, below = (
            np.where(open_ & positive, middle, above),
            np.where(open_ & ~positive, middle, below),
        )
    return above


def _sum_upwards(
    draw: Draw,
    start: Integers,
    high: Integers,
    a: Integers,
    b: Integers,
    s: Integers,
    epsilon: float,
    weight: Weight | None,
) -> Floats:
    """The sum from `start`, relative to the probability there, by the recurrence of the
    probabilities, in blocks of columns.
    """
    log_first = draw.log_pmf(start, a, b, s)
    total, relative, k, steps = np.zeros(a.shape), np.ones(a.shape), start.copy(), 0
    longest = int(np.max(high - start)) + 1
    columns = min(max(16, min(4096, _BLOCK // a.size)), longest)
    rows = (a[:, None], b[:, None], s[:, None])
    factor, relative_error = _factor(epsilon), (draw.ratio_error(a, b, s) + 2.0**-51)[:, None]
    while True:
        block = np.minimum(k[:, None] + np.arange(columns), high[:, None])
        possible = k[:, None] + np.arange(columns) <= high[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(block < high[:, None], draw.step(block, *rows), 0.0)
        growth = np.cumprod(ratio, axis=1)
        terms = relative[:, None] * np.concatenate([np.ones((a.size, 1)), growth[:, :-1]], axis=1)
        excess, error, likelihood = _excess(draw, block, *rows, factor, relative_error)
        gain = np.clip(excess + error, 0.0, 1.0)
        if weight is not None:
            gain = np.clip(weight(gain, likelihood) + error, 0.0, 1.0)
        total = total + np.sum(np.where(possible, terms * gain, 0.0), axis=1)
        relative, k, steps = relative * growth[:, -1], k + columns, steps + columns
        last = ratio[:, -1]
        # Successive ratios fall, so what follows is below a geometric series.
        with np.errstate(divide="ignore", invalid="ignore"):
            remainder = np.where(
                relative > 0, np.where(last < 1, relative / (1 - last), np.inf), 0.0
            )
        if np.all(remainder <= _NEGLIGIBLE * total):
            with np.errstate(divide="ignore"):
                logs = np.log(total + remainder)
            # Every probability carries up to 8 roundings for each step of the recurrence; the sum
            # one for each term at most.
            return (
                log_first + logs + log_pmf_error(log_first) + 2.0**-49 * (min(steps, longest) + 8)
            )


def divergence_table(draw: Draw, size: int, samples: int, k: int, epsilon: float) -> Floats:
    """`ln d(x, x')` for every `(a, b)` that can occur with k categories, shape `(size + 1, size +
    1)`; minus infinity elsewhere.
    """
    table = np.full((size + 1, size + 1), -np.inf)
    if k == 2:
        a = np.arange(1, size + 1)
        for part in np.array_split(a, size // 1024 + 1):
            table[part, size - part] = log_tail(
                draw, part, size - part, np.full_like(part, samples), epsilon
            )
        return table
    for both in range(1, size + 1):
        low, high = (
            int(end)
            for end in draw.support(np.array(both), np.array(size - both), np.array(samples))
        )
        s, a = np.arange(low, high + 1), np.arange(1, both + 1)
        log_p = draw.log_pmf(s, np.array(both), np.array(size - both), np.array(samples))
        grid_a, grid_s = (grid.ravel() for grid in np.meshgrid(a, s, indexing="ij"))
        tails = log_tail(draw, grid_a, both - grid_a, grid_s, epsilon).reshape(a.size, s.size)
        table[a, both - a] = logsumexp(tails + log_p + log_pmf_error(log_p), axis=1) + 2.0**-40
    return table


def log_profiles(draw: Draw, samples: int, histograms: Integers, epsilon: float) -> Floats:
    """`ln δ_ε(x)` for every row x of `histograms`, shape `(c, m)`, all of the same number of
    records.
    """
    size, k = int(histograms[0].sum()), histograms.shape[1]
    table = divergence_table(draw, size, samples, k, epsilon)
    result = np.full(len(histograms), -np.inf)
    for i, j in permutations(range(k), 2):
        x, y = histograms[:, i], histograms[:, j]
        here = np.where(
            x >= 1,
            np.maximum(table[x, y], table[np.minimum(y + 1, size), np.maximum(x - 1, 0)]),
            -np.inf,
        )
        result = np.maximum(result, here)
    return result
