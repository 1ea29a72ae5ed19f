"""Pooled groups whose numbers of records are all public: the laws of sums of counts, by Fourier
transforms.
"""

import numpy as np
from scipy import fft, special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial, one_of
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.private_sizes import DEPTH, Risings
from opendp_bayes.mathematics.validation import Floats, Integers

#: Of groups with so few records every possible count is looked at.
_SMALL = 64
#: A mass of a sum that rounding may make of none.
_TINY = 1e-300
#: Steps to the tilt of a group's counts, and the longest, over the number of its nodes: at its end
#: the expected sum is within so many variances of the public one, or as good as equal.
_STEPS, _LONGEST, _NEAR, _EQUAL = 60, 8.0, 0.5, 1e-12


class PublicSizes:
    """Groups with so many records each, as they were drawn.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn of the counts, shape `(G, k)`, whose last category alone may not have been
        noised.
    start : ndarray of int
        Counts with these sums.
    """

    def __init__(self, noisy: DrawnCounts, start: Integers) -> None:
        self._sizes = start.sum(axis=1)
        sizes, reach = self._sizes[:, None], noisy.noise.reach(DEPTH)
        drawn, first = noisy.drawn[:, :-1], start[:, :-1]
        low = np.where(sizes > _SMALL, np.maximum(np.minimum(drawn, first) - reach, 0), 0)
        high = np.where(sizes > _SMALL, np.maximum(drawn, first) + reach, sizes)
        low, high = np.minimum(low, sizes), np.minimum(high, sizes)
        steps = np.arange((high - low).max() + 1)
        self._nodes = low[..., None] + steps
        log_mass = noisy.chosen((slice(None), slice(-1))).log_mass(self._nodes, (..., None))
        log_mass = log_mass - special.gammaln(self._nodes + 1.0)
        self._log_mass = np.where(self._nodes <= high[..., None], log_mass, -np.inf)
        self._risings = Risings(self._nodes)
        self._length = (steps.size - 1) * first.shape[1] + 1
        last = (sizes - low.sum(axis=1, keepdims=True) - np.arange(self._length))[:, None]
        self._last = np.maximum(last, 0)
        log_mass = noisy.chosen((slice(None), slice(-1, None))).log_mass(self._last, (..., None))
        log_mass = log_mass - special.gammaln(self._last + 1.0)
        self._log_last = np.where(last >= 0, log_mass, -np.inf)
        self._last_risings = Risings(self._last)

    def log_p(self, a: Floats) -> float:
        """Log-probability of what was drawn, for κ m of shape `(k,)`."""
        _, whole, _, log_scale = self._laws(a)
        found = np.log(np.maximum(whole.sum(axis=1), _TINY)) + log_scale
        return float((found - log_rising_factorial(a.sum(), self._sizes)).sum())

    def counts(self, a: Floats, number: int, rng: np.random.Generator) -> tuple[Integers, float]:
        """So many draws of the counts for one κ m, shape `(number, G, k)`, and the logarithm of
        their weight: the last, and then those before.
        """
        masses, whole, parts, _ = self._laws(a)
        found, groups = (
            np.empty((number, len(whole), a.size), dtype=np.int64),
            np.arange(len(whole)),
        )
        with np.errstate(divide="ignore"):
            at = one_of(np.log(np.broadcast_to(whole, (number, *whole.shape))), rng)
            found[..., -1] = self._last[groups, 0, at]
            for j in range(a.size - 2, -1, -1):
                step = at
                if j:
                    before = at[..., None] - np.arange(masses.shape[2])
                    rest = parts[j - 1][groups[:, None], np.maximum(before, 0)]
                    step = one_of(np.log(np.where(before >= 0, rest, 0) * masses[:, j]), rng)
                found[..., j] = self._nodes[:, j, 0] + step
                at = at - step
        return found, 0.0

    def _laws(self, a: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Masses of counts, of the last one for every sum of the others, and of the sums of the
        first categories, each one longer; and logarithms of a factor of each group.
        """
        log_p = self._log_mass + self._risings.of(a, np.arange(a.size - 1))
        log_last = self._log_last + self._last_risings.of(a, np.array([a.size - 1]))
        tilt = self._tilt(log_p, log_last, a.sum())[:, None, None]
        log_p, log_last = log_p + tilt * self._nodes, log_last + tilt * self._last
        tops, top = log_p.max(axis=2, keepdims=True), log_last.max(axis=2, keepdims=True)
        length, masses = fft.next_fast_len(self._length, real=True), np.exp(log_p - tops)
        waves = fft.rfft(masses, length, axis=2).cumprod(axis=1)
        sums = np.maximum(fft.irfft(waves, length, axis=2)[..., : self._length], 0)
        log_scale = tops.sum(axis=(1, 2)) + top[:, 0, 0] - tilt[:, 0, 0] * self._sizes
        return masses, np.exp(log_last - top)[:, 0] * sums[:, -1], sums.swapaxes(0, 1), log_scale

    def _tilt(self, log_p: Floats, log_last: Floats, kappa: float) -> Floats:
        """Logarithms of factors, one for each record, with which the counts of every group have
        about the public sum: transforms lose the digits of sums that are far less probable than
        others. Found between the two that were tried, where Newton's steps leave these.
        """
        tilt = np.log((self._sizes + 0.5) / (self._sizes + kappa))
        low, high = np.full(tilt.shape, -np.inf), np.full(tilt.shape, np.inf)
        for _ in range(_STEPS):
            mean, variance = np.zeros(tilt.shape), np.zeros(tilt.shape)
            for nodes, log_weights in ((self._nodes, log_p), (self._last, log_last)):
                share = special.softmax(log_weights + tilt[:, None, None] * nodes, axis=2)
                first = (share * nodes).sum(axis=2)
                mean += first.sum(axis=1)
                variance += (share * (nodes - first[..., None]) ** 2).sum(axis=(1, 2))
            lacking = self._sizes - mean
            met = lacking**2 <= np.maximum(_NEAR * variance, _EQUAL)
            if met.all():
                break
            low, high = np.where(lacking > 0, tilt, low), np.where(lacking > 0, high, tilt)
            longest = _LONGEST / self._nodes.shape[2]
            step = np.clip(lacking / np.maximum(variance, _TINY), -longest, longest)
            outside = ~met & ((tilt + step <= low) | (tilt + step >= high))
            tilt = np.where(outside, (low + high) / 2, np.where(met, tilt, tilt + step))
        return tilt
