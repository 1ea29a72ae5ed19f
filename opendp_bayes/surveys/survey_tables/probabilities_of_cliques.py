"""Probabilities given the tables: hyper-Dirichlet, drawn clique by clique down the junction tree,
and those of any variables by summing the others out.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.surveys.survey_tables.consistent_draws import ConsistentDraws
from opendp_bayes.surveys.survey_tables.junction_tree import JunctionTree, Scope
from opendp_bayes.surveys.survey_tables.tables import Model

#: Rows whose variables are summed out at a time.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class Factor:
    """Probabilities of the `own` variables of a clique given those of its `separator`, shape
    `(rows, separator cells, own cells)`.
    """

    separator: Scope
    own: Scope
    values: Floats

    @property
    def scope(self) -> Scope:
        return self.separator + self.own


def drawn_factors(draws: ConsistentDraws, rng: np.random.Generator) -> list[Factor]:
    """Draw every clique's probabilities for each kept draw of its table, those of the root first.

    Given the tables they are Dirichlet, and independent of each other.
    """
    model, factors = draws.model, dict[Scope, Factor]()
    concentration = draws.concentration.reshape(-1, 1, 1)
    shared = dict(model.tree.downwards())
    for clique in model.tree.cliques:
        separator = shared[clique]
        own = tuple(v for v in clique if v not in separator)
        counts = model.margin(draws.rows(clique), clique, separator + own)
        cells = counts.shape[1]
        blocks = counts.reshape(len(counts), -1, math.prod(model.levels[v] for v in own))
        alpha = concentration / cells + blocks
        values = dirichlet(alpha.reshape(-1, alpha.shape[2]), rng)
        factors[clique] = Factor(separator, own, values.reshape(alpha.shape))
    return [factors[clique] for clique in shared]


def refactored(model: Model, factors: list[Factor], tree: JunctionTree) -> list[Factor]:
    """The probabilities of the cliques of another tree, whose cliques these factors' hold."""
    found = []
    for clique, separator in tree.downwards():
        own = tuple(v for v in clique if v not in separator)
        shape = len(factors[0].values), -1, math.prod(model.levels[v] for v in own)
        blocks = np.maximum(
            probabilities(model, factors, separator + own).reshape(shape),
            np.finfo(np.float64).tiny,
        )
        found.append(Factor(separator, own, blocks / blocks.sum(axis=2, keepdims=True)))
    return found


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
        found = np.einsum(*terms, [batch, *scope], optimize="greedy")  # type: ignore[call-overload]
        parts.append(found.reshape(last - first, -1))
    return np.concatenate(parts)


def _needed(factors: list[Factor], scope: Scope) -> list[Factor]:
    """The factors that do not sum to 1: those with wanted variables, and what joins them."""
    needed: list[Factor] = []
    wanted = set(scope)
    for factor in reversed(factors):  # children before their parents
        if wanted & set(factor.own):
            needed.append(factor)
            wanted |= set(factor.separator)
    return needed[::-1]
