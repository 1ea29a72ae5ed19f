"""Probabilities given the tables: hyper-Dirichlet, drawn clique by clique down the junction tree,
and those of any variables by summing the others out.

Pairs of variables that no table has get random interactions, with a strength that is learned from
the pairs that were measured. Each draw's joint law with these is fitted onto the measured tables of
that draw by iterative proportional fitting. It starts from a law in which as many of these tables
as form no cycle hold already. So nothing of what the cliques fill a cycle in with is left but what
the measured tables say.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from scipy import sparse

from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet, picked
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.survey_tables.consistent_draws import ConsistentDraws
from opendp_bayes.surveys.survey_tables.effects_of_tables import (
    BETWEEN,
    CENTRE,
    WITHIN,
    PairEffects,
    measured_effects,
)
from opendp_bayes.surveys.survey_tables.junction_tree import JunctionTree, Scope, without_filling
from opendp_bayes.surveys.survey_tables.tables import Model

#: Rows whose variables are summed out at a time.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class Factor:
    """Probabilities of the `residual` variables of a clique given those of its `separator`,
    shape `(rows, separator cells, residual cells)`.
    """

    separator: Scope
    residual: Scope
    values: Floats

    @property
    def scope(self) -> Scope:
        return self.separator + self.residual


def drawn_factors(draws: ConsistentDraws, rng: np.random.Generator) -> list[Factor]:
    """Draw every clique's probabilities for each kept draw of its table, those of the root first.

    Given the tables they are Dirichlet, and independent of each other.
    """
    model, factors = draws.model, dict[Scope, Factor]()
    concentration = draws.concentration.reshape(-1, 1, 1)
    shared = dict(model.tree.downwards())
    for clique in model.tree.cliques:
        separator = shared[clique]
        residual = tuple(v for v in clique if v not in separator)
        counts = model.margin(draws.rows(clique), clique, separator + residual)
        cells = counts.shape[1]
        blocks = counts.reshape(len(counts), -1, math.prod(model.levels[v] for v in residual))
        alpha = concentration / cells + blocks
        values = dirichlet(alpha.reshape(-1, alpha.shape[2]), rng)
        factors[clique] = Factor(separator, residual, values.reshape(alpha.shape))
    return [factors[clique] for clique in shared]


def refactored(model: Model, factors: list[Factor], tree: JunctionTree) -> list[Factor]:
    """The probabilities of the cliques of another tree, whose cliques these factors' hold."""
    refactored_factors = []
    for clique, separator in tree.downwards():
        residual = tuple(v for v in clique if v not in separator)
        shape = len(factors[0].values), -1, math.prod(model.levels[v] for v in residual)
        blocks = np.maximum(
            probabilities(model, factors, separator + residual).reshape(shape),
            np.finfo(np.float64).tiny,
        )
        refactored_factors.append(
            Factor(separator, residual, blocks / blocks.sum(axis=2, keepdims=True))
        )
    return refactored_factors


def probabilities(model: Model, factors: list[Factor], scope: Scope) -> Floats:
    """Joint probabilities of some variables, shape `(rows, cells)`, in the order given."""
    needed = _needed(factors, scope)
    shapes = [[model.levels[v] for v in factor.scope] for factor in needed]
    batch = len(model.levels)  # a name for the rows that no variable has
    rows = len(factors[0].values)
    parts = []
    for first, last in pairwise([*range(0, rows, _ROWS), rows]):
        terms: list[object] = []
        for factor, shape in zip(needed, shapes, strict=True):
            values = factor.values[first:last]
            terms += [values.reshape(len(values), *shape), [batch, *factor.scope]]
        joint = np.einsum(*terms, [batch, *scope], optimize="greedy")  # type: ignore[call-overload]
        parts.append(joint.reshape(last - first, -1))
    return np.concatenate(parts)


def _needed(factors: list[Factor], scope: Scope) -> list[Factor]:
    """The factors that do not sum to 1: those with wanted variables, and what joins them."""
    needed: list[Factor] = []
    wanted = set(scope)
    for factor in reversed(factors):  # children before their parents
        if wanted & set(factor.residual):
            needed.append(factor)
            wanted |= set(factor.separator)
    return needed[::-1]


Interactions = dict[Scope, Floats]

#: The largest strength that is drawn.
_STRONGEST = 3.0


def learned_centre(effects: Mapping[Scope, PairEffects]) -> tuple[float, float]:
    """Learn the centre of the normal law of the logarithms of pairs' strengths from those of
    measured pairs, which may be none: its mean, and its standard deviation.
    """
    above = [math.log(effect.strength) - CENTRE for effect in effects.values()]
    variance = 1 / (BETWEEN**-2 + len(above) * WITHIN**-2)
    return CENTRE + variance * WITHIN**-2 * sum(above), variance**0.5


def drawn_interactions(
    model: Model, size: float, draws: int, rng: np.random.Generator
) -> Interactions:
    """Draw an interaction of every pair of variables that no table has, shape `(draws, levels,
    levels)`; the second half are the first with their signs turned, so that means vary less.

    It is `t (√½ c f gᵀ + √½ Z)`, with the strength t, normal c and Z, and the directions f and g
    in which the levels of the two variables differ most in the pairs that were measured.
    """
    effects = measured_effects(model.levels, tuple(model.looks), size)
    (mean, std), half = learned_centre(effects), draws // 2
    directions = _directions(model.levels, effects, half, rng)
    centre = mean + std * rng.standard_normal(half)
    interactions: Interactions = {}
    for pair in open_pairs(model):
        first, second = (directions[v] for v in pair)
        logs = centre + WITHIN * rng.standard_normal(half)
        strength = np.minimum(np.exp(logs), _STRONGEST)[:, None, None]
        along = rng.standard_normal((half, 1, 1)) * first[:, :, None] * second[:, None, :]
        cells = rng.standard_normal((half, first.shape[1], second.shape[1]))
        interaction = strength * (along + cells) / 2**0.5
        interactions[pair] = np.concatenate([interaction, -interaction])
    return interactions


