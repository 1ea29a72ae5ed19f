"""Weights and flips of two large counts by sums over panels; shares no code with the package."""

from functools import lru_cache, partial

import numpy as np
from scipy import special

from tests.helpers.noised_counts import NotServedError, Pairs, Setting, log_rising

#: Shifts after which Stirling's series of `ln Γ` has 15 digits.
_SHIFTS = 10
#: Masses this far below the largest have no panels of their own.
_DEPTH = 80.0
#: What a peak is higher by than its neighbours, how many are taken at once and how often.
_PROMINENT, _MOST, _ROUNDS = 1e-2, 4, 4
NODES, WEIGHTS = np.polynomial.legendre.leggauss(14)
SINGLE, RATIO = 40, 1.6


def panels(lowest, highest, places):
    """Points and log-widths of a sum over lowest..highest."""
    lowest, highest = int(lowest), int(highest)
    edges = {lowest, highest + 1}
    singles = []
    for place in {int(np.clip(p, lowest, highest)) for p in [*places, lowest, highest]}:
        singles.append(np.arange(max(lowest, place - SINGLE), min(highest, place + SINGLE) + 1))
        steps = SINGLE * RATIO ** np.arange(np.log(max(highest - lowest, 2)) / np.log(RATIO))
        for sign in (1, -1):
            at = np.floor(place + sign * steps)
            edges |= set(at[(at > lowest) & (at <= highest)].astype(np.int64).tolist())
        edges |= {max(lowest, place - SINGLE), min(highest, place + SINGLE) + 1}
    singles = np.unique(np.concatenate(singles))
    edges = np.array(sorted(edges), dtype=np.int64)
    first, last = edges[:-1], edges[1:] - 1
    single = np.isin(first, singles)
    short = ~single & (last - first < SINGLE)
    extra = [np.arange(a, b + 1) for a, b in zip(first[short], last[short], strict=True)]
    points = [singles, *extra]
    wide = ~single & ~short
    half = (last - first + 1)[wide] / 2
    middle = (first + last)[wide] / 2
    points.append((middle[:, None] + half[:, None] * NODES).ravel())
    widths = [np.zeros(sum(map(len, points[:-1]))), np.log(half[:, None] * WEIGHTS).ravel()]
    return np.concatenate(points).astype(float), np.concatenate(widths)


def divergence(a, b):
    """`(ln Γ(a) + ln Γ(b)) / 2 - ln Γ((a + b) / 2)` without a difference of large numbers: shifted
    by the recurrence, then by Stirling's series with its large terms taken together.
    """
    a, b = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    middle, half = (a + b) / 2, (b - a) / 2
    found = np.zeros(a.shape)
    for i in range(_SHIFTS):
        share = half / (middle + i)
        near = np.abs(share) < 0.5
        apart = np.log((a + i) / (middle + i)) + np.log((b + i) / (middle + i))
        found -= np.where(near, np.log1p(-(np.where(near, share, 0.0) ** 2)), apart) / 2
    a, b, middle = a + _SHIFTS, b + _SHIFTS, middle + _SHIFTS
    share = half / middle
    found += (middle - 0.5) * np.log1p(-(share**2)) / 2 + half * np.arctanh(share)
    return np.maximum(found + (_tail(a) + _tail(b)) / 2 - _tail(middle), 0.0)


def _tail(z):
    inverse = 1 / z
    square = inverse**2
    return inverse * (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    )


class Distances:
    """Hellinger distances between posteriors of two counts of one sum; counts of the first."""

    def __init__(self, prior, size):
        self.prior, self.size = np.asarray(prior, dtype=float), size

    def distances(self, first, other):
        alpha, beta = self.prior
        found = divergence(alpha + first, alpha + other)
        found = found + divergence(beta + self.size - first, beta + self.size - other)
        return np.sqrt(-np.expm1(-found))

    def local_sensitivities(self, first):
        first = np.asarray(first, dtype=float)
        up, down = np.minimum(first + 1, self.size), np.maximum(first - 1, 0)
        return np.maximum(self.distances(first, up), self.distances(first, down))

    def widths(self, mechanism, first, near):
        """The scale times the sensitivity, one number."""
        name = type(mechanism).__name__
        if name == "HellingerExponential":
            local = mechanism.sensitivity == "local"
            return mechanism.scale * (float(self.local_sensitivities(first)) if local else 1.0)
        others, _ = near
        others = others[others == np.rint(others)]  # of which each is a count
        local, away = self.local_sensitivities(others), np.abs(others - first)
        if mechanism.gamma is not None:
            return mechanism.scale / np.min(1 / local + mechanism.gamma * away)
        return mechanism.scale * np.max(local * np.exp(-mechanism.beta * away))

    def log_likelihood(self, mechanism, released, first):
        """Of the released count given one other."""
        near = panels(0, self.size, [first, released])
        others, log_widths = near
        distances = self.distances(first, others)
        own = float(self.distances(first, float(released)))
        if type(mechanism).__name__ == "PermuteAndFlip":
            return _log_of_flip(own, distances, log_widths, others == released, mechanism.scale)
        width = self.widths(mechanism, first, near)
        return -own / width - special.logsumexp(log_widths - distances / width)


