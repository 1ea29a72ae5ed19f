"""Moves of tables that agree on what they share, so that they agree afterwards.

For a set W of variables, two levels of each are the corners of a line, a rectangle or a cube in
every table that holds W. Adding m to the even corners and taking it from the odd ones leaves every
other margin as it is. Where the number of records is private, W is also empty: m records are added
to one cell of every table, that of one combination of levels.

Neither pairs of levels nor sets W that no table holds together share a cell, so that all of them
move at once, in all chains, each chain along directions of its own. How far is an independence
proposal along the line: a rounded logistic about where the noise alone would put it, or at an end
of the line, where a cell is empty; then Metropolis and Hastings.

Source: `docs/research/computation.md`, "Chains of overlapping tables".
"""

import math
from itertools import accumulate, product
from typing import Any

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise, typical_std
from opendp_bayes.surveys.survey_tables.junction_tree import Scope, subsets
from opendp_bayes.surveys.survey_tables.tables import Cells, Model, State

#: Of the calls, those that draw levels by records.
_BY_RECORDS = 0.5


class MovedSet:
    """A set of variables, `moved`, the tables that hold it, `touched`, and its lines.

    A line is told by the levels of `ordered` variables, by their places in an order that is drawn,
    `grid`: of the moved ones and of those that all of these tables have, or where none is moved, of
    all. Levels of the others, `free`, are drawn for each line: those that each clique has alone or
    first, with its place among the tables.
    """

    def __init__(self, model: Model, moved: Scope) -> None:
        self.moved, levels = moved, model.levels
        # The number of records is one for all lines, and has its own step.
        self.touched = [
            table for scope, table in model.tables.items() if scope and set(moved) <= set(scope)
        ]
        scopes = [set(table.scope) for table in self.touched]
        left = set.union(*scopes)
        self.ordered = (*moved, *sorted((set.intersection(*scopes) if moved else left) - {*moved}))
        left -= {*self.ordered}
        if moved:
            halved = [levels[v] // (2 if v in moved else 1) for v in self.ordered]
            self.grid = np.indices(halved).reshape(len(halved), -1)
            passes = [math.prod(levels[v] for v in left & scope) for scope in scopes]
        else:  # different ones, so that no two lines share a cell
            lines = min(levels[v] for v in self.ordered)
            self.grid = np.tile(np.arange(lines), (len(self.ordered), 1))
            passes = [-(-table.cells // lines) for table in self.touched]
        self.free: list[tuple[Scope, int]] = []
        for position, table in enumerate(self.touched):
            free = tuple(v for v in table.scope if v in left)
            if free and table.scope in model.tree.cliques:
                self.free.append((free, position))
                left -= {*free}
        #: Tables that each line meets, and cells in each of them.
        self.corners = len(self.touched), 2 ** len(moved)
        #: Calls after which the lines have covered the largest table once, about.
        self.calls = max(passes)

    def meets(self, other: "MovedSet") -> bool:
        """True if some table holds both sets."""
        return any(table in other.touched for table in self.touched)


class Lines:
    """Lines of some sets of variables, all with as many corners, no two of which are in one table:
    for each corner the first cell of its table, and where the `sign` is 1 it gets records, or it
    loses them; shape `(corners, lines, 1)`.
    """

    def __init__(self, model: Model, cells: Cells, sets: list[MovedSet]) -> None:
        ordered = sorted({v for moved_set in sets for v in moved_set.ordered})
        self._levels = np.array([[model.levels[v]] for v in ordered])
        first_rows = {v: row * self._levels.max() for row, v in enumerate(ordered)}
        ends = list(product((0, 1), repeat=len(sets[0].moved)))
        shape = math.prod(sets[0].corners), sum(moved_set.grid.shape[1] for moved_set in sets)
        self.first, self.sign = np.zeros((2, *shape, 1), dtype=np.int64)
        # Corners are cells by rows of levels in order, and by how far on levels drawn later are.
        widest = max(len(table.scope) for moved_set in sets for table in moved_set.touched)
        self._stride = np.zeros((widest, *shape, 1), dtype=np.int64)
        self._rows = np.zeros((widest, *shape), dtype=np.int64)
        levels = [
            [
                np.indices([model.levels[v] for v in free]).reshape(len(free), -1)
                for free, _ in moved_set.free
            ]
            for moved_set in sets
        ]
        stages = max(map(len, levels))
        most = max((grid.shape[1] for stages_of_set in levels for grid in stages_of_set), default=0)
        self._along = np.zeros((stages, *shape, most), dtype=np.int64)
        self._number = np.ones((stages, shape[1], 1), dtype=np.int64)
        self._passed = np.zeros((stages, len(ends), shape[1]), dtype=np.int64)
        after = 0
        for moved_set, grids in zip(sets, levels, strict=True):
            columns = slice(after, after := after + moved_set.grid.shape[1])
            rows = dict(zip(moved_set.ordered, moved_set.grid, strict=True))
            for corner, (table, which) in enumerate(product(moved_set.touched, ends)):
                self.first[corner, columns] = cells.first[table.scope]
                self.sign[corner, columns] = 1 - 2 * (sum(which) % 2)
                second = dict(zip(moved_set.moved, which, strict=True))
                for position, v in enumerate(v for v in table.scope if v in rows):
                    far = second.get(v, 0) * (model.levels[v] // 2)
                    self._stride[position, corner, columns] = table.stride[v]
                    self._rows[position, corner, columns] = first_rows[v] + rows[v] + far
                for stage, ((free, _), grid) in enumerate(zip(moved_set.free, grids, strict=True)):
                    strides = [table.stride.get(v, 0) for v in free]
                    self._along[stage, corner, columns, : grid.shape[1]] = strides @ grid
            for stage, ((_, position), grid) in enumerate(zip(moved_set.free, grids, strict=True)):
                self._number[stage, columns] = grid.shape[1]
                self._passed[stage, :, columns] = (
                    position * len(ends) + np.arange(len(ends))[:, None]
                )

    def draw(self, state: State, rng: np.random.Generator) -> Integers:
        """Draw levels; returns the cells at all corners, shape `(corners, lines, chains)`."""
        chains, most = state.chosen.size, self._levels.max()
        keys = rng.random((chains, len(self._levels), most))
        keys[:, np.arange(most) >= self._levels] = 1  # stay last
        levels = keys.argsort(axis=-1).reshape(chains, -1).T
        cells: Integers = self.first + (self._stride * levels.take(self._rows, axis=0)).sum(axis=0)
        by_records, most = rng.random() < _BY_RECORDS, self._along.shape[-1]
        lines = np.arange(cells.shape[1])[:, None]
        for along, number, passed in zip(self._along, self._number, self._passed, strict=True):
            level = rng.random(cells.shape[1:])
            if by_records:
                first, further = cells[passed, lines.T[0]], along[passed, lines.T[0]]
                passing = first + np.moveaxis(further, -1, 0)[..., None]
                picked = _by_records(state.at(passing).sum(axis=1), number, level)
            else:
                picked = (level * number).astype(np.int64)
            flat = along.reshape(len(along), -1)
            cells = cells + flat.take(lines * most + picked, axis=1)
        return cells


def _by_records(records: Integers, number: Integers, level: Floats) -> Integers:
    """Pick one of a number of levels in proportion to the `records` at both ends, where a move can
    take some, shape `(levels, lines, chains)`, by a uniform `level`. A move leaves their number as
    it is, so that it is as probable as its reverse.
    """
    possible = np.arange(len(records))[:, None, None] < number
    weights = np.where(possible, records + 1 / number, 0)
    reached = np.array(list(accumulate(weights)))  # faster than along an axis
    picked: Integers = (reached[:-1] <= level * reached[-1]).sum(axis=0)
    return picked


#: Scale of the logistic, in standard deviations of the noise, and its least, in records.
_WIDTH, _LEAST_WIDTH = 0.62, 0.3
#: Of the moves on lines whose middle is within so many standard deviations of an end, those that
#: aim at an end.
_AT_ENDS, _NEAR = 0.25, 5.0
#: Places by which the concentration moves: where few cells tell it, far at once.
_JUMPS = (-8, -4, -2, -1, 1, 2, 4, 8)


class LineMoves:
    """Moves along all lines of some sets of variables at once, `calls` times in a sweep."""

    def __init__(self, model: Model, cells: Cells, sets: list[MovedSet], calls: int) -> None:
        self._cells, self._lines, self.calls = cells, Lines(model, cells, sets), calls
        self._of_size, sign = not sets[0].moved, self._lines.sign
        # Infinite at corners that get records where m is positive, and at those that lose them.
        self._get, self._lose = (np.where(sign == which, np.inf, 0.0) for which in (1, -1))

    def __call__(self, state: State, rng: np.random.Generator) -> None:
        cells, first, sign = self._lines.draw(state, rng), self._lines.first, self._lines.sign
        counts = state.at(cells)
        noises = self._cells.noises(cells, counts)
        lower, upper, centre, std = self._line(counts, noises)
        at_end, narrow, level = rng.random((3, *centre.shape))
        centre, std = _sometimes_at_ends(lower, upper, centre, std, at_end, narrow)
        width = np.maximum(_WIDTH * std, _LEAST_WIDTH)
        far = np.rint(centre + width * np.log(level / (1 - level)))
        step = np.clip(far, lower, upper).astype(np.int64)
        steps = np.array([0, 1])[:, None, None] * step
        back, forth = _log_proposal(steps, lower, upper, centre, width)
        moves = sign * steps[:, None]
        before, after = self._cells.log_weight(first, counts + moves, state.chosen)
        changes: list[Any] = [
            after - before,
            *(noise.log_ratio(gap, -moves[1]) for noise, gap in noises),
        ]
        log_ratio = sum((change.sum(axis=0) for change in changes), back - forth)
        level = -rng.standard_exponential(step.shape)
        sized = self._of_size
        accepted = self._sized(state, step, log_ratio, level) if sized else level < log_ratio
        state.flat[cells, np.arange(state.chosen.size)] = counts + moves[1] * accepted

    def _line(
        self, counts: Integers, noises: list[tuple[IntegerNoise, Integers]]
    ) -> tuple[Any, Any, Any, Any]:
        """The ends of every line, relative to where it is, and where the noise alone puts it: a
        mean and a standard deviation. All of them move with the chain along the line.
        """
        sign = self._lines.sign
        lower, upper = -(counts + self._lose).min(axis=0), (counts + self._get).min(axis=0)
        # Weights, and how far it is to where a look was drawn without noise.
        pulls: list[Any] = [
            (noise, 1 / typical_std(noise) ** 2, sign * gap) for noise, gap in noises
        ]
        precision: Any = sum(weight.sum(axis=0) for _, weight, _ in pulls)
        pull: Any = sum((weight * gap).sum(axis=0) for _, weight, gap in pulls)
        measured = precision > 0
        precision = np.where(measured, precision, 1.0)
        centre = np.where(measured, pull / precision, (lower + upper) / 2)
        # Between the kinks of two Laplace laws the density is level.
        kinked = [(weight, gap) for noise, weight, gap in pulls if noise.kinks]
        apart: Any = sum((weight * (gap - centre) ** 2).sum(axis=0) for weight, gap in kinked)
        std = np.where(measured, ((1 + apart) / precision) ** 0.5, (upper - lower) / 3)
        return lower, upper, centre, std

    def _sized(self, state: State, step: Integers, log_ratio: Floats, level: Floats) -> Any:
        """Accept one line after the other, each at the number of records that those before leave;
        returns which, and changes the number.
        """
        cell = self._cells.first[()]
        size, accepted = state.flat[cell], np.zeros(step.shape, dtype=bool)
        before = self._cells.log_weight(cell, size, state.chosen)
        for line, far in enumerate(step):
            after = self._cells.log_weight(cell, size + far, state.chosen)
            accepted[line] = level[line] < log_ratio[line] + after - before
            before = np.where(accepted[line], after, before)
            size += accepted[line] * far
        return accepted


class ConcentrationMoves:
    """Moves of each chain's concentration a few places up or down, or none."""

    calls = 1

    def __init__(self, model: Model, cells: Cells) -> None:
        self._last, self._cells = len(model.concentrations) - 1, cells

    def __call__(self, state: State, rng: np.random.Generator) -> None:
        before = self._cells.log_prior(state.flat, state.chosen)
        for _ in range(2):
            proposed = state.chosen + rng.choice(_JUMPS, size=state.chosen.size)
            inside = (proposed >= 0) & (proposed <= self._last)
            proposed = np.where(inside, proposed, state.chosen)
            after = self._cells.log_prior(state.flat, proposed)
            accepted = -rng.standard_exponential(after.size) < after - before
            state.chosen = np.where(accepted, proposed, state.chosen)
            before = np.where(accepted, after, before)


def all_moves(model: Model) -> list[LineMoves | ConcentrationMoves]:
    """The moves of every set of variables within a clique, those that no table holds together at
    once; where the number of records is private, those that change it; and the concentration's.
    """
    parts = {subset for clique in model.tree.cliques for subset in subsets(clique)}
    moved = {subset for subset in parts if all(model.levels[v] > 1 for v in subset)}
    if model.size is None:
        moved.add(())
    cells = Cells(model)
    moves: list[LineMoves | ConcentrationMoves] = []
    left = {
        moved_set: moved_set.calls
        for moved_set in (MovedSet(model, subset) for subset in sorted(moved))
    }
    while left:
        together: list[MovedSet] = []
        for moved_set in sorted(left, key=lambda moved_set: (moved_set.corners, -left[moved_set])):
            if not any(
                moved_set.meets(chosen_set) or moved_set.corners != chosen_set.corners
                for chosen_set in together
            ):
                together.append(moved_set)
        calls = min(left[moved_set] for moved_set in together)
        moves.append(LineMoves(model, cells, together, calls))
        left = {
            moved_set: more
            for moved_set, n in left.items()
            if (more := n - calls * (moved_set in together))
        }
    if len(model.concentrations) > 1:
        moves.append(ConcentrationMoves(model, cells))
    return moves


def _sometimes_at_ends(
    lower: Any, upper: Any, centre: Any, std: Any, at_end: Any, narrow: Any
) -> tuple[Any, Any]:
    """The centre and the width of each proposal: on some of the lines with an end nearby, that end
    and from some to all of the usual width; by two uniform numbers for each.
    """
    near = np.minimum(centre - lower, upper - centre) < _NEAR * std
    chosen = near & (at_end < _AT_ENDS)
    first = (at_end < _AT_ENDS / 2) | np.isinf(upper)
    width = np.maximum(np.minimum(std, upper - lower) * np.exp(-3 * narrow), 0.5)
    return np.where(chosen, np.where(first, lower, upper), centre), np.where(chosen, width, std)


def _log_proposal(step: Integers, lower: Any, upper: Any, centre: Any, width: Any) -> Floats:
    """The logarithm of the probability of a rounded and clipped logistic at `step`."""
    far, half = (step - centre) / width, np.exp(-0.5 / width)
    size = np.abs(far)
    tail = np.exp(-size)
    # ln P(X < step + 1/2) and ln P(X > step - 1/2), the one on this side of the centre first.
    likely, rare = -np.log1p(half * tail), -size - np.log(half + tail)
    above, below = np.where(far < 0, (rare, likely), (likely, rare))
    log_sides = np.where(step > lower, below, 0.0) + np.where(step < upper, above, 0.0)
    inside = (step > lower) & (step < upper)
    return log_sides + np.where(inside, np.log(-np.expm1(-1 / width)), 0.0)
