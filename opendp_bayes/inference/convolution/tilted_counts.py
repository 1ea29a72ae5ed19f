"""Dirichlet-multinomial weights of each count times its noise and `exp(tilt x)`, as a law in cells
that are halved until it is smooth.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from opendp_bayes.inference.convolution.noised_categories import NoisedCategories
from opendp_bayes.inference.laws.count_cells import Cells, LogWeight
from opendp_bayes.inference.laws.refinement import cells_from, refined
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers


def modes(categories: NoisedCategories, tilt: float, last: int) -> Integers:
    """For every category, the inner mode of the weights times `exp(tilt x)` on `0..last`, or an end
    where there is none, shape `(k,)`.

    A prior below 1 adds a mode at 0; then the inner one is at least `bend sqrt(1 - prior)`, and
    the weight has no other beyond, for Laplace noise but its kinks.
    """
    rows = np.arange(categories.k)
    start = categories.bend * np.sqrt(np.maximum(1 - categories.prior, 0))
    low = np.minimum(np.ceil(start), last).astype(np.int64)
    high = np.full(categories.k, last)
    while np.any(low < high):
        middle = low + (high - low) // 2
        rising = categories.log_step(rows, middle) + tilt > 0
        low, high = (
            np.where(rising, np.minimum(middle + 1, high), low),
            np.where(rising, high, middle),
        )
    return low


@dataclass(frozen=True, eq=False)
class TiltedCounts:
    """The weights of each category's count times `exp(tilt x)`, as a probability law in cells.

    `anchor`, of shape `(k,)`, is a probable count of each category, and `log_norm` the logarithm of
    the sum of all weights over that of the anchor; `mean` and `variance` are the law's.
    """

    categories: NoisedCategories
    tilt: float
    anchor: Integers
    cells: Cells
    log_norm: Floats
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, categories: NoisedCategories, tilt: float, last: int) -> "TiltedCounts":
        """Place the cells on `0..last`."""
        k, rows = categories.k, np.arange(categories.k)
        mode = modes(categories, tilt, last)
        columns = [mode, *categories.kinks, np.zeros(k, dtype=np.int64), np.full(k, last)]
        seeds = np.stack([np.clip(column, 0, last) for column in columns], axis=1)

        def tilted(anchor: Integers) -> LogWeight:
            def log_weight(category: Integers, counts: Floats) -> Floats:
                along = tilt * (counts - anchor[category])
                return categories.log_weight(category, counts, anchor) + along

            return log_weight

        heights = tilted(mode)(np.repeat(rows, seeds.shape[1]), seeds.ravel().astype(float))
        anchor = seeds[rows, np.argmax(heights.reshape(seeds.shape), axis=1)]
        # Each seed has a cell of its own, and so has what is between two.
        edges = np.concatenate([seeds, seeds + 1], axis=1).astype(np.float64)
        start = cells_from(edges, np.zeros(k), np.full(k, float(last)))
        cells = refined(tilted(anchor), start, k)
        log_masses = cells.log_masses(tilted(anchor))
        return cls(categories, tilt, anchor, cells, *_moments(cells, log_masses, anchor))

    def log_probability(self, category: Integers, counts: Floats) -> Floats:
        """The logarithm of the probability of each count of each category."""
        along = self.tilt * (counts - self.anchor[category])
        weight = self.categories.log_weight(category, counts, self.anchor)
        return np.asarray(weight + along - self.log_norm[category])

    def log_sum(self, multiplicity: Integers, origin: Integers) -> float:
        """The logarithm of the sum of the weights of all data sets, times `exp(tilt n)` for their n
        records; every category is there so many times, and the counts `origin` have weight 1.
        """
        rows = np.arange(multiplicity.size)
        at_anchor = self.categories.log_weight(rows, self.anchor, origin)
        return float(multiplicity @ (at_anchor + self.log_norm + self.tilt * self.anchor))

    @cached_property
    def log_masses(self) -> Floats:
        """Logarithms of the probabilities that the nodes of the cells stand for."""
        return self.cells.log_masses(self.log_probability)

    def chosen(self, rows: Integers) -> "TiltedCounts":
        """Those of some rows."""
        parts, place = Segments.of(self.cells.category).chosen(rows)
        cells = Cells(parts.owner, self.cells.first[place], self.cells.last[place])
        chosen = self.anchor[rows], cells, self.log_norm[rows], self.mean[rows], self.variance[rows]
        return TiltedCounts(self.categories.chosen(rows), self.tilt, *chosen)

    def within(self, low: Floats, high: Floats) -> "TiltedCounts":
        """The parts of the laws between bounds of each; their probabilities stay as they are, and
        the moments are those of the parts.
        """
        bounds = (each.astype(np.int64) for each in (np.floor(low), np.ceil(high)))
        cells = self.cells.within(*bounds)
        _, mean, variance = _moments(cells, cells.log_masses(self.log_probability), self.anchor)
        return replace(self, cells=cells, mean=mean, variance=variance)

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """The smallest and the largest count of each category that has a cell."""
        edges = Segments.of(self.cells.category).start
        return self.cells.first[edges[:-1]], self.cells.last[edges[1:] - 1]


def _moments(cells: Cells, log_masses: Floats, anchor: Integers) -> tuple[Floats, Floats, Floats]:
    """Logarithm of the sum of the masses, mean and variance for each category."""
    parts, owner = Segments.of(cells.category), cells.category[:, None]
    log_sums = cells.log_sums(log_masses)
    masses = np.exp(log_masses - log_sums[owner])
    away = cells.nodes - anchor[owner]
    shift = parts.sums((masses * away).sum(axis=1))
    variance = parts.sums((masses * (away - shift[owner]) ** 2).sum(axis=1))
    return log_sums, anchor + shift, variance
