"""Differences of independent mixtures of Betas, by Simpson's rule in logits: how far apart two
probabilities are.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.log_space import logistic
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers

#: Points of a table. They lie around places where the density of a component has fallen so far.
_POINTS, _FALLEN = 192, np.array([0.1, 0.3, 0.7, 1.5, 3.0, 5.0, 8.0, 13.0, 21.0])
#: Components of less weight have no points of their own.
_LEAST = 1e-12
#: How close a quantile is in probability.
_TOLERANCE = 1e-9
#: Differences nearer to each other are one.
_ROUNDING = 2e-15


@dataclass(frozen=True, eq=False)
class BetaDifferences:
    """`m` laws of `X_i - Y_i` of independent probabilities, whose laws are `first` and `second`.

    Cumulative probabilities are sums over the narrower of the two of what the wider one has below,
    by Simpson's rule in logits: within 1e-3, and within 0.01 at differences that a law that is
    nearly all at 0 or at 1 makes a step.
    """

    first: BetaMixtures
    second: BetaMixtures

    def mean(self) -> Floats:
        """Expected differences, shape `(m,)`."""
        return self.first.mean() - self.second.mean()

    def std(self) -> Floats:
        """Standard deviations, shape `(m,)`."""
        return np.sqrt(self.first.variance() + self.second.variance())

    def cdf(self, values: ArrayLike) -> Floats:
        """P(X - Y <= value) at values of shape `(..., m)` or `(..., 1)`; shape `(..., m)`."""
        values = np.asarray(values, dtype=np.float64)
        values = np.broadcast_to(values, (*values.shape[:-1], self.first.m))
        flat = values.reshape(-1, self.first.m)
        all_laws = np.arange(self.first.m)
        below = np.array([self._cdf(row, all_laws)[0] for row in flat]).reshape(values.shape)
        return np.where(np.isnan(values), np.nan, below)

    def quantile(self, probability: float) -> Floats:
        """Inverse of `cdf` at one probability, shape `(m,)`."""

        def above(values: Floats, laws: Integers) -> tuple[Floats, Floats]:
            cdf, slope = self._cdf(values, laws)
            return cdf - probability, slope

        start = np.clip(self.mean() + special.ndtri(probability) * self.std(), -1.0, 1.0)
        return increasing_roots(above, start, -1.0, 1.0, _TOLERANCE)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Ends of the equal-tailed intervals of probability `level`, rounded outwards, two arrays
        of shape `(m,)`.
        """
        lower, upper = (self.quantile(side) for side in ((1 - level) / 2, (1 + level) / 2))
        return np.maximum(lower - _ROUNDING, -1.0), np.minimum(upper + _ROUNDING, 1.0)

    @cached_property
    def _sides(self) -> tuple[Floats, "_Tables", "_Tables"]:
        """Sign, narrower and wider side: 1 where the second is narrower."""
        first, second = _Tables.of(self.first), _Tables.of(self.second)
        wider = first.spread >= second.spread
        return (
            np.where(wider, 1.0, -1.0),
            second.or_else(first, wider),
            first.or_else(second, wider),
        )

    def _cdf(self, values: Floats, laws: Integers) -> tuple[Floats, Floats]:
        """At one value for each of some laws, and the derivative."""
        sign, narrow, wide = self._sides
        logits, weights = narrow.logits[:, laws], narrow.nodes[:, laws]
        shift = sign[laws] * values
        moved = logistic(logits) + shift
        inside = (shift == 0) | ((moved > 0) & (moved < 1))
        with np.errstate(all="ignore"):
            there = np.where(shift == 0, logits, special.logit(moved))
            below, density = wide.read(np.where(inside, there, 0.0), laws)
            density = np.where(inside, density / np.maximum(moved * (1 - moved), 1e-300), 0.0)
        below = np.where(inside, below, moved >= 1)
        total = np.sum(weights * below, axis=0)
        slope = np.sum(weights * density, axis=0)
        return np.clip(np.where(sign[laws] > 0, total, 1 - total), 0.0, 1.0), slope


