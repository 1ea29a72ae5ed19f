"""Markov chains of the learned prior. A sweep moves, in turn,

1. the true counts, given weights and effects: each to one of 11 equally spaced places around it,
   of a random spacing; with a public number of records, two cells exchange records: first any
   two, then two whose draws are alike, as many may go from one to the other at once;
2. the weights of components: pairs divide theirs anew, cells integrated out; then each cell's
   component, and all weights given these; all locations go up while the components go down, or the
   other way round;
3. the effects of each margin, and their scale τ; then what two margins share.

Every choice is from the exact conditional law, in which intensities are integrated out; where only
some places are offered, which ones does not depend on which of them is the present one. So every
step leaves the posterior as it is.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.laws.dirichlet_multinomial import one_of
from opendp_bayes.inference.learned.intensity_law import REACH, SHAPE, STEP, UNIT, IntensityLaw
from opendp_bayes.inference.learned.margins import Margin, exchanged, handed_down, nested
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.mathematics.validation import Floats, Integers

#: Ratio of the spacings between which the counts' steps choose, of which each is tried in every
#: sweep on average; and places of a step, its own among them.
_SPACING, _PLACES = 8, 11
_IMPOSSIBLE, _TINY = -1e30, 1e-300
#: Pairs of components that have less than this together are left as they are.
_MATTERS = 1e-3


@dataclass(frozen=True, eq=False)
class Draw:
    """State of the chains after a sweep.

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
        self._nested = nested(margins)
        self._chain = np.arange(chains)[:, None]
        reach = max(min(2 * table.scale, law.largest) / _PLACES, 1.0)
        self._spacings = 1 + math.ceil(math.log(reach, _SPACING))
        self.counts: Integers = np.tile(table.start(), (chains, 1))
        self.weights = law.prior_weights(chains, rng)
        self.effects: list[Integers] = [
            np.zeros((chains, each.number), dtype=np.int64) for each in margins
        ]
        self.tau = [np.full(chains, 12) for _ in margins]
        self.location: Integers = np.zeros((chains, table.k), dtype=np.int64)

    def sweep(self, times: int = 1) -> None:
        """Move everything, so many times."""
        for _ in range(times):
            reached = self._reached_classes()
            self._tabulate(reached, int(self.location.min()), int(self.location.max()))
            for _ in range(self._spacings):
                self._move_counts()
            self._move_weights()
            if self._margins:
                self._tabulate(np.unique(self._law.classes(self.counts)), -REACH, REACH)
                self._move_effects()

    def drawn(self) -> Draw:
        """State of the chains, with a point of ln γ drawn for each cell."""
        law, rows = self._law, self._rows()
        p = np.empty((rows.number.size, law.gammas + 1))
        p[:, :-1] = rows.windows * law.density(self.weights)[rows.chain]
        p[:, -1] = self.weights[rows.chain, 0] * rows.empty
        points = self._column(p, rows.of_cell)
        empty = points == law.gammas
        places = law.points[np.where(empty, 0, points + self.location + REACH)]
        intensity = np.exp(STEP * np.where(empty, law.points[0], places))
        scale = intensity / (intensity + SHAPE)
        tau = np.array(self.tau, dtype=np.int64).T.reshape(len(self.counts), len(self.tau))
        mean = (SHAPE + self.counts) * scale
        return Draw(self.counts.copy(), mean, scale, self.weights, tau)

    def _reached_classes(self) -> Integers:
        """The classes of all counts that the moves of one sweep may come to, and the next ones."""
        step = (_PLACES - 1) * _SPACING ** (self._spacings - 1)
        far = step * self._spacings * (1 if self._table.size is None else 2)
        ends = np.clip([self.counts - far, self.counts + far], 0, self._law.largest)
        first, last = self._law.place(ends).astype(np.int64)
        begun = np.bincount(first.ravel(), minlength=len(self._law.pmf))
        ended = np.bincount(last.ravel() + 2, minlength=len(self._law.pmf))
        return np.flatnonzero(np.cumsum(begun) > np.cumsum(ended)[: begun.size])

    def _tabulate(self, classes: Integers, lowest: int, highest: int) -> None:
        """`ln P(count | location)` of some classes at the locations from `lowest` to `highest`."""
        masses = self._law.log_masses(self.weights, classes, lowest, highest)
        self._lowest, self._locations = lowest, masses.shape[2]
        self._row_of = np.zeros(len(self._law.pmf), dtype=np.int64)
        self._row_of[classes] = np.arange(classes.size)
        self._row = self._chain * classes.size
        self._flat = masses.reshape(-1)

    def _log_mass(self, counts: Integers, cells: Integers | slice) -> Floats:
        """`ln P(count | location)` of candidates for the counts of some cells, shape `(chains,
        cells, candidates)`; linear in between classes.
        """
        place = self._law.place(np.clip(counts, 0, self._law.largest))
        below = place.astype(np.int64)
        at = (self._row[..., None] + self._row_of[below]) * self._locations
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
        for order in self._table.orders(self._rng):
            self._exchange(order[:-1:2], order[1::2])

    def _exchange(self, ones: Integers, others: Integers) -> None:
        """Exchange records between each of some cells and another."""
        steps, moved = self._steps((len(self.counts), ones.size)), []
        log_p = np.zeros(steps.shape)
        for cells, sign in ((ones, 1), (others, -1)):
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
        start = -self._rng.integers(_PLACES, size=shape)
        return (start[..., None] + np.arange(_PLACES)) * spacing[..., None]

    def _rows(self) -> "_Rows":
        """Likelihoods of cells, with one row for those of a chain that agree in class and
        location.
        """
        law, locations = self._law, 2 * REACH + 1
        key = self._chain * len(law.pmf) + law.classes(self.counts)
        key = key * locations + self.location + REACH
        rows, of_cell, number = np.unique(key, return_inverse=True, return_counts=True)
        rest, location = np.divmod(rows, locations)
        chain, row_class = np.divmod(rest, len(law.pmf))
        windows = np.lib.stride_tricks.sliding_window_view(law.pmf, law.gammas, axis=1)
        found = windows[row_class, location]
        return _Rows(chain, found, law.empty[row_class], number, of_cell.reshape(key.shape))

    def _move_weights(self) -> None:
        """Draw a component for each cell, and the weights given all of them, after pairs of
        components have shared their weights anew.
        """
        law, rows = self._law, self._rows()
        likelihood = np.concatenate([rows.empty[:, None], rows.windows @ law.kernels32.T], axis=1)
        self._share_anew(likelihood, rows)
        component = self._column(likelihood * self.weights[rows.chain], rows.of_cell)
        number = self.weights.shape[1]
        place = (self._chain * number + component).ravel()
        cells = np.bincount(place, minlength=self.weights.size).reshape(self.weights.shape)
        if self._margins:
            cells = self._shift_locations(cells)
        self.weights = law.weights_given(cells, self._rng)

    def _shift_locations(self, cells: Integers) -> Integers:
        """Shift all locations by `UNIT` and every component against them, or leave them; only the
        priors matter. Takes and returns how many cells each component has.

        Margins share the shift in proportion to the variances of their levels.
        """
        law, rng, sign = self._law, self._rng, self._rng.choice([-1, 1], len(cells))
        shifted = np.where(sign[:, None] < 0, law.shifted(cells, 1), law.shifted(cells, -1))
        log_ratio = law.log_prior(shifted) - law.log_prior(cells)
        places = self.location + UNIT * sign[:, None]
        lost = shifted.sum(axis=1) < cells.sum(axis=1)
        log_ratio[lost | (np.abs(places).max(axis=1) > REACH)] = -np.inf
        of_margins = [self._margin(at) for at in range(len(self._margins))]
        variances = [margin.level_variance(tau) for margin, _, tau in of_margins]
        until = np.rint(UNIT * np.cumsum(variances, axis=0) / np.sum(variances, axis=0))
        steps = (sign * np.diff(until.astype(np.int64), axis=0, prepend=0))[..., None]
        for (margin, effects, tau), step in zip(of_margins, steps, strict=True):
            log_ratio += margin.log_prior(effects + step, tau) - margin.log_prior(effects, tau)
        accepted = (-rng.standard_exponential(len(cells)) < log_ratio)[:, None]
        self.location = np.where(accepted, places, self.location)
        self.effects = [
            effects + accepted * step for effects, step in zip(self.effects, steps, strict=True)
        ]
        return np.where(accepted, shifted, cells)

    def _share_anew(self, likelihood: Floats, rows: "_Rows") -> None:
        """Divide the weights of pairs of components that are near each other as their prior does,
        or leave them, by the likelihood of all counts.
        """
        law, rng, chains = self._law, self._rng, self._chain[:, 0]
        first = np.searchsorted(rows.chain, chains)
        mass = (likelihood * self.weights[rows.chain]).sum(axis=1)
        for one, other in law.pairs(rng):
            both = self.weights[:, one] + self.weights[:, other]
            if both.max() < _MATTERS:  # which no division changes
                continue
            change = both * law.share(one, other, len(chains), rng) - self.weights[:, one]
            change[both < _MATTERS] = 0.0
            moved = mass + change[rows.chain] * (likelihood[:, one] - likelihood[:, other])
            gain = rows.number * np.log(np.maximum(moved, _TINY) / np.maximum(mass, _TINY))
            gain = np.add.reduceat(gain, first)
            accepted = -rng.standard_exponential(len(chains)) < gain
            change[~accepted] = 0.0
            mass = np.where(accepted[rows.chain], moved, mass)
            self.weights[:, one] += change
            self.weights[:, other] -= change

    def _column(self, p: Floats, of_cell: Integers) -> Integers:
        """A column for each cell, drawn in proportion to the entries of its row."""
        p = np.cumsum(p, axis=1, dtype=np.float64)
        p /= p[:, -1:]
        p += np.arange(len(p))[:, None]
        found = np.searchsorted(p.reshape(-1), of_cell + self._rng.random(of_cell.shape))
        return np.clip(found - of_cell * p.shape[1], 0, p.shape[1] - 1)

    def _move_effects(self) -> None:
        """Move the effects of all margins, their scales, and what two margins share."""
        rng, classes = self._rng, self._law.classes(self.counts)
        row = (self._row + self._row_of[classes]) * self._locations + REACH
        for at, margin in enumerate(self._margins):
            effects, tau = self.effects[at], self.tau[at]
            steps = margin.steps_from(effects.shape, rng)
            places = self.location[..., None] + steps[:, margin.level]
            inside = np.abs(places) <= REACH
            log_p = np.where(inside, self._flat[row[..., None] + places * inside], _IMPOSSIBLE)
            places = effects[..., None] + steps
            moved, self.tau[at] = margin.moved(places, margin.totals(log_p), tau, rng)
            self.location = self.location + (moved - effects)[:, margin.level]
            self.effects[at] = moved
        for first, second in pairwise(range(len(self._margins))):
            by = exchanged(self._margin(first), self._margin(second), rng)[:, None]
            self.effects[first] = self.effects[first] + by
            self.effects[second] = self.effects[second] - by
        for outer, inner in self._nested:
            taken, given = handed_down(self._margin(outer), self._margin(inner), rng)
            self.effects[outer] = self.effects[outer] + taken
            self.effects[inner] = self.effects[inner] + given

    def _margin(self, at: int) -> tuple[Margin, Integers, Integers]:
        """A margin with its effects and its τ."""
        return self._margins[at], self.effects[at], self.tau[at]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of cells that agree: their chain, `P(count | point)` up to a factor at every point of ln
    γ, shape `(rows, g)`, and of an empty cell, how many cells there are, and the row of each cell.
    """

    chain: Integers
    windows: NDArray[np.float32]
    empty: NDArray[np.float32]
    number: Integers
    of_cell: Integers


def _chosen(candidates: Integers, log_p: Floats, rng: np.random.Generator) -> Integers:
    place = one_of(log_p, rng)[..., None]
    return np.take_along_axis(candidates, place, axis=-1)[..., 0]
