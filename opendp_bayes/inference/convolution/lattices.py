"""Laws of sums on lattices, many at once: a row each, with a step and an origin of its own.

A step is a power of two and an origin a multiple of it; between its points a law is a cubic of
Lagrange's.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opendp_bayes.inference.laws.count_cells import Cells
from opendp_bayes.mathematics.validation import Floats, Integers

#: Quantiles of a law at which cells begin.
_LEVELS = 24

#: Origin, step and masses of a law.
Row = tuple[int, int, Floats]


@dataclass(frozen=True, eq=False)
class Lattices:
    """`masses`, shape `(rows, points)`, at `origin + step * point`; nothing beyond them. To be read
    alone, there may be several for each row, shape `(..., rows, points)`.
    """

    origin: Integers
    step: Integers
    masses: Floats

    @classmethod
    def gathered(cls, rows: Sequence[Row]) -> "Lattices":
        """Rows of different lengths, each with its origin and its step."""
        points = max(max(masses.size for _, _, masses in rows), 4)
        whole = np.zeros((len(rows), points))
        for place, (_, _, masses) in enumerate(rows):
            whole[place, : masses.size] = masses
        return cls(np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), whole)

    @property
    def points(self) -> int:
        """Number of points of each row."""
        return self.masses.shape[-1]

    def density(self, row: Integers, sums: Floats) -> Floats:
        """The probability of each sum, a real number, in each row; elementwise."""
        return np.maximum(self.read(row, sums), 0.0) / self.step[row]

    def read(self, row: Integers, sums: Floats) -> Floats:
        """The values at real numbers between the points, 0 beyond them; elementwise, behind what
        there is for each row.
        """
        place = (sums - self.origin[row]) / self.step[row]
        first, weights = _stencil(place, self.points)
        flat = self.masses.reshape(*self.masses.shape[:-2], -1)
        start = row * self.points + first
        found = sum(weight * flat.take(start + i, axis=-1) for i, weight in enumerate(weights))
        return np.where((place >= 0) & (place <= self.points - 1), found, 0.0)


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


def spread(
    row: Integers, place: Floats, masses: Floats, origin: Integers, step: Integers, points: int
) -> Lattices:
    """Masses at real places of rows, handed to the four lattice points nearest to each; those
    beyond the points are left out.
    """
    at = (place - origin[row]) / step[row]
    inside = (at >= 0) & (at <= points - 1)
    row, at, masses = row[inside], at[inside], masses[inside]
    first, weights = _stencil(at, points)
    start, size = row * points + first, origin.size * points
    flat = np.zeros(size)
    for offset, weight in enumerate(weights):
        flat += np.bincount(start + offset, weight * masses, minlength=size)
    return Lattices(origin, step, flat.reshape(-1, points))


def aligned(cells: Cells, origin: Integers, step: Integers) -> Cells:
    """Cells cut before every point of lattices."""
    row = cells.category
    first = (cells.first - origin[row]) // step[row]
    pieces = (cells.last - origin[row]) // step[row] - first + 1
    cell = np.repeat(np.arange(pieces.size), pieces)
    place = np.arange(cell.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    row = row[cell]
    start = origin[row] + step[row] * (first[cell] + place)
    end = start + step[row] - 1
    return Cells(row, np.maximum(cells.first[cell], start), np.minimum(cells.last[cell], end))


def quantiles(laws: Lattices) -> Floats:
    """Places of each law between which there is little of it, and where it is largest; shape
    `(rows, _LEVELS + 1)`.
    """
    running = np.cumsum(np.maximum(laws.masses, 0), axis=1)
    wanted = running[:, -1:] * np.linspace(1e-4, 1 - 1e-4, _LEVELS)
    found = np.stack([np.searchsorted(r, w) for r, w in zip(running, wanted, strict=True)])
    most = laws.masses.argmax(axis=1)[:, None]
    return laws.origin[:, None] + laws.step[:, None] * np.concatenate([found, most], axis=1)
