"""Draws of κ, m and the counts of pooled groups, as many as are wanted.

The counts are summed out: `Evidence` says how probable what was drawn is, given κ and m. These are
drawn by importance sampling, from a mixture over a grid of ln κ, at each point of which m has a law
of its own.
"""

import math
from typing import Protocol

import numpy as np
import scipy
from scipy import special

from opendp_bayes.inference.pooling.hyperparameters import Priors, concentrations
from opendp_bayes.inference.sampling.importance import copies
from opendp_bayes.inference.sampling.markov_chain import Diagnostics
from opendp_bayes.mathematics.validation import Floats, Integers

#: Parts of the draws, each weighed by itself, so that they can be compared as chains are.
_PARTS = 4
#: Points of the grid, before those are left out that are less probable than `exp(-_LOWEST)` times
#: the best,
_POINTS, _LOWEST = 24, 8.0
_CENTRES, _FINE = 12, 24
#: Width of differences, and the longest step of a coordinate of m.
_WIDTH, _LONGEST = 0.02, 1.5
#: Draws of the first round; how many times as many as are lacking each of the others has; the least
#: degrees of freedom of what they are drawn from.
_FIRST, _MORE, _DEGREES = 160, 1.2, 5
#: Effective draws for each that is asked for, some of which the weights of counts cost; the fewest,
#: so that parts can be compared; draws for each of these, at most.
_WORTH, _FEWEST, _MOST = 1.5, 400, 10
#: The largest R-hat of parts that agree.
LARGEST_R_HAT = 1.01
#: The part of the draws that is spread evenly over the grid.
_EVEN = 0.1


class Evidence(Protocol):
    """Probabilities of what was drawn, and of counts, given κ m."""

    def terms(self, a: Floats) -> Floats:
        """Logarithms of factors of its probability, about one for each group, for κ m of shape
        `(k,)`.
        """

    def counts(self, a: Floats, number: int, rng: np.random.Generator) -> tuple[Integers, float]:
        """So many draws of the counts for κ m of shape `(k,)`, shape `(number, G, k)`, and the
        logarithm of their weight beside those of other κ m.
        """


def diagnostics_of(a: Floats) -> Diagnostics:
    """Diagnostics of ln κ and m, from draws of κ m of shape `(chains, draws, k)`."""
    kappa = a.sum(axis=-1, keepdims=True)
    return Diagnostics.of(np.concatenate([np.log(kappa), a / kappa], axis=-1))


class Proposals:
    """Laws that coordinates are drawn from: ln κ about a point of a grid, up to the next ones, and
    those of m, `(k - 1)` of them, from a law of Student about a centre of that point.

    Parameters
    ----------
    grid : ndarray
        The points, equally spaced, shape `(points,)`.
    shares : ndarray
        Of the points in the draws, likewise.
    centres, factors : ndarray
        Of the laws of m, shapes `(points, k - 1)` and `(points, k - 1, k - 1)`; a factor times its
        transpose is about the covariance.
    """

    def __init__(self, grid: Floats, shares: Floats, centres: Floats, factors: Floats) -> None:
        self.grid, self.shares, self.centres, self.factors = grid, shares, centres, factors
        self.step = float(grid[1] - grid[0])
        self.degrees = max(_DEGREES, centres.shape[1])
        self._inverses = np.linalg.inv(factors)

    @classmethod
    def along(cls, grid: Floats, log_p: Floats, centres: Floats, factors: Floats) -> "Proposals":
        """A finer grid where it is likely, from the logarithms of about the masses of all m, and
        their laws, at some values of ln κ.
        """
        fine = np.linspace(grid[0], grid[-1], 40 * len(grid))
        values = scipy.interpolate.PchipInterpolator(grid, log_p)(fine)
        likely = np.flatnonzero(values > values.max() - _LOWEST)
        fine = np.linspace(fine[likely[0]], fine[likely[-1]], _FINE)
        values, *laws = (
            scipy.interpolate.PchipInterpolator(grid, each)(fine)
            for each in (log_p, centres, factors)
        )
        shares = (1 - _EVEN) * special.softmax(values) + _EVEN / _FINE
        return cls(fine, shares, *laws)

    def draw(self, number: int, rng: np.random.Generator) -> Floats:
        """So many coordinates, shape `(number, k)`, in any order."""
        at = copies(self.shares, number, rng)
        dimensions = self.centres.shape[1]
        log_kappa = self.grid[at] + self.step * rng.triangular(-1, 0, 1, number)
        wide = np.sqrt(self.degrees / rng.chisquare(self.degrees, (number, 1)))
        away = rng.normal(size=(number, dimensions)) * wide
        of_m = self.centres[at] + (self.factors[at] @ away[..., None])[..., 0]
        return rng.permutation(np.column_stack([log_kappa, of_m]))

    def nearest(self, coordinates: Floats) -> tuple[Floats, Floats]:
        """Shares of the points in ln κ, between the two that it is between, and how far from the
        centre of every point m is in units of its factor; `(n, points)` and `(n, points, k - 1)`.
        """
        apart = np.abs(coordinates[:, :1] - self.grid) / self.step
        away = coordinates[:, None, 1:] - self.centres
        return np.maximum(1 - apart, 0), np.einsum("pij,npj->npi", self._inverses, away)

    def log_density(self, coordinates: Floats) -> Floats:
        """Their log-density, shape `(n,)`, but for a constant."""
        hats, away = self.nearest(coordinates)
        dimensions = away.shape[2]
        log_p = -(self.degrees + dimensions) / 2 * np.log1p((away**2).sum(axis=2) / self.degrees)
        log_p -= np.linalg.slogdet(self.factors)[1]
        with np.errstate(divide="ignore"):
            return np.asarray(special.logsumexp(log_p + np.log(hats * self.shares), axis=1))

    def refitted(self, coordinates: Floats, weights: Floats) -> "Proposals":
        """Those that weighted draws look like."""
        hats, away = self.nearest(coordinates)
        found = weights @ hats
        shares = (1 - _EVEN) * found / found.sum() + _EVEN / len(found)
        centres, factors = self.centres, self.factors
        if 1 / (weights**2).sum() > 10 + 4 * away.shape[2]:
            standard = (away * hats[..., None]).sum(axis=1)
            mean = weights @ standard
            covariance = (weights[:, None] * (standard - mean)).T @ (standard - mean)
            centres = centres + factors @ mean
            factors = factors @ np.linalg.cholesky(covariance + 1e-3 * np.eye(len(mean)))
        return Proposals(self.grid, shares, centres, factors)


