"""Pooled groups whose numbers of records are all public: the laws of sums of counts, by Fourier
transforms.
"""

import numpy as np
from scipy import fft, special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial, one_of
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.counted_cells import DEPTH, CountedCells
from opendp_bayes.mathematics.validation import Floats, Integers

#: Of groups with so few records every possible count is looked at, this deep in the noise's tails.
_SMALL, _EVERY = 64, 1e8
#: A mass of a sum that rounding may make of none.
_TINY = 1e-300
#: Steps to the tilt of a group's counts, and the longest, over the number of its nodes: at its end
#: the expected sum is within so many variances of the public one, or as good as equal.
_STEPS, _LONGEST, _NEAR, _EQUAL = 60, 8.0, 0.5, 1e-12


class GivenSizes:
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
        small = start.sum(axis=1) <= _SMALL
        self._parts = [
            (places, _Sums(noisy.chosen(places), start[places], every=every))
            for places, every in ((np.flatnonzero(small), True), (np.flatnonzero(~small), False))
            if places.size
        ]
        self._shape = start.shape

    def terms(self, a: Floats) -> Floats:
        """Log-probabilities of what was drawn of every group for κ m of shape `(k,)`."""
        found = np.empty(self._shape[0])
        for places, sums in self._parts:
            found[places] = sums.terms(a)
        return found

    def counts(self, a: Floats, rng: np.random.Generator) -> tuple[Integers, Floats]:
        """Counts drawn for several κ m, shape `(draws, k)`, and the logarithms of their weights,
        which are all the same.
        """
        found = np.empty((len(a), *self._shape), dtype=np.int64)
        for counts, each in zip(found, a, strict=True):
            for places, sums in self._parts:
                counts[places] = sums.drawn(each, rng)
        return found, np.zeros(len(a))


class _Sums:
    """Groups with so many records each: with `every` possible count, or those near what was
    drawn.
    """

    def __init__(self, noisy: DrawnCounts, start: Integers, *, every: bool) -> None:
        self._sizes = start.sum(axis=1)
        before = noisy.chosen((slice(None), slice(-1)))
        self._cells = CountedCells.of(
            before,
            start[:, :-1],
            largest=self._sizes[:, None],
            depth=_EVERY if every else DEPTH,
        )
        nodes = self._cells.nodes
        self._sums = (nodes.shape[2] - 1) * nodes.shape[1] + 1
        last = (self._sizes - nodes[:, :, 0].sum(axis=1))[:, None, None] - np.arange(self._sums)
        self._last = CountedCells.single(noisy.chosen((slice(None), slice(-1, None))), last)

    def terms(self, a: Floats) -> Floats:
        """Log-probabilities of what was drawn of every group for κ m of shape `(k,)`."""
        log_p, log_scale, parts = self._laws(a)
        whole = np.exp(log_p) * parts[-1]
        found = np.log(np.maximum(whole.sum(axis=1), _TINY)) + log_scale
        found += special.gammaln(self._sizes + 1.0) - log_rising_factorial(a.sum(), self._sizes)
        return np.asarray(found)

    def _laws(self, a: Floats) -> tuple[Floats, Floats, list[Floats]]:
        """Logarithms of the masses of the last count for every sum of the others, of a factor of
        each group, and the laws of the sums of the first categories, each one longer.
        """
        nodes, last = self._cells.nodes, self._last.nodes
        log_p, log_last = self._cells.log_weights(a[:-1]), self._last.log_weights(a[-1:])
        tilt = self._tilt(log_p, log_last, a.sum())[:, None, None]
        log_p, log_last = log_p + tilt * nodes, log_last + tilt * last
        tops = log_p.max(axis=2, keepdims=True)
        top = log_last.max(axis=2, keepdims=True)
        length = fft.next_fast_len(self._sums, real=True)
        waves = fft.rfft(np.exp(log_p - tops), length, axis=2).cumprod(axis=1)
        sums = np.maximum(fft.irfft(waves, length, axis=2)[..., : self._sums], 0)
        log_scale = tops.sum(axis=(1, 2)) + top[:, 0, 0] - tilt[:, 0, 0] * self._sizes
        self._log_p = log_p
        return (log_last - top)[:, 0], log_scale, list(sums.swapaxes(0, 1))

    def _tilt(self, log_p: Floats, log_last: Floats, kappa: float) -> Floats:
        """Logarithms of factors, one for each record, with which the counts of every group have
        about the public sum: transforms lose the digits of sums that are far less probable than
        others. Found between the two that were tried, where Newton's steps leave these.
        """
        parts = [(self._cells.nodes, log_p), (self._last.nodes, log_last)]
        tilt = np.log((self._sizes + 0.5) / (self._sizes + kappa))
        low, high = np.full(tilt.shape, -np.inf), np.full(tilt.shape, np.inf)
        for _ in range(_STEPS):
            mean, variance = np.zeros(tilt.shape), np.zeros(tilt.shape)
            for nodes, log_weights in parts:
                share = special.softmax(log_weights + tilt[:, None, None] * nodes, axis=2)
                first = (share * nodes).sum(axis=2)
                mean += first.sum(axis=1)
                variance += (share * (nodes - first[..., None]) ** 2).sum(axis=(1, 2))
            lacking = self._sizes - mean
            met = lacking**2 <= np.maximum(_NEAR * variance, _EQUAL)
            if met.all():
                break
            low, high = np.where(lacking > 0, tilt, low), np.where(lacking > 0, high, tilt)
            longest = _LONGEST / self._cells.nodes.shape[2]
            step = np.clip(lacking / np.maximum(variance, _TINY), -longest, longest)
            outside = ~met & ((tilt + step <= low) | (tilt + step >= high))
            tilt = np.where(outside, (low + high) / 2, np.where(met, tilt, tilt + step))
        return tilt

    def drawn(self, a: Floats, rng: np.random.Generator) -> Integers:
        """Counts drawn for one κ m, shape `(G, k)`: the last, and then those before."""
        log_last, _, parts = self._laws(a)
        groups, k = len(self._sizes), a.size
        found = np.empty((groups, k), dtype=np.int64)
        with np.errstate(divide="ignore"):
            at = one_of(log_last + np.log(parts[-1]), rng)
        found[:, -1] = self._last.nodes[np.arange(groups), 0, at]
        for j in range(k - 2, -1, -1):
            if j:
                steps = np.arange(self._cells.nodes.shape[2])
                before = at[:, None] - steps
                mass = np.take_along_axis(parts[j - 1], np.maximum(before, 0), axis=1)
                with np.errstate(divide="ignore"):
                    log_mass = np.log(np.where(before >= 0, mass, 0))
                step = one_of(self._log_p[:, j] + log_mass, rng)
            else:
                step = at
            found[:, j] = self._cells.nodes[:, j, 0] + step
            at = at - step
        return found
