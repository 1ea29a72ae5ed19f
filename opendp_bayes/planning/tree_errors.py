"""Errors of counts on a tree that are estimated together, from the variances of their noise alone.

Every level of the tree was drawn with noise of one variance, and all counts are estimated by least
squares: the best unbiased estimates that add up. Up the tree, a count's own draw and the sum of its
parts are weighed by precision, which gives it a variance z from what is below. Down, the difference
between a sum's estimate and that of its parts is divided among these in proportion to their z. So,
given their sum, the estimates of parts have the covariance `diag(z) - z z' / sum(z)`, and the
variance of any sum of leaves follows level by level. The number of records is no part of a share:
at the root the sum is given.

Source: Hay, Rastogi, Miklau and Suciu, "Boosting the accuracy of differentially private histograms
through consistency" (2010), for equal variances; Honaker, "Efficient use of differentially private
binary trees" (2015), for the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers

#: The counts whose mean squared error is meant: of the leaves, of the leaves up to each one, or of
#: all intervals of leaves.
Wanted = Literal["quantiles", "cells", "ranges"]


@dataclass(frozen=True, eq=False)
class CountTree:
    """Counts of several levels, each of which counts parts of the next.

    Attributes
    ----------
    parents : of each level, finest first, the place in the next one of every count; those of the
        last level are parts of the root, 0, which is not drawn.
    """

    parents: tuple[Integers, ...]

    @classmethod
    def of(cls, parts: Sequence[Integers]) -> "CountTree":
        """Make the tree of partitions of the same cells, finest first and no two alike; each has
        the part of every cell, shape `(cells,)`.
        """
        parents = []
        for fine, coarse in zip(parts, [*parts[1:], np.zeros_like(parts[0])], strict=True):
            parent = np.empty(int(fine.max()) + 1, dtype=np.int64)
            parent[fine] = coarse
            parents.append(parent)
        return cls(tuple(parents))

    def errors(self, variances: Floats) -> list[Floats]:
        """Variances of the estimates of all counts, by level, finest first.

        `variances` are those of the noise, shape `(levels,)`.
        """
        above = np.zeros(1)
        found: list[Floats] = []
        for z, parent in zip(self._up(variances)[::-1], self.parents[::-1], strict=True):
            part = z / np.bincount(parent, z)[parent]
            above = z * (1 - part) + part**2 * above[parent]
            found.append(above)
        return found[::-1]

    def mean_error(self, variances: Floats, wanted: Wanted) -> float:
        """The mean variance of the estimates of some sums of leaves. But for `"cells"`, the leaves
        and all counts of a level are in order.
        """
        if wanted == "cells":
            return float(self.errors(variances)[0].mean())
        prefixes = self.errors_up_to(variances)
        if wanted == "quantiles":
            return float(prefixes.mean())
        # An interval is a difference of two of k + 1 prefixes, of which the first is empty.
        k = prefixes.size
        squares = (k + 1) * prefixes.sum() - self._error_of_sum_of_prefixes(variances)
        return float(squares / (k * (k + 1) / 2))

    def errors_up_to(self, variances: Floats) -> Floats:
        """Variances of the estimated numbers of records up to each leaf, shape `(leaves,)`.

        Given the sum of a family, the number up to a leaf within it is expected to grow by `rise`
        with that sum, and has the variance `within`.
        """
        below = self._up(variances)
        rise, within = np.ones(below[0].size), np.zeros(below[0].size)
        for z, parent, own in zip(below, self.parents, self._of_leaf, strict=True):
            family = np.bincount(parent, z)[parent]
            before = np.cumsum(z) - z
            first = np.searchsorted(parent, parent)
            left, z, family = (before - before[first])[own], z[own], family[own]
            mean = (left + rise * z) / family
            right = np.maximum(family - left - z, 0)
            within = within + left * (1 - mean) ** 2 + z * (rise - mean) ** 2 + right * mean**2
            rise = mean
        return within

    def _error_of_sum_of_prefixes(self, variances: Floats) -> float:
        """The variance of the sum of all prefixes, in which the first leaf counts k times, the next
        one time fewer, and so on.
        """
        below = self._up(variances)
        rise, within = np.arange(below[0].size, 0.0, -1.0), 0.0
        for z, parent in zip(below, self.parents, strict=True):
            mean = np.bincount(parent, rise * z) / np.bincount(parent, z)
            within += float(z @ (rise - mean[parent]) ** 2)
            rise = mean
        return within

    def _up(self, variances: Floats) -> list[Floats]:
        """Variances of all counts as far as their own draws and those below tell, by level."""
        found: list[Floats] = []
        below = np.full(self.parents[0].size, np.inf)
        for variance, parent in zip(variances.tolist(), self.parents, strict=True):
            found.append(1 / (1 / variance + 1 / below))
            below = np.bincount(parent, found[-1])
        return found

    @cached_property
    def _of_leaf(self) -> list[Integers]:
        """The count of each level that every leaf is a part of."""
        found = [np.arange(self.parents[0].size)]
        for parent in self.parents[:-1]:
            found.append(parent[found[-1]])
        return found