@dataclass(frozen=True, eq=False)
class _Tables:
    """Densities of logits and cumulative probabilities at points of each of `m` mixtures, of which
    every second one is in the middle of its neighbours; shapes `(points, m)`.
    """

    logits: Floats
    density: Floats
    below: Floats

    @classmethod
    def of(cls, mixtures: BetaMixtures) -> "_Tables":
        logits = _points(mixtures)
        density, bend = np.empty(logits.shape), np.empty(logits.shape)
        parts, log_beta = Segments(mixtures.start), special.betaln(mixtures.a, mixtures.b)
        total = mixtures.a + mixtures.b
        for row, (points, value) in enumerate(zip(logits, logistic(logits), strict=True)):
            log_value, log_rest = -np.logaddexp(0, -points), -np.logaddexp(0, points)
            log_each = mixtures.a * log_value[parts.owner] + mixtures.b * log_rest[parts.owner]
            terms = mixtures.weights * np.exp(log_each - log_beta)
            density[row] = parts.sums(terms)
            bend[row] = parts.sums(terms * (mixtures.a - total * value[parts.owner]))
        # A density is a cubic from one point to the next.
        length, fall = np.diff(logits, axis=0), -np.diff(bend, axis=0)
        middle = np.maximum((density[1:] + density[:-1]) / 2 + length / 8 * fall, 0.0)
        mass = np.maximum(length * ((density[1:] + density[:-1]) / 2 + length / 12 * fall), 0.0)
        below = np.concatenate([np.zeros((1, mixtures.m)), np.cumsum(mass, axis=0)])
        half = length / 24 * (5 * density[:-1] + 8 * middle - density[1:])
        half = below[:-1] + np.clip(half, 0.0, mass)
        logits = _alternating(logits, (logits[1:] + logits[:-1]) / 2)
        whole = below[-1]
        return cls(logits, _alternating(density, middle) / whole, _alternating(below, half) / whole)

    def or_else(self, other: "_Tables", chosen: NDArray[np.bool_]) -> "_Tables":
        """The chosen laws of these, and the rest of others."""
        names = ("logits", "density", "below")
        pairs = [(getattr(self, field), getattr(other, field)) for field in names]
        return _Tables(*(np.where(chosen, here, theirs) for here, theirs in pairs))

    @property
    def spread(self) -> Floats:
        """Distances of the quartiles, shape `(m,)`."""
        laws = np.arange(self.logits.shape[1])
        lower, upper = (np.argmax(self.below >= share, axis=0) for share in (0.25, 0.75))
        return logistic(self.logits[upper, laws]) - logistic(self.logits[lower, laws])

    @cached_property
    def nodes(self) -> Floats:
        """Weights of the points with which sums are expectations, by Simpson's rule."""
        length = np.diff(self.logits[::2], axis=0)
        factor = np.zeros_like(self.logits)
        factor[:-1:2] += length / 6
        factor[2::2] += length / 6
        factor[1::2] = 4 * length / 6
        weights = factor * self.density
        return weights / weights.sum(axis=0)

    def read(self, logits: Floats, laws: Integers) -> tuple[Floats, Floats]:
        """Cumulative probabilities and densities at logits of shape `(points, laws)`."""
        below, density = np.empty(logits.shape), np.empty(logits.shape)
        for column, law in enumerate(laws.tolist()):
            grid, column_logits = self.logits[:, law], logits[:, column]
            below[:, column] = np.interp(column_logits, grid, self.below[:, law])
            density[:, column] = np.interp(column_logits, grid, self.density[:, law])
        return below, density


def _alternating(values: Floats, middles: Floats) -> Floats:
    """Rows with others between them."""
    merged = np.empty((len(values) + len(middles), values.shape[1]))
    merged[::2], merged[1::2] = values, middles
    return merged


def _points(mixtures: BetaMixtures) -> Floats:
    """Logits at which a mixture is tabulated, shape `(points, m)`: as many in every part of it as
    the square roots of its components' weights tell, out to their ends.
    """
    seen = mixtures.weights > _LEAST
    a, b, owner = mixtures.a[seen], mixtures.b[seen], Segments(mixtures.start).owner[seen]
    away = np.stack([*(-_distances(a, b).T[::-1]), np.zeros(a.size), *_distances(b, a).T], axis=1)
    places = (np.log(a / b)[:, None] + away).ravel()
    owner = np.repeat(owner, away.shape[1])
    weights = np.repeat(np.sqrt(mixtures.weights[seen]), away.shape[1])
    order = np.lexsort((places, owner))
    places, weights = places[order], weights[order]
    parts = Segments.of(owner)
    weights[parts.start[:-1]] = 0.0  # from the first place to the last
    running = np.cumsum(weights)
    first, last = running[parts.start[:-1]], running[parts.start[1:] - 1]
    # Each law from i to i + 1.
    level = parts.owner + (running - first[parts.owner]) / (last - first)[parts.owner]
    wanted = np.arange(parts.start.size - 1) + np.linspace(0, 1 - 1e-9, _POINTS)[:, None]
    return np.interp(wanted, level, places)


def _distances(a: Floats, b: Floats) -> Floats:
    """Distances below the mode of a logit, of law `Beta(a, b)`, at which its density has fallen by
    `_FALLEN` in logarithms; shape `(c, falls)`. The logit is the log-ratio of two gammas.
    """
    first_reach, second_reach = _FALLEN / a[:, None], _FALLEN / b[:, None]
    return np.hypot(
        first_reach + np.sqrt(2 * first_reach), np.log1p(second_reach + np.sqrt(2 * second_reach))
    )
