"""Sums over consecutive parts of an array, one for each owner: a law, a mixture, a cell."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import Floats, Integers


@dataclass(frozen=True, eq=False)
class Segments:
    """Parts of an array, none of them empty: part i is from `start[i]` to `start[i + 1]`.

    Examples
    --------
    >>> parts = Segments.of(np.array([0, 0, 1]))
    >>> parts.sums(np.array([1.0, 2.0, 4.0])).tolist()
    [3.0, 4.0]
    >>> parts.shares(np.log([1.0, 3.0, 4.0])).round(6).tolist()
    [0.25, 0.75, 1.0]
    """

    start: Integers

    @classmethod
    def of(cls, owner: Integers) -> "Segments":
        """Make the parts whose owners are the same; `owner` ascends or has runs of equal ones."""
        first = np.flatnonzero(np.diff(owner, prepend=owner[:1] - 1))
        return cls(np.append(first, owner.size))

    def __len__(self) -> int:
        return self.start.size - 1

    @property
    def sizes(self) -> Integers:
        """Number of entries of each part."""
        return np.diff(self.start)

    @cached_property
    def owner(self) -> Integers:
        """Number of the part that each entry belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def sums(self, values: ArrayLike) -> Floats:
        """Sum of each part along the last axis."""
        return np.asarray(np.add.reduceat(values, self.start[:-1], axis=-1))

    def largest(self, values: ArrayLike) -> Floats:
        """Largest entry of each part along the last axis."""
        return np.asarray(np.maximum.reduceat(values, self.start[:-1], axis=-1))

    def shares(self, logarithms: Floats) -> Floats:
        """Share of each entry in the sum of its part, of which the logarithms are given."""
        weights = np.exp(logarithms - self.largest(logarithms)[self.owner])
        return weights / self.sums(weights)[self.owner]

    def chosen(self, parts: Integers) -> tuple["Segments", Integers]:
        """Some of the parts, which may repeat, and the places of their entries."""
        sizes = self.sizes[parts]
        start = np.concatenate([[0], np.cumsum(sizes)])
        return Segments(start), np.arange(start[-1]) + np.repeat(
            self.start[parts] - start[:-1], sizes
        )
