r"""The law of the intensities of all keys, which is learned from the noisy counts of some.

Keys are a Poisson process: `a_j` keys are expected of component j, whose intensities have a Gamma
law about `λ_j`; counts are Poisson. So a key of component j has a negative binomial count, and what
is shown and what is hidden are independent given `a`. With `p_j(y)` the probability that a key of
component j is shown with y, `s_j` its sum, and `R` the noisy records of all hidden keys,

    ln p(data | a) = sum_y ln sum_j a_j p_j(y) - sum_j a_j s_j + ln N(R; a h, a v + noise).

`ln a` is smooth: its second differences are normal with a standard deviation that is learned.
Noisy counts far above the threshold tell nothing of what is below, and are left out; the others are
grouped in steps that the noise does not resolve, of which the likelihood is exact.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.laws.dirichlet_multinomial import log_negative_binomial
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std
from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys
from opendp_bayes.unlisted.thresholds import Threshold

#: Step of the lattice of ln λ, and its lowest point.
_STEP, _LOWEST = 0.125, 0.3
#: Variances of λ relative to its square: the least of a component, and that of a component's
#: counts, which have a variance of their own.
_NARROW, _WIDE = 1 / 256, 1 / 64
#: Noise that is wider than so many records is taken in units of which it has as many.
_RESOLVED = 32
#: Noisy counts up to the threshold and so many standard deviations of the noise are of the process.
_REACH = 60
#: Steps in which they are grouped, in standard deviations of the noise.
_GROUPED = 1 / 8
#: Standard deviations of second differences of ln a; of first ones, of its values.
_SMOOTH = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_SLOPE, _LEVEL = 0.3, 30.0
#: Intensities are taken as no more than the exponential of this.
_MOST = 60.0
#: The intensity of everything else is taken as at least so many of its standard deviations.
_LEAST = 0.1
_TINY = 1e-300
#: Markov chains, the draws kept of each, the moves before the first and from each to the next, the
#: steps of a move, and which share of the moves should be accepted.
_CHAINS, _KEPT, _BEFORE, _BETWEEN, _STEPS, _ACCEPTED = 32, 8, 100, 5, 10, 0.8
_MOST_NEWTON = 200


@dataclass(frozen=True, eq=False)
class Lattice:
    """The noise of a threshold law in units of some records, of which its standard deviation has
    32 or more: in single records unless it is wide.

    Attributes
    ----------
    unit : int
        In records.
    threshold : int
        The unit that begins with the threshold.
    start : int
        The first record of unit 0, of noise and of noisy counts.
    first, masses : int, ndarray
        The first unit of the noise, and the probabilities of it and of those after it.
    std : float
        Of the noise, in units.
    """

    unit: int
    threshold: int
    start: int
    first: int
    masses: Floats
    std: float

    @classmethod
    def of(cls, law: Threshold) -> "Lattice":
        first, masses = law.masses
        unit = max(1, int(law.std / _RESOLVED))
        threshold = round(law.threshold / unit)
        start = law.threshold - unit * threshold
        lowest, before = divmod(first - start, unit)
        padded = np.pad(masses, (before, -(before + masses.size) % unit))
        parts = padded.reshape(-1, unit).sum(axis=1)
        return cls(unit, threshold, start, lowest, parts, law.std / unit)

    def units(self, noisy: Integers) -> Integers:
        """The units of noisy counts."""
        return (noisy - self.start) // self.unit

    @property
    def last(self) -> int:
        """The largest value of the noise."""
        return self.first + self.masses.size - 1

    @property
    def step(self) -> int:
        """Number of units that are learned from together."""
        return max(1, int(_GROUPED * self.std))

    @property
    def end(self) -> int:
        """The largest noisy count that is one of the process."""
        above = max(math.ceil(_REACH * self.std), self.last + 1 - self.threshold)
        return self.threshold + self.step * math.ceil((above + 1) / self.step) - 1


@dataclass(frozen=True, eq=False)
class LawOfKeys:
    """Draws of the law of all keys, whose counts are in the units of a lattice.

    Attributes
    ----------
    intensities : ndarray
        `λ_j`, shape `(j,)`.
    shapes : ndarray
        Of the Gamma laws about them, shape `(j,)`.
    pmf : ndarray
        `P(n | j)` for n from 0 on, shape `(j, n)`; 0 for n = 0, since an empty key is none.
    weights : ndarray
        Draws of the expected numbers of keys, shape `(draws, j)`.
    groups : ndarray of int
        Which of the draws have the same smoothness, shape `(draws,)`, chain by chain.
    kept : int
        Draws of each chain.
    everything_else : ndarray or None
        Mean and standard deviation of the intensities of all hidden keys together, given each draw
        and the rest, shape `(2, draws)`; none without the rest.
    """

    intensities: Floats
    shapes: Floats
    pmf: Floats
    weights: Floats
    groups: Integers
    kept: int = _KEPT
    everything_else: Floats | None = None

    @classmethod
    def learned(cls, keys: NoisyKeys, lattice: Lattice, seed: int | None) -> "LawOfKeys":
        """Learn the law from the keys that were shown, up to the lattice's end, and the rest."""
        known = _Known.of(keys, lattice)
        weights, groups = _draws(known, known.modes(), np.random.default_rng(seed))
        shapes, else_ = _shapes(known.intensities), known.everything_else(weights)
        return cls(known.intensities, shapes, known.pmf, weights, groups, everything_else=else_)

    @cached_property
    def density(self) -> Floats:
        """Expected number of keys of each count n, shape `(draws, n)`."""
        return self.weights @ self.pmf

    @property
    def is_sharp(self) -> bool:
        """True if most draws have the roughest of all smoothnesses, as where keys are alike: the
        law may be sharper than can be learned.
        """
        return bool(np.mean(self.groups == len(_SMOOTH) - 1) > 1 / 2)


