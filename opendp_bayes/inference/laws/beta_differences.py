"""Differences of independent mixtures of Betas, how far apart two probabilities are: cumulative
probabilities of both are tabulated at logits, and one is summed over the other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.log_space import logistic
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers

#: Points of a table. They lie around places where the density of a component has fallen so far.
_POINTS, _FALLEN = 128, np.array([0.3, 1.5, 5.0, 10.0, 21.0])
#: Components of less weight have no points of their own.
_LEAST = 1e-12
#: Densities of components that are computed at once; and below every one that matters.
_BLOCK, _TINY = 1 << 15, 1e-300
#: How close a quantile is in probability.
_TOLERANCE = 1e-9
#: Differences nearer to each other are one.
_ROUNDING = 2e-15
#: Values next to each other that are at most so far apart have no density between them.
_NO_GAP = 1e-300


@dataclass(frozen=True, eq=False)
class BetaDifferences:
    """`m` laws of `X_i - Y_i` of independent probabilities, whose laws are `first` and `second`.

    Cumulative probabilities are sums over parts of the narrower of the two of what the wider one
    has below: within 1e-3, and within 0.01 at differences that a law that is nearly all at 0 or at
    1 makes a step.
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
    def _tables(self) -> Any:
        """Logits, probabilities, cumulative probabilities at these, and densities up to the next,
        of both, shape `(4, 2, m, points)`.
        """
        logits, below = np.stack([_table(law) for law in (self.first, self.second)], axis=1)
        values = logistic(logits)
        gaps = np.diff(values, append=2.0)
        density = np.diff(below, append=1.0) / np.where(gaps > _NO_GAP, gaps, np.inf)
        return logits, values, below, density

    @cached_property
    def _narrower(self) -> Integers:
        """The narrower one of both, 0 or 1, shape `(m,)`."""
        return (self.first.std() >= self.second.std()).astype(np.int64)

    def _cdf(self, values: Floats, laws: Integers) -> tuple[Floats, Floats]:
        """At one value for each of some laws, and the derivative."""
        narrower, (*scales, below, density) = self._narrower[laws], self._tables
        total, slope = np.empty(laws.size), np.empty(laws.size)
        shifts = np.where(narrower, values, -values).tolist()
        for place, (law, side, shift) in enumerate(zip(laws, narrower, shifts, strict=True)):
            # Values next to 1 are told apart as logits only, which is enough for signs.
            narrow, wide = scales[shift != 0][[side, 1 - side], law]
            middles, masses = (narrow[1:] + narrow[:-1]) / 2 + shift, np.diff(below[side, law])
            total[place] = masses @ np.interp(middles, wide, below[1 - side, law])
            slope[place] = masses @ density[1 - side, law][np.searchsorted(wide[1:-1], middles)]
        return np.clip(np.where(narrower, total, 1 - total), 0.0, 1.0), slope


def _table(mixtures: BetaMixtures) -> tuple[Floats, Floats]:
    """Logits and cumulative probabilities at these; shapes `(m, points)`."""
    logits = _points(mixtures)
    below = _below(mixtures, logits)
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    more = [np.interp(levels, *law) for law in zip(below.T, logits.T, strict=True)]
    logits = np.sort(np.vstack([logits, np.transpose(more)]), axis=0)
    return logits.T, _below(mixtures, logits).T


def _below(mixtures: BetaMixtures, logits: Floats) -> Floats:
    """Cumulative probabilities at logits, both of shape `(points, m)`: the logarithm of the density
    is taken to be straight from one to the next.
    """
    blocks = np.array_split(logits, len(logits) * mixtures.a.size // _BLOCK + 1)
    density = np.maximum(np.concatenate(list(map(mixtures.logit_density, blocks))), _TINY)
    rise = np.diff(np.log(density), axis=0)
    middle = density[:-1] * special.exprel(rise)
    below = np.pad(np.cumsum(np.diff(logits, axis=0) * middle, axis=0), ((1, 0), (0, 0)))
    return below / below[-1]


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
