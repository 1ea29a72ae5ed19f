"""Integer noise of one count: its law in closed form and how it is drawn exactly."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, logsumexp

from opendp_bayes.mathematics.log_space import log_sum
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.samplers.integers import discrete_gaussians, discrete_laplaces, floored_laplaces

#: Up to this scale sums over the discrete Gaussian law are taken term by term; beyond, by an
#: integral with an error of less than 1e-7.
_LARGEST_TABLE = 1000
#: Simulated draws fit into machine integers.
_FARTHEST = 2.0**62


class IntegerNoise(ABC):
    """A law on the integers, of which the mechanisms add independent draws to counts. Posteriors
    take it to be log-concave. It is symmetric about half the sum of its kinks.
    """

    #: Where its logarithm is not smooth.
    kinks: ClassVar[tuple[int, ...]]
    #: In records: about its standard deviation, or of a law with kinks, the records over which its
    #: probability falls to 1/e.
    scale: float

    @abstractmethod
    def log_mass(self, value: ArrayLike) -> Floats:
        """`ln P(Z = value)`, elementwise."""

    @abstractmethod
    def log_ratio(self, origin: ArrayLike, step: ArrayLike) -> Floats:
        """`ln P(Z = origin + step) - ln P(Z = origin)`, elementwise, by a formula that keeps its
        digits where the two logarithms are huge; smooth between the kinks, also for steps that are
        not whole.
        """

    def log_at_most(self, value: ArrayLike) -> Floats:
        """`ln P(Z <= value)`, elementwise."""
        return self.log_at_least(sum(self.kinks) - np.asarray(value, dtype=np.float64))

    @abstractmethod
    def log_at_least(self, value: ArrayLike) -> Floats:
        """`ln P(Z >= value)`, elementwise."""

    @abstractmethod
    def reach(self, depth: float) -> int:
        """A number of records beyond which, on both sides, the mass is less than `exp(-depth)` of
        the largest.
        """

    @abstractmethod
    def draws(self, number: int) -> NDArray[Any]:
        """`number` samples, exact for the rational value of the scale, from a CSPRNG: Python's
        integers, of any length.
        """

    @abstractmethod
    def simulate(self, shape: tuple[int, ...], rng: np.random.Generator) -> Integers:
        """Samples in floating point, for plans and simulations, which a release never is."""


def typical_mean(noise: IntegerNoise) -> float:
    """Mean of the noise: a law with kinks is symmetric around their middle."""
    return sum(noise.kinks) / len(noise.kinks) if noise.kinks else 0.0


def typical_std(noise: IntegerNoise) -> float:
    """Standard deviation of the noise, about: a law with kinks is a Laplace law."""
    return noise.scale * (math.sqrt(2.0) if noise.kinks else 1.0)


class _Laplace(IntegerNoise):
    """A law that falls by the same factor from each integer to the next, on both sides. It has half
    of its mass, or of what is not at 0, from 0 on.
    """

    @property
    @abstractmethod
    def _log_upper(self) -> float:
        """`ln P(Z >= 0)`."""

    def log_mass(self, value: ArrayLike) -> Floats:
        value, rate = np.asarray(value, dtype=np.float64), 1 / self.scale
        log_largest = math.log(-math.expm1(-rate)) + self._log_upper
        return log_largest - rate * np.maximum(value, sum(self.kinks) - value)

    def log_at_least(self, value: ArrayLike) -> Floats:
        value, rate = np.asarray(value, dtype=np.float64), 1 / self.scale
        above = self._log_upper - rate * np.maximum(value, 0)
        mirrored = sum(self.kinks) + 1 - value
        below = np.log1p(-np.exp(self._log_upper - rate * np.maximum(mirrored, 1)))
        return np.where(value >= 0, above, below)

    def log_ratio(self, origin: ArrayLike, step: ArrayLike) -> Floats:
        origin = np.asarray(origin, dtype=np.float64) - sum(self.kinks) / 2
        step = np.asarray(step, dtype=np.float64)
        # |origin + step| - |origin|, also where the step is lost in the sum.
        along = np.where(origin >= 0, step, -step)
        return -np.maximum(along, -2 * np.abs(origin) - along) / self.scale

    def reach(self, depth: float) -> int:
        return math.ceil(depth * self.scale) - min(self.kinks)


@dataclass(frozen=True)
class DiscreteLaplace(_Laplace):
    """`P(z) ∝ exp(-|z| / scale)`, the two-sided geometric law."""

    scale: float
    kinks: ClassVar[tuple[int, ...]] = (0,)

    @property
    def _log_upper(self) -> float:
        return -math.log1p(math.exp(-1 / self.scale))

    def draws(self, number: int) -> NDArray[Any]:
        return discrete_laplaces(Fraction(self.scale), number)

    def simulate(self, shape: tuple[int, ...], rng: np.random.Generator) -> Integers:
        up, down = rng.geometric(-math.expm1(-1 / self.scale), (2, *shape)) - 1
        return np.asarray(up - down)


@dataclass(frozen=True)
class FlooredLaplace(_Laplace):
    """`floor(L)` for a Laplace variable of `scale`: `P(t) = (1 - q) q^t / 2` for t >= 0 and
    `(1 - q) q^(-1 - t) / 2` below, `q = exp(-1 / scale)`; biased by -1/2.
    """

    scale: float
    kinks: ClassVar[tuple[int, ...]] = (-1, 0)

    @property
    def _log_upper(self) -> float:
        return -math.log(2)

    def draws(self, number: int) -> NDArray[Any]:
        return floored_laplaces(Fraction(self.scale), number)

    def simulate(self, shape: tuple[int, ...], rng: np.random.Generator) -> Integers:
        up = rng.geometric(-math.expm1(-1 / self.scale), shape) - 1
        return np.asarray(np.where(rng.random(shape) < 0.5, up, -1 - up))


@dataclass(frozen=True)
class DiscreteGaussian(IntegerNoise):
    """`P(z) ∝ exp(-z^2 / (2 scale^2))` (Canonne, Kamath and Steinke, "The discrete Gaussian")."""

    scale: float
    kinks: ClassVar[tuple[int, ...]] = ()

    def log_mass(self, value: ArrayLike) -> Floats:
        standard = np.asarray(value, dtype=np.float64) / self.scale
        return -(standard**2) / 2 - log_theta(self.scale, 0.0)

    def log_ratio(self, origin: ArrayLike, step: ArrayLike) -> Floats:
        origin, step = np.asarray(origin, dtype=np.float64), np.asarray(step, dtype=np.float64)
        return -(step / self.scale) * ((2 * origin + step) / self.scale) / 2

    def log_at_least(self, value: ArrayLike) -> Floats:
        value = np.asarray(value, dtype=np.float64)
        upper = np.where(value > 0, value, 1 - value)
        log_upper = self.log_mass(upper) + self._log_mills(upper)
        return np.where(value > 0, log_upper, np.log1p(-np.exp(log_upper)))

    def _log_mills(self, value: Floats) -> Floats:
        """`ln P(Z >= value) / P(Z = value)` for positive values."""
        rate = 1 / self.scale
        if self.scale <= _LARGEST_TABLE:
            j = np.arange(math.ceil(9 * self.scale) + 2)
            later = (j * rate) * ((2 * value[..., None] + j) * rate) / 2
            return np.asarray(logsumexp(-later, axis=-1))
        # The integral from half a step before, and what a decaying exponential's sum is of that.
        start = (value - 0.5) * rate
        decay = start * rate
        log_part = np.log(decay) - decay / 2 - np.log(-np.expm1(-decay))
        integral = self.scale * math.sqrt(math.pi / 2) * erfcx(start / math.sqrt(2))
        nearer = rate**2 * (value - 0.25) / 2  # half a step before, the density is larger
        return np.asarray(np.log(integral) + log_part + nearer)

    def reach(self, depth: float) -> int:
        return math.ceil(math.sqrt(2 * depth) * self.scale)

    def draws(self, number: int) -> NDArray[Any]:
        return discrete_gaussians(Fraction(self.scale), number)

    def simulate(self, shape: tuple[int, ...], rng: np.random.Generator) -> Integers:
        if self.scale > _LARGEST_TABLE:
            rounded = np.rint(rng.normal(0.0, self.scale, shape))
            return np.clip(rounded, -_FARTHEST, _FARTHEST).astype(np.int64)
        reach = self.reach(40.0) + 1
        cumulative = np.cumsum(np.exp(self.log_mass(np.arange(-reach, reach + 1))))
        return np.searchsorted(cumulative[:-1], rng.random(shape) * cumulative[-1]) - reach


def log_theta(scale: float, shift: float) -> float:
    """`ln sum_z exp(-(z + shift)^2 / (2 scale^2))` over the integers, for shift 0 or 1/2.

    Term by term, or where those are many by Poisson summation, in which all terms but the first
    two vanish in rounding.
    """
    if scale <= 2:
        reach = math.ceil(9 * scale) + 1
        return log_sum([-(((z + shift) / scale) ** 2) / 2 for z in range(-reach, reach + 1)])
    second = 2 * math.exp(-2 * (math.pi * scale) ** 2) * (1 if shift == 0 else -1)
    return math.log(scale * math.sqrt(2 * math.pi)) + math.log1p(second)