def _shapes(intensities: Floats) -> Floats:
    return np.asarray(1 / np.maximum(_NARROW, _WIDE - 1 / intensities))


@dataclass(frozen=True, eq=False)
class _Mode:
    """The most probable `t` for one smoothness."""

    at: Floats
    precision: Floats
    curvature: Floats
    log_evidence: float


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known of `x = ln a`.

    The likelihood of `R` is narrow, and curved in x. So all is done in `t`, which has no such
    ridge: `x = t + c`, with the c that makes the expected hidden records `ln(a h) = mean(t) +
    ln(about)`. That has a constant determinant. Without `R` x and t are the same.
    """

    intensities: Floats
    pmf: Floats
    like: Floats  # of the groups that hold keys, shape (d, j)
    number: Floats  # of keys in each, shape (d,)
    shown: Floats
    hidden: Floats
    hidden_squares: Floats
    hides: Floats  # the chance that n records are hidden, from none on
    rest: float | None
    variance: float

    @classmethod
    def of(cls, keys: NoisyKeys, lattice: Lattice) -> "_Known":
        last, step, threshold = lattice.end, lattice.step, lattice.threshold
        first, masses = lattice.first, lattice.masses
        noisy = lattice.units(keys.drawn)
        inside = noisy[noisy <= last]
        group, number = np.unique((inside - threshold) // step, return_counts=True)
        n = np.arange(last - first + 1)
        top = math.log(1.5 * last)
        intensities = np.exp(np.arange(math.log(_LOWEST), top + _STEP, _STEP))
        mean, shape = intensities[:, None], _shapes(intensities)[:, None]
        pmf = np.exp(log_negative_binomial(n.astype(np.float64), shape, mean))
        pmf[:, 0] = 0.0
        upper = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
        lower = np.append(0.0, np.cumsum(masses))

        def at_least(noise: Integers) -> Floats:
            return np.asarray(upper[np.clip(noise - first, 0, masses.size)])

        start = (threshold + step * group)[:, None]
        hides = lower[np.clip(threshold - n - first, 0, masses.size)]
        hidden = n * hides
        return cls(
            intensities=intensities,
            pmf=pmf,
            like=(at_least(start - n) - at_least(start + step - n)) @ pmf.T,
            number=number.astype(np.float64),
            shown=pmf @ (at_least(threshold - n) - at_least(last + 1 - n)),
            hidden=pmf @ hidden,
            hidden_squares=pmf @ (n * hidden),
            hides=np.where(n > 0, hides, 1.0),
            rest=None if keys.rest is None else keys.rest / lattice.unit,
            variance=(typical_std(keys.rest_noise) / lattice.unit) ** 2 if keys.rest_noise else 0.0,
        )

    def everything_else(self, weights: Floats) -> Floats | None:
        """Mean and standard deviation of the intensities of all hidden keys together, and of those
        of no record, given expected numbers of keys and the rest, shape `(2, draws)`.

        Keys are hidden because their noisy counts came out low, so that their intensities are
        larger than their counts. Given the numbers of keys both have about a normal law together.
        """
        if self.rest is None:
            return None
        shape = _shapes(self.intensities)[:, None]
        ratio = 1 / (1 + shape / self.intensities[:, None])
        n = np.arange(self.hides.size)
        masses = self.pmf * self.hides
        masses[:, 0] = (1 - ratio[:, 0]) ** shape[:, 0]
        intensity = (n + shape) * ratio
        mean, square, product = (
            weights @ (masses * value).sum(axis=1)
            for value in (intensity, intensity * (n + shape + 1) * ratio, intensity * n)
        )
        told = weights @ self.hidden_squares + self.variance
        mean = mean + product / told * (self.rest - weights @ self.hidden)
        std = np.sqrt(np.maximum(square - product**2 / told, 0.0))
        return np.stack([np.maximum(mean, _LEAST * std), std])

    @cached_property
    def centre(self) -> float:
        """The mean of x before all else is known."""
        return math.log(max(self.number.sum(), 1.0) / self.intensities.size)

    def precision(self, smooth: float) -> Floats:
        """Inverse covariance of x before all else is known, for a standard deviation of its second
        differences; the rougher, the nearer to its mean, which nothing else would hold.
        """
        one = np.eye(self.intensities.size)
        second, first = np.diff(one, 2, axis=0) / smooth, np.diff(one, axis=0)
        first = first / max(_SLOPE, 3 * smooth)
        return second.T @ second + first.T @ first + one * (max(1.0, smooth) / _LEVEL) ** 2

    def x(self, t: Floats) -> tuple[Floats, Floats]:
        """x at t, and the gradient of what is added to t; shapes `(..., j)`."""
        if self.rest is None:
            return t, np.zeros_like(t)
        top = t.max(axis=-1, keepdims=True)
        part = np.exp(t - top) * self.hidden
        whole = part.sum(axis=-1, keepdims=True)
        about = math.log(max(self.rest, math.sqrt(self.variance), 1.0))
        added = about + t.mean(axis=-1, keepdims=True) - np.log(whole) - top
        return t + added, 1 / t.shape[-1] - part / whole

    def loss(self, t: Floats, precision: Floats) -> tuple[Floats, Floats]:
        """Minus the log-posterior of t, up to a constant, shape `(...)`, and its gradient."""
        x, added = self.x(t)
        a = np.exp(np.minimum(x, _MOST))
        each = a @ self.like.T + _TINY
        away = x - self.centre
        pull = np.squeeze(away[..., None, :] @ precision, axis=-2)
        loss = a @ self.shown - np.log(each) @ self.number + (pull * away).sum(axis=-1) / 2
        slope = a * (self.shown - (self.number / each) @ self.like) + pull
        if self.rest is not None:
            error, variance = self.rest - a @ self.hidden, a @ self.hidden_squares + self.variance
            loss = loss + (error**2 / variance + np.log(variance)) / 2
            part, wide = (error / variance)[..., None], 1 / variance[..., None]
            slope = slope - a * (part * self.hidden + (part**2 - wide) * self.hidden_squares / 2)
        return loss, slope + slope.sum(axis=-1, keepdims=True) * added

    def curvature(self, t: Floats, precision: Floats) -> Floats:
        """About the second derivative of `loss`, positive definite, shape `(j, j)`."""
        x, added = self.x(t)
        a = np.exp(np.minimum(x, _MOST))
        part = self.like * a
        part = part / (part.sum(axis=1, keepdims=True) + _TINY)
        found = (part * self.number[:, None]).T @ part + precision
        found[np.diag_indices(a.size)] += np.maximum(a * self.shown - self.number @ part, 0.0)
        if self.rest is None:
            return found
        variance = a @ self.hidden_squares + self.variance
        first, second = a * self.hidden, a * self.hidden_squares / variance
        found += np.outer(first, first) / variance + np.outer(second, second) / 2
        turned = np.eye(a.size) + added
        return np.asarray(turned.T @ found @ turned)

    def modes(self) -> list[_Mode]:
        """The most probable t for each smoothness, by Newton's method from that of the one before,
        with Laplace's approximation of the evidence.
        """
        t = self.centre - 0.5 * np.log(self.intensities / self.intensities.mean())
        modes = []
        for smooth in _SMOOTH:
            precision = self.precision(smooth)
            t = self._most_probable(t, precision)
            curvature = self.curvature(t, precision)
            log_size = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(curvature)[1]
            evidence = float(log_size / 2 - self.loss(t, precision)[0])
            modes.append(_Mode(t, precision, curvature, evidence))
        return modes

    def _most_probable(self, t: Floats, precision: Floats) -> Floats:
        loss, slope = self.loss(t, precision)
        for _ in range(_MOST_NEWTON):
            step = -np.linalg.solve(self.curvature(t, precision), slope)
            step *= min(1.0, 3 / np.abs(step).max())
            for _ in range(20):
                lower, next_slope = self.loss(t + step, precision)
                if lower <= loss + 1e-4 * (slope @ step):
                    break
                step = step / 2
            else:
                return t
            t, gained, loss, slope = t + step, loss - lower, lower, next_slope
            if gained < 1e-6:
                break
        return t


def _draws(
    known: _Known, modes: list[_Mode], rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """Hamiltonian Monte Carlo (Neal, "MCMC using Hamiltonian dynamics", 2011) in t, by chains that
    are shared out to the smoothnesses by their evidence and move all at once: draws of a, shape
    `(draws, j)`, and the smoothness of each.
    """
    which = _shared_out(np.array([mode.log_evidence for mode in modes]))
    precision = np.array([modes[i].precision for i in which])
    roots = [np.linalg.inv(np.linalg.cholesky(mode.curvature)) for mode in modes]
    root = np.array([roots[i] for i in which])  # normal numbers times it have the right law
    start = rng.standard_normal((which.size, 1, root.shape[-1])) @ root / 2
    t = np.array([modes[i].at for i in which]) + start[:, 0]
    loss, slope = known.loss(t, precision)
    length = np.full(which.size, 0.15)
    kept = []
    for move in range(_BEFORE + _KEPT * _BETWEEN):
        speed = rng.standard_normal(t.shape)
        energy = loss + (speed**2).sum(axis=1) / 2
        step = (length * rng.uniform(0.7, 1.1, which.size))[:, None]
        there, then = t, slope
        with np.errstate(all="ignore"):
            speed = speed - step / 2 * np.squeeze(root @ then[:, :, None], -1)
            for i in range(_STEPS):
                there = there + step * np.squeeze(speed[:, None, :] @ root, 1)
                value, then = known.loss(there, precision)
                half = 2 if i == _STEPS - 1 else 1
                speed = speed - step / half * np.squeeze(root @ then[:, :, None], -1)
            gain = energy - value - (speed**2).sum(axis=1) / 2
        chance = np.where(np.isfinite(gain), np.exp(np.minimum(gain, 0.0)), 0.0)
        moved = rng.random(which.size) < chance
        t, slope = np.where(moved[:, None], there, t), np.where(moved[:, None], then, slope)
        loss = np.where(moved, value, loss)
        if move < _BEFORE:
            mean = np.bincount(which, chance)[which] / np.bincount(which)[which]
            length = np.clip(length * np.exp(0.15 * (mean - _ACCEPTED)), 0.002, 0.6)
        elif (move - _BEFORE) % _BETWEEN == 0:
            kept.append(known.x(t)[0])
    weights = np.exp(np.minimum(np.stack(kept, axis=1), _MOST))
    return weights.reshape(-1, t.shape[1]), np.repeat(which, _KEPT)


def _shared_out(log_evidence: Floats) -> Integers:
    """The smoothness of each chain, in proportion to the evidence."""
    share = np.exp(log_evidence - log_evidence.max())
    share = _CHAINS * share / share.sum()
    number = np.floor(share).astype(np.int64)
    number[np.argsort(number - share)[: _CHAINS - number.sum()]] += 1
    return np.repeat(np.arange(share.size), number)
