"""Differences of two posteriors: how far apart two probabilities are, whose laws are independent
mixtures of Betas, or draws. Cumulative probabilities of both mixtures are tabulated at logits, and
one is summed over the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.display.sheet import Sheet, Shown
from opendp_bayes.display.tables import Table, figure
from opendp_bayes.inference.answers.by_label import Intervals
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.log_space import logistic
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    RandomState,
    as_level,
    as_numbers,
    as_size,
)
from opendp_bayes.release_format.data import Label

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


class Probability(NamedTuple):
    """A probability estimated from posterior draws, with its Monte Carlo standard error."""

    value: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class DrawnDifferences(UnderflowIsZero):
    """Laws of differences of which there are draws, shape `(draws, k)`; answers what
    `BetaDifferences` does.
    """

    drawn: Floats

    def mean(self) -> Floats:
        return np.asarray(self.drawn.mean(axis=0))

    def std(self) -> Floats:
        return np.asarray(self.drawn.std(axis=0))

    def cdf(self, values: ArrayLike) -> Floats:
        values = np.asarray(values)
        rows = values.reshape(-1, values.shape[-1])
        at_most = np.array([(self.drawn <= row).mean(axis=0) for row in rows])
        at_most = at_most.reshape(*values.shape[:-1], self.drawn.shape[1])
        return np.where(np.isnan(values), np.nan, at_most)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        lower, upper = np.quantile(self.drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return lower, upper


class Comparison(Shown):
    """The difference of the category probabilities of two posteriors, first minus second.

    Attributes
    ----------
    categories : tuple[str or int or bool or tuple, ...]
        The labels, in whose order all arrays of shape `(k,)` are.
    """

    def __init__(
        self,
        categories: tuple[Label, ...],
        laws: BetaDifferences | DrawnDifferences,
        draws: float,
        sample: Callable[[int, RandomState], Floats],
    ) -> None:
        self.categories = categories
        self._laws, self._draws, self._sample = laws, draws, sample

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._laws.mean()

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return self._laws.std()

    def cdf(self, values: ArrayLike) -> Floats:
        """Posterior probability of being at most the values, of shape `(...)`; shape `(..., k)`."""
        return self._laws.cdf(as_numbers(values, "values")[..., None])

    @cached_property
    def probability(self) -> Floats:
        """Posterior probability that the first is larger, shape `(k,)`."""
        return 1 - self.cdf(0.0)

    @property
    def standard_error(self) -> Floats:
        """Monte Carlo standard error of `probability`, shape `(k,)`; 0 where both posteriors are
        computed without draws.
        """
        return np.asarray(standard_error(self.probability, self._draws))

    def interval(self, level: float = 0.95) -> Intervals[Floats]:
        """Ends of the equal-tailed intervals of the differences, two arrays of shape `(k,)`;
        `interval()["yes"]` are those of one category.
        """
        return Intervals(*self._laws.interval(as_level(level)), self.categories)

    def sample(self, size: int = 1, random_state: RandomState = None) -> Floats:
        """Draws of all differences together, shape `(size, k)`; repeatable with a seed as
        `random_state`.
        """
        return self._sample(as_size(size, "size", "draws"), random_state)

    def sheet(self) -> Sheet:
        """A row for each category, with 95 % intervals."""
        std = self.std()
        columns = self.mean(), std, *self.interval()
        rows = [
            (
                str(label),
                *(figure(column[i], std[i]) for column in columns),
                f"{self.probability[i]:.3f}",
                f"{self.standard_error[i]:.2g}",
            )
            for i, label in enumerate(self.categories)
        ]
        headings = "difference", "mean", "std", "2.5 %", "97.5 %", "P(> 0)", "std. error of P"
        return Sheet((Table(headings, rows),))


def standard_error(share: Any, draws: float) -> Any:
    """Standard error of a share among so many independent draws, 0 if these are infinitely many;
    else not 0 where all of them agree.
    """
    if np.isinf(draws):
        return np.zeros_like(share, dtype=np.float64)
    safer = (share * draws + 1) / (draws + 2)
    return np.sqrt(safer * (1 - safer) / draws)
