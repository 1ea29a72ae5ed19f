"""The common part of the mechanisms that add independent noise to counts."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import Floats, Integers, as_counts, as_prior
from opendp_bayes.mechanisms.integer_noise import IntegerNoise
from opendp_bayes.mechanisms.laws import AdditiveNoise, saturated


class NoisyCounts(ABC):
    """Counts with independent integer noise. Subclasses are frozen dataclasses with a `scale`."""

    scale: float

    @abstractmethod
    def law(self, size: int | None, prior: Floats) -> AdditiveNoise:
        """The noise, and which counts receive it."""

    @abstractmethod
    def project(self, drawn: Integers, size: int | None) -> Integers:
        """Project draws, shape `(..., k)`, to counts; `size` is the number of records if public.

        Post-processing, on which no loss depends.
        """

    def draw(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """Draw with exact integer noise, shape `(draws, k)`; draws may be negative."""
        counts = as_counts(counts)
        prior = as_prior(prior, counts.size)
        total = int(counts.sum())
        law = self.law(total, prior)
        part = counts[np.array(law.noised)]
        noised = law.noise.draws(draws * part.size).reshape(draws, part.size) + part
        return law.completed(saturated(noised), total)

    def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Integers:
        """`size` releases, shape `(size, k)`: draws made to look like counts."""
        return self.project(self.draw(counts, prior, size), int(as_counts(counts).sum()))


def log_clamped(noise: IntegerNoise, count: int, low: int, high: int) -> Floats:
    """`ln P(clamp(count + Z, low, high) = y)` for y = low..high, shape `(high - low + 1,)`."""
    if low == high:
        return np.zeros(1)
    log_p = noise.log_mass(np.arange(low, high + 1) - count)
    log_p[0], log_p[-1] = noise.log_at_most(low - count), noise.log_at_least(high - count)
    return log_p
