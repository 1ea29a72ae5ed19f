"""Probabilities given the tables: hyper-Dirichlet, drawn clique by clique down the junction tree,
and those of any variables by summing the others out; and random interactions of the pairs of
variables that no table has, with a strength that is learned from the pairs that were measured.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.surveys.survey_tables.consistent_draws import ConsistentDraws
from opendp_bayes.surveys.survey_tables.effects_of_tables import (
    BETWEEN,
    CENTRE,
    WITHIN,
    PairEffects,
    measured_effects,
)
from opendp_bayes.surveys.survey_tables.junction_tree import JunctionTree, Scope
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
