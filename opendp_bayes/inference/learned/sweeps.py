"""Markov chains of the learned prior. A sweep moves, in turn,

1. the true counts, where the number of records is public (`moved_cells`); where it is private,
   counts are summed over (`drawn_cells`);
2. the weights of components: pairs divide theirs anew, cells integrated out; then each cell's
   component, and all weights given these; all locations go up while the components go down, or the
   other way round;
3. the effects of each margin, and their scale τ; then what two margins share.

Every choice is from the exact conditional law, in which intensities are integrated out; where only
some places are offered, which ones does not depend on which of them is the present one. So every
step leaves the posterior as it is.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.learned.drawn_cells import DrawnCells, columns
from opendp_bayes.inference.learned.intensity_law import REACH, SHAPE, STEP, UNIT, IntensityLaw
from opendp_bayes.inference.learned.margins import FARTHEST, Margin, exchanged, handed_down, nested
from opendp_bayes.inference.learned.moved_cells import IMPOSSIBLE, LogMasses, MovedCells
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.mathematics.validation import Floats, Integers

_TINY = 1e-300
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
        self._law, self._margins, self._rng = law, margins, rng
        self._cells: DrawnCells | MovedCells = (
            DrawnCells(table, law) if table.size is None else MovedCells(table, law, chains)
        )
        self._evidence = law.evidence(self._cells.shares)
        self._nested = nested(margins)
        self._chain = np.arange(chains)[:, None]
        self.weights = law.prior_weights(chains, rng)
        self.effects: list[Integers] = [
            np.zeros((chains, each.number), dtype=np.int64) for each in margins
        ]
        self.tau = [np.full(chains, 12) for _ in margins]
        self.location: Integers = np.zeros((chains, table.k), dtype=np.int64)
        if margins:  # so that no cell is further off than components reach
            level, number = margins[0].level, margins[0].number
            cells = np.maximum(np.bincount(level, minlength=number), 1)
            means = np.bincount(level, table.start(), number) / cells
            start = np.rint(np.log(np.maximum(means, table.scale)) / STEP) - law.origin
            self.effects[0] += np.clip(start, -REACH, REACH).astype(np.int64)
            self.location += self.effects[0][:, level]

    def sweep(self, times: int = 1) -> None:
        """Move everything, so many times."""
        for _ in range(times):
            self._cells.move(self._tabulated, self.location, self._rng)
            self._move_weights()
            if self._margins:
                self._move_effects()

    @property
    def _kinds(self) -> Integers:
        """Rows of the evidence of each cell, shape `(chains, k)`."""
        return self._cells.kinds(len(self.location))

    def drawn(self) -> Draw:
        """State of the chains, with a point of ln γ drawn for each cell."""
        law, rows = self._law, self._rows()
        p = np.empty((rows.number.size, law.gammas + 1))
        p[:, :-1] = rows.windows * law.density(self.weights)[rows.chain]
        p[:, -1] = self.weights[rows.chain, 0] * rows.empty
        points = columns(p, rows.of_cell, self._rng)
        empty = points == law.gammas
        places = law.points[np.where(empty, 0, points + self.location + REACH)]
        places = np.where(empty, law.points[0], places)
        counts = self._cells.given(places, self._rng)
        intensity = np.exp(STEP * places)
        scale = intensity / (intensity + SHAPE)
        tau = np.array(self.tau, dtype=np.int64).T.reshape(len(counts), len(self.tau))
        return Draw(counts, (SHAPE + counts) * scale, scale, self.weights, tau)

    def _tabulated(self, kinds: Integers, steps: int) -> LogMasses:
        """Tabulate some kinds at all locations that cells come to in so many steps, or that are
        tried; those beyond `REACH` are impossible.
        """
        first = max(int(self.location.min()) - steps, -REACH - FARTHEST)
        last = min(int(self.location.max()) + steps, REACH + FARTHEST)
        lowest, highest = max(first, -REACH), min(last, REACH)
        masses = self._law.log_masses(self._evidence, kinds, self.weights, lowest, highest)
        if lowest > first or highest < last:
            ends = ((0, 0), (0, 0), (lowest - first, last - highest))
            masses = np.pad(masses, ends, constant_values=IMPOSSIBLE)
        row_of = np.zeros(self._evidence.empty.size, dtype=np.int64)
        row_of[kinds] = np.arange(kinds.size)
        return LogMasses(masses.reshape(-1), first, masses.shape[2], row_of, kinds.size)

    def _rows(self) -> "_Rows":
        """Likelihoods of cells, with one row for those of a chain that agree in class and
        location.
        """
        evidence, locations = self._evidence, 2 * REACH + 1
        key = self._chain * evidence.empty.size + self._kinds
        key = key * locations + self.location + REACH
        rows, of_cell, number = np.unique(key, return_inverse=True, return_counts=True)
        rest, location = np.divmod(rows, locations)
        chain, kind = np.divmod(rest, evidence.empty.size)
        every = np.lib.stride_tricks.sliding_window_view(evidence.masses, self._law.gammas, axis=1)
        found = every[kind, location]
        return _Rows(chain, found, evidence.empty[kind], number, of_cell.reshape(key.shape))

    def _move_weights(self) -> None:
        """Draw a component for each cell, and the weights given all of them, after pairs of
        components have shared their weights anew.
        """
        law, rows = self._law, self._rows()
        likelihood = np.concatenate([rows.empty[:, None], rows.windows @ law.kernels32.T], axis=1)
        self._share_anew(likelihood, rows)
        component = columns(likelihood * self.weights[rows.chain], rows.of_cell, self._rng)
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

    def _move_effects(self) -> None:
        """Move the effects of all margins, their scales, and what two margins share."""
        rng, kinds = self._rng, self._kinds
        masses = self._tabulated(np.unique(kinds), FARTHEST * len(self._margins))
        start = masses.start(kinds)
        for at, margin in enumerate(self._margins):
            effects, tau = self.effects[at], self.tau[at]
            steps = margin.steps_from(effects.shape, rng)
            totals = margin.totals(masses.flat, start + self.location, steps)
            moved, self.tau[at] = margin.moved(effects[..., None] + steps, totals, tau, rng)
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
