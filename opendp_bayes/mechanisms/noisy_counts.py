"""The common part of the mechanisms that add noise to counts."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import Floats, Integers, as_counts, as_prior, as_scale
from opendp_bayes.mechanisms.integer_noise import IntegerNoise
from opendp_bayes.mechanisms.laws import AdditiveNoise, Law, saturated

#: Integers of listed noise that `log_pmf` may hold: noise vectors times categories.
LARGEST_NOISE = 4_000_000
#: Listed noise leaves out what is, of any candidate's probability, less than about
#: `exp(-NEGLIGIBLE)`, 4e-14.
NEGLIGIBLE = 31.0


class NoisyCounts(ABC):
    """Counts with integer noise. Subclasses are frozen dataclasses with a `scale`."""

    scale: float

    def __post_init__(self) -> None:
        # A float, whatever number was given.
        object.__setattr__(self, "scale", as_scale(self.scale))

    @abstractmethod
    def law(self, size: int | None, prior: Floats) -> Law:
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
        assert isinstance(law, AdditiveNoise)  # noqa: S101 (others draw in another way)
        true_counts = counts[np.array(law.noised)]
        noised = (
            law.noise.draws(draws * true_counts.size).reshape(draws, true_counts.size) + true_counts
        )
        return law.completed(saturated(noised), total)

    def sample(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """`draws` releases, shape `(draws, k)`: draws made to look like counts."""
        return self.project(self.draw(counts, prior, draws), int(as_counts(counts).sum()))

    def _too_many(self, k: int) -> ValueError:
        return ValueError(
            f"counts: enumerating the noise on {k} categories at scale={self.scale!r} takes"
            f" more than {LARGEST_NOISE} integers. Fewer records, fewer categories or a"
            " smaller scale take less; sampling has no such limit."
        )


def log_clamped(noise: IntegerNoise, count: int, low: int, high: int) -> Floats:
    """`ln P(clamp(count + Z, low, high) = y)` for y = low..high, shape `(high - low + 1,)`."""
    if low == high:
        return np.zeros(1)
    log_p = noise.log_mass(np.arange(low, high + 1) - count)
    log_p[0], log_p[-1] = noise.log_at_most(low - count), noise.log_at_least(high - count)
    return log_p
