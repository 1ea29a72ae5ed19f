"""Mechanisms that lose more than they claim, or draw from another law: for audits to catch."""

import math
import random
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes import LaplaceParameters, PrivacyLoss
from opendp_bayes.mathematics.validation import as_counts
from opendp_bayes.mechanisms import (
    HellingerExponential,
    SmoothHellingerExponential,
    local_sensitivity,
)
from opendp_bayes.mechanisms.exponential.posterior_exponential import certified_loss
from opendp_bayes.mechanisms.privacy_loss import NO_LOSS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_RANDOM = random.SystemRandom()


def rescaled(honest: Any, factor: float) -> Any:
    """The mechanism with its law and its bound, and a sampler of `factor` times its scale."""

    @dataclass(frozen=True)
    class Rescaled(type(honest)):
        def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Integers:
            return replace(honest, scale=self.scale * factor).sample(counts, prior, size)

    return Rescaled(**asdict(honest))


def half_scale(honest: Any) -> Any:
    """A factor of two lost between a paper and the code."""
    return rescaled(honest, 0.5)


@dataclass(frozen=True)
class LocalAsSmooth(SmoothHellingerExponential):
    """Divides by the local sensitivity, with the bound of a smooth one."""

    name: ClassVar[str] = "local_as_smooth"

    def width(self, counts: Integers, prior: Floats) -> float:
        return self.scale * local_sensitivity(counts, prior)


@dataclass(frozen=True)
class ConstantSensitivity(HellingerExponential):
    """Takes `sqrt(1 - pi/4)` for the global sensitivity, whatever the prior."""

    name: ClassVar[str] = "constant_sensitivity"
    constant: ClassVar[float] = math.sqrt(1 - math.pi / 4)

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        return (
            certified_loss(2 * d_in * Fraction(self.constant) / Fraction(self.scale), Fraction(0))
            if d_in
            else NO_LOSS
        )


@dataclass(frozen=True)
class FloatLaplace(LaplaceParameters):
    """`floor(count + L)` with L in floats, by inversion of a uniform number of so many bits; two
    categories.

    With `counted` it states the law that this has, found by counting the uniform numbers that lead
    to each outcome, otherwise the law it should have.
    """

    noise: Literal["discrete", "floored"] = "floored"
    bits: int = 53
    counted: bool = True
    name: ClassVar[str] = "float_laplace"

    def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Integers:
        first, second = as_counts(counts).tolist()
        released = []
        for _ in range(size):
            # The tail probability, above 0 and at most 1/2, so that the logarithm exists.
            tail = (_RANDOM.getrandbits(self.bits - 1) + 1) / 2**self.bits
            magnitude = -self.scale * math.log(2 * tail)
            noised = (
                math.floor(first + magnitude)
                if _RANDOM.getrandbits(1)
                else math.floor(first - magnitude)
            )
            released.append(min(max(noised, 0), first + second))
        return np.array(
            [(value, first + second - value) for value in released], dtype=np.int64
        ).reshape(size, 2)

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        if not self.counted:
            return super().log_pmf(counts, prior)
        first, second = as_counts(counts).tolist()
        total, steps = first + second, 2**self.bits

        def beyond(t: int) -> int:
            """How many of the multiples of `1 / steps` up to 1/2 give noise of at least t > 0."""
            return int(steps * Fraction(math.exp(-t / self.scale)) / 2)

        def at_least(t: int) -> int:
            """How many uniform numbers give noise of at least t."""
            return steps // 2 if t == 0 else beyond(t) if t > 0 else steps - beyond(-t)

        below = [at_least(value - first) for value in range(total + 2)]
        below[0], below[-1] = steps, 0
        cells = np.array([high - low for high, low in pairwise(below)], dtype=np.float64)
        values = np.arange(total + 1)
        with np.errstate(divide="ignore"):
            return np.stack([values, total - values], axis=1), np.log(cells / steps)


@dataclass(frozen=True)
class SinglePrecisionCounts(LaplaceParameters):
    """`floor(count + L)` in 32-bit floats, which from 2^24 to 2^25 are even numbers."""

    noise: Literal["discrete", "floored"] = "floored"
    name: ClassVar[str] = "single_precision_counts"

    def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Integers:
        counts = as_counts(counts)
        noise = np.random.default_rng().laplace(scale=self.scale, size=(size, 1)).astype(np.float32)
        noised = np.floor(counts[:-1].astype(np.float32) + noise)
        size = int(counts.sum())
        law = self.law(size, np.ones(counts.size))
        return self.project(law.completed(noised.astype(np.int64), size), size)
