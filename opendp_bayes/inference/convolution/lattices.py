"""Laws of sums on lattices, many at once: a row each, with a step and an origin of its own.

A step is a power of two and an origin a multiple of it; between its points a law is a cubic of
Lagrange's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from opendp_bayes.inference.laws.count_cells import Cells
from opendp_bayes.mathematics.validation import Floats, Integers


@dataclass(frozen=True, eq=False)
class Lattices:
    """`masses`, shape `(..., rows, points)`, at `origin + step * point`; nothing beyond them."""

    origin: Integers
    step: Integers
    masses: Floats

    @classmethod
    def joined(cls, several: "Sequence[Lattices]") -> "Lattices":
        """The rows of several, with as many points each."""
        origin, step = (
            np.concatenate([getattr(lattices, field) for lattices in several])
            for field in ("origin", "step")
        )
        points = max(lattices.points for lattices in several)
        masses = np.zeros((*several[0].masses.shape[:-2], origin.size, points))
        first = 0
        for lattices in several:
            rows = slice(first, first := first + lattices.origin.size)
            masses[..., rows, : lattices.points] = lattices.masses
        return cls(origin, step, masses)

    @property
    def points(self) -> int:
        """Number of points of each row."""
        return self.masses.shape[-1]

    def read(self, row: Integers, sums: Floats) -> Floats:
        """The values at real numbers between the points, 0 beyond them, elementwise; shape `(...,
        *row.shape)`.
        """
        place = (sums - self.origin[row]) / self.step[row]
        first, weights = _stencil(place, self.points)
        flat = self.masses.reshape(*self.masses.shape[:-2], -1)
        start = row * self.points + first
        values = sum(weight * flat.take(start + i, axis=-1) for i, weight in enumerate(weights))
        return np.where((place >= 0) & (place <= self.points - 1), values, 0.0)


def _stencil(place: Floats, points: int) -> tuple[Integers, list[Floats]]:
    """The first of the four points about each place that are nearest to it, all of them on the
    lattice, and the weights of a cubic through them.
    """
    first = np.clip(np.floor(place) - 1, 0, points - 4).astype(np.int64)
    return first, cubic(place - first)


def cubic(u: Floats) -> list[Floats]:
    """The weights at u of a cubic through points at 0, 1, 2 and 3."""
    a, b, c = u - 1, u - 2, u - 3
    return [a * b * c / -6, u * b * c / 2, u * a * c / -2, u * a * b / 6]


def aligned(cells: Cells, origin: Integers, step: int) -> Cells:
    """Cells cut before every point of lattices of one step."""
    row = cells.category
    first = (cells.first - origin[row]) // step
    pieces = (cells.last - origin[row]) // step - first + 1
    cell = np.repeat(np.arange(pieces.size), pieces)
    place = np.arange(cell.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    row = row[cell]
    start = origin[row] + step * (first[cell] + place)
    end = start + step - 1
    return Cells(row, np.maximum(cells.first[cell], start), np.minimum(cells.last[cell], end))


def spreading(row: Integers, place: Floats, rows: int, points: int) -> sparse.csc_array:
    """The matrix that hands masses at places of rows to the four lattice points nearest to each;
    shape `(rows * points, places)`.
    """
    first, weights = _stencil(place, points)
    at = (row * points + first)[:, None] + np.arange(4)
    entries, ends = np.stack(weights, axis=1).ravel(), np.arange(0, 4 * place.size + 1, 4)
    return sparse.csc_array((entries, at.ravel(), ends), shape=(rows * points, place.size))
