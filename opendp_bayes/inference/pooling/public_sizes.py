"""Pooled groups whose numbers of records are all public: the laws of sums of counts, by Fourier
transforms.
"""

from typing import Any

import numpy as np
from scipy import fft, special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial, one_of
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.private_sizes import DEPTH, Risings
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Of groups with so few records every possible count is looked at.
_SMALL = 64
#: A mass of a sum that rounding may make of none.
_TINY = 1e-300
#: The largest tilt by which the counts of a group are moved from what was drawn, times the scale of
#: the noise.
_LARGEST = 0.5


class PublicSizes:
    """Groups with so many records each, as they were drawn.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn of the counts, shape `(G, k)`; at most one of a group was not noised.
    start : ndarray of int
        Counts with these sums.
    """

    def __init__(self, noisy: DrawnCounts, start: Integers) -> None:
        self._sizes, start = start.sum(axis=1), start.T
        noisy = DrawnCounts(noisy.drawn.T, noisy.noise, noisy.noised.T)
        sizes, reach = self._sizes, noisy.noise.reach(DEPTH)
        whole_range = (sizes <= _SMALL) | ~noisy.noised
        low = np.where(whole_range, 0, np.maximum(np.minimum(noisy.drawn, start) - reach, 0))
        high = np.where(whole_range, sizes, np.maximum(noisy.drawn, start) + reach)
        low, high = np.minimum(low, sizes), np.minimum(high, sizes)
        # No fewer and no more than the others leave.
        low, high = (
            np.maximum(low, sizes - high.sum(axis=0) + high),
            np.minimum(high, sizes - low.sum(axis=0) + low),
        )
        self._nodes = low[..., None] + np.arange((high - low).max() + 1)
        log_mass = noisy.log_mass(self._nodes, (..., None)) - special.gammaln(self._nodes + 1.0)
        self._log_mass = np.where(self._nodes <= high[..., None], log_mass, -np.inf)
        self._risings = Risings(self._nodes, np.arange(len(low))[:, None, None])
        #: The tilt that makes of the sum of what was drawn the public one, for normal noise.
        missing = (sizes - noisy.drawn.sum(axis=0)) / (typical_std(noisy.noise) ** 2 * len(low))
        largest = np.where(noisy.noised.all(axis=0), _LARGEST / noisy.noise.scale, 0.0)
        self._missing = np.clip(missing, -largest, largest)
        #: How far the sum is from its least, and how long the law of a sum is.
        self._place = sizes - low.sum(axis=0)
        self._length = fft.next_fast_len(int((high - low).sum(axis=0).max()) + 1, real=True)

    def log_p(self, a: Floats) -> float:
        """Log-probability of what was drawn, for κ m of shape `(k,)`."""
        _, waves, log_scale = self._laws(a)
        whole = fft.irfft(waves[-1], self._length)[np.arange(self._sizes.size), self._place]
        log_p = np.log(np.maximum(whole, _TINY)) + log_scale
        return float((log_p - log_rising_factorial(a.sum(), self._sizes)).sum())

    def counts(self, a: Floats, number: int, rng: np.random.Generator) -> Integers:
        """So many draws of the counts for one κ m, shape `(number, G, k)`: the last, and then those
        before.
        """
        masses, waves, _ = self._laws(a)
        sums = np.maximum(fft.irfft(waves, self._length), 0)
        groups = np.arange(self._sizes.size)[:, None]
        steps: Any = np.empty((number, self._sizes.size, a.size), dtype=np.int32)
        left = np.tile(self._place, (number, 1))
        for j in range(a.size - 1, 0, -1):
            before = left[..., None] - np.arange(masses.shape[2])
            sums_before = np.where(before >= 0, sums[j - 1, groups, np.maximum(before, 0)], 0)
            with np.errstate(divide="ignore"):
                steps[..., j] = one_of(np.log(sums_before * masses[j]), rng)
            left -= steps[..., j]
        steps[..., 0] = left
        return np.asarray(self._nodes[..., 0].T + steps)

    def _laws(self, a: Floats) -> tuple[Floats, Floats, Floats]:
        """Masses of counts, and the transforms of the laws of the sums of the first categories,
        each one longer, of shapes `(k, G, ...)`; and logarithms of a factor of each group.
        """
        log_p = self._log_mass + self._risings.of(a)
        # Counts have about the public sum: transforms lose the digits of what is far less probable.
        tilt = np.log((self._sizes + 0.5) / (self._sizes + a.sum())) + self._missing
        log_p += tilt[:, None] * self._nodes
        tops = log_p.max(axis=2, keepdims=True)
        masses = np.exp(log_p - tops)
        waves = fft.rfft(masses, self._length).cumprod(axis=0)
        return masses, waves, tops.sum(axis=(0, 2)) - tilt * self._sizes
