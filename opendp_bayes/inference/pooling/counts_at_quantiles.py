"""Dirichlet-multinomial counts at their quantiles given what was drawn with noise, one category
after another.

Let `n` records of a group be in none of the categories before. Then `x` of them are in this one
with a probability in proportion to the beta-binomial `Γ(x + a) / x! Γ(n - x + b) / (n - x)!` times
that of the noise with which this category was drawn. Here `a` is the concentration of this category
and `b` that of all after it. The probability of the noise of later categories is left to weights.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.rising import Rising
from opendp_bayes.mathematics.segments import Segments
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
        self._stride = 1 + self._sizes // _POINTS
        steps, self._first = np.divmod(counts, self._stride[:, None])
        self._shares = rng.random(counts.shape)
        self.placed = self._walked(a, steps)

    def moved(self, a: Floats) -> Placed:
        """The counts at the same quantiles for the concentrations `a`."""
        return self._walked(a)

    def _walked(self, a: Floats, steps: Integers | None = None) -> Placed:
        """Counts at the quantiles that are known, or at `steps` from the first, whose quantiles are
        drawn here.
        """
        rest = np.cumsum(a[:, ::-1], axis=1)[:, ::-1]  # of every category and all after it
        rising = Rising(np.concatenate([a, rest], axis=1))
        counts, left = np.empty_like(self._first), self._sizes
        log_weight, inside = np.zeros(left.size), np.ones(left.size, dtype=bool)
        for j in range(a.shape[1] - 1):
            first = self._first[:, j]
            inside &= left >= first
            points, log_mass = self._law(j, np.maximum(left, first), rising)
            start, last = points.start[:-1], points.start[1:] - 1
            top = points.largest(log_mass)
            mass = np.exp(log_mass - np.repeat(top, points.sizes))
            upto = np.cumsum(mass)
            before = upto[start] - mass[start]
            total = upto[last] - before
            if steps is None:
                index = np.searchsorted(upto, before + self._shares[:, j] * total)
                index = np.clip(index, start, last)
            else:
                index = start + steps[:, j]
                own = upto[index] - self._shares[:, j] * mass[index]
                self._shares[:, j] = (own - before) / total
            inside &= mass[index] > _LEAST * total
            log_weight += np.log(total) + top - rising(left, self._chain, a.shape[1] + j)
            counts[:, j] = first + self._stride * (index - start)
            left = left - counts[:, j]
        counts[:, -1] = left
        log_weight += self._noisy.log_mass(left, (slice(None), -1))
        return Placed(counts, log_weight, inside)

    def _law(self, j: int, most: Integers, rising: Rising) -> tuple[Segments, Floats]:
        """Points from the first count of category j to at most `most`, shape `(rows,)`, one row
        after another, and the logarithms of their probabilities but for a factor of each row.
        """
        k, first, stride = self._first.shape[1], self._first[:, j], self._stride
        points = Segments(np.append(0, np.cumsum((most - first) // stride + 1)))
        row = points.owner
        counts = np.repeat(first - stride * points.start[:-1], points.sizes)
        counts += stride[row] * np.arange(row.size)
        chain = self._chain[row]
        log_mass = rising(counts, chain, j)
        log_mass += rising(most[row] - counts, chain, k + j + 1)
        return points, log_mass + self._noisy.log_mass(counts, (row, j))
