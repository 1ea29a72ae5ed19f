"""Markov chains of the learned prior. A sweep moves, in turn,

1. the true counts, given weights and effects: each to one of 17 equally spaced places around it,
   of a random spacing; with a public number of records, two cells exchange records;
2. each cell's point of ln γ, the component of each point, and the weights of components;
3. the effects of each margin, and their scale τ.

Every choice is from the exact conditional law, in which intensities are integrated out; where only
some places are offered, which ones does not depend on which of them is the present one. So every
step leaves the posterior as it is.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from opendp_bayes.inference.learned.intensity_law import REACH, SHAPE, STEP, IntensityLaw
from opendp_bayes.inference.learned.margins import WIDTH, Margin, exchanged, one_of
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.mathematics.validation import Floats, Integers

#: Ratio of the spacings between which the counts' steps choose; there are as many moves as these.
_SPACING = 8
_IMPOSSIBLE = -1e30


@dataclass(frozen=True, eq=False)
class Draw:
    """What the chains are at after a sweep.

    `counts` and the Gamma law of each cell's intensity given everything else, its `mean` and its
    `scale`, have shape `(chains, k)`; `weights` `(chains, j + 1)`; `tau`, of every margin, places
    in `SCALES`, `(chains, margins)`.
    """

    counts: Integers
    mean: Floats
    scale: Floats
    weights: Floats
    tau: Integers


class Sweeps:
    """Chains of counts, weights of components and effects of margins, all moved at once."""

    def __init__(
        self,
        table: NoisedTable,
        law: IntensityLaw,
        margins: list[Margin],
        chains: int,
        rng: np.random.Generator,
    ) -> None:
        self._table, self._law, self._margins, self._rng = table, law, margins, rng
        self._chain = np.arange(chains)[:, None]
        reach = max(min(2 * table.scale, law.largest) / WIDTH, 1.0)
        self._spacings = 1 + math.ceil(math.log(reach, _SPACING))
        self.counts: Integers = np.tile(table.start(), (chains, 1))
        self.weights = law.prior_weights(chains, rng)
        self.effects: list[Integers] = [
            np.zeros((chains, each.number), dtype=np.int64) for each in margins
        ]
        self.tau = [np.full(chains, 12) for _ in margins]
        self.location: Integers = np.zeros((chains, table.k), dtype=np.int64)
        self._points = self.location

    def __iter__(self) -> Iterator[Draw]:
        """The chains after one sweep, after two, and so on without an end."""
        while True:
            self._tabulate()
            for _ in range(self._spacings):
                self._move_counts()
            self._move_weights()
            if self._margins:
                self._tabulate()
                self._move_effects()
            yield self._drawn()

    def _tabulate(self) -> None:
        """`ln P(count | location)` at the locations that a sweep may visit."""
        self._lowest = max(int(self.location.min()) - WIDTH * (1 + len(self._margins)), -REACH)
        highest = min(int(self.location.max()) + WIDTH * (1 + len(self._margins)), REACH)
        if not self._margins:
            self._lowest = highest = 0
        masses = self._law.log_masses(self.weights, self._lowest, highest)
        self._locations = masses.shape[2]
        self._row = self._chain * masses.shape[1]
        self._flat = masses.reshape(-1)

    def _log_mass(self, counts: Integers, cells: Integers | slice) -> Floats:
        """`ln P(count | location)` of candidates for the counts of some cells, shape `(chains,
        cells, candidates)`; linear in between classes.
        """
        place = self._law.place(np.clip(counts, 0, self._law.largest))
        below = place.astype(np.int64)
        at = (self._row[..., None] + below) * self._locations
        at += self.location[:, cells, None] - self._lowest
        found = self._flat[at]
        part = place - below
        if part.any():
            found = found + part * (self._flat[at + self._locations] - found)
        impossible = (counts < 0) | (counts > self._law.largest)
        return np.where(impossible, _IMPOSSIBLE, found)

    def _move_counts(self) -> None:
        """Move all counts, or exchange records between pairs of cells."""
        if self._table.size is None:
            every = slice(None)
            steps = self._steps(self.counts.shape)
            candidates = self.counts[..., None] + steps
            log_p = self._table.log_noise(candidates, every) + self._log_mass(candidates, every)
            self.counts = _chosen(candidates, log_p, self._rng)
            return
        order, half = self._rng.permutation(self._table.k), self._table.k // 2
        steps, moved = self._steps((len(self.counts), half)), []
        log_p = np.zeros(steps.shape)
        for cells, sign in ((order[:half], 1), (order[half : 2 * half], -1)):
            candidates = self.counts[:, cells, None] + sign * steps
            log_p = log_p + self._table.log_noise(candidates, cells)
            log_p = log_p + self._log_mass(candidates, cells)
            moved.append((cells, candidates))
        place = one_of(log_p, self._rng)[..., None]
        for cells, candidates in moved:
            self.counts[:, cells] = np.take_along_axis(candidates, place, axis=-1)[..., 0]

    def _steps(self, shape: tuple[int, ...]) -> Integers:
        """Equally spaced steps, 0 among them, whose spacing is 1 or up to the noise's scale."""
        spacing = _SPACING ** self._rng.integers(self._spacings, size=shape)
        start = -self._rng.integers(WIDTH, size=shape)
        return (start[..., None] + np.arange(WIDTH)) * spacing[..., None]

    def _move_weights(self) -> None:
        """Draw each cell's point of ln γ, and the weights given all of them.

        Cells of a chain that agree in class and location share a row of probabilities.
        """
        law, rng = self._law, self._rng
        classes = law.classes(self.counts)
        key = (self._chain * len(law.pmf) + classes) * (2 * REACH + 1) + self.location + REACH
        rows, which = np.unique(key, return_inverse=True)
        rest, location = np.divmod(rows, 2 * REACH + 1)
        chain, row_class = np.divmod(rest, len(law.pmf))
        windows = np.lib.stride_tricks.sliding_window_view(law.pmf, law.gammas, axis=1)
        p = np.empty((rows.size, law.gammas + 1))
        p[:, :-1] = windows[row_class, location]
        p[:, :-1] *= law.density(self.weights)[chain]
        p[:, -1] = self.weights[chain, 0] * law.empty[row_class]
        np.cumsum(p, axis=1, out=p)
        p /= p[:, -1:]
        p += np.arange(rows.size)[:, None]
        which = which.reshape(self.counts.shape)
        found = np.searchsorted(p.reshape(-1), which + rng.random(which.shape))
        points = np.clip(found - which * (law.gammas + 1), 0, law.gammas)
        place = (self._chain * (law.gammas + 1) + points).ravel()
        cells = np.bincount(place, minlength=len(points) * (law.gammas + 1))
        cells = cells.reshape(len(points), law.gammas + 1)
        self._points = points
        self.weights = law.weights_given(law.components(self.weights, cells, rng), rng)
        self._intensities()

    def _intensities(self) -> None:
        """The Gamma laws of intensities given the counts and the points."""
        law = self._law
        empty = self._points == law.gammas
        at = np.where(empty, 0, self._points + self.location + REACH)
        points = np.where(empty, law.points[0], law.points[at])
        intensity = np.exp(STEP * points)
        self._scale = intensity / (intensity + SHAPE)
        self._mean = (SHAPE + self.counts) * self._scale

    def _move_effects(self) -> None:
        """Move the effects of all margins, their scales, and what two margins share."""
        rng, classes = self._rng, self._law.classes(self.counts)
        row = (self._row + classes) * self._locations - self._lowest
        for at, margin in enumerate(self._margins):
            effects, tau = self.effects[at], self.tau[at]
            start = -rng.integers(WIDTH, size=effects.shape)
            places = (self.location + start[:, margin.level])[..., None] + np.arange(WIDTH)
            inside = (places >= self._lowest) & (places < self._lowest + self._locations)
            index = row[..., None] + np.where(inside, places, self._lowest)
            log_p = np.where(inside, self._flat[index], _IMPOSSIBLE)
            moved = margin.moved(effects + start, margin.totals(log_p), tau, rng)
            self.location = self.location + (moved - effects)[:, margin.level]
            self.effects[at], self.tau[at] = moved, margin.scales(moved, rng)
        for first, second in pairwise(range(len(self._margins))):
            one, other = (
                (self._margins[at], self.effects[at], self.tau[at]) for at in (first, second)
            )
            by = exchanged(one, other, rng)[:, None]
            self.effects[first] = self.effects[first] + by
            self.effects[second] = self.effects[second] - by

    def _drawn(self) -> Draw:
        tau = np.stack(self.tau, axis=1) if self.tau else np.zeros((len(self.counts), 0), int)
        return Draw(self.counts.copy(), self._mean, self._scale, self.weights, tau)


def _chosen(candidates: Integers, log_p: Floats, rng: np.random.Generator) -> Integers:
    place = one_of(log_p, rng)[..., None]
    return np.take_along_axis(candidates, place, axis=-1)[..., 0]
