"""Laws of sums of independent counts, on grids."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opendp_bayes.inference.laws.count_cells import NOTHING
from opendp_bayes.mathematics.validation import Floats, Integers

#: A law is smooth whose largest density is at most `_FLAT` over its deviation (0.4 for a normal
#: law) and changes by at most a share `_STEADY` of it over `SHORT` of its deviation.
SHORT, _FLAT, _STEADY = 1 / 24, 0.6, 0.1
#: And it is of at least so many counts: fewer have edges where the law is small.
_MANY = 6


def cubic_weights(place: Floats) -> tuple[Integers, Floats]:
    """The four grid points about each place, the first of them of shape `(m,)`, and the weights of
    a cubic through them, shape `(4, m)`.
    """
    base = np.floor(place)
    t = place - base
    weights = [
        -t * (t - 1) * (t - 2) / 6,
        (t + 1) * (t - 1) * (t - 2) / 2,
        -(t + 1) * t * (t - 2) / 2,
        (t + 1) * t * (t - 1) / 6,
    ]
    return base.astype(np.int64) - 1, np.stack(weights)


@dataclass(frozen=True, eq=False)
class GridLaw:
    """Probabilities per count of a sum at the points of a cycle, the first of them
    `origin * step`; up to `reach` where it is a zoom.
    """

    values: Floats
    origin: int
    step: int
    damping: float
    reach: int | None

    def density(self, sums: Floats) -> Floats:
        """At each sum, none of which is further than a cycle from another."""
        place = sums / self.step - self.origin
        if self.step == 1 and np.all(place == np.floor(place)):
            found = self.values[place.astype(np.int64) % self.values.size]
        else:
            base, weights = cubic_weights(place)
            points = np.stack([base + i for i in range(4)]) % self.values.size
            found = np.einsum("ij,ij->j", weights, self.values[points])
        return np.maximum(found, 0.0) * np.exp(self.damping * sums)


@dataclass(frozen=True, eq=False)
class SumLaw:
    """The law of a sum from `lowest` to `highest`, on grids from the finest to the coarsest."""

    grids: list[GridLaw]
    lowest: float
    highest: float
    deviation: float
    counts: int

    def bulk(self, depth: float) -> tuple[float, float]:
        """The smallest and the largest sum with a density above `exp(-depth)` of the largest."""
        found, top = [], -np.inf
        for grid in self.grids:
            first = np.floor(self.lowest / grid.step) - grid.origin
            values = np.roll(grid.values, -int(first) % grid.values.size)
            sums = (first + grid.origin + np.arange(values.size)) * grid.step
            reach = self.highest if grid.reach is None else grid.reach
            seen = (values > 0) & (sums <= reach)
            log_values = np.log(values[seen]) + grid.damping * sums[seen]
            found.append((sums[seen], log_values))
            top = max(top, log_values.max(initial=-np.inf))
        sums = np.concatenate([s[values > top - depth] for s, values in found])
        return max(float(sums.min()), self.lowest), min(float(sums.max()), self.highest)

    @property
    def log_peak(self) -> float | None:
        """Logarithm of its largest density; None where it may be an atom's."""
        return float(np.log(self.grids[0].values.max())) if len(self.grids) == 1 else None

    @cached_property
    def is_smooth(self) -> bool:
        """Whether the law has neither an atom nor an edge, only the bulk of its deviation."""
        if self.counts < _MANY or len(self.grids) > 1 or self.lowest <= 0:
            return False
        values, step = self.grids[0].values, self.grids[0].step
        most = float(values.max())
        stride = min(max(int(self.deviation * SHORT / step), 1), values.size - 1)
        jump = np.abs(values[stride:] - values[:-stride]).max()
        return most * self.deviation <= _FLAT and float(jump) <= _STEADY * most

    def log_density(self, sums: Floats) -> Floats:
        """The logarithm of the probability of each sum, also between whole numbers."""
        flat = np.ravel(sums)
        found = np.zeros(flat.shape)
        left = (flat >= self.lowest) & (flat <= self.highest)
        for grid in self.grids:
            near = left if grid.reach is None else left & (flat <= grid.reach)
            found[near] = grid.density(flat[near])
            left = left & ~near
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.log(found), NOTHING).reshape(np.shape(sums)))

    @cached_property
    def seeds(self) -> Integers:
        """Sums between which its probability has no narrow peak."""
        doubled = 2.0 ** np.arange(0, np.log2(self.highest + 2))
        seeds = [doubled, np.linspace(self.lowest, self.highest, 33), np.zeros(1)]
        for grid in self.grids:
            first = np.floor(self.lowest / grid.step) - grid.origin
            turned = np.roll(grid.values, -int(first) % grid.values.size)
            mass = np.cumsum(turned)
            if mass[-1] > 0:
                places = np.searchsorted(mass, mass[-1] * np.linspace(0, 1, 33)[1:-1])
                seeds.append((first + grid.origin + places) * grid.step)
        every = np.unique(np.floor(np.concatenate(seeds)))
        return every[(every >= self.lowest) & (every <= self.highest)].astype(np.int64)
