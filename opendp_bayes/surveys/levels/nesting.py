"""Finds out whether the categories of tables are sums of those of one of them."""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.release_format.data import Label, ReleasedData
from opendp_bayes.release_format.labels import distinct, identity, places_of
from opendp_bayes.release_format.merging import merged_in
from opendp_bayes.surveys.levels.nested_tables import are_a_chain

Columns = tuple[str, ...]


def nested_parts(
    tables: Mapping[str, ReleasedData], columns: Mapping[str, Columns]
) -> dict[str, Integers] | None:
    """For each table, the place of its category that every cell of the finest is a part of, shape
    `(cells,)`; None where the tables are not nested, or are whole tables of all combinations.

    `columns` are those that each table counts. A table's categories are sums of those of another if
    it merges them, or if it is of some of the other's columns. Of any two tables one must be finer.
    """
    if not any(release.parts or _leaves_out(release) for release in tables.values()):
        return None
    atoms = {
        name: list(chain.from_iterable(merged_in(release))) for name, release in tables.items()
    }
    widest = max(tables, key=lambda name: (len(columns[name]), len(atoms[name])))
    parts = {}
    for name, release in tables.items():
        seen = _projected(atoms[widest], columns[widest], columns[name])
        place = {
            identity(label): at for at, part in enumerate(merged_in(release)) for label in part
        }
        if seen is None or {identity(label) for label in seen} != place.keys():
            return None
        parts[name] = np.array([place[identity(label)] for label in seen])
    if not are_a_chain(list(parts.values())):
        return None
    finest = max(parts.values(), key=lambda part: int(part.max()))
    first = np.unique(finest, return_index=True)[1]
    return {name: part[first] for name, part in parts.items()}


def likely_columns(tables: Mapping[str, ReleasedData]) -> dict[str, Columns]:
    """The columns that tables count. Of those that do not say so, as far as their names and labels
    tell: those of a joint table, and of one column its name. Tables of the same labels, merged or
    not, are of one column, unless several joint tables, or variables of them, have these labels.
    """
    axes = {axis for one in tables.values() for axis in one.columns or one.axes}
    labels = {
        name: frozenset(map(identity, chain.from_iterable(merged_in(one))))
        for name, one in tables.items()
    }
    known = {
        name: one.columns or one.axes or (name,)
        for name, one in tables.items()
        if one.columns or one.axes or (name in axes and not one.parts)
    }
    found = {}
    for name in tables:
        alike = [other for other in tables if labels[other] == labels[name]]
        named = {known[other] for other in alike if other in known}
        plain = min(alike, key=lambda other: bool(tables[other].parts))
        if name in known:
            found[name] = known[name]
        elif len(named) == 1:
            found[name] = named.pop()
        else:
            found[name] = (name if named else plain,)
    return found


def _leaves_out(release: ReleasedData) -> bool:
    """True for a joint table without a cell for some combination of its labels."""
    cells: Any = release.categories
    labels = (distinct(cell[at] for cell in cells) for at in range(len(release.axes)))
    return len(cells) < math.prod(map(len, labels))


def _projected(cells: Sequence[Any], of: Columns, wanted: Columns) -> list[Label] | None:
    """The labels of some columns of cells; None where the cells do not have them."""
    if of == wanted:
        return list(cells)
    if len(of) < 2 or not set(wanted) <= set(of):
        return None
    at = [places_of(of)[identity(name)] for name in wanted]
    return [cell[at[0]] if len(at) == 1 else tuple(cell[i] for i in at) for cell in cells]
