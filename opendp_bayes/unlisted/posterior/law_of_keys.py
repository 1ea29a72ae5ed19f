r"""The law of the intensities of all keys, which is learned from the noisy counts of some.

Keys are a Poisson process with a smooth density of intensities (`inference.learned.intensity_law`),
so that what is shown and what is hidden are independent given the density. Noisy records R of all
hidden keys add

    ln N(R; a h, a v + noise)

to its likelihood. Noisy counts far above the threshold tell nothing of what is below, and are left
out; the others are grouped in steps that the noise does not resolve, of which the likelihood is
exact.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opendp_bayes.inference.learned.intensity_law import IntensityLaw
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std
from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys
from opendp_bayes.unlisted.thresholds import Threshold

#: The lowest point of the lattice of intensities.
_LOWEST = 0.3
#: Noise that is wider than so many records is taken in units of which it has as many.
_RESOLVED = 32
#: Noisy counts up to the threshold and so many standard deviations of the noise are of the process.
_REACH = 60
#: Steps in which they are grouped, in standard deviations of the noise.
_GROUPED = 1 / 8
#: The intensity of everything else is taken as at least so many of its standard deviations.
_LEAST = 0.1
#: Markov chains, the draws kept of each, the moves before the first and from each to the next.
_CHAINS, _KEPT, _BEFORE, _BETWEEN = 32, 8, 100, 5


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
    smooth : ndarray of int
        The smoothness of each, a place among those that may be, from the smoothest on.
    everything_else : ndarray or None
        Mean and standard deviation of the intensities of all hidden keys together, given each draw
        and the rest, shape `(2, draws)`; none without the rest.
    """

    intensities: Floats
    shapes: Floats
    pmf: Floats
    weights: Floats
    smooth: Integers
    everything_else: Floats | None = None

    @classmethod
    def learned(cls, keys: NoisyKeys, lattice: Lattice, seed: int | None) -> "LawOfKeys":
        """Learn the law from the keys that were shown, up to the lattice's end, and the rest."""
        evidence = _Known(keys, lattice)
        chains = evidence.chains(_CHAINS, np.random.default_rng(seed))
        chains.move(_BEFORE, adapt=True)
        states = []
        for _ in range(_KEPT):
            chains.move(_BETWEEN)
            states.append((chains.weights, chains.smooth))
        weights, smooth = (np.concatenate(arrays) for arrays in zip(*states, strict=True))
        else_, points = evidence.everything_else(weights), evidence.points
        return cls(points.means, points.shapes, evidence.pmf, weights, smooth, else_)

    @cached_property
    def density(self) -> Floats:
        """Expected number of keys of each count n, shape `(draws, n)`."""
        return self.weights @ self.pmf

    @property
    def is_sharp(self) -> bool:
        """True if most draws have the roughest of all smoothnesses, as where keys are alike: the
        law may be sharper than can be learned.
        """
        return bool(np.mean(self.smooth == IntensityLaw.roughest) > 1 / 2)


class _Known(IntensityLaw):
    """The likelihood of `x = ln a`, of which R is the sharpest part, if there is one."""

    def __init__(self, keys: NoisyKeys, lattice: Lattice) -> None:
        last, step, threshold = lattice.end, lattice.step, lattice.threshold
        first, masses = lattice.first, lattice.masses
        noisy = lattice.units(keys.noisy_counts)
        inside = noisy[noisy <= last]
        group, number = np.unique((inside - threshold) // step, return_counts=True)
        n = np.arange(last - first + 1)
        self.points = self.lattice(math.log(_LOWEST), math.log(1.5 * last))
        self.pmf = self.points.pmf(n)
        self.pmf[:, 0] = 0.0
        upper = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
        lower = np.append(0.0, np.cumsum(masses))

        def at_least(noise: Integers) -> Floats:
            return np.asarray(upper[np.clip(noise - first, 0, masses.size)])

        start = (threshold + step * group)[:, None]
        like = (at_least(start - n) - at_least(start + step - n)) @ self.pmf.T
        shown = self.pmf @ (at_least(threshold - n) - at_least(last + 1 - n))
        super().__init__(like, number.astype(np.float64), shown)
        hides = lower[np.clip(threshold - n - first, 0, masses.size)]
        hidden = n * hides
        self.hidden, self.hidden_squares = self.pmf @ hidden, self.pmf @ (n * hidden)
        self._hides = np.where(n > 0, hides, 1.0)  # the chance that n records are hidden
        self.rest = None if keys.rest is None else keys.rest / lattice.unit
        std = typical_std(keys.rest_noise) / lattice.unit if keys.rest_noise else 0.0
        self.variance = std**2
        if self.rest is not None:
            self.ridge, self.about = self.hidden, max(self.rest, std, 1.0)

    def everything_else(self, weights: Floats) -> Floats | None:
        """Mean and standard deviation of the intensities of all hidden keys together, and of those
        of no record, given expected numbers of keys and the rest, shape `(2, draws)`.

        Keys are hidden because their noisy counts came out low, so that their intensities are
        larger than their counts. Given the numbers of keys both have about a normal law together.
        """
        if self.rest is None:
            return None
        shape = self.points.shapes[:, None]
        ratio = 1 / (1 + shape / self.points.means[:, None])
        n = np.arange(self._hides.size)
        masses = self.pmf * self._hides
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

    def likelihood(self, a: Floats, u: Floats) -> tuple[Floats, Floats, Floats]:
        loss, slope, u = super().likelihood(a, u)
        if self.rest is not None:
            error, variance = self.rest - a @ self.hidden, a @ self.hidden_squares + self.variance
            loss = loss + (error**2 / variance + np.log(variance)) / 2
            ratio, wide = (error / variance)[..., None], 1 / variance[..., None]
            slope = slope - ratio * self.hidden - (ratio**2 - wide) * self.hidden_squares / 2
        return loss, slope, u

    def of_rest(self, a: Floats) -> Any:
        if self.rest is None:
            return 0.0
        variance = a @ self.hidden_squares + self.variance
        first, second = a * self.hidden, a * self.hidden_squares / variance
        return np.outer(first, first) / variance + np.outer(second, second) / 2
