"""Dirichlet-multinomial counts at their quantiles given what was drawn with noise, one category
after another.

Let `n` records of a group be in none of the categories before. Then `x` of them are in this one
with a probability in proportion to the beta-binomial `Γ(x + a) / x! Γ(n - x + b) / (n - x)!` times
that of the noise with which this category was drawn. Here `a` is the concentration of this category
and `b` that of all after it. The probability of the noise of later categories is left to weights.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.rising import Rising, Runs
from opendp_bayes.mathematics.validation import Floats, Integers

#: In groups with more records than this, counts move by more than one.
_POINTS = 128
#: Counts of a smaller probability are not moved: rounding could misplace them.
_LEAST = 1e-9


class Placed(NamedTuple):
    """Counts, of shape `(rows, k)`, the logarithm of a weight of every row, and whether rounding
    leaves them their place.
    """

    counts: Integers
    log_weight: Floats
    inside: NDArray[np.bool_]


class Standing:
    """At which quantiles of their laws counts stand, drawn between those of one less and their own.

    `counts` of shape `(rows, k)` are of groups of the chains `chain`, shape `(rows,)`; `a`, shape
    `(chains, k)`, are their concentrations. The numbers of records stay as they are. `placed` are
    the counts, and `moved` those at the same quantiles for other concentrations: with a probability
    that differs from that of the first by the ratio of the weights alone. These are of what was
    drawn, one category given those before it; and of remainders, where a group has more than
    `_POINTS` records, whose counts move by multiples of a stride.
    """

    def __init__(
        self,
        counts: Integers,
        chain: Integers,
        a: Floats,
        noisy: DrawnCounts,
        rng: np.random.Generator,
    ) -> None:
        self._chain, self._sizes, self._noisy = chain, counts.sum(axis=1), noisy
        stride = 1 + self._sizes[:, None] // _POINTS
        steps, self._first = np.divmod(counts, stride)
        self._stride = 1 if np.all(stride == 1) else stride[:, 0]
        self._shares = rng.random(counts.shape)

        def known(j: int, points: _Points) -> Integers:
            index = points.runs.start + steps[:, j]
            self._shares[:, j] = points.share(index, self._shares[:, j])
            return index

        self.placed = self._walked(a, known)

    def moved(self, a: Floats) -> Placed:
        """The counts at the same quantiles for the concentrations `a`."""
        return self._walked(a, lambda j, points: points.at(self._shares[:, j]))

    def _walked(self, a: Floats, index_of: Callable[[int, "_Points"], Integers]) -> Placed:
        laws, left, counts = _Laws(a, self._noisy), self._sizes, []
        log_weight, inside = np.zeros(left.size), np.ones(left.size, dtype=bool)
        for j in range(a.shape[1] - 1):
            points = laws.points(j, self._chain, left, self._first[:, j], self._stride)
            index = index_of(j, points)
            inside &= (left >= self._first[:, j]) & (points.mass[index] > _LEAST * points.total)
            log_weight += points.log_total
            counts.append(points.counts(index))
            left = left - counts[-1]
        log_weight += self._noisy.log_mass(left, (slice(None), -1))
        return Placed(np.stack([*counts, left], axis=1), log_weight, inside)


class _Laws:
    """The beta-binomial laws of Dirichlet distributions of concentrations `a`, `(chains, k)`, given
    what was drawn.
    """

    def __init__(self, a: Floats, noisy: DrawnCounts) -> None:
        self._noisy = noisy
        #: Of every category, and of it and all after it.
        self._a, self._rest = a, np.cumsum(a[:, ::-1], axis=1)[:, ::-1]
        self._rising = Rising(np.concatenate([self._a, self._rest], axis=1))

    def points(
        self, j: int, chain: Integers, left: Integers, first: Integers, stride: int | Integers
    ) -> "_Points":
        """Points of the law of category j: from `first` by `stride` to at most `left`, all of shape
        `(rows,)`.
        """
        k = self._a.shape[1]
        most = np.maximum(left, first)  # a row with fewer left than `first` is not `inside`
        runs = Runs((most - first) // stride + 1)
        log_mass = self._rising.along(runs, first, stride, chain, j)
        log_mass += self._rising.along(runs, most - first, -stride, chain, k + j + 1)
        rows = runs.of(np.arange(first.size))
        log_mass += self._noisy.log_mass(runs.line(first, stride), (rows, j))
        return _Points(runs, first, stride, log_mass, self._rising(left, chain, k + j))


class _Points:
    """Counts at `runs` of points, from `first` by `stride`, and their `mass`, the largest of every
    row 1; `log_total` is of what the masses were, divided by `log_all`.
    """

    def __init__(
        self,
        runs: Runs,
        first: Integers,
        stride: int | Integers,
        log_mass: Floats,
        log_all: Floats,
    ) -> None:
        self.runs, self._first, self._stride = runs, first, stride
        log_largest = np.fmax.reduceat(log_mass, runs.start)
        self.mass = np.fmax(np.exp(log_mass - runs.of(log_largest)), 0.0)
        self._upto = np.cumsum(self.mass)
        self._before = self._upto[runs.start] - self.mass[runs.start]
        self.total = np.maximum(self._upto[runs.last] - self._before, np.finfo(np.float64).tiny)
        self.log_total = np.log(self.total) + log_largest - log_all

    def counts(self, index: Integers) -> Integers:
        """The count at one point of every row."""
        return self._first + self._stride * (index - self.runs.start)

    def share(self, index: Integers, part: Floats) -> Floats:
        """Share of a row's mass up to and with a point, less `part` of the point's own mass."""
        return (self._upto[index] - part * self.mass[index] - self._before) / self.total

    def at(self, share: Floats) -> Any:
        """The points before which there is this share of the mass of their rows."""
        index = np.searchsorted(self._upto, self._before + share * self.total)
        return np.clip(index, self.runs.start, self.runs.last)
