"""Pooled groups whose numbers of records are all public: the laws of sums of counts, by Fourier
transforms.
"""

from typing import Any

import numpy as np
from scipy import fft, special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial, one_of
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.private_sizes import DEPTH, Risings
from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.validation import Floats, Integers

#: Of groups with so few records every possible count is looked at.
_SMALL = 64
#: A mass of a sum that rounding may make of none.
_TINY = 1e-300
#: The largest tilt of a group's counts, and how near their expected sum is to the public one.
_LARGEST, _NEAR = 100.0, 0.5


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
        self._risings = Risings(self._nodes, np.arange(first.shape[1])[:, None])
        self._length = (steps.size - 1) * first.shape[1] + 1
        last = (sizes - low.sum(axis=1, keepdims=True) - np.arange(self._length))[:, None]
        self._last = np.maximum(last, 0)
        log_mass = noisy.chosen((slice(None), slice(-1, None))).log_mass(self._last, (..., None))
        log_mass = log_mass - special.gammaln(self._last + 1.0)
        self._log_last = np.where(last >= 0, log_mass, -np.inf)
        self._last_risings = Risings(self._last, np.array(first.shape[1]))

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
        found: Any = np.empty((number, len(whole), a.size), dtype=np.int32)
        groups = np.arange(len(whole))
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
        log_p = self._log_mass + self._risings.of(a)
        log_last = self._log_last + self._last_risings.of(a)
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
        others.
        """

        def beyond(tilt: Floats, groups: Integers) -> tuple[Floats, Floats]:
            mean, variance = -self._sizes[groups] + 0.0, np.zeros(len(groups))
            for nodes, log_weights in ((self._nodes, log_p), (self._last, log_last)):
                x = nodes[groups]
                share = special.softmax(log_weights[groups] + tilt[:, None, None] * x, axis=2)
                first = (share * x).sum(axis=2, keepdims=True)
                mean += first.sum(axis=(1, 2))
                variance += (share * (x - first) ** 2).sum(axis=(1, 2))
            return mean, variance

        start = np.log((self._sizes + 0.5) / (self._sizes + kappa))
        return increasing_roots(beyond, start, -_LARGEST, _LARGEST, _NEAR)
