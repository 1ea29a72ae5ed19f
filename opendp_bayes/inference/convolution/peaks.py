"""A law on `0..size` of which nothing is known but its weights, and how its peaks are found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from opendp_bayes.inference.laws.count_cells import NOTHING, graded_edges
from opendp_bayes.mathematics.validation import Floats, Integers

#: Points into which an interval beside a local maximum is cut, and the change of the logarithm of
#: the weight over it that is small enough.
_PIECES, _CHANGE = 16, 0.5


@dataclass(frozen=True, eq=False)
class Peaked:
    """Weights of the numbers from `lowest` to `highest`, of real numbers too; every peak of them is
    a seed.
    """

    log_weight: Callable[[Floats], Floats]
    lowest: float
    highest: float
    seeds: Integers

    @classmethod
    def of(
        cls, log_weight: Callable[[Floats], Floats], size: int, around: Iterable[int]
    ) -> "Peaked":
        """Of numbers up to `size`, whose logarithms may be bent most around some, and at the ends.

        Between two points of which one is higher than its other neighbour there may be a peak: such
        intervals are cut until their ends are alike or neighbours.
        """
        points = graded_edges(size, around)[:-1]
        heights = log_weight(points.astype(np.float64))
        while True:
            steps = np.diff(points)
            unlike = (np.abs(np.diff(heights)) > _CHANGE) & (steps > 1)
            left = np.append(-np.inf, heights[:-1])
            right = np.append(heights[1:], -np.inf)
            peak = (heights >= left) & (heights >= right)
            cut = np.flatnonzero(unlike & (peak[:-1] | peak[1:]))
            if not cut.size:
                return cls(log_weight, 0.0, float(size), points)
            places = points[cut, None] + steps[cut, None] * np.arange(1, _PIECES) // _PIECES
            new = np.setdiff1d(places, points)
            points = np.append(points, new)
            heights = np.append(heights, log_weight(new.astype(np.float64)))
            order = np.argsort(points)
            points, heights = points[order], heights[order]

    @property
    def is_smooth(self) -> bool:
        return False

    @property
    def deviation(self) -> float:
        return self.highest  # not known; never narrower

    @property
    def log_peak(self) -> float | None:
        return None

    def log_density(self, values: Floats) -> Floats:
        inside = (values >= self.lowest) & (values <= self.highest)
        return np.where(
            inside, self.log_weight(np.clip(values, self.lowest, self.highest)), NOTHING
        )


@dataclass(frozen=True, eq=False)
class Anything:
    """What completes a count to a sum whatever it is: every number up to `size`, of weight 1."""

    size: int
    lowest: float = 0.0
    is_smooth: bool = False
    log_peak: float | None = 0.0

    @property
    def highest(self) -> float:
        return float(self.size)

    @property
    def deviation(self) -> float:
        return float(self.size)

    @property
    def seeds(self) -> Integers:
        return np.array([0, self.size])

    def log_density(self, values: Floats) -> Floats:
        return np.where((values >= 0) & (values <= self.size), 0.0, NOTHING)
