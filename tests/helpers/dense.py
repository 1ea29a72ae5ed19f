"""The posterior of counts with additive noise by dense transforms, for tables too large for a list
of all data sets: every count has its weight, and sums are products of transforms of these.

Shares no code with the package but the law of the noise. Weights below 1e-19 of the largest of a
category are left out, and sums have errors of about 1e-15 of their largest probability, so that it
suits draws that the number of records does not contradict.
"""

import numpy as np
from scipy import fft, optimize, special

_DEPTH, _RARE = 45.0, 1e-13


class Dense:
    """Marginals of some categories, with a public number of records or equally probable ones."""

    def __init__(self, law, drawn, prior, size=None):
        self.prior, self._total = np.asarray(prior, dtype=float), float(np.sum(prior))
        self._law, self._drawn = law, drawn
        goal = sum(drawn) if size is None else size
        edge = 0.5 / law.scale
        self._tilt = optimize.brentq(lambda t: self._mean(t) - goal, -edge, edge, xtol=1e-12)
        self._start, self._rows = zip(*self._laws(self._tilt), strict=True)
        self._length = fft.next_fast_len(sum(row.size for row in self._rows), real=True)
        self._known = [fft.rfft(row, self._length) for row in self._rows]
        first = sum(self._start)
        if size is None:
            sizes = np.arange(first, first + self._length)
            whole = fft.irfft(np.prod(self._known, axis=0), self._length)
            self.sizes = sizes[whole > _RARE * whole.max()]
            log_weights = special.gammaln(self.sizes + 1.0)
            log_weights -= special.gammaln(self.sizes + self._total) + self._tilt * self.sizes
            self._weights = special.softmax(log_weights)
        else:
            self.sizes, self._weights = np.array([size]), np.ones(1)

    def _laws(self, tilt):
        """The lowest count of every category, and the probabilities of the counts from there on."""
        reach, found = 60 * self._law.scale + 60, []
        for drawn, alpha in zip(self._drawn, self.prior, strict=True):
            x = np.arange(max(int(drawn - reach), 0), int(max(drawn, 0) + reach))
            logs = self._law.log_mass(drawn - x) + tilt * x
            logs += special.gammaln(x + alpha) - special.gammaln(x + 1.0)
            seen = np.flatnonzero(logs > logs.max() - _DEPTH)
            some = slice(seen[0], seen[-1] + 1)
            found.append((int(x[some][0]), special.softmax(logs[some])))
        return found

    def _mean(self, tilt):
        return sum(row @ (first + np.arange(row.size)) for first, row in self._laws(tilt))

    def pairs(self, i):
        """Counts of a category, numbers of records and the probability of each pair."""
        others = [known for j, known in enumerate(self._known) if j != i]
        rest = fft.irfft(np.prod(others, axis=0), self._length)
        x = self._start[i] + np.arange(self._rows[i].size)
        place = self.sizes - x[:, None] - (sum(self._start) - self._start[i])
        inside = (place >= 0) & (place < self._length)
        weights = np.where(inside, rest[np.clip(place, 0, self._length - 1)], 0.0)
        weights = weights * self._rows[i][:, None] * self._weights
        at, of = np.nonzero(weights > _RARE * weights.max())
        weights = weights[at, of]
        return x[at], self.sizes[of], weights / weights.sum()

    def marginal(self, i):
        """The mixture of Betas of a category: a, b and weights."""
        x, n, weights = self.pairs(i)
        return self.prior[i] + x, self._total - self.prior[i] + n - x, weights

    def moments(self, i):
        """Mean and standard deviation of the probability."""
        a, b, weights = self.marginal(i)
        p = a / (a + b)
        mean = weights @ p
        return mean, np.sqrt(weights @ (p * (1 - p) / (a + b + 1) + (p - mean) ** 2))

    def cdf(self, i, values):
        """P(θ_i <= value) at values of shape `(m,)`."""
        a, b, weights = self.marginal(i)
        return np.array([weights @ special.betainc(a, b, value) for value in values])

    def count_moments(self, i):
        """Mean and standard deviation of the count."""
        x, _, weights = self.pairs(i)
        mean = weights @ x
        return mean, np.sqrt(weights @ (x - mean) ** 2)
