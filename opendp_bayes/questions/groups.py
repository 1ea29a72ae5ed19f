"""The groups of a query per group: which there are, and in which one a record is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Integers, check_cells
from opendp_bayes.questions.columns import public_values
from opendp_bayes.questions.joint_tables import check_combinations
from opendp_bayes.release_format.data import Key
from opendp_bayes.release_format.labels import distinct, identity, places_of
from opendp_bayes.trusted.cells import Axis
from opendp_bayes.trusted.kinds import ColumnKind


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of one or several columns.

    `index` has the number of the group of every combination of places on the axes, or -1 where a
    record is in no group.
    """

    axes: tuple[Axis, ...]
    groups: tuple[Key, ...]
    index: Integers


def groups_of(by: tuple[str, ...], kinds: Sequence[ColumnKind], keys: Any) -> Groups:
    """The groups of columns `by`, from the public keys, or the categories of Enum columns.

    The keys of several columns are tuples. Raises `ValueError`/`TypeError` for keys that do not
    fit the columns.
    """
    if isinstance(keys, (pl.Series, np.ndarray)):
        keys = keys.tolist() if isinstance(keys, np.ndarray) else keys.to_list()
    if keys is not None and hasattr(keys, "__len__"):
        check_cells("keys", len(keys))
    if len(by) == 1:
        column, groups = _column(by[0], kinds[0], keys)
        index = np.append(np.arange(len(groups)), -1)
        return Groups((column,), groups, index)
    rows = None if keys is None else _as_rows(keys, len(by))
    found = [
        _column(name, known, None if rows is None else distinct(row[at] for row in rows))
        for at, (name, known) in enumerate(zip(by, kinds, strict=True))
    ]
    columns, values = zip(*found, strict=True)
    shape = [len(of) + 1 for of in values]
    check_combinations("by", by, shape)
    if rows is None:
        check_cells("by", math.prod(map(len, values)))
        rows = list(product(*values))
    index, places = np.full(shape, -1), list(map(places_of, values))
    for number, row in enumerate(rows):
        index[tuple(of[identity(value)] for of, value in zip(places, row, strict=True))] = number
    return Groups(columns, tuple(rows), index)


def _as_rows(keys: Any, length: int) -> list[tuple[Any, ...]]:
    """Keys of several columns, each a tuple with a value of each column."""
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise TypeError(
            f"keys={told(keys)}: must be a sequence of tuples, one value for each column."
        )
    for key in keys:
        if isinstance(key, str) or not isinstance(key, Sequence) or len(key) != length:
            raise TypeError(
                f"keys: {key!r} must be a tuple of {length} values, one for each column."
            )
    rows = [tuple(key) for key in keys]
    kinds = {type(value) for row in rows for value in row}
    if not kinds <= {str, int, bool, type(None)}:
        raise TypeError(
            f"keys={told(keys)}: must hold values of the columns (str, int, bool or None)."
        )
    if len(distinct(rows)) < len(rows):
        raise ValueError(f"keys={told(keys)}: must not repeat a key.")
    return rows


def _column(by: str, known: ColumnKind, keys: Any) -> tuple[Axis, tuple[Any, ...]]:
    """A column that says which group a row is in, and the values of its groups; the position after
    the last is that of the rows in no group.
    """
    nulls = isinstance(keys, Sequence) and not isinstance(keys, str)
    nulls = nulls and any(key is None for key in keys)
    if nulls and sum(key is None for key in keys) > 1:
        raise ValueError(f"keys={told(keys)}: must not repeat a key.")
    values = public_values(
        by, known, [key for key in keys if key is not None] if nulls else keys, "keys"
    )
    groups = (*values, None) if nulls else values
    return Axis(by, known.kind, values, null=len(values), other=len(groups)), groups
