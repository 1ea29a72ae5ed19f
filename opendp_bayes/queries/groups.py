"""The groups of a query per group: which there are, and in which one a record is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Integers, check_cells
from opendp_bayes.queries.columns import LabelledColumn, labelled_column
from opendp_bayes.queries.joint_tables import check_combinations
from opendp_bayes.queries.question import Question, Variable, as_cell
from opendp_bayes.queries.sentinels import DROP
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


def groups_of(question: Question, kinds: Sequence[ColumnKind]) -> Groups:
    """The groups of a question, from the public values of its columns: every combination of them,
    or those that are given. Groups of several columns are tuples.

    Raises
    ------
    ValueError, TypeError
        For values that do not fit the columns.
    """
    rows, variables = None, question.groups
    if question.combinations is not None:
        rows = _as_rows(question.combinations, question.by)
        values = (distinct(row[at] for row in rows) for at in range(len(variables)))
        variables = tuple(map(lambda of, own: replace(of, categories=own), variables, values))
    columns = [_column(of, known) for of, known in zip(variables, kinds, strict=True)]
    labels = [column.labels for column in columns]
    shape = [len(column.labels) + 1 for column in columns]  # the last for what is in no group
    check_combinations("by", question.by, shape)
    if rows is None:
        check_cells("by", math.prod(map(len, labels)))
        rows = list(product(*labels))
    index, places = np.full(shape, -1), list(map(places_of, labels))
    for number, row in enumerate(rows):
        index[tuple(of[identity(value)] for of, value in zip(places, row, strict=True))] = number
    index = index[np.ix_(*(column.number for column in columns))]
    groups: Any = rows if len(columns) > 1 else [row[0] for row in rows]
    return Groups(tuple(column.axis for column in columns), tuple(groups), index)


def _as_rows(given: Any, by: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Combinations of values of several columns, each a tuple with a value of each column."""
    shown = f"categories[{by!r}]"
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise TypeError(
            f"{shown}={told(given)}: must be a sequence of tuples, one value for each column."
        )
    check_cells(shown, len(given))
    rows = [as_cell(row, len(by), shown, (str, int, bool, type(None))) for row in given]
    if len(distinct(rows)) < len(rows):
        raise ValueError(f"{shown}={told(given)}: must not repeat a group.")
    return rows


def _column(of: Variable, known: ColumnKind) -> LabelledColumn:
    """A column that says which group a record is in. Its nulls and unknown values are in no group,
    unless they have a label or None is among the values.
    """
    given: Any = of.categories
    if isinstance(given, (pl.Series, np.ndarray)):
        given = given.tolist() if isinstance(given, np.ndarray) else given.to_list()
    if isinstance(given, Sequence) and not isinstance(given, str):
        check_cells(f"categories[{of.column!r}]", len(given))
        values = [value for value in given if value is not None]
    else:
        values = given
    nulls = values is not given and len(given) - len(values)
    if nulls and (nulls > 1 or of.nulls is not None):
        raise ValueError(
            f"categories[{of.column!r}]={told(given)}: None is the group of the nulls; must be"
            " there once, and without nulls= for the column."
        )
    column = labelled_column(
        of.column,
        known,
        categories=values,
        nulls=DROP if of.nulls is None else of.nulls,
        unknown=DROP if of.unknown is None else of.unknown,
        recode=of.recode,
        of_groups=True,
    )
    if not nulls:
        return column
    labels: Any = (*column.labels, None)
    axis = replace(column.axis, null=len(column.number))
    return LabelledColumn(axis, labels, (*column.number, len(column.labels)))
