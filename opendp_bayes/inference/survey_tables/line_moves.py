"""Moves of tables that agree on what they share, so that they agree afterwards.

For a set W of variables, two levels of each are the corners of a line, a rectangle or a cube in
every table that holds W. Adding m to the even corners and taking it from the odd ones leaves every
other margin as it is. Where the number of records is private, W is also empty: m records are added
to one cell of every table, that of one combination of levels.

Pairs of levels never share a cell, so that all of them move at once, in all chains, each chain
along directions of its own. How far is an independence proposal along the line: a rounded logistic
about where the noise alone would put it, or at an end of the line, where a cell is empty; then
Metropolis and Hastings.

Source: `docs/survey-posterior.md`, "Chains".
"""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from opendp_bayes.inference.survey_tables.junction_tree import Scope
from opendp_bayes.inference.survey_tables.tables import Model, NoisyTable, Table, subsets
from opendp_bayes.mathematics.validation import Floats, Integers

Generator = np.random.Generator

#: Scale of the logistic, in standard deviations of the noise, and its least, in records.
_WIDTH, _LEAST_WIDTH = 0.62, 0.3
#: Of the moves on lines whose middle is within so many standard deviations of an end, those that
#: aim at an end.
_AT_ENDS, _NEAR = 0.25, 5.0
#: Of the calls, those that draw levels by records.
_BY_RECORDS = 0.5
#: Places by which the concentration moves: where few cells tell it, far at once.
_JUMPS = (-8, -4, -2, -1, 1, 2, 4, 8)
#: By variable, its levels on all lines: the two ends of those that are moved, one of the others.
_Levels = dict[int, tuple[Integers, ...]]


class State:
    """Every table of all chains, shape `(chains, cells)` each, and each chain's concentration by
    its place among those of the model. Moves change it.
    """

    def __init__(self, counts: dict[Scope, Integers], chosen: Integers) -> None:
        self.counts, self.chosen = counts, chosen


@dataclass(frozen=True, eq=False)
class _Corners:
    """Cells of a table that get m, where `sign` is 1, or lose it, and their places among those of
    all chains and their counts, all of shape `(corners, chains, lines)`.
    """

    table: Table
    sign: Any
    cells: Integers
    places: Integers
    counts: Integers


