"""Laws of integer noise: those of the package, and one without a kink."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace, FlooredLaplace

__all__ = ["DiscreteGaussian", "DiscreteLaplace", "FlooredLaplace"]


@dataclass(frozen=True)
class DiscreteGaussian:
    """`P(z) ∝ exp(-z² / (2 scale²))`."""

    scale: float
    kinks: ClassVar[tuple[int, ...]] = ()

    def log_mass(self, value):
        """Up to a constant."""
        return -(np.asarray(value, dtype=np.float64) ** 2) / 2 / self.scale**2

    def log_ratio(self, origin, step):
        origin = np.asarray(origin, dtype=np.float64)
        return -step * (2 * origin + step) / 2 / self.scale**2

    def reach(self, depth):
        return math.ceil(math.sqrt(2 * depth) * self.scale)
