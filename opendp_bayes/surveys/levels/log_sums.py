"""Laws of sums of two counts, whose smallest probabilities are as exact as the largest."""

import numpy as np
from scipy import fft
from scipy.special import logsumexp

from opendp_bayes.mathematics.validation import Floats, Integers

#: A transform's entries below this share of the largest have lost too many digits.
_KEPT = np.log(1e-8)
#: The tilted mean may be this many deviations, or records, away from where it should be.
_OFF, _NEAREST = 0.5, 0.3
_MOST_STEPS, _MOST_TILTS = 60, 400
#: Terms of sums that are added up one by one, at a time.
_AT_A_TIME = 1 << 20


def log_sums(one: Floats, other: Floats, first: Integers, number: int, tilt: Floats) -> Floats:
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
    lowest, highest = (_end(one, at) + _end(other, at) for at in (0, -1))
    sums = first[:, None] + np.arange(number)
    wanted = (sums >= lowest[:, None]) & (sums <= highest[:, None])
    found, quality = np.full(sums.shape, -np.inf), np.full(sums.shape, -np.inf)
    rows = np.flatnonzero(wanted.any(axis=1))
    near = np.maximum(first, lowest), np.minimum(first + number - 1, highest)
    goal = (near[0] + near[1]) / 2
    length = fft.next_fast_len(one.shape[1] + other.shape[1] - 1, real=True)
    for _ in range(_MOST_TILTS):
        if not rows.size:
            return found
        tilted = _tilted(
            one[rows], other[rows], goal[rows], tilt[rows], lowest[rows], highest[rows]
        )
        tilts, weights, rest, log_scale = tilted
        product = fft.irfft(fft.rfft(weights, length) * fft.rfft(rest, length), length)
        at = np.clip(sums[rows], 0, length - 1)
        here = np.take_along_axis(product, at, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(here)
        logs = np.where(wanted[rows] & (here > 0), logs, -np.inf)
        share = logs - np.log(product.max(axis=1))[:, None]
        better = share > quality[rows]
        values = logs + log_scale[:, None] - tilts[:, None] * at
        found[rows] = np.where(better, values, found[rows])
        quality[rows] = np.maximum(share, quality[rows])
        tilt[rows] = tilts
        missing = wanted[rows] & (quality[rows] < _KEPT)
        middle = np.clip(np.floor(goal[rows]).astype(np.int64) - first[rows], 0, number - 1)
        for place in np.flatnonzero(missing[np.arange(rows.size), middle]):  # where the tilt went
            row, open_ = rows[place], np.flatnonzero(missing[place])
            nearest = np.argsort(np.abs(open_ - middle[place]))
            some = open_[nearest[: _AT_A_TIME // one.shape[1] + 1]]
            found[row, some] = _one_by_one(one[row], other[row], sums[row, some])
            quality[row, some], missing[place, some] = 0.0, False
        goal[rows] = _next_goal(missing, sums[rows], goal[rows])
        rows = rows[missing.any(axis=1)]
    return found


def _one_by_one(one: Floats, other: Floats, sums: Integers) -> Floats:
    """Logarithms of some sums of one row by their definition."""
    rest = sums[:, None] - np.arange(one.size)
    inside = (rest >= 0) & (rest < other.size)
    terms = np.where(inside, one + other[np.where(inside, rest, 0)], -np.inf)
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
    at = away.argmin(axis=1)[:, None]
    return np.asarray(np.take_along_axis(sums, at, axis=1)[:, 0], dtype=np.float64)


def _tilted(
    one: Floats, other: Floats, goal: Floats, start: Floats, lowest: Integers, highest: Integers
) -> tuple[Floats, Floats, Floats, Floats]:
    """Tilts that put the mean of the sum near a goal, the tilted laws, and their log-scale."""
    tilt, low, high = start.copy(), np.full(start.shape, -np.inf), np.full(start.shape, np.inf)
    inside = np.minimum(_NEAREST, (highest - lowest) / 2)
    goal = np.clip(goal, lowest + inside, highest - inside)
    laws = [np.empty_like(one), np.empty_like(other)]
    scale, open_rows = np.zeros(tilt.shape), np.arange(tilt.size)
    for step in range(_MOST_STEPS):
        mean, variance = np.zeros(open_rows.size), np.zeros(open_rows.size)
        scale[open_rows] = 0
        for law, weights in zip(laws, (one, other), strict=True):
            places = np.arange(weights.shape[1])
            logs = weights[open_rows] + tilt[open_rows, None] * places
            top = logs.max(axis=1)
            logs -= top[:, None]
            share = np.exp(logs, out=logs)
            total = share.sum(axis=1)
            share /= total[:, None]
            law[open_rows] = share
            scale[open_rows] += np.log(total) + top
            center = share @ places
            mean += center
            variance += share @ places.astype(float) ** 2 - center**2
        variance = np.maximum(variance, 1e-12)
        off = goal[open_rows] - mean
        good = np.abs(off) <= np.maximum(_OFF * np.sqrt(variance), _NEAREST)
        if good.all() or step == _MOST_STEPS - 1:
            break  # the laws are those of the tilts
        open_rows, off, variance = open_rows[~good], off[~good], variance[~good]
        now = tilt[open_rows]
        low[open_rows] = np.where(off > 0, now, low[open_rows])
        high[open_rows] = np.where(off > 0, high[open_rows], now)
        most = 1 + np.abs(now)
        after = now + np.clip(off / variance, -most, most)
        halved = (after <= low[open_rows]) | (after >= high[open_rows]) | (step % 3 == 2)
        with np.errstate(invalid="ignore"):
            middle = (low[open_rows] + high[open_rows]) / 2
        # Newton's steps alone may go to and fro for ever.
        tilt[open_rows] = np.where(halved & np.isfinite(middle), middle, after)
    return tilt, laws[0], laws[1], scale