class Target:
    """The posterior density of coordinates of κ and m."""

    def __init__(self, evidence: Evidence, priors: Priors) -> None:
        self._evidence, self._priors = evidence, priors

    def terms(self, coordinates: Floats) -> Floats:
        """Logarithms of factors of what the data say, for coordinates of shape `(k,)`."""
        return self._evidence.terms(concentrations(coordinates))

    def log_density(self, coordinates: Floats) -> Floats:
        """Log-density of several coordinates, shape `(n, k)`, up to a constant."""
        of_data = np.array([self.terms(each).sum() for each in coordinates])
        found = of_data + self._priors.log_density(coordinates)
        return np.where(np.isnan(found), -np.inf, found)

    def proposals(self, shares: Floats) -> Proposals:
        """Proposals along all values of κ that are likely where m is about `shares`."""
        of_m = np.log(shares[:-1] / shares[-1])
        grid = np.linspace(*self._priors.ends(), _POINTS)
        log_p = self.log_density(np.column_stack([grid, np.tile(of_m, (_POINTS, 1))]))
        likely = np.flatnonzero(log_p > log_p.max() - 2 * _LOWEST)
        first, last = max(likely[0] - 1, 0), min(likely[-1] + 1, _POINTS - 1)
        grid = np.linspace(grid[first], grid[last], _CENTRES)
        best = int(
            np.interp(
                grid, np.linspace(grid[0], grid[-1], last - first + 1), log_p[first : last + 1]
            ).argmax()
        )
        found = {best: self._centre(grid[best], self._centre(grid[best], of_m)[1])}
        for some, step in ((range(best + 1, _CENTRES), 1), (range(best - 1, -1, -1), -1)):
            for at in some:
                found[at] = self._centre(grid[at], found[at - step][1])
        values, centres, factors = zip(*(found[at] for at in range(_CENTRES)), strict=True)
        return Proposals.along(grid, np.array(values), np.array(centres), np.array(factors))

    def _centre(self, log_kappa: float, of_m: Floats) -> tuple[float, Floats, Floats]:
        """The most probable m for one value of ln κ, from what is near it: the logarithm of about
        the mass of all m, its coordinates, and a factor of the covariance.

        Second derivatives are those of a Dirichlet distribution in which each category is worth so
        many records that they are, on the diagonal, the sums of squares of the terms' first ones.
        """
        here = np.append(log_kappa, of_m)
        terms = self.terms(here)
        moved, back = (
            np.array([self.terms(each) for each in here + width * np.eye(here.size)[1:]])
            for width in (_WIDTH, -_WIDTH)
        )
        slopes = (moved - back) / (2 * _WIDTH)
        shares = self._priors.shares(here)
        slope = slopes.sum(axis=1) + (self._priors.m - self._priors.m.sum() * shares)[:-1]
        every = np.vstack([slopes, -slopes.sum(axis=0)])
        worth = every.var(axis=1) * len(terms) / (1 - shares) + self._priors.m * shares
        information = np.diag(worth[:-1]) - np.outer(worth[:-1], worth[:-1]) / worth.sum()
        # Terms of few groups cancel, one of which may tell more than all others.
        curvature = (2 * terms - moved - back).sum(axis=1) / _WIDTH**2
        curvature += (self._priors.m.sum() * shares * (1 - shares))[:-1]
        wider = np.sqrt(np.maximum(curvature / np.diag(information), 1.0))
        information = information * np.outer(wider, wider)
        step = np.linalg.solve(information, slope)
        step /= max(1.0, np.abs(step).max() / _LONGEST)
        of_m = of_m + step
        value = terms.sum() + self._priors.log_density(here) + slope @ step / 2
        inverse = np.linalg.inv(information)
        factor = np.linalg.cholesky((inverse + inverse.T) / 2)
        return float(value + np.linalg.slogdet(factor)[1]), of_m, factor


