r"""The law of the intensities of all keys, which is learned from the noisy counts of some.

Keys are a Poisson process with a smooth density of intensities (`inference.learned.intensity_law`),
so that what is shown and what is hidden are independent given the density. Noisy records R of all
hidden keys add

    ln N(R; a h, a v + noise)

to its likelihood. Noisy counts far above the threshold tell nothing of what is below, and are left
out.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from opendp_bayes.inference.learned.intensity_law import HamiltonianChains, IntensityLaw, Points
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std
from opendp_bayes.unlisted.posterior.noisy_keys import NoisyKeys
from opendp_bayes.unlisted.thresholds import Threshold

#: The lowest point of the lattice of intensities.
_LOWEST = 0.3
#: Noise that is wider than so many records is taken in units of which it has as many.
_RESOLVED = 10
#: Noisy counts up to the threshold and so many standard deviations of the noise are of the process.
_REACH = 60
#: The intensity of everything else is taken as at least so many of its standard deviations.
_LEAST = 0.1
#: Markov chains, the draws kept of each, the moves before the first and from each to the next.
_CHAINS, _KEPT, _BEFORE, _BETWEEN = 32, 8, 100, 5


class Lattice:
    """The noise of a threshold law in units of some records, of which its standard deviation has 10
    or more: in single records unless it is wide.

    Attributes
    ----------
    unit : int
        In records.
    threshold : int
        The unit that begins with the threshold.
    start : int
        The first record of unit 0, of noise and of noisy counts.
    masses : ndarray
        The probabilities of the noise, from its largest value down.
    last : int
        The largest value of the noise.
    end : int
        The largest noisy count that is one of the process.
    """

    def __init__(self, law: Threshold) -> None:
        first, masses = law.masses
        self.unit = max(1, int(law.std / _RESOLVED))
        self.threshold = round(law.threshold / self.unit)
        self.start = law.threshold - self.unit * self.threshold
        lowest, before = divmod(first - self.start, self.unit)
        padded = np.pad(masses, (before, -(before + masses.size) % self.unit))
        self.masses: Floats = padded.reshape(-1, self.unit).sum(axis=1)[::-1]
        self.last = lowest + self.masses.size - 1
        reach = math.ceil(_REACH * law.std / self.unit)
        self.end = max(self.threshold + reach, self.last + 1)

    def units(self, noisy: Integers) -> Integers:
        """The units of noisy counts."""
        return (noisy - self.start) // self.unit

    def behind(self, units: Integers) -> Integers:
        """The true counts behind noisy ones, one for each value of the noise, ascending; some of
        them negative, shape `(rows, m)`.
        """
        return units[:, None] - self.last + np.arange(self.masses.size)

    def at_least(self, noise: Integers) -> Floats:
        """Probability of noise that is as large."""
        number = np.clip(self.last + 1 - noise, 0, self.masses.size)
        return np.append(0.0, np.cumsum(self.masses))[number]


@dataclass(frozen=True, eq=False)
class LawOfKeys:
    """Draws of the law of all keys, whose intensities are in records.

    Attributes
    ----------
    intensities : ndarray
        `λ_j`, shape `(j,)`.
    shapes : ndarray
        Of the Gamma laws about them, shape `(j,)`.
    pmf : ndarray
        `P(n | j)` for n units from 0 on, shape `(j, n)`, without keys of no record, which are none.
    weights : ndarray
        Draws of the expected numbers of keys, shape `(draws, j)`.
    is_sharp : bool
        Whether most draws have the roughest of all smoothnesses, as where keys are alike: the law
        may be sharper than can be learned.
    everything_else : ndarray or None
        Mean and standard deviation of the intensities of all hidden keys together, given each draw
        and the rest, shape `(2, draws)`; none without the rest.
    """

    intensities: Floats
    shapes: Floats
    pmf: Floats
    weights: Floats
    is_sharp: bool = False
    everything_else: Floats | None = None

    @classmethod
    def learned(cls, keys: NoisyKeys, lattice: Lattice, seed: int | None) -> "LawOfKeys":
        """Learn the law from the keys that were shown, up to the lattice's end, and the rest."""
        evidence = _Known(keys, lattice)
        chains = HamiltonianChains(evidence, _CHAINS, np.random.default_rng(seed))
        chains.move(_BEFORE, adapt=True)
        states = []
        for _ in range(_KEPT):
            chains.move(_BETWEEN)
            states.append((chains.weights, chains.smooth == evidence.roughest))
        weights, rough = (np.concatenate(arrays) for arrays in zip(*states, strict=True))
        else_, points = evidence.everything_else(weights), evidence.points
        is_sharp = bool(rough.mean() > 1 / 2)
        return cls(points.means, points.shapes, evidence.pmf, weights, is_sharp, else_)


class _Known(IntensityLaw):
    """The likelihood of `x = ln a`, of which R is the sharpest part, if there is one."""

    def __init__(self, keys: NoisyKeys, lattice: Lattice) -> None:
        units, last = lattice.units(keys.noisy_counts), lattice.end
        row, number = np.unique(units[units <= last], return_counts=True)
        n = np.arange(last - lattice.last + lattice.masses.size)
        unit = lattice.unit
        self.points = Points(math.log(_LOWEST * unit), math.log(1.5 * unit * last))
        self.pmf = self.points.pmf_of_cells(unit * np.append(n, n[-1] + 1) - (unit - 1) // 2)
        counts = lattice.behind(row)
        like = np.array([np.where(counts < 0, 0, pmf[counts]) @ lattice.masses for pmf in self.pmf])
        seen = lattice.at_least(lattice.threshold - n)
        shown = self.pmf @ (seen - lattice.at_least(last + 1 - n))
        super().__init__(like.T, number.astype(np.float64), shown)
        self._hides = np.maximum(1 - seen, 0.0)  # the chance that so many records are hidden
        self._records = np.maximum(unit * n, unit / 3)
        self.hidden, self.hidden_squares = (
            self.pmf @ (self._records**power * self._hides) for power in (1, 2)
        )
        self.rest, self.variance = None, 0.0
        if keys.rest is not None:
            std = typical_std(keys.rest.noise)
            self.rest, self.variance = keys.rest.noisy_count, std**2
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
        n = np.append(0.0, self._records)
        none = (1 - ratio) ** shape
        masses = np.hstack([none, self.pmf * self._hides])
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
