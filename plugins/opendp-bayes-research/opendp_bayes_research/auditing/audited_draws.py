"""Test draws of a mechanism's sampler: the losses that they refute, and their fit to a law."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes_research.auditing.results import Counts, Pair
from opendp_bayes_research.auditing.stated_law import Law, aligned, at_outcomes

#: Calls of the sampler for one data set.
_CHUNKS = 50
#: Draws of one call, at least.
_SMALLEST_CHUNK = 1000
#: Events tried for one order of the outcomes.
_CUTS = 128
#: Expected draws in a cell, from which on the chi-square tail is accurate.
_SMALLEST_CELL = 20.0
#: A law that leaves less than this open rules out every outcome that it does not list.
_UNSEEN = 1e-9


#: A sampler: called with counts and prior of k categories and a number, it returns as many
#: independent releases, shape `(draws, k)`.
Sampler = Callable[[ArrayLike, ArrayLike, int], Integers]


def draws_of(
    sample: Sampler, data_sets: Sequence[Counts], prior: tuple[float, ...], draws: int
) -> Iterator[Integers]:
    """Draw `draws` times for each data set, shape `(draws, k)`, in several calls."""
    for counts in data_sets:
        parts, done = [], 0
        while done < draws:
            number = min(max(-(-draws // _CHUNKS), _SMALLEST_CHUNK), draws - done)
            parts.append(np.asarray(sample(counts, prior, number)))
            done += number
        yield np.concatenate(parts)


def _nearness(outcomes: Integers, first: Counts, second: Counts) -> list[Floats]:
    """Two ways in which outcomes, shape `(c, k)`, are nearer to the first data set; shape `(c,)`.

    Along the direction between the two, and by the difference of the sums of absolute differences:
    up to a factor, the log-ratio of noise on the counts where nothing is clamped.
    """
    a, b = np.array(first), np.array(second)
    absolute = np.abs(outcomes - b).sum(axis=1) - np.abs(outcomes - a).sum(axis=1)
    return [(outcomes @ (a - b)).astype(np.float64), absolute.astype(np.float64)]


def refuted_by(
    p: Integers,
    q: Integers,
    laws: tuple[Law | None, Law | None],
    pair: Pair,
    deltas: Sequence[float],
    level: float,
) -> Floats:
    """The largest ε refuted by draws from two neighbours, for each δ, in either order.

    A quarter of the draws orders the outcomes by how well they tell the data sets apart, and a
    quarter chooses an order and where to cut it. The other half, on which nothing depends so far,
    tests the event. Three more orders are tried: the stated log-ratio and the two of `_nearness`.
    """
    outcomes, outcome_of = np.unique(np.concatenate([p, q]), axis=0, return_inverse=True)
    outcome_of = outcome_of.ravel()
    quarter, half = len(p) // 4, len(p) // 2
    parts = [
        tuple(
            np.bincount(here[chunk], minlength=len(outcomes))
            for here in (outcome_of[: len(p)], outcome_of[len(p) :])
        )
        for chunk in (slice(0, quarter), slice(quarter, half), slice(half, None))
    ]
    scores = [np.log((parts[0][0] + 0.5) / (parts[0][1] + 0.5)), *_nearness(outcomes, *pair)]
    if laws[0] is not None and laws[1] is not None:
        with np.errstate(invalid="ignore"):
            ratio = at_outcomes(outcomes, *laws[0]) - at_outcomes(outcomes, *laws[1])
        scores.append(np.nan_to_num(ratio, nan=0.0, posinf=1e300, neginf=-1e300))
    _, choice, test = parts
    orders = ((scores, choice, test), ([-score for score in scores], choice[::-1], test[::-1]))
    return np.array(
        [max(0.0, *(_tested(*order, delta, level) for order in orders)) for delta in deltas]
    )


def refutable_under(
    laws: tuple[Law | None, Law | None], draws: int, deltas: Sequence[float], level: float
) -> Floats:
    """Largest ε that `refuted_by` would refute for the best event, if events happen exactly as
    often as the stated laws say, for each δ; 0 without them.
    """
    best = np.zeros(len(deltas))
    if laws[0] is None or laws[1] is None:
        return best
    p, q = aligned(laws[0], laws[1])
    tested = draws - draws // 2
    for nearer, farther in ((p, q), (q, p)):
        with np.errstate(invalid="ignore"):
            order = np.argsort(-np.nan_to_num(nearer - farther, nan=0.0), kind="stable")
        hits = [
            np.minimum(np.cumsum(np.exp(log_p[order])), 1.0) * tested for log_p in (nearer, farther)
        ]
        bounds = [_bounds(hits, (tested, tested), delta, level)[1].max() for delta in deltas]
        best = np.maximum(best, bounds)
    return best


def _bounds(
    hits: Sequence[Floats | Integers], draws: Sequence[float], delta: float, level: float
) -> tuple[Integers, Floats]:
    """Cuts of an order of outcomes, a limited number and closer together at its beginning; and the
    bound of `log_ratio_bound` for the event before each. `hits` are cumulative, shape `(c,)`.
    """
    seen = hits[0] + hits[1]
    cuts = np.searchsorted(seen, np.geomspace(1, seen[-1], _CUTS))
    cuts = np.unique(np.minimum(cuts, len(seen) - 1))
    return cuts, log_ratio_bound(hits[0][cuts], draws[0], hits[1][cuts], draws[1], delta, level)


def _tested(
    scores: list[Floats],
    choice: Sequence[Integers],
    test: Sequence[Integers],
    delta: float,
    level: float,
) -> float:
    """The bound of `log_ratio_bound` on the tested part, for the event that has the largest one on
    the choosing part.
    """
    best, event = -math.inf, np.zeros(len(scores[0]), dtype=bool)
    for score in scores:
        _, group = np.unique(-score, return_inverse=True)
        hits = [np.cumsum(np.bincount(group, weights=seen)) for seen in choice]
        cuts, bounds = _bounds(hits, [float(cumulated[-1]) for cumulated in hits], delta, level)
        largest = int(np.argmax(bounds))
        if bounds[largest] > best:
            best, event = float(bounds[largest]), group <= cuts[largest]
    numbers = test[0][event].sum(), test[0].sum(), test[1][event].sum(), test[1].sum()
    return float(log_ratio_bound(*numbers, delta, level))


def log_ratio_bound(
    p_hits: ArrayLike,
    p_draws: ArrayLike,
    q_hits: ArrayLike,
    q_draws: ArrayLike,
    delta: float,
    level: float,
) -> Floats:
    """`ln((p - delta) / q)` for a lower bound p on the probability of an event and an upper bound q
    on that of its other side.

    Each of the two Clopper-Pearson bounds is wrong with probability at most `level / 2`. A
    mechanism that is (ε, δ)-private has `p <= exp(ε) q + δ`, so a larger ε than the result is not
    excluded, a smaller one is. `-inf` where `p <= delta`.
    """
    a, n, b, m = (
        np.asarray(value, dtype=np.float64) for value in (p_hits, p_draws, q_hits, q_draws)
    )
    low = np.where(a > 0, stats.beta.ppf(level / 2, np.maximum(a, 1), n - a + 1), 0.0)
    high = np.where(b < m, stats.beta.isf(level / 2, b + 1, np.maximum(m - b, 1)), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.maximum(low - delta, 0.0) / high))


def chi_square_p_value(samples: Integers, law: Law) -> float | None:
    """Chi-square test of draws against a law, with cells pooled until each expects enough; None if
    fewer than two remain.

    Cells are pooled by what is expected alone. What the law leaves to 1 is the probability of all
    outcomes that it does not list.
    """
    outcomes, seen = np.unique(samples, axis=0, return_counts=True)
    support = np.unique(np.concatenate([outcomes, law[0]]), axis=0)
    observed = at_outcomes(support, outcomes, seen, missing=0.0)
    log_p = at_outcomes(support, *law)
    unlisted = np.isneginf(log_p)
    unlisted_mass = max(0.0, 1 - math.fsum(np.exp(law[1])))
    if unlisted_mass < _UNSEEN and observed[unlisted].any():
        return 0.0
    expected = np.append(len(samples) * np.exp(log_p[~unlisted]), len(samples) * unlisted_mass)
    observed = np.append(observed[~unlisted], observed[unlisted].sum())
    pooled: list[tuple[float, float]] = []
    cell = (0.0, 0.0)
    for i in np.argsort(expected, kind="stable"):
        cell = (cell[0] + expected[i], cell[1] + observed[i])
        if cell[0] >= _SMALLEST_CELL:
            pooled.append(cell)
            cell = (0.0, 0.0)
    if len(pooled) < 2:
        return None
    pooled[-1] = (pooled[-1][0] + cell[0], pooled[-1][1] + cell[1])
    statistic = sum((count - mean) ** 2 / mean for mean, count in pooled)
    return float(stats.chi2.sf(statistic, len(pooled) - 1))
