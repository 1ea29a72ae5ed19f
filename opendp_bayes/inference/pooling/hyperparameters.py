"""Laws of κ and m of pooled groups: their priors, and laws that draws are proposed from."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from scipy import special

from opendp_bayes.mathematics.validation import Floats, Integers

#: Logarithms of the concentrations as which those beyond count: groups are of one category as well,
#: or do not differ.
_LEAST, _MOST = np.log(1e-300), np.log(1e120)
#: How much of the prior of κ is left out at each end.
_LEFT_OUT = 1e-4
#: Intervals of ln κ, and the part of the draws that is spread evenly over them.
_INTERVALS, _EVEN = 24, 0.15
#: Weighted draws behind a width and a place that count as much as those before.
_BEFORE = 10.0


@dataclass(frozen=True, eq=False)
class Priors:
    """Priors of κ, a frozen continuous distribution of scipy, and of m, the concentration of a
    Dirichlet distribution, shape `(k,)`.
    """

    kappa: Any
    m: Floats

    def ends(self) -> tuple[float, float]:
        """Between which values of ln κ the prior has nearly all of its mass."""
        low, high = np.log(self.kappa.ppf([_LEFT_OUT, 1 - _LEFT_OUT]))
        return float(low), float(high)

    def log_density(self, log_kappa: Floats, log_m: Floats) -> Floats:
        """The log-density of ln κ, and of the logarithms of m, shape `(..., k)`."""
        with np.errstate(all="ignore"):
            found = self.kappa.logpdf(np.exp(log_kappa)) + log_kappa
        return np.where(np.isfinite(found), found, -np.inf) + log_m @ self.m


def concentrations(log_kappa: Floats, log_m: Floats) -> Floats:
    """Compute κ m, shape `(..., k)`."""
    return np.asarray(np.exp(np.clip(np.expand_dims(log_kappa, -1) + log_m, _LEAST, _MOST)))


@dataclass(frozen=True, eq=False)
class Proposals:
    """Laws that κ and m are proposed from: in intervals of ln κ of equal length, m is in each in
    proportion to independent Gamma variates, whose logarithms have modes and shapes of their own.

    Attributes
    ----------
    edges : ndarray
        Of the intervals, shape `(intervals + 1,)`.
    shares : ndarray
        Of the draws, shape `(intervals,)`.
    modes, shapes : ndarray
        Shape `(intervals, k)`.
    """

    edges: Floats
    shares: Floats
    modes: Floats
    shapes: Floats

    @classmethod
    def along(
        cls, grid: Floats, log_p: Floats, modes: Floats, shapes: Floats, lowest: float
    ) -> "Proposals":
        """Intervals where ln κ is likely, from the logarithms of about the masses of all m, and
        their laws, at some values of it; none that is `exp(-lowest)` times as likely.
        """
        fine = np.linspace(grid[0], grid[-1], 40 * len(grid))
        likely = np.flatnonzero((of := _smooth(grid, log_p, fine)) > of.max() - lowest)
        edges = np.linspace(fine[likely[0]], fine[likely[-1]], _INTERVALS + 1)
        middles = (edges[1:] + edges[:-1]) / 2
        shares = special.softmax(_smooth(grid, log_p, middles))
        shapes = np.exp(_smooth(grid, np.log(shapes), middles))
        return cls(edges, _spread(shares), _smooth(grid, modes, middles), shapes)

    def draw(self, number: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """So many draws of ln κ and of the logarithms of m, a row for each."""
        levels = (np.arange(number) + rng.random(number)) / number
        log_kappa = np.interp(levels, np.append(0, np.cumsum(self.shares)), self.edges)
        shapes = self.shapes[at := self._interval(log_kappa)]
        log_m = np.log(rng.standard_gamma(shapes + 1))  # for shapes that underflow a variate
        log_m += self.modes[at] - np.log(shapes) - rng.standard_exponential(shapes.shape) / shapes
        return log_kappa, log_m - special.logsumexp(log_m, axis=1, keepdims=True)

    def log_density(self, log_kappa: Floats, log_m: Floats) -> Floats:
        """Their log-density, but for a constant."""
        shapes = self.shapes[at := self._interval(log_kappa)]
        away, whole = log_m - self.modes[at] + np.log(shapes), shapes.sum(axis=1)
        log_p = (shapes * away - special.gammaln(shapes)).sum(axis=1) + np.log(self.shares[at])
        return log_p + special.gammaln(whole) - whole * special.logsumexp(away, axis=1)

    def refitted(
        self, log_kappa: Floats, log_m: Floats, before: Floats, weights: Floats
    ) -> "Proposals":
        """Those of the means and deviations that draws have with `weights`, in place of those that
        they have with weights `before`, which make them draws of these laws.
        """
        at = self._interval(log_kappa)
        away = (log_m - self.modes[at]) * np.sqrt(self.shapes[at])
        old, new = before @ away, weights @ away
        sure = 1 / (1 + _BEFORE * (weights**2).sum())
        wider = weights @ (away - new) ** 2 / (before @ (away - old) ** 2)
        shares = np.bincount(at, weights, len(self.shares))
        return Proposals(
            self.edges,
            _spread(np.convolve(shares, [0.25, 0.5, 0.25], "same")),
            self.modes + sure * (new - old) / np.sqrt(self.shapes),
            self.shapes / (1 - sure + sure * wider),
        )

    def _interval(self, log_kappa: Floats) -> Integers:
        return np.clip(np.searchsorted(self.edges, log_kappa) - 1, 0, len(self.shares) - 1)


def _smooth(grid: Floats, values: Floats, wanted: Floats) -> Floats:
    return np.asarray(scipy.interpolate.PchipInterpolator(grid, values)(wanted))


def _spread(shares: Floats) -> Floats:
    return (1 - _EVEN) * shares / shares.sum() + _EVEN / len(shares)