class LineMoves:
    """The moves of one set of variables W, `moved`: which tables they touch, and along what."""

    def __init__(self, model: Model, moved: Scope) -> None:
        self._model, self._moved = model, moved
        tables = [table for table in model.tables.values() if set(moved) <= set(table.scope)]
        # The number of records is one for all lines, and has its own step.
        self._touched = [table for table in tables if table.scope]
        self._ends = list(product((0, 1), repeat=len(moved)))
        scopes = [set(table.scope) for table in self._touched]
        # Their levels tell lines apart in every table; those of others are drawn.
        self._common = sorted(set.intersection(*scopes) - set(moved)) if moved else []
        self._drawn = sorted(set.union(*scopes) - set(moved) - set(self._common))
        levels = model.levels
        if moved:
            shape = [levels[v] // 2 for v in moved] + [levels[v] for v in self._common]
            self._grid = np.indices(shape).reshape(len(shape), -1)
            passes = [math.prod(levels[v] for v in self._drawn if v in scope) for scope in scopes]
        else:
            self._grid = np.arange(min(levels[v] for v in self._drawn))[None]
            passes = [-(-table.cells // self._grid.shape[1]) for table in self._touched]
        #: Calls after which the lines have covered the largest table once, about.
        self.calls = max(passes)

    def __call__(self, state: State, rng: Generator) -> None:
        touched = self._corners(state, rng)
        lower, upper, centre, std = self._line(touched)
        centre, std = _sometimes_at_ends(lower, upper, centre, std, rng)
        width = np.maximum(_WIDTH * std, _LEAST_WIDTH)
        level = rng.random(centre.shape)
        far = np.rint(centre + width * np.log(level / (1 - level)))
        step = np.clip(far, lower, upper).astype(np.int64)
        log_ratio = _log_proposal(np.zeros_like(step), lower, upper, centre, width)
        log_ratio -= _log_proposal(step, lower, upper, centre, width)
        for corners in touched:
            log_ratio += self._log_change(corners, step, state.chosen)
        level = -rng.standard_exponential(centre.shape)
        accepted = level < log_ratio if self._moved else self._sized(state, step, log_ratio, level)
        step = np.where(accepted, step, 0)
        for corners in touched:
            flat = state.counts[corners.table.scope].reshape(-1)
            flat[corners.places] = corners.counts + corners.sign * step

    def _corners(self, state: State, rng: Generator) -> list[_Corners]:
        levels = self._levels(state, rng)
        sign = np.array([1 - 2 * (sum(which) % 2) for which in self._ends])[:, None, None]
        found = []
        for table in self._touched:
            fixed = [v for v in table.scope if v not in self._moved]
            cells = self._cells(table, levels, fixed)
            places = cells + (np.arange(len(state.chosen)) * table.cells)[:, None]
            counts = state.counts[table.scope].reshape(-1)[places]
            found.append(_Corners(table, sign, cells, places, counts))
        return found

    def _cells(self, table: Table, levels: _Levels, fixed: list[int]) -> Integers:
        """Cells of a table at all corners, shape `(corners, chains or 1, lines)`, at the first
        level of the variables that are not `fixed`.
        """
        base = sum((table.stride[v] * levels[v][0] for v in fixed), np.zeros((1, 1), dtype=int))
        ends = [
            sum(table.stride[v] * levels[v][end] for v, end in zip(self._moved, which, strict=True))
            for which in self._ends
        ]
        return np.stack([base + end for end in ends])

    def _levels(self, state: State, rng: Generator) -> _Levels:
        """The levels of every variable on all lines: the two ends of those that are moved, one of
        the others, each of shape `(chains or 1, lines)`.
        """
        chains, lines = len(state.chosen), self._grid.shape[1]
        found: _Levels = {}
        for at, v in enumerate(self._moved):
            order, half = self._shuffled(v, chains, rng), self._model.levels[v] // 2
            pair = self._grid[at]
            found[v] = (order[:, pair], order[:, half + pair])
        for at, v in enumerate(self._common, start=len(self._moved)):
            found[v] = (self._grid[at][None],)
        if not self._moved:  # different ones, so that no two lines share a cell
            return {v: (self._shuffled(v, chains, rng)[:, :lines],) for v in self._drawn}
        if self._drawn and rng.random() < _BY_RECORDS:
            self._draw_by_records(state, found, rng)
        for v in self._drawn:
            if v not in found:
                found[v] = (rng.integers(self._model.levels[v], size=(chains, lines)),)
        return found

    def _draw_by_records(self, state: State, found: _Levels, rng: Generator) -> None:
        """Draw levels in proportion to the records at both ends, where a move can take some. A move
        leaves their number as it is, so that it is as probable as its reverse.
        """
        for table in self._touched:
            own = [v for v in table.scope if v in self._drawn and v not in found]
            if not own or table.scope not in self._model.tree.cliques:
                continue
            fixed = [v for v in table.scope if v in found and v not in self._moved]
            shape = [self._model.levels[v] for v in own]
            offsets = sum(
                table.stride[v] * at.reshape(-1)
                for v, at in zip(own, np.indices(shape), strict=True)
            )
            cells = self._cells(table, found, fixed)
            places = cells + (np.arange(len(state.chosen)) * table.cells)[:, None]
            counts = state.counts[table.scope].reshape(-1)[places[..., None] + offsets]
            reached = (counts.sum(axis=0) + 1 / offsets.size).cumsum(axis=-1)
            level = rng.random(reached.shape[:-1]) * reached[..., -1]
            picked = (reached[..., :-1] <= level[..., None]).sum(axis=-1)
            for v, at in zip(own, np.unravel_index(picked, shape), strict=True):
                found[v] = (at,)

    def _shuffled(self, v: int, chains: int, rng: Generator) -> Integers:
        return np.argsort(rng.random((chains, self._model.levels[v])), axis=1)

    def _line(self, touched: list[_Corners]) -> tuple[Any, Any, Any, Any]:
        """The ends of every line, relative to where it is, and where the noise alone puts it: a
        mean and a standard deviation. All of them move with the chain along the line.
        """
        lower: Any = -np.inf
        upper: Any = np.inf
        # Weights, and how far it is to where a look was drawn without noise.
        pulls: list[tuple[NoisyTable, Any, Any]] = []
        for corners in touched:
            up = corners.sign[:, 0, 0] > 0
            lower = np.maximum(lower, -corners.counts[up].min(axis=0))
            if not up.all():
                upper = np.minimum(upper, corners.counts[~up].min(axis=0))
            for look in corners.table.looks:
                gap = look.noisy.drawn[corners.cells] - corners.counts
                pulls.append((look, look.precision[corners.cells], corners.sign * gap))
        precision: Any = sum(weight.sum(axis=0) for _, weight, _ in pulls)
        pull = sum((weight * gap).sum(axis=0) for _, weight, gap in pulls)
        upper = np.broadcast_to(upper, lower.shape)
        measured = np.broadcast_to(precision, lower.shape) > 0
        precision = np.where(measured, precision, 1.0)
        with np.errstate(invalid="ignore"):  # without an upper end everything is measured
            centre = np.where(measured, pull / precision, (lower + upper) / 2)
            # Between the kinks of two Laplace laws the density is level.
            kinked = [(weight, gap) for look, weight, gap in pulls if look.noisy.noise.kinks]
            apart = sum((weight * (gap - centre) ** 2).sum(axis=0) for weight, gap in kinked)
            std = np.where(measured, ((1 + apart) / precision) ** 0.5, (upper - lower) / 3)
        return lower, upper, centre, std

    def _log_change(self, corners: _Corners, step: Integers, chosen: Integers) -> Floats:
        """Change of the log-density at the corners of a table when `step` is added along a line."""
        table, move = corners.table, corners.sign * step
        found: Any = np.zeros(step.shape)
        if table.multiplicity:
            prior = self._model.priors[table.cells]
            after = prior.log_weight(corners.counts + move, chosen)
            change = after - prior.log_weight(corners.counts, chosen)
            found += table.multiplicity * change.sum(axis=0)
        for look in table.looks:
            found += look.noisy.log_ratio(corners.counts, move, corners.cells).sum(axis=0)
        return found

    def _sized(self, state: State, step: Integers, log_ratio: Floats, level: Floats) -> Any:
        """Accept one line after the other, each at the number of records that those before leave;
        returns which, and changes the number.
        """
        table = self._model.tables[()]
        prior, size = self._model.priors[table.cells], state.counts[()]
        accepted = np.zeros(step.shape, dtype=bool)
        for line in range(step.shape[1]):
            after = size + step[:, line : line + 1]
            change = prior.log_weight(after, state.chosen) - prior.log_weight(size, state.chosen)
            change = table.multiplicity * change[:, 0]
            accepted[:, line] = level[:, line] < log_ratio[:, line] + change
            size[:] = np.where(accepted[:, line : line + 1], after, size)
        return accepted


def all_moves(model: Model) -> list[LineMoves]:
    """The moves of every set of variables within a clique, and where the number of records is
    private, those that change it.
    """
    parts = {part for clique in model.tree.cliques for part in subsets(clique)}
    moved = {part for part in parts if all(model.levels[v] > 1 for v in part)}
    if model.size is None:
        moved.add(())
    return [LineMoves(model, part) for part in sorted(moved, key=lambda part: (len(part), part))]


def choose_concentration(model: Model, state: State, rng: Generator) -> None:
    """Move each chain's concentration a few places up or down, or leave it."""
    last = len(model.concentrations) - 1
    if last == 0:
        return
    before = model.log_prior(state.counts, state.chosen)
    for _ in range(2):
        other = state.chosen + rng.choice(_JUMPS, size=state.chosen.size)
        inside = (other >= 0) & (other <= last)
        other = np.where(inside, other, state.chosen)
        after = model.log_prior(state.counts, other)
        accepted = -rng.standard_exponential(after.size) < after - before
        state.chosen = np.where(accepted, other, state.chosen)
        before = np.where(accepted, after, before)


def _sometimes_at_ends(
    lower: Any, upper: Any, centre: Any, std: Any, rng: Generator
) -> tuple[Any, Any]:
    """The centre and the width of each proposal: on some of the lines with an end nearby, that end
    and from some to all of the usual width.
    """
    length = upper - lower
    near = np.minimum(centre - lower, upper - centre) < _NEAR * std
    chosen = near & (rng.random(centre.shape) < _AT_ENDS)
    first = (rng.random(lower.shape) < 0.5) | np.isinf(upper)
    narrow = np.exp(rng.uniform(-3, 0, lower.shape))
    width = np.maximum(np.minimum(std, length) * narrow, 0.5)
    return np.where(chosen, np.where(first, lower, upper), centre), np.where(chosen, width, std)


def _log_proposal(step: Integers, lower: Any, upper: Any, centre: Any, width: Any) -> Floats:
    """The logarithm of the probability of a rounded and clipped logistic at `step`."""
    below = (step - 0.5 - centre) / width
    above = below + 1 / width
    tails = np.where(step > lower, np.logaddexp(0, below), 0.0)
    tails = tails + np.where(step < upper, np.logaddexp(0, -above), 0.0)
    inside = (step > lower) & (step < upper)
    return np.asarray(np.where(inside, np.log(-np.expm1(-1 / width)), 0.0) - tails)
