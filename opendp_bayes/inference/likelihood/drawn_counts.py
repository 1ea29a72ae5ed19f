"""Counts as they were drawn, each with independent noise of one law."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise


@dataclass(frozen=True, eq=False)
class DrawnCounts:
    """Counts with independent noise, as they were drawn.

    Attributes
    ----------
    drawn : ndarray of int
        What was drawn of each count, an array of integers; most often of shape `(k,)`.
    noise : IntegerNoise
        Law of the noise.
    noised : NDArray[bool_]
        Which of them were drawn with this noise, shaped as `drawn`; the others say nothing.
    """

    drawn: Integers
    noise: IntegerNoise
    noised: NDArray[np.bool_]

    @classmethod
    def of(cls, drawn: ArrayLike, noise: IntegerNoise, noised: ArrayLike = True) -> "DrawnCounts":
        """Make it of array-likes; by default every count was noised."""
        array = np.asarray(drawn, dtype=np.int64)
        return cls(array, noise, np.broadcast_to(np.asarray(noised, dtype=bool), array.shape))

    @cached_property
    def is_complete(self) -> bool:
        """True if every count was noised."""
        return bool(self.noised.all())

    @property
    def kinks(self) -> list[Integers]:
        """Counts at which the logarithm of the noise is not smooth, each shaped as `drawn`."""
        return [self.drawn - kink for kink in self.noise.kinks]

    def chosen(self, index: Any) -> "DrawnCounts":
        """Those at an index of the array."""
        return DrawnCounts(self.drawn[index], self.noise, self.noised[index])

    def placed(self, places: Any, shape: int | tuple[int, ...]) -> "DrawnCounts":
        """Put them at places of an array of another shape, whose other counts are not noised."""
        noisy_counts, noised = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=bool)
        noisy_counts[places], noised[places] = self.drawn, self.noised
        return DrawnCounts(noisy_counts, self.noise, noised)

    def log_mass(self, counts: ArrayLike, index: Any = ...) -> Floats:
        """Log-probability of what was drawn at an index of the array, given counts that broadcast
        against it; 0 where nothing was noised.
        """
        log_mass = self.noise.log_mass(self.drawn[index] - np.asarray(counts))
        return log_mass if self.is_complete else np.where(self.noised[index], log_mass, 0.0)

    def log_ratio(self, counts: ArrayLike, step: ArrayLike, index: Any = ...) -> Floats:
        """Change of `log_mass` when a step, which need not be whole, is added to the counts; by a
        formula that keeps its digits where both logarithms are huge.
        """
        log_ratio = self.noise.log_ratio(self.drawn[index] - np.asarray(counts), -np.asarray(step))
        return log_ratio if self.is_complete else np.where(self.noised[index], log_ratio, 0.0)

    def log_likelihood(self, counts: Integers) -> Floats:
        """Log-probability of all that was drawn, given rows of counts of shape `(m, k)`."""
        return np.asarray(self.log_mass(counts).sum(axis=-1))