def draws_of(
    evidence: Evidence, priors: Priors, shares: Floats, effective: int, rng: np.random.Generator
) -> tuple[Floats, Integers]:
    """κ m and the counts, `(parts, draws, k)` and `(parts, draws, G, k)`, of so many effective
    draws whose parts agree, where that can be had; m is about `shares`.
    """
    target, wanted = Target(evidence, priors), max(int(_WORTH * effective), _FEWEST)
    most = _MOST * wanted
    proposals, rounds = target.proposals(shares), []
    number = _FIRST
    while True:
        number += -number % _PARTS
        drawn = proposals.draw(number, rng)
        rounds.append((proposals, drawn, target.log_density(drawn)))
        coordinates, log_target = (np.concatenate([each[i] for each in rounds]) for i in (1, 2))
        # All draws together are from the mixture of the laws in the numbers drawn.
        log_laws = [each.log_density(coordinates) for each, _, _ in rounds]
        numbers = np.array([len(each) for _, each, _ in rounds])[:, None]
        log_weights = log_target - special.logsumexp(log_laws, axis=0, b=numbers)
        weights = special.softmax(log_weights)
        worth = 1 / (weights**2).sum() / len(weights)
        # Without hope where twice as many draws as there may be would be worth too few.
        spent = len(weights) >= (most / 4 if worth < 1 / (2 * _MOST) else most)
        a = concentrations(coordinates[_in_parts(log_weights, rng)])
        if spent or are_worth(a, wanted):
            found = _with_counts(evidence, a, rng)
            if spent or are_worth(found[0], effective):
                return found
            wanted *= 2  # the weights of counts cost more
        proposals = proposals.refitted(coordinates, weights)
        lacking = np.clip(_MORE * (wanted / len(weights) / worth - 1), 0.25, 1.0)
        number = min(math.ceil(lacking * len(weights)), most - len(weights))


def are_worth(a: Floats, effective: int) -> bool:
    """True if κ m, of shape `(parts, draws, k)`, are so many effective draws whose parts agree."""
    found = diagnostics_of(a)
    return bool(found.ess.min() >= effective and found.r_hat.max() <= LARGEST_R_HAT)


def _in_parts(log_weights: Floats, rng: np.random.Generator) -> Integers:
    """Places of as many draws as there are, in equal parts, by their weights.

    Copies stand next to each other, so that effective draws can be told as those of chains are.
    """
    order = rng.permutation(len(log_weights) // _PARTS * _PARTS).reshape(_PARTS, -1)
    return np.stack(
        [part[copies(special.softmax(log_weights[part]), part.size, rng)] for part in order]
    )


def _with_counts(
    evidence: Evidence, parts: Floats, rng: np.random.Generator
) -> tuple[Floats, Integers]:
    """κ m of every part, by the weights of the counts that are drawn for them, and these."""
    found = []
    for a in parts:
        first = np.flatnonzero(np.append(True, (a[1:] != a[:-1]).any(axis=1)))
        number = np.diff(np.append(first, len(a)))
        every = [
            evidence.counts(a[at], times, rng) for at, times in zip(first, number, strict=True)
        ]
        log_weights = np.repeat([log_weight for _, log_weight in every], number)
        again = copies(special.softmax(log_weights), len(a), rng)
        found.append((a[again], np.concatenate([counts for counts, _ in every])[again]))
    return np.stack([a for a, _ in found]), np.stack([counts for _, counts in found])
