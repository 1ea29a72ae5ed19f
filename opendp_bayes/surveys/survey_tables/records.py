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
from opendp_bayes.surveys.survey_tables.probabilities_of_tables import Factor, Interactions
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
    records: Any = np.empty((size, len(model.levels)), dtype=smallest, order="F")
    cells_of_root = np.arange(tables[root].size).repeat(tables[root])
    _write(records, slice(None), root, model, rng.permutation(cells_of_root))
    for child, separator in others:
        rows = np.argsort(_key(records, model, separator), kind="stable")
        places = model.places(child, separator)
        cells = np.argsort(places, kind="stable")
        numbers = tables[child][cells]
        parts: Any = cells.repeat(numbers).astype(np.min_scalar_type(cells.size))
        ends = np.bincount(places[cells], numbers).astype(np.int64).cumsum()
        for block in np.split(parts, ends[:-1]):
            rng.shuffle(block)
        _write(records, rows, child, model, parts)
    return records


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
    turned = {
        pair[::-1]: interaction.T for pair, interaction in interactions.items()
    } | interactions
    # Where one level takes the place of another, at each level of the other variable.
    changes = {
        pair: (interaction[:, None] - interaction).reshape(-1)
        for pair, interaction in turned.items()
    }
    sides: list[Side] = []
    parts, tree, variables = model.tree.separations(), model.tree, range(len(model.levels))
    for v in variables if tree.measured != tree.cliques else ():
        around = {u for measured_set in tree.measured if v in measured_set for u in measured_set}
        parts.append(((v,), tuple({*variables} - around), tuple(around - {v})))
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
        first, second = paired[:-1:2][same], paired[1::2][same]
        above = {u for crossing in inside.values() for u, _ in crossing}
        ends = {u: (records[first, u], records[second, u]) for u in above}
        change = np.zeros(first.size)
        for v, crossing in inside.items():
            levels = model.levels[v]
            both = records[first, v].astype(np.int64) * levels + records[second, v]
            for u, changes in crossing:
                code, (here, there) = both * model.levels[u], ends[u]
                change += changes.take(code + there) - changes.take(code + here)
        accepted = -rng.standard_exponential(change.size) < change
        first, second = first[accepted], second[accepted]
        for v in inside:
            records[first, v], records[second, v] = records[second, v], records[first, v]


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
    tables: dict[Scope, Integers] = {}
    for factor in factors:
        clique = tuple(sorted(factor.scope))
        numbers = model.margin_of(tables, factor.separator) if tables else np.array([size])
        shares = factor.values[row]
        counts = rng.multinomial(numbers, shares / shares.sum(axis=1, keepdims=True))
        ordered = counts.reshape([model.levels[v] for v in factor.scope])
        tables[clique] = ordered.transpose(np.argsort(factor.scope)).reshape(-1)
    return tables


def _write(records: Any, rows: Any, clique: Scope, model: Model, cells: Integers) -> None:
    levels = np.unravel_index(cells, [model.levels[v] for v in clique])
    for v, column in zip(clique, levels, strict=True):
        records[rows, v] = column


def frame_of(levels: Integers, labels: Mapping[str, tuple[Label, ...]]) -> "pl.DataFrame":
    """Name the levels of records, shape `(size, variables)`: Booleans and integers stay what they
    are, and all others become an Enum in the order of the labels.
    """
    import polars as pl

    columns = {}
    for (variable, labels_of_column), column in zip(labels.items(), levels.T, strict=True):
        kinds = {type(label) for label in labels_of_column}
        if kinds == {bool} or kinds == {int}:
            columns[variable] = pl.Series(variable, np.array(labels_of_column)[column])
        else:
            texts = list(map(str, labels_of_column))
            if len(set(texts)) < len(texts):
                texts = list(map(repr, labels_of_column))
            codes = pl.Series(variable, column.astype(np.uint32))
            columns[variable] = codes.cast(pl.Enum(texts))
    return pl.DataFrame(columns)
