"""Lines along which tables that agree on what they share can move, and agree afterwards."""

import math
from itertools import accumulate, product

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.survey_tables.cells import Cells, State
from opendp_bayes.surveys.survey_tables.junction_tree import Scope
from opendp_bayes.surveys.survey_tables.tables import Model

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
