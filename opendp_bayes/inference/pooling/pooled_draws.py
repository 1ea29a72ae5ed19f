"""Draws of κ, m and the counts of pooled groups, as many as are wanted: the priors of κ and m, laws
that these are proposed from, and importance sampling.

The counts are summed out: `Evidence` says how probable what was drawn is, given κ and m. These are
drawn by importance sampling: ln κ over a grid, at each point of which m has a law of its own, about
its most probable value (`Proposals`). After each round the laws are fitted to the draws.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy
from scipy import special

from opendp_bayes.inference.sampling.importance import copies
from opendp_bayes.mathematics.validation import Floats, Integers

#: Logarithms of the concentrations as which those beyond count: groups are of one category as well,
#: or do not differ.
_SMALLEST, _LARGEST = np.log(1e-300), np.log(1e120)
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


#: Values of ln κ before those are left out that are less probable than `exp(-_LOWEST)` times the
#: best, and of those that are left; steps to the best m of the first.
_POINTS, _LOWEST, _CENTRES, _STEPS = 20, 9.0, 8, 3
#: Width of differences, the longest step of a logarithm of m, and by what shapes are divided, so
#: that the first laws are not too narrow.
_WIDTH, _LONGEST, _WIDER = 0.05, 1.5, 1.25
#: Draws of the first round; how many times as many as are lacking each of the others has; the
#: most draws for each effective one that is wanted.
_FIRST, _MORE, _MOST = 100, 1.2, 25
#: The fewest effective draws, so that ends of intervals of 95 % are not those of a few draws, and
#: counts of that many draws that are enough: κ and m are well known where groups are very many.
_FEWEST, _ENOUGH = 300, 10_000_000
#: Draws of counts for each of κ m.
_EACH = 2
#: Bytes that one count takes for each effective draw.
BYTES_OF_DRAWS = 8 * _EACH


class Evidence(Protocol):
    """Probabilities of what was drawn, and of counts, given κ m."""

    def log_p(self, a: Floats) -> float:
        """Logarithm of its probability, about, for κ m of shape `(k,)`."""

    def counts(self, a: Floats, number: int, rng: np.random.Generator) -> tuple[Integers, float]:
        """So many draws of the counts for κ m of shape `(k,)`, shape `(number, G, k)`, and the
        logarithm of their weight beside those of other κ m.
        """


class Target:
    """The posterior density of κ and m."""

    def __init__(self, evidence: Evidence, priors: Priors) -> None:
        self._evidence, self._priors = evidence, priors

    def log_density(self, log_kappa: Floats, log_m: Floats) -> Floats:
        """Log-density of several ln κ and logarithms of m, shape `(n, k)`, up to a constant."""
        a = concentrations(log_kappa, log_m)
        of_data = np.array([self._evidence.log_p(each) for each in a])
        return np.nan_to_num(of_data + self._priors.log_density(log_kappa, log_m), nan=-np.inf)

    def proposals(self, shares: Floats) -> Proposals:
        """Proposals along all values of κ that are likely where m is about `shares`."""
        grid, log_m = np.linspace(*self._priors.ends(), _POINTS), np.log(shares)
        log_p = self.log_density(grid, np.tile(log_m, (_POINTS, 1)))
        best, likely = grid[log_p.argmax()], np.flatnonzero(log_p > log_p.max() - 2 * _LOWEST)
        for _ in range(_STEPS):
            _, log_m, _ = self._centre(best, log_m)
        ends = grid[max(likely[0] - 1, 0)], grid[min(likely[-1] + 1, _POINTS - 1)]
        grid = np.linspace(*ends, _CENTRES)
        found = zip(*(self._centre(log_kappa, log_m) for log_kappa in grid), strict=True)
        log_p, modes, shapes = map(np.array, found)
        return Proposals.along(grid, log_p, modes, shapes / _WIDER, _LOWEST)

    def _centre(self, log_kappa: float, log_m: Floats) -> tuple[float, Floats, Floats]:
        """The most probable m for one value of ln κ, from what is near it: the logarithm of about
        the mass of all m, its logarithms, and shapes of Gamma variates in proportion to which it
        is, by two derivatives along each.
        """
        every = np.vstack([0 * log_m, np.eye(len(log_m)), -np.eye(len(log_m))]) * _WIDTH + log_m
        every -= special.logsumexp(every, axis=1, keepdims=True)
        here, *away = self.log_density(np.full(len(every), log_kappa), every)
        up, down = np.reshape(away, (2, -1))
        slope, bend = (up - down) / (2 * _WIDTH), (2 * here - up - down) / _WIDTH**2
        shapes = np.maximum(bend / (1 - np.exp(log_m)), self._priors.m)
        step = slope / shapes
        step /= max(1.0, np.abs(step).max() / _LONGEST)
        whole, new = shapes.sum(), log_m + step
        log_p = here + slope @ step / 2
        log_p += (special.gammaln(shapes) - shapes * np.log(shapes)).sum()
        log_p -= special.gammaln(whole) - whole * np.log(whole)
        return float(log_p), new - special.logsumexp(new), shapes


def draws_of(
    evidence: Evidence,
    priors: Priors,
    shares: Floats,
    effective: int,
    rng: np.random.Generator,
    counts: int = 1,
) -> tuple[Floats, Integers, float]:
    """κ m and the `counts`, `(draws, k)` and `(draws, G, k)`, and how many effective draws of κ m
    they are: so many, where that can be had; m is about `shares`.
    """
    target, wanted = Target(evidence, priors), max(effective, min(_FEWEST, _ENOUGH // counts))
    most, rounds = _MOST * wanted, []
    laws, number = target.proposals(shares), _FIRST
    while True:
        drawn = laws.draw(number, rng)
        rounds.append((laws, *drawn, target.log_density(*drawn)))
        log_kappa, log_m, log_target = (
            np.concatenate([one[i] for one in rounds]) for i in (1, 2, 3)
        )
        # All draws together are from the mixture of the laws in the numbers drawn.
        log_laws = np.array([one.log_density(log_kappa, log_m) for one, *_ in rounds])
        numbers = np.array([len(one) for _, one, *_ in rounds])[:, None]
        log_mixture = special.logsumexp(log_laws, axis=0, b=numbers)
        weights = special.softmax(log_target - log_mixture)
        worth, spent = 1 / (weights**2).sum(), len(weights) >= most
        if spent or worth >= wanted:
            a = concentrations(log_kappa, log_m)
            a, drawn_counts, kept = _with_counts(evidence, a, weights, wanted, rng)
            if spent or worth * kept >= effective:
                return a, drawn_counts, worth * kept
            wanted *= 2  # the weights of counts cost more
        laws = laws.refitted(log_kappa, log_m, special.softmax(log_laws[-1] - log_mixture), weights)
        lacking = np.clip(_MORE * (wanted / worth - 1), 0.25, 1.0) * len(weights)
        number = min(math.ceil(lacking), most - len(weights))


def _with_counts(
    evidence: Evidence, a: Floats, weights: Floats, wanted: int, rng: np.random.Generator
) -> tuple[Floats, Integers, float]:
    """κ m and counts by their weights, and the part of the effective draws that the weights of
    counts leave.
    """
    chosen = copies(weights, wanted, rng)
    at, times = np.unique(chosen, return_counts=True)
    times *= _EACH
    every = [evidence.counts(a[i], n, rng) for i, n in zip(at, times.tolist(), strict=True)]
    shares = special.softmax(np.repeat([log_weight for _, log_weight in every], times))
    again = copies(shares, len(shares), rng)
    counts = np.concatenate([counts for counts, _ in every])[again]
    return np.repeat(a[at], times, axis=0)[again], counts, 1 / (shares**2).sum() / len(shares)
