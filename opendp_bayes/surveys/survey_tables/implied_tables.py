"""Tables of variables that no table has together: each draw's joint law with random interactions,
fitted onto the measured tables of that draw by iterative proportional fitting.

It starts from a law in which as many of these tables as form no cycle hold already. So nothing of
what the cliques fill a cycle in with is left but what the measured tables say.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.survey_tables.junction_tree import Scope, without_filling
from opendp_bayes.surveys.survey_tables.probabilities_of_cliques import (
    Factor,
    Interactions,
    drawn_interactions,
    probabilities,
    refactored,
)
from opendp_bayes.surveys.survey_tables.tables import Model

#: Cells of the joint table that are all listed; of larger ones so many are drawn.
LARGEST_JOINT, _DRAWN = 50_000, 32_768
#: Fewest and most interactions that are drawn for each chain, and the cells and draws of the joint
#: table that are held.
_FEWEST, _MOST, _HELD = 4, 32, 4_000_000
#: Rounds of proportional fitting at most, and the mass by which tables may be off.
_ROUNDS, _CLOSE = 30, 1e-4
#: Of tables, which are small.
_ROUNDS_OF_TABLES, _CLOSE_IN_TABLES = 100, 1e-10


class ImpliedTables:
    """Tables with random interactions of the pairs that no table has.

    Chains are cut into stretches of draws with one interaction each, which changes the joint law of
    the draw in the middle, and by the same ratio the tables of the others.
    """

    def __init__(
        self,
        model: Model,
        factors: list[Factor],
        shape: tuple[int, int],
        size: float,
        rng: np.random.Generator,
    ) -> None:
        chains, draws = shape
        self._model, self._factors, tree = model, factors, model.tree
        self._start = factors
        if tree.known != tree.cliques:
            self._start = refactored(model, factors, without_filling(model.levels, tree))
        joint = math.prod(model.levels)
        points = joint if joint <= LARGEST_JOINT else _DRAWN
        number = min(max(_HELD // (points * chains), _FEWEST), _MOST, draws)
        #: The interaction of every draw, those of all chains one after the other.
        self.stretch: Integers = np.add.outer(
            np.arange(chains) * number, np.arange(draws) * number // draws
        ).reshape(-1)
        middle = ((np.arange(number) + 0.5) * draws / number).astype(np.int64)
        rows = np.add.outer(np.arange(chains) * draws, middle).reshape(-1)
        own, start = (
            [Factor(one.separator, one.own, one.values[rows]) for one in of]
            for of in (factors, self._start)
        )
        self.interactions: Interactions = drawn_interactions(model, size, rows.size, rng)
        self._levels = (
            np.indices(model.levels).reshape(len(model.levels), -1)
            if points == joint
            else _drawn_levels(model, own, points, rng)
        )
        density, before = (_density(model, of, self._levels) for of in (own, start))
        often = 1.0 if points == joint else density.mean(axis=1, keepdims=True) * points
        self._before = before / often
        changed = self._before * np.exp(self._change())
        tables = [model.cells_of(self._levels, scope) for scope in tree.known]
        targets = [_sums(of, density / often, int(of.max()) + 1) for of in tables]
        self._after = fitted(changed, tables, targets, _ROUNDS, _CLOSE)

    def probabilities(self, scope: Scope) -> Floats:
        """Joint probabilities of some variables for all draws, shape `(rows, cells)`, in the order
        given.
        """
        before = probabilities(self._model, self._start, scope)
        places = self._model.cells_of(self._levels, scope)
        sums, changed = (_sums(places, of, before.shape[1]) for of in (self._before, self._after))
        ratio = np.divide(changed, sums, out=np.ones_like(sums), where=sums > 0)
        sets = {tuple(v for v in scope if v in known) for known in self._model.tree.known}
        known = [one for one in sorted(sets) if one and not any({*one} < {*of} for of in sets)]
        parts = [self._model.places(scope, part) for part in known]
        targets = [probabilities(self._model, self._factors, part).T for part in known]
        start = before.T * ratio[:, self.stretch]
        return fitted(start, parts, targets, _ROUNDS_OF_TABLES, _CLOSE_IN_TABLES).T

    def of_row(self, row: int) -> Interactions:
        """The interactions of one draw, each of shape `(levels, levels)`."""
        return {pair: of[self.stretch[row]] for pair, of in self.interactions.items()}

    def _change(self) -> Floats:
        """The sum of all interactions at every point, shape `(points, draws)`, at most 0."""
        total = np.zeros_like(self._before)
        for pair, of in self.interactions.items():
            places = self._model.cells_of(self._levels, pair)
            total += of.reshape(len(of), -1).T.take(places, axis=0)
        return total - total.max(axis=0)


def fitted(
    weights: Floats,
    tables: Sequence[Integers],
    targets: Sequence[Floats],
    rounds: int,
    close: float,
) -> Floats:
    """Weights of shape `(points, draws)`, scaled until the sums over each table's cells, of which
    `tables` have the one of every point, are the `targets`: iterative proportional fitting.

    It ends after so many rounds, or where the sums are off by at most `close` together, in the mean
    over the draws.
    """
    weights = weights.copy()
    for _ in range(rounds):
        worst = 0.0
        for places, target in zip(tables, targets, strict=True):
            sums = _sums(places, weights, len(target))
            worst = max(worst, float(abs(target - sums).sum(axis=0).mean()))
            factors = np.divide(target, sums, out=np.zeros_like(sums), where=sums > 0)
            weights *= factors.take(places, axis=0)
        if worst < close:
            break
    return weights


def _sums(places: Integers, weights: Floats, cells: int) -> Floats:
    """Sums over the points of every cell, also of those that no point is in; shape `(cells,
    draws)`.
    """
    entries = np.ones(places.size), (places, np.arange(places.size))
    return sparse.csr_array(entries, shape=(cells, places.size)) @ weights


def _density(model: Model, factors: Sequence[Factor], levels: Integers) -> Floats:
    """Probabilities of combinations of levels without interactions, shape `(points, draws)`."""
    found = np.ones((levels.shape[1], len(factors[0].values)))
    for factor in factors:
        places = model.cells_of(levels, factor.scope)
        found *= factor.values.reshape(len(factor.values), -1).T.take(places, axis=0)
    return found


def _drawn_levels(
    model: Model, factors: Sequence[Factor], points: int, rng: np.random.Generator
) -> Integers:
    """Combinations of levels from the mixture of all draws, without interactions."""
    rows = rng.integers(len(factors[0].values), size=points)
    found = np.zeros((len(model.levels), points), dtype=np.int64)
    for factor in factors:
        places = model.cells_of(found, factor.separator)
        reached = factor.values[rows, places].cumsum(axis=1)
        level = rng.random((points, 1)) * reached[:, -1:]
        own = np.unravel_index((reached[:, :-1] <= level).sum(axis=1),
                               [model.levels[v] for v in factor.own])  # fmt: skip
        for v, of in zip(factor.own, own, strict=True):
            found[v] = of
    return found
