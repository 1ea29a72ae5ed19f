"""Draws of κ, m and the counts of pooled groups, as many as are wanted: laws that κ and m are
proposed from, and importance sampling.

The counts are summed out: `PrivateSizes` and `PublicSizes` say how probable what was drawn is,
given κ and m. These are drawn by importance sampling: ln κ over a grid, at each point of which m
has a law of its own, about its most probable value (`Proposals`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.pooling.private_sizes import PrivateSizes
from opendp_bayes.inference.pooling.public_sizes import PublicSizes
from opendp_bayes.inference.sampling.importance import copies
from opendp_bayes.mathematics.validation import Floats, Integers

#: Logarithms of the concentrations as which those beyond count: groups are of one category as well,
#: or do not differ.
_SMALLEST, _LARGEST = np.log(1e-25), np.log(1e120)
#: How much of the prior of κ is left out at each end.
_LEFT_OUT = 1e-4
#: Intervals of ln κ, and the part of the draws that is spread evenly over them.
_INTERVALS, _EVEN = 12, 0.15


def concentrations(log_kappa: Floats, log_m: Floats) -> Floats:
    """Compute κ m, shape `(..., k)`."""
    return np.asarray(np.exp(np.clip(np.expand_dims(log_kappa, -1) + log_m, _SMALLEST, _LARGEST)))


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

    def draw(self, number: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """So many draws of ln κ and of the logarithms of m, a row for each."""
        levels = (np.arange(number) + rng.random(number)) / number
        log_kappa = np.interp(levels, np.append(0, np.cumsum(self.shares)), self.edges)
        shapes = self.shapes[interval := self._interval(log_kappa)]
        log_m = np.log(rng.standard_gamma(shapes + 1))  # for shapes that underflow a variate
        log_m += (
            self.modes[interval] - np.log(shapes) - rng.standard_exponential(shapes.shape) / shapes
        )
        return log_kappa, log_m - special.logsumexp(log_m, axis=1, keepdims=True)

    def log_density(self, log_kappa: Floats, log_m: Floats) -> Floats:
        """Their log-density, but for a constant."""
        shapes = self.shapes[interval := self._interval(log_kappa)]
        away, whole = log_m - self.modes[interval] + np.log(shapes), shapes.sum(axis=1)
        log_p = (shapes * away - special.gammaln(shapes)).sum(axis=1) + np.log(
            self.shares[interval]
        )
        return log_p + special.gammaln(whole) - whole * special.logsumexp(away, axis=1)

    def _interval(self, log_kappa: Floats) -> Integers:
        return np.clip(np.searchsorted(self.edges, log_kappa) - 1, 0, len(self.shares) - 1)


#: Values of ln κ among which the likely ones are searched, how often, and of which those are left
#: out that are less probable than `exp(-_LOWEST)` times the best.
_POINTS, _LOOKS, _LOWEST = 20, 3, 18.0
#: Width of differences, the longest step of a logarithm of m, and by what shapes are divided, so
#: that the first laws are not too narrow.
_WIDTH, _LONGEST, _WIDER = 0.05, 1.5, 1.25
#: Draws of each round, and the most draws for each effective one that is wanted.
_ROUND, _MOST = 100, 25
#: The fewest effective draws, so that ends of intervals of 95 % are not those of a few draws, and
#: counts of that many draws that are enough: κ and m are well known where groups are very many.
_FEWEST, _ENOUGH = 300, 6_000_000
#: Draws of counts for each of κ m.
_EACH = 2
#: Bytes that one count takes for each effective draw.
BYTES_OF_DRAWS = 8 * _EACH


class Target:
    """The posterior density of κ and m.

    Parameters
    ----------
    evidence : PrivateSizes or PublicSizes
        What was drawn.
    kappa, m : Any, ndarray
        Priors: a frozen continuous distribution of scipy, and the concentration of a Dirichlet
        distribution, shape `(k,)`.
    """

    def __init__(self, evidence: PrivateSizes | PublicSizes, kappa: Any, m: Floats) -> None:
        self.evidence, self._kappa, self._m = evidence, kappa, m

    def log_density(self, log_kappa: Floats, log_m: Floats) -> Floats:
        """Log-density of several ln κ and logarithms of m, shape `(n, k)`, up to a constant."""
        log_p = np.array([self.evidence.log_p(a) for a in concentrations(log_kappa, log_m)])
        with np.errstate(all="ignore"):
            log_p += self._kappa.logpdf(np.exp(log_kappa)) + log_kappa + log_m @ self._m
        return np.where(np.isfinite(log_p), log_p, -np.inf)

    def proposals(self, shares: Floats) -> Proposals:
        """Proposals along all values of κ that are likely where m is about `shares`, which are then
        nearer to the most probable m.
        """
        low, high = np.log(self._kappa.ppf([_LEFT_OUT, 1 - _LEFT_OUT]))
        log_m = np.log(shares)
        for _ in range(_LOOKS):
            grid = np.linspace(low, high, _POINTS)
            log_p = self.log_density(grid, np.tile(log_m, (_POINTS, 1)))
            likely = np.flatnonzero(log_p > log_p.max() - _LOWEST)
            low, high = grid[max(likely[0] - 1, 0)], grid[min(likely[-1] + 1, _POINTS - 1)]
            _, log_m, _ = self._centre(grid[log_p.argmax()], log_m)
        edges, laws = np.linspace(low, high, _INTERVALS + 1), []
        for log_kappa in (edges[1:] + edges[:-1]) / 2:
            laws.append(self._centre(log_kappa, log_m))
            log_m = laws[-1][1]
        log_p, modes, shapes = map(np.array, zip(*laws, strict=True))
        shares = (1 - _EVEN) * special.softmax(log_p) + _EVEN / _INTERVALS
        return Proposals(edges, shares, modes, shapes / _WIDER)

    def _centre(self, log_kappa: float, log_m: Floats) -> tuple[float, Floats, Floats]:
        """The most probable m for one value of ln κ, from what is near it: the logarithm of about
        the mass of all m, its logarithms, and shapes of Gamma variates in proportion to which it
        is, by two derivatives along each.
        """
        points = np.vstack([0 * log_m, np.eye(len(log_m)), -np.eye(len(log_m))]) * _WIDTH + log_m
        points -= special.logsumexp(points, axis=1, keepdims=True)
        here, *away = self.log_density(np.full(len(points), log_kappa), points)
        up, down = np.reshape(away, (2, -1))
        slope, bend = (up - down) / (2 * _WIDTH), (2 * here - up - down) / _WIDTH**2
        shapes = np.maximum(bend / (1 - np.exp(log_m)), self._m)
        step = slope / shapes
        step /= max(1.0, np.abs(step).max() / _LONGEST)
        whole, new = shapes.sum(), log_m + step
        log_p = here + slope @ step / 2
        log_p += (special.gammaln(shapes) - shapes * np.log(shapes)).sum()
        log_p -= special.gammaln(whole) - whole * np.log(whole)
        return float(log_p), new - special.logsumexp(new), shapes


def draws_of(
    target: Target, shares: Floats, effective: int, rng: np.random.Generator, counts: int = 1
) -> tuple[Floats, Integers, float]:
    """κ m and the `counts`, `(draws, k)` and `(draws, G, k)`, and how many effective draws of κ m
    they are: so many, where that can be had; m is about `shares`.
    """
    laws, worth = target.proposals(shares), 0.0
    wanted = max(effective, min(_FEWEST, _ENOUGH // counts))
    rounds: list[Any] = []
    while worth < wanted and len(rounds) * _ROUND < _MOST * wanted:
        drawn = laws.draw(_ROUND, rng)
        rounds.append((*drawn, target.log_density(*drawn) - laws.log_density(*drawn)))
        log_kappa, log_m, log_weights = map(np.concatenate, zip(*rounds, strict=True))
        weights = special.softmax(log_weights)
        worth = float(1 / (weights**2).sum())
    chosen, times = np.unique(copies(weights, wanted, rng), return_counts=True)
    a, times = concentrations(log_kappa, log_m)[chosen], _EACH * times
    drawn_counts = [target.evidence.counts(*pair, rng) for pair in zip(a, times, strict=True)]
    return np.repeat(a, times, axis=0), np.concatenate(drawn_counts), worth