def _log_of_flip(own, distances, log_widths, released, scale):
    """As `EveryDataSet.log_likelihood_of_flips`, of coins that stand for many."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    coins = np.exp(-distances / scale)
    total = float(np.exp(log_widths) @ coins)
    ends = np.append(0.0, 2.0 ** np.arange(-int(np.log2(total + 2)) - 4, 1))
    times = (ends[:-1, None] + np.diff(ends)[:, None] * (nodes + 1) / 2).ravel()
    weights = (np.diff(ends)[:, None] * weights / 2).ravel()
    heavy = (coins > 1e-18) & ~released
    many = np.exp(log_widths[heavy])
    survive = np.log1p(-np.outer(times, coins[heavy])) @ many
    return -own / scale + special.logsumexp(survive, b=weights)


class OnPanels(Pairs):
    """The first of some counts, by weights of points that stand for a count or for a panel."""

    def __init__(self, prior, size, points, logs):
        self.setting = Setting((), prior, size)
        order = np.argsort(points)
        weights = np.exp(np.asarray(logs - logs.max(), dtype=float))[order]
        self._first = points[order], np.full(points.size, float(size)), weights / weights.sum()

    def pairs(self, i):
        assert i == 0
        return self._first

    def theta_cdf(self, i, values, complements):
        """Of every count, or of panels that are shorter than the Betas are wide."""
        (x, n, w), prior = self.pairs(i), self.setting.prior
        a, b = prior[i] + x, prior[1:].sum() + (n - x)
        gaps = np.diff(x, append=x[-1] + 1)
        if not np.all((gaps == 1) | (gaps < np.sqrt(a * b / (a + b))) | (w < 1e-3)):
            raise NotServedError("panels")
        return super().theta_cdf(i, values, complements)

    def steps(self, i):
        raise NotServedError("panels")


class OfPairs(OnPanels):
    """The posterior of a release with a public number of records."""

    def __init__(self, mechanism, released, prior, size):
        self.prior, self.size = np.asarray(prior, dtype=float), size
        likelihood = lru_cache(None)(
            partial(Distances(prior, size).log_likelihood, mechanism, released)
        )

        def log_weights(points):
            # Between two counts, linear: a coin that is surely heads is there for a count only.
            below, part = np.floor(points), points % 1
            left = np.array([likelihood(x) for x in below.tolist()])
            right = np.array([likelihood(x) for x in np.ceil(points).tolist()])
            return left + part * (right - left) + self._log_prior(points)

        alpha, beta = np.maximum(self.prior - 1, 0)
        mode = int(size * alpha / (alpha + beta)) if alpha + beta else 0
        places = {0, size, int(released), mode}
        for _ in range(_ROUNDS):
            points, log_widths = panels(0, size, places)
            order = np.argsort(points)
            points, log_widths = points[order], log_widths[order]
            logs = log_weights(points)
            left, right = np.append(-np.inf, logs[:-1]), np.append(logs[1:], -np.inf)
            lower = np.minimum(logs - left, logs - right)
            peaks = points[(lower > _PROMINENT) & (logs > logs.max() - _DEPTH)]
            peaks = peaks[np.argsort(-logs[np.searchsorted(points, peaks)])].astype(int).tolist()
            far = [p for p in peaks if min(abs(p - q) for q in places) > 20][:_MOST]
            if not far:
                break
            places |= set(far)
        super().__init__(prior, size, points, logs + log_widths)

    def _log_prior(self, x):
        """`ln Γ(x + alpha) - ln x!` of both."""
        return log_rising(x, self.prior[0]) + log_rising(self.size - x, self.prior[1])
