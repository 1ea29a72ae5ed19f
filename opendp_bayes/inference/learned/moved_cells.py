"""Cells of a public number of records, whose true counts move: two cells exchange records, first
any two, then two whose draws are alike, as many may go from one to the other at once.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.laws.dirichlet_multinomial import one_of
from opendp_bayes.inference.learned.intensity_law import IntensityLaw
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.mathematics.validation import Floats, Integers

#: Ratio of the spacings between which the counts' steps choose; how often each of these is tried in
#: a sweep, on average; and places of a step, its own among them.
_SPACING, _ROUNDS, _PLACES = 8, 3, 11
#: Below every logarithm of a probability that matters.
IMPOSSIBLE = -1e30


@dataclass(frozen=True, eq=False)
class LogMasses:
    """`ln P(evidence | location)` of some kinds of cells in every chain, at locations from the
    `lowest` on: `flat`, of which `row_of` numbers the rows of a chain by kind.
    """

    flat: NDArray[np.float32]
    lowest: int
    locations: int
    row_of: Integers
    rows: int

    def start(self, kinds: Integers) -> Integers:
        """Index of the location 0 of kinds, whose first axis is the chains'."""
        chain = np.arange(len(kinds)).reshape(-1, *[1] * (kinds.ndim - 1))
        return (chain * self.rows + self.row_of[kinds]) * self.locations - self.lowest


class MovedCells:
    """True counts of every chain, `counts` of shape `(chains, k)`."""

    #: The evidence of a cell is its count.
    shares: Floats | None = None

    def __init__(self, table: NoisedTable, law: IntensityLaw, chains: int) -> None:
        self._table, self._law = table, law
        self.counts: Integers = np.tile(table.start(), (chains, 1))
        reach = max(min(2 * table.scale, law.largest) / _PLACES, 1.0)
        self._spacings = 1 + math.ceil(math.log(reach, _SPACING))

    def kinds(self, _chains: int) -> Integers:
        """Classes of the counts, shape `(chains, k)`."""
        return self._law.classes(self.counts)

    def given(self, _points: Integers, _rng: np.random.Generator) -> Integers:
        """The counts, whatever the points of the lattice of ln λ are."""
        return self.counts.copy()

    def move(
        self,
        tabulated: Callable[[Integers, int], LogMasses],
        location: Integers,
        rng: np.random.Generator,
    ) -> None:
        """Exchange records at locations of shape `(chains, k)`; `tabulated` are masses of classes,
        up to some steps from these.
        """
        masses = tabulated(self._reached_classes(), 0)
        for _ in range(_ROUNDS * self._spacings):
            for order in self._table.orders(rng):
                self._exchange(order[:-1:2], order[1::2], masses, location, rng)

    def _reached_classes(self) -> Integers:
        """The classes of all counts that the moves of one sweep may come to, and the next ones."""
        step = (_PLACES - 1) * _SPACING ** (self._spacings - 1)
        far = 2 * step * _ROUNDS * self._spacings
        ends = np.clip([self.counts - far, self.counts + far], 0, self._law.largest)
        first, last = self._law.place(ends).astype(np.int64)
        begun = np.bincount(first.ravel(), minlength=self._law.values.size)
        ended = np.bincount(last.ravel() + 2, minlength=self._law.values.size)
        return np.flatnonzero(np.cumsum(begun) > np.cumsum(ended)[: begun.size])

    def _exchange(
        self,
        ones: Integers,
        others: Integers,
        masses: LogMasses,
        location: Integers,
        rng: np.random.Generator,
    ) -> None:
        """Exchange records between each of some cells and another."""
        steps, moved = self._steps((len(self.counts), ones.size), rng), []
        log_p = np.zeros(steps.shape)
        for cells, sign in ((ones, 1), (others, -1)):
            candidates = self.counts[:, cells, None] + sign * steps
            log_p = log_p + self._table.log_noise(candidates, cells)
            log_p = log_p + self._log_mass(candidates, masses, location[:, cells, None])
            moved.append((cells, candidates))
        place = one_of(log_p, rng)[..., None]
        for cells, candidates in moved:
            self.counts[:, cells] = np.take_along_axis(candidates, place, axis=-1)[..., 0]

    def _log_mass(self, counts: Integers, masses: LogMasses, location: Integers) -> Floats:
        """`ln P(count | location)` of candidates for the counts of some cells, shape `(chains,
        cells, candidates)`; linear in between classes.
        """
        possible = np.clip(counts, 0, self._law.largest)
        place = self._law.place(possible)
        below = place.astype(np.int64)
        at = masses.start(below) + location
        found, part = np.take(masses.flat, at), place - below
        if part.any():
            found = found + part * (np.take(masses.flat, at + masses.locations) - found)
        return np.where(possible == counts, found, IMPOSSIBLE)

    def _steps(self, shape: tuple[int, ...], rng: np.random.Generator) -> Integers:
        """Equally spaced steps, 0 among them, whose spacing is 1 or up to the noise's scale."""
        spacing = _SPACING ** rng.integers(self._spacings, size=shape)
        start = -rng.integers(_PLACES, size=shape)
        return (start[..., None] + np.arange(_PLACES)) * spacing[..., None]
