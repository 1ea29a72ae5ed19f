"""Records that have given tables, and their polars frames. Within the levels of what two cliques
share, their parts are matched at random, and exchanged where variables that no clique holds
together interact.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.release_format.data import Label
from opendp_bayes.surveys.survey_tables.junction_tree import Scope
from opendp_bayes.surveys.survey_tables.probabilities_of_cliques import Factor, Interactions
from opendp_bayes.surveys.survey_tables.tables import Model

if TYPE_CHECKING:
    import polars as pl


#: The variables below a separator, each with those above it that it interacts with, and how that
#: interaction changes; and the separator.
Side = tuple[dict[int, list[tuple[int, Floats]]], Scope]
#: How often every record is paired at each separator. Interactions of strength 1 have settled by
#: then, and usual ones after a third of that.
_SWEEPS = 24


def matched_records(model: Model, tables: dict[Scope, Integers], rng: np.random.Generator) -> Any:
    """Records in random order, their levels of shape `(size, variables)`, whose tables are exactly
    `tables`, shape `(cells,)` for each clique.

    Every matching is equally probable: given what they share, the cliques are independent.
    """
    (root, _), *others = model.tree.downwards()
    size = int(tables[root].sum())
    smallest = np.min_scalar_type(max(model.levels))
    found: Any = np.empty((size, len(model.levels)), dtype=smallest, order="F")
    every = np.arange(tables[root].size).repeat(tables[root])
    _write(found, slice(None), root, model, rng.permutation(every))
    for child, separator in others:
        rows = np.argsort(_key(found, model, separator), kind="stable")
        places = model.places(child, separator)
        cells = np.argsort(places, kind="stable")
        numbers = tables[child][cells]
        parts: Any = cells.repeat(numbers).astype(np.min_scalar_type(cells.size))
        ends = np.bincount(places[cells], numbers).astype(np.int64).cumsum()
        for block in np.split(parts, ends[:-1]):
            rng.shuffle(block)
        _write(found, rows, child, model, parts)
    return found


def exchange(
    records: Any, model: Model, interactions: Interactions, rng: np.random.Generator
) -> None:
    """Change matched records, in place, so that they have an interaction of each pair that no
    table has, shape `(levels, levels)`; their measured tables stay.

    For each separator, records that agree on it are paired at random, and exchange the variables
    below it by Metropolis: the law of the records is in proportion to the exponential of the sum of
    their interactions. So do records that agree on all variables that one was measured with, where
    a cycle is filled in.
    """
    turned = {pair[::-1]: of.T for pair, of in interactions.items()} | interactions
    # Where one level takes the place of another, at each level of the other variable.
    changes = {pair: (of[:, None] - of).reshape(-1) for pair, of in turned.items()}
    sides: list[Side] = []
    parts, tree, every = model.tree.separations(), model.tree, range(len(model.levels))
    for v in every if tree.known != tree.cliques else ():
        around = {u for one in tree.known if v in one for u in one}
        parts.append(((v,), tuple({*every} - around), tuple(around - {v})))
    for below, above, shared in parts:
        inside = {v: [(u, changes[v, u]) for u in above if (v, u) in changes] for v in below}
        if any(inside.values()):
            sides.append((inside, shared))
    for _ in range(_SWEEPS):
        _sweep(records, model, sides, rng)


def _sweep(records: Any, model: Model, sides: list[Side], rng: np.random.Generator) -> None:
    """Pair all records once at each separator."""
    order = rng.permutation(len(records))
    for inside, shared in sides:
        key = _key(records, model, shared)[order]
        alike = np.argsort(key, kind="stable")
        key, paired = key[alike], order[alike]
        same = key[:-1:2] == key[1::2]
        one, other = paired[:-1:2][same], paired[1::2][same]
        above = {u for crossing in inside.values() for u, _ in crossing}
        ends = {u: (records[one, u], records[other, u]) for u in above}
        change = np.zeros(one.size)
        for v, crossing in inside.items():
            levels = model.levels[v]
            both = records[one, v].astype(np.int64) * levels + records[other, v]
            for u, changes in crossing:
                code, (here, there) = both * model.levels[u], ends[u]
                change += changes.take(code + there) - changes.take(code + here)
        accepted = -rng.standard_exponential(change.size) < change
        one, other = one[accepted], other[accepted]
        for v in inside:
            records[one, v], records[other, v] = records[other, v], records[one, v]


def _key(records: Any, model: Model, shared: Scope) -> Any:
    """The cell of the table of some variables, of each record."""
    shape = [model.levels[v] for v in shared]
    key: Any = np.zeros(len(records), dtype=np.min_scalar_type(math.prod(shape)))
    for v, levels in zip(shared, shape, strict=True):
        key = key * key.dtype.type(levels) + records[:, v].astype(key.dtype)
    return key


def new_tables(
    model: Model, factors: list[Factor], row: int, size: int, rng: np.random.Generator
) -> dict[Scope, Integers]:
    """Tables of `size` new records with the probabilities of one draw."""
    found: dict[Scope, Integers] = {}
    for factor in factors:
        clique = tuple(sorted(factor.scope))
        numbers = model.margin_of(found, factor.separator) if found else np.array([size])
        shares = factor.values[row]
        counts = rng.multinomial(numbers, shares / shares.sum(axis=1, keepdims=True))
        ordered = counts.reshape([model.levels[v] for v in factor.scope])
        found[clique] = ordered.transpose(np.argsort(factor.scope)).reshape(-1)
    return found


def _write(found: Any, rows: Any, clique: Scope, model: Model, cells: Integers) -> None:
    levels = np.unravel_index(cells, [model.levels[v] for v in clique])
    for v, of in zip(clique, levels, strict=True):
        found[rows, v] = of


def frame_of(levels: Integers, labels: Mapping[str, tuple[Label, ...]]) -> "pl.DataFrame":
    """Name the levels of records, shape `(size, variables)`: Booleans and integers stay what they
    are, and all others become an Enum in the order of the labels.
    """
    import polars as pl

    columns = {}
    for (name, of), own in zip(labels.items(), levels.T, strict=True):
        kinds = {type(label) for label in of}
        if kinds == {bool} or kinds == {int}:
            columns[name] = pl.Series(name, np.array(of)[own])
        else:
            texts = list(map(str, of))
            if len(set(texts)) < len(texts):
                texts = list(map(repr, of))
            codes = pl.Series(name, own.astype(np.uint32))
            columns[name] = codes.cast(pl.Enum(texts))
    return pl.DataFrame(columns)
