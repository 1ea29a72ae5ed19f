"""Records that have given tables: within the levels of what two cliques share, their parts are
matched at random.
"""

import math
from typing import Any

import numpy as np

from opendp_bayes.inference.survey_tables.junction_tree import Scope
from opendp_bayes.inference.survey_tables.probabilities_of_cliques import Factor
from opendp_bayes.inference.survey_tables.tables import Model
from opendp_bayes.mathematics.validation import Integers

Generator = np.random.Generator


def matched_records(model: Model, tables: dict[Scope, Integers], rng: Generator) -> Any:
    """Records in random order, their levels of shape `(size, variables)`, whose tables are exactly
    `tables`, shape `(cells,)` for each clique.

    Every matching is equally probable: given what they share, the cliques are independent.
    """
    tree = model.tree
    size = int(tables[tree.cliques[0]].sum())
    smallest = np.min_scalar_type(max(model.levels))
    found: Any = np.empty((size, len(model.levels)), dtype=smallest, order="F")
    root = tree.cliques[0]
    _write(found, slice(None), root, model, rng.permutation(_repeated(tables[root])))
    for edge in tree.edges:
        child = tree.cliques[edge.child]
        shape = [model.levels[v] for v in edge.separator]
        key: Any = np.zeros(size, dtype=np.min_scalar_type(math.prod(shape)))
        for v, levels in zip(edge.separator, shape, strict=True):
            key = key * key.dtype.type(levels) + found[:, v].astype(key.dtype)
        rows = np.argsort(key, kind="stable")
        places = model.places(child, edge.separator)
        cells = np.argsort(places, kind="stable")
        numbers = tables[child][cells]
        parts: Any = cells.repeat(numbers).astype(np.min_scalar_type(cells.size))
        ends = np.bincount(places[cells], numbers).astype(np.int64).cumsum()
        for block in np.split(parts, ends[:-1]):
            rng.shuffle(block)
        _write(found, rows, child, model, parts)
    return found


def new_tables(
    model: Model, factors: list[Factor], row: int, size: int, rng: Generator
) -> dict[Scope, Integers]:
    """Tables of `size` new records with the probabilities of one draw."""
    found: dict[Scope, Integers] = {}
    for factor in factors:
        clique = tuple(sorted(factor.scope))
        if factor.separator:
            known = next(one for one in found if set(factor.separator) <= set(one))
            numbers = model.margin(found[known][None], known, factor.separator)[0]
        else:
            numbers = np.array([size])
        shares = factor.values[row]
        counts = rng.multinomial(numbers, shares / shares.sum(axis=1, keepdims=True))
        ordered = counts.reshape([model.levels[v] for v in factor.scope])
        found[clique] = ordered.transpose(np.argsort(factor.scope)).reshape(-1)
    return found


def _write(found: Any, rows: Any, clique: Scope, model: Model, cells: Integers) -> None:
    levels = np.unravel_index(cells, [model.levels[v] for v in clique])
    for v, of in zip(clique, levels, strict=True):
        found[rows, v] = of


def _repeated(table: Integers) -> Integers:
    return np.arange(table.size).repeat(table)
