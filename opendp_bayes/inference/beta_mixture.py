"""Mixtures of Beta distributions: what the probability of one category is, given a release."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.mathematics.validation import Floats, Integers

#: Components that together weigh less than this share are left out.
_NEGLIGIBLE = 1e-14
#: Entries of one block of values times components; bounds the memory of an evaluation.
_LARGEST_BLOCK = 1 << 21
_LOGITS = (-700.0, 700.0)


@dataclass(frozen=True, eq=False)
class BetaMixture:
    """`sum_j weights_j Beta(a_j, b_j)`; three arrays of shape `(c,)`, the weights sum to 1."""

    a: Floats
    b: Floats
    weights: Floats

    @classmethod
    def grouped(
        cls, a: Floats, b: Floats, weights: Floats, group: Integers, spread: Floats | float = 0.0
    ) -> "BetaMixture":
        """One component for each group of components, with the mean and the variance of the group;
        shapes `(c,)`.

        `spread` is a variance of each mean, of a component that stands for several. Groups of one
        stay what they are, and the mean and the variance of the whole mixture are kept whatever the
        groups.
        """
        kept = weights > _NEGLIGIBLE * weights.sum() / weights.size
        a, b, weights, group = a[kept], b[kept], weights[kept], group[kept]
        spread = np.broadcast_to(spread, kept.shape)[kept]
        group = (np.cumsum(np.bincount(group) > 0) - 1)[group]  # without gaps
        total = a + b
        share = np.bincount(group, weights)
        mean = np.bincount(group, weights * (a / total)) / share
        rest = np.bincount(group, weights * (b / total)) / share
        within = (a / total) * (b / total) / (total + 1)
        variance = (
            np.bincount(group, weights * (within + spread + (a / total - mean[group]) ** 2)) / share
        )
        # A spread can be as large as a mean allows only where a cell ends at 0 or 1; a
        # concentration stays positive.
        concentration = np.maximum(mean * rest / variance - 1, 1e-6)
        smallest = np.finfo(np.float64).tiny
        grouped = cls(
            np.maximum(mean * concentration, smallest),
            np.maximum(rest * concentration, smallest),
            share / share.sum(),
        )
        alone = (np.bincount(group)[group] == 1) & (
            spread == 0
        )  # not even rounded: a density at 0 is finite for a = 1 and infinite just below
        grouped.a[group[alone]], grouped.b[group[alone]] = a[alone], b[alone]
        return grouped

    def mean(self) -> float:
        """Expected value."""
        return float(self.weights @ (self.a / (self.a + self.b)))

    def variance(self) -> float:
        """Variance, that within the components plus that of their means."""
        means = self.a / (self.a + self.b)
        return float(
            self.weights
            @ (
                means * (self.b / (self.a + self.b)) / (self.a + self.b + 1)
                + (means - self.mean()) ** 2
            )
        )

    def cdf(self, values: ArrayLike) -> Floats:
        """P(θ <= value), elementwise."""
        return self._mixed(special.betainc, np.clip(values, 0.0, 1.0))

    def pdf(self, values: ArrayLike) -> Floats:
        """Density, elementwise; 0 outside [0, 1]."""
        values = np.asarray(values, dtype=np.float64)
        log_beta = special.betaln(self.a, self.b)

        def density(a: Floats, b: Floats, x: Floats) -> Floats:
            return np.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - log_beta)

        inside = (values >= 0) & (values <= 1)
        with np.errstate(over="ignore", divide="ignore"):  # a density may be infinite at 0 and at 1
            return np.where(inside, self._mixed(density, np.where(inside, values, 0.5)), 0.0)

    def quantile(self, probabilities: ArrayLike) -> Floats:
        """Inverse of `cdf`, elementwise, within 1e-12 in probability or the last digits of the
        value: Newton steps on the logit, kept in a bracket."""
        wanted = np.atleast_1d(np.asarray(probabilities, dtype=np.float64))
        mean, deviation = self.mean(), self.variance() ** 0.5
        start = np.clip(
            mean + deviation * special.ndtri(np.clip(wanted, 1e-300, 1 - 1e-16)),
            mean / 100,
            1 - (1 - mean) / 100,
        )
        logit = special.logit(start)
        low, high = np.full(wanted.shape, _LOGITS[0]), np.full(wanted.shape, _LOGITS[1])
        for _ in range(200):
            value = special.expit(logit)
            excess = self.cdf(value) - wanted
            low, high = np.where(excess <= 0, logit, low), np.where(excess >= 0, logit, high)
            if np.all(
                (np.abs(excess) <= 1e-12) | (high - low <= 1e-14 * np.maximum(np.abs(logit), 1))
            ):
                break
            with np.errstate(all="ignore"):
                step = logit - excess / (self.pdf(value) * value * special.expit(-logit))
            logit = np.where((step > low) & (step < high), step, (low + high) / 2)
        return np.where(wanted <= 0, 0.0, np.where(wanted >= 1, 1.0, special.expit(logit))).reshape(
            np.shape(probabilities)
        )

    def interval(self, level: float) -> tuple[float, float]:
        """The equal-tailed interval of probability `level`."""
        lower, upper = self.quantile([(1 - level) / 2, (1 + level) / 2])
        return float(lower), float(upper)

    def shortest_interval(self, level: float) -> tuple[float, float]:
        """The shortest interval of probability `level`: the highest-density interval where the
        density has one mode.

        The length as a function of the probability to the left of the interval is searched on a
        grid that is refined twice.
        """
        below, above = 0.0, 1 - level
        for _ in range(3):
            left = np.linspace(below, above, 9)
            lower, upper = self.quantile(np.stack([left, left + level]))
            best = int(np.argmin(upper - lower))
            below, above = left[max(best - 1, 0)], left[min(best + 1, left.size - 1)]
        return float(lower[best]), float(upper[best])

    def _mixed(self, function: special.betainc, values: ArrayLike) -> Floats:
        values = np.asarray(values, dtype=np.float64)
        flat, block = values.reshape(-1, 1), max(1, _LARGEST_BLOCK // self.a.size)
        parts = [
            function(self.a, self.b, flat[start : start + block]) @ self.weights
            for start in range(0, flat.size, block)
        ]
        return np.concatenate([np.empty(0), *parts]).reshape(values.shape)
