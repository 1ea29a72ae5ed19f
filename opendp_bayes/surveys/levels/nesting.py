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
    axes = {axis for release in tables.values() for axis in release.columns or release.axes}
    labels = {
        name: frozenset(map(identity, chain.from_iterable(merged_in(release))))
        for name, release in tables.items()
    }
    stated = {
        name: release.columns or release.axes or (name,)
        for name, release in tables.items()
        if release.columns or release.axes or (name in axes and not release.parts)
    }
    columns = {}
    for name in tables:
        alike = [table for table in tables if labels[table] == labels[name]]
        named = {stated[table] for table in alike if table in stated}
        plain = min(alike, key=lambda table: bool(tables[table].parts))
        if name in stated:
            columns[name] = stated[name]
        elif len(named) == 1:
            columns[name] = named.pop()
        else:
            columns[name] = (name if named else plain,)
    return columns


def _leaves_out(release: ReleasedData) -> bool:
    """True for a joint table without a cell for some combination of its labels."""
    cells: Any = release.categories
    labels = (distinct(cell[at] for cell in cells) for at in range(len(release.axes)))
    return len(cells) < math.prod(map(len, labels))


def _projected(cells: Sequence[Any], columns: Columns, wanted: Columns) -> list[Label] | None:
    """The labels of some columns of cells; None where the cells do not have them."""
    if columns == wanted:
        return list(cells)
    if len(columns) < 2 or not set(wanted) <= set(columns):
        return None
    axes = [places_of(columns)[identity(name)] for name in wanted]
    return [
        cell[axes[0]] if len(axes) == 1 else tuple(cell[axis] for axis in axes) for cell in cells
    ]
