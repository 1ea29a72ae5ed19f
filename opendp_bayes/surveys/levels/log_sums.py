"""Laws of sums of two counts, whose smallest probabilities are as exact as the largest."""

import numpy as np
from scipy import fft
from scipy.special import logsumexp

from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.validation import Floats, Integers

#: A transform's entries below this share of the largest have lost too many digits.
_KEPT = np.log(1e-9)
#: The tilted mean may be this many deviations, or records, away from where it should be.
_OFF, _NEAREST = 0.5, 0.3
#: Tilts that are taken, and the steepest of them.
_MOST_TILTS, _STEEPEST = 400, 1e3
#: Terms of sums that are added up one by one, at a time.
_AT_A_TIME = 1 << 20


def log_sums(
    first_logs: Floats, second_logs: Floats, first: Integers, number: int, tilt: Floats
) -> Floats:
    """Logarithms of `sum_i exp(one[i] + other[s - i])` for `number` sums s from `first` on.

    Shape `(rows, number)`, -inf for impossible sums. A Fourier transform of weights that are
    multiplied by `exp(t i)` knows the sums near its tilted mean to most digits; as many tilts t are
    taken as it needs to have every sum near one of them (Wilson and Keich, "Accurate pairwise
    convolutions of non-negative vectors via FFT", 2016). Sums in a valley between others are near
    none, and their terms are added up.

    Parameters
    ----------
    one, other : ndarray
        Logarithms of weights, shapes `(rows, m)` and `(rows, n)`; -inf only at the ends.
    first : ndarray of int
        The first sum of each row, shape `(rows,)`.
    tilt : ndarray
        About the tilt at which the sums are in the middle, shape `(rows,)`; a starting point.
    """
    lowest, highest = (
        _end(first_logs, entries) + _end(second_logs, entries) for entries in (0, -1)
    )
    sums = first[:, None] + np.arange(number)
    wanted = (sums >= lowest[:, None]) & (sums <= highest[:, None])
    log_weights, quality = np.full(sums.shape, -np.inf), np.full(sums.shape, -np.inf)
    rows = np.flatnonzero(wanted.any(axis=1))
    near = np.maximum(first, lowest), np.minimum(first + number - 1, highest)
    goal = (near[0] + near[1]) / 2
    length = fft.next_fast_len(first_logs.shape[1] + second_logs.shape[1] - 1, real=True)
    for _ in range(_MOST_TILTS):
        if not rows.size:
            return log_weights
        tilted = _tilted(
            first_logs[rows], second_logs[rows], goal[rows], tilt[rows], lowest[rows], highest[rows]
        )
        tilts, weights, other_weights, log_scale = tilted
        product = fft.irfft(fft.rfft(weights, length) * fft.rfft(other_weights, length), length)
        entries = np.clip(sums[rows], 0, length - 1)
        here = np.take_along_axis(product, entries, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(here)
        logs = np.where(wanted[rows] & (here > 0), logs, -np.inf)
        share = logs - np.log(product.max(axis=1))[:, None]
        better = share > quality[rows]
        values = logs + log_scale[:, None] - tilts[:, None] * entries
        log_weights[rows] = np.where(better, values, log_weights[rows])
        quality[rows] = np.maximum(share, quality[rows])
        tilt[rows] = tilts
        missing = wanted[rows] & (quality[rows] < _KEPT)
        middle = np.clip(np.floor(goal[rows]).astype(np.int64) - first[rows], 0, number - 1)
        at_goal = missing[np.arange(rows.size), middle]  # where the tilt went
        for position in np.flatnonzero(at_goal):
            row, open_ = rows[position], np.flatnonzero(missing[position])
            nearest = np.argsort(np.abs(open_ - middle[position]))
            some = open_[nearest[: _AT_A_TIME // first_logs.shape[1] + 1]]
            log_weights[row, some] = _one_by_one(first_logs[row], second_logs[row], sums[row, some])
            quality[row, some], missing[position, some] = 0.0, False
        goal[rows] = _next_goal(missing, sums[rows], goal[rows])
        rows = rows[missing.any(axis=1)]
    return log_weights


def _one_by_one(first_logs: Floats, second_logs: Floats, sums: Integers) -> Floats:
    """Logarithms of some sums of one row by their definition."""
    second_counts = sums[:, None] - np.arange(first_logs.size)
    inside = (second_counts >= 0) & (second_counts < second_logs.size)
    terms = np.where(inside, first_logs + second_logs[np.where(inside, second_counts, 0)], -np.inf)
    return np.asarray(logsumexp(terms, axis=1))


def _end(weights: Floats, side: int) -> Integers:
    """The first or the last place of each row that has a weight."""
    seen = np.isfinite(weights)
    if side == 0:
        return np.argmax(seen, axis=1)
    return weights.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1)


def _next_goal(missing: Integers, sums: Integers, goal: Floats) -> Floats:
    """The sum nearest to the last goal of those that are not known yet."""
    away = np.where(missing, np.abs(sums - goal[:, None]), np.inf)
    nearest = away.argmin(axis=1)[:, None]
    return np.asarray(np.take_along_axis(sums, nearest, axis=1)[:, 0], dtype=np.float64)


def _tilted(
    first_logs: Floats,
    second_logs: Floats,
    goal: Floats,
    start: Floats,
    lowest: Integers,
    highest: Integers,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Tilts that put the mean of the sum near a goal, the tilted laws, and their log-scale."""
    inside = np.minimum(_NEAREST, (highest - lowest) / 2)
    goal = np.clip(goal, lowest + inside, highest - inside)
    tilt, log_scale = start.copy(), np.zeros(start.shape)
    laws = np.empty_like(first_logs), np.empty_like(second_logs)

    def beyond(tilts: Floats, rows: Integers) -> tuple[Floats, Floats]:
        mean, variance = -goal[rows], np.zeros(rows.size)
        tilt[rows], log_scale[rows] = tilts, 0.0
        for law, log_weights in zip(laws, (first_logs, second_logs), strict=True):
            counts = np.arange(float(log_weights.shape[1]))
            share = log_weights[rows]
            share += tilts[:, None] * counts
            top = share.max(axis=1)
            share -= top[:, None]
            np.exp(share, out=share)
            total = share.sum(axis=1)
            share /= total[:, None]
            law[rows] = share
            log_scale[rows] += np.log(total) + top
            centre = share @ counts
            mean += centre
            variance += share @ counts**2 - centre**2
        near = np.maximum(_OFF * np.sqrt(np.maximum(variance, 0.0)), _NEAREST)
        return mean / near, variance / near

    increasing_roots(beyond, start, -_STEEPEST, _STEEPEST, 1.0)
    return tilt, *laws, log_scale