def open_pairs(model: Model) -> list[Scope]:
    """The pairs of variables, of two levels or more, that no table has."""
    wide = [v for v, levels in enumerate(model.levels) if levels > 1]
    return [pair for pair in combinations(wide, 2) if model.tree.holding(pair) is None]


def _directions(
    levels: tuple[int, ...],
    effects: Mapping[Scope, PairEffects],
    draws: int,
    rng: np.random.Generator,
) -> list[Floats]:
    """For each variable the direction of its levels in which its measured effects are largest, of
    mean 0 and mean square 1, shape `(draws, levels)`; any direction where it has none.
    """
    drawn_effects = {pair: effect.draw(draws, rng) for pair, effect in effects.items()}
    directions = []
    for v, number in enumerate(levels):
        blocks = [
            block if pair[0] == v else block.swapaxes(1, 2)
            for pair, block in drawn_effects.items()
            if v in pair
        ]
        if not blocks:
            blocks = [rng.standard_normal((draws, number, 1))]
        first = np.linalg.svd(np.concatenate(blocks, axis=2), full_matrices=False)[0][:, :, 0]
        centred = first - first.mean(axis=1, keepdims=True)
        size = np.sqrt((centred**2).mean(axis=1, keepdims=True))
        directions.append(centred / np.where(size > 0, size, 1.0))
    return directions


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
        if tree.measured != tree.cliques:
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
        factors_in_middle, start = (
            [Factor(factor.separator, factor.residual, factor.values[rows]) for factor in of_tree]
            for of_tree in (factors, self._start)
        )
        self.interactions: Interactions = drawn_interactions(model, size, rows.size, rng)
        self._levels = (
            np.indices(model.levels).reshape(len(model.levels), -1)
            if points == joint
            else _drawn_levels(model, factors_in_middle, points, rng)
        )
        density, before = (
            _density(model, of_tree, self._levels) for of_tree in (factors_in_middle, start)
        )
        often = 1.0 if points == joint else density.mean(axis=1, keepdims=True) * points
        self._before = before / often
        changed = self._before * np.exp(self._change())
        tables = [model.cells_of(self._levels, scope) for scope in tree.measured]
        targets = [_sums(cells, density / often, int(cells.max()) + 1) for cells in tables]
        self._after = fitted(changed, tables, targets, _ROUNDS, _CLOSE)

    def probabilities(self, scope: Scope) -> Floats:
        """Joint probabilities of some variables for all draws, shape `(rows, cells)`, in the order
        given.
        """
        before = probabilities(self._model, self._start, scope)
        places = self._model.cells_of(self._levels, scope)
        sums, changed = (
            _sums(places, weights, before.shape[1]) for weights in (self._before, self._after)
        )
        ratio = np.divide(changed, sums, out=np.ones_like(sums), where=sums > 0)
        sets = {
            tuple(v for v in scope if v in measured_set)
            for measured_set in self._model.tree.measured
        }
        measured_set = [
            shared
            for shared in sorted(sets)
            if shared and not any({*shared} < {*weights} for weights in sets)
        ]
        parts = [self._model.places(scope, part) for part in measured_set]
        targets = [probabilities(self._model, self._factors, part).T for part in measured_set]
        start = before.T * ratio[:, self.stretch]
        return fitted(start, parts, targets, _ROUNDS_OF_TABLES, _CLOSE_IN_TABLES).T

    def of_row(self, row: int) -> Interactions:
        """The interactions of one draw, each of shape `(levels, levels)`."""
        return {pair: values[self.stretch[row]] for pair, values in self.interactions.items()}

    def _change(self) -> Floats:
        """The sum of all interactions at every point, shape `(points, draws)`, at most 0."""
        total = np.zeros_like(self._before)
        for pair, values in self.interactions.items():
            places = self._model.cells_of(self._levels, pair)
            total += values.reshape(len(values), -1).T.take(places, axis=0)
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
    density = np.ones((levels.shape[1], len(factors[0].values)))
    for factor in factors:
        places = model.cells_of(levels, factor.scope)
        density *= factor.values.reshape(len(factor.values), -1).T.take(places, axis=0)
    return density


def _drawn_levels(
    model: Model, factors: Sequence[Factor], points: int, rng: np.random.Generator
) -> Integers:
    """Combinations of levels from the mixture of all draws, without interactions."""
    rows = rng.integers(len(factors[0].values), size=points)
    combinations = np.zeros((len(model.levels), points), dtype=np.int64)
    for factor in factors:
        places = model.cells_of(combinations, factor.separator)
        cell = picked(factor.values[rows, places], np.arange(points), rng.random(points))
        levels_of_factor = np.unravel_index(cell, [model.levels[v] for v in factor.residual])
        for v, levels_of_variable in zip(factor.residual, levels_of_factor, strict=True):
            combinations[v] = levels_of_variable
    return combinations
