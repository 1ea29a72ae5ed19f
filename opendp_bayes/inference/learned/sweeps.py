"""Markov chains of the learned prior, in which true counts are summed over. A sweep moves, in turn,

1. the weights of components: pairs divide theirs anew, cells integrated out; then each cell's
   component, and all weights given these; all locations go up while the components go down, or the
   other way round;
2. the effects of each margin, and their scale τ; then what two margins share.

Every choice is from the exact conditional law, in which intensities are integrated out; where only
some places are offered, which ones does not depend on which of them is the present one. So every
step leaves the posterior of a private number of records as it is. A state weighs as much as a
public number is probable given it (`drawn_cells`), all counts being tilted towards that number.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.learned.drawn_cells import DrawnCells, columns
from opendp_bayes.inference.learned.intensity_law import (
    REACH,
    SHAPE,
    STEP,
    UNIT,
    IntensityLaw,
)
from opendp_bayes.inference.learned.margins import FARTHEST, Margin, exchanged, handed_down, nested
from opendp_bayes.inference.learned.noised_table import NoisedTable
from opendp_bayes.mathematics.validation import Floats, Integers

_TINY = np.float32(1e-37)
#: Below every logarithm of a probability that matters.
_IMPOSSIBLE = -1e30
_LOCATIONS = 2 * REACH + 1
#: How often counts are tilted towards a public sum.
_TILTS = 8
#: Pairs of components that have less than this together are left as they are.
_MATTERS = 1e-3


@dataclass(frozen=True, eq=False)
class Draw:
    """State of the chains after a sweep.

    `counts` and the Gamma law of each cell's intensity given everything else, its `mean` and its
    `scale`, have shape `(chains, k)`; `weights` `(chains, j + 1)`; `tau`, of every margin, places
    in `SCALES`, `(chains, margins)`. Draws weigh `exp(log_weight)`, shape `(chains,)`.
    """

    counts: Integers
    mean: Floats
    scale: Floats
    weights: Floats
    tau: Integers
    log_weight: Floats


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
        self._cells = DrawnCells(table, law)
        self._evidence, self._of_counts = law.evidence(self._cells.shares), law.evidence()
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
            self._move_weights()
            if self._margins:
                self._move_effects()

    def settle(self, times: int) -> None:
        """Forget where the chains began, in about so many sweeps, and tilt counts to a public sum,
        each time half as far as is still wanted.
        """
        for _ in range(_TILTS):
            self.sweep(-(-times // _TILTS))
            if self._cells.size is not None:
                self._cells.tilt_by(*self._cells.moments(*self._count_laws()))
                self._evidence = self._law.evidence(self._cells.shares)

    def drawn(self) -> Draw:
        """State of the chains, with counts and then a point of ln γ drawn for each cell."""
        law = self._law
        counts, log_weight = self._cells.drawn(*self._count_laws(), self._rng)
        rows, of = self._rows(law.classes(counts)), self._of_counts
        windows = np.lib.stride_tricks.sliding_window_view(of.masses, law.gammas, axis=1)
        p = np.empty((rows.number.size, law.gammas + 1))
        p[:, :-1] = windows[rows.kind, rows.location] * law.density(self.weights)[rows.chain]
        p[:, -1] = self.weights[rows.chain, 0] * of.empty[rows.kind]
        points = columns(p, rows.of_cell, self._rng.random(counts.shape))
        empty = points == law.gammas
        places = law.points[np.where(empty, 0, points + self.location + REACH)]
        intensity = np.exp(STEP * np.where(empty, law.points[0], places))
        scale = intensity / (intensity + SHAPE)
        tau = np.array(self.tau, dtype=np.int64).T.reshape(len(counts), len(self.tau))
        return Draw(counts, (SHAPE + counts) * scale, scale, self.weights, tau, log_weight)

    def _count_laws(self) -> tuple[Floats, Integers, Integers]:
        """Masses of the nodes of counts, up to a factor of each row, for cells that agree; their
        kinds, and the row of each cell.
        """
        cells, rows = self._cells, self._rows(self._cells.kind)
        lowest, highest = int(self.location.min()), int(self.location.max())
        masses = self._law.log_masses(self._of_counts, cells.classes, self.weights, lowest, highest)
        below = rows.chain[:, None] * cells.classes.size + cells.below[rows.kind]
        at = below * masses.shape[2] + (rows.location - REACH - lowest)[:, None]
        log_p = np.take(masses, at)
        if cells.part.any():
            higher = np.take(masses, at + masses.shape[2], mode="clip")
            log_p += cells.part[rows.kind] * (higher - log_p)
        log_p = log_p + cells.log_mass[rows.kind]
        return np.exp(log_p - log_p.max(axis=1, keepdims=True)), rows.kind, rows.of_cell

    def _rows(self, kinds: Integers) -> "_Rows":
        """Rows of cells of such kinds, one for those of a chain that agree in kind and location."""
        key = (self._chain * (kinds.max() + 1) + kinds) * _LOCATIONS + self.location + REACH
        rows, of_cell, number = np.unique(key, return_inverse=True, return_counts=True)
        rest, location = np.divmod(rows, _LOCATIONS)
        chain, kind = np.divmod(rest, kinds.max() + 1)
        return _Rows(chain, kind, location, number, of_cell.reshape(key.shape))

    def _move_weights(self) -> None:
        """Draw a component for each cell, and the weights given all of them, after pairs of
        components have shared their weights anew.
        """
        law, rows = self._law, self._rows(self._cells.kind)
        likelihood = law.of_components(self._evidence, rows.kind, rows.location)
        self._share_anew(likelihood, rows)
        weights = self.weights.astype(np.float32)
        levels = self._rng.random(self.location.shape)
        component = columns((likelihood * weights.T[:, rows.chain]).T, rows.of_cell, levels)
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

    def _share_anew(self, likelihood: NDArray[np.float32], rows: "_Rows") -> None:
        """Divide the weights of pairs of components that are near each other as their prior does,
        or leave them, by the likelihood of all counts, shape `(j + 1, rows)`.
        """
        law, rng, chains = self._law, self._rng, len(self.weights)
        first, weights = np.searchsorted(rows.chain, np.arange(chains)), self.weights.T.copy()
        mass = np.einsum("jr,jr->r", likelihood, weights[:, rows.chain]).astype(np.float32)
        pairs = law.pairs(rng)
        shares, least = (
            law.shares(pairs, chains, rng),
            -rng.standard_exponential((len(pairs), chains)),
        )
        for (one, other), share, enough in zip(pairs.tolist(), shares, least, strict=True):
            both = weights[one] + weights[other]
            if both.max() < _MATTERS:  # which no division changes
                continue
            change = np.where(both < _MATTERS, 0.0, both * share - weights[one])
            moved = likelihood[one] - likelihood[other]
            moved *= change.astype(np.float32)[rows.chain]
            moved += mass
            gain = np.add.reduceat(rows.number * np.log(np.maximum(moved / mass, _TINY)), first)
            accepted = enough < gain
            if accepted.any():
                change[~accepted] = 0.0
                mass = np.where(accepted[rows.chain], moved, mass)
                weights[one] += change
                weights[other] -= change
        self.weights = weights.T

    def _move_effects(self) -> None:
        """Move the effects of all margins, their scales, and what two margins share."""
        rng, kinds = self._rng, self._evidence.empty.size
        first, masses = self._tabulated(FARTHEST * len(self._margins))
        start = (self._chain * kinds + self._cells.kind) * masses.shape[2] - first
        for at, margin in enumerate(self._margins):
            effects, tau = self.effects[at], self.tau[at]
            steps = margin.steps_from(effects.shape, rng)
            totals = margin.totals(masses.reshape(-1), start + self.location, steps)
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

    def _tabulated(self, steps: int) -> tuple[int, NDArray[np.float32]]:
        """`ln P(drawn | location)` of every kind at all locations that cells come to in so many
        steps, or that are tried, and the first of these; those beyond `REACH` are impossible.
        """
        first = max(int(self.location.min()) - steps, -REACH - FARTHEST)
        last = min(int(self.location.max()) + steps, REACH + FARTHEST)
        lowest, highest = max(first, -REACH), min(last, REACH)
        masses = self._law.log_masses(self._evidence, slice(None), self.weights, lowest, highest)
        ends = ((0, 0), (0, 0), (lowest - first, last - highest))
        return first, np.pad(masses, ends, constant_values=_IMPOSSIBLE)

    def _margin(self, at: int) -> tuple[Margin, Integers, Integers]:
        """A margin with its effects and its τ."""
        return self._margins[at], self.effects[at], self.tau[at]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows of cells that agree: their chain, kind and location, counted from the lowest; how many
    cells there are, and the row of each cell.
    """

    chain: Integers
    kind: Integers
    location: Integers
    number: Integers
    of_cell: Integers
