"""The cells that a question asks for: what is public, and where each record is counted."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import check_cells
from opendp_bayes.questions.columns import categorical_column
from opendp_bayes.questions.groups import groups_of
from opendp_bayes.questions.joint_tables import check_combinations, table_of
from opendp_bayes.questions.merged_cells import merged_cells
from opendp_bayes.questions.question import Question
from opendp_bayes.release_format.data import Label
from opendp_bayes.trusted.cells import Cells
from opendp_bayes.trusted.spaces import CountsSpace, GroupedCountsSpace


def cells_of(
    question: Question,
    schema: Mapping[str, pl.DataType],
    nullable: Callable[[str], bool],
    size: int | None,
) -> Cells:
    """The cells that a question asks for.

    `schema` has the type of every column as polars has it, `nullable` says whether a column may
    hold nulls, and `size` is the number of records where it is public.

    Raises `ValueError`/`TypeError` for a column, key or policy that does not fit.
    """
    columns = [
        categorical_column(
            variable.column,
            schema[_named(variable.column, schema, "column")],
            nullable=nullable(variable.column),
            categories=variable.categories,
            nulls=variable.nulls,
            unknown=variable.unknown,
        )
        for variable in question.variables
    ]
    axes = tuple(column.column for column in columns) if question.joint else ()
    labels: tuple[Label, ...] = columns[0].labels
    index = np.arange(len(labels))
    if question.joint:
        if question.merge is None:
            every = math.prod(len(column.labels) for column in columns)
            check_cells("cells", every if question.cells is None else len(question.cells))
        labels, index = table_of([column.labels for column in columns], question)
    if question.merge is not None:
        labels, index, axes = *merged_cells(labels, index, question), ()
    if size is not None and any(column.leaves_out for column in columns):
        raise ValueError(
            "nulls, unknown: ob.DROP leaves records out, and the number of records is public,"
            f" size={size}; every record must be counted. Name a category for them, such as"
            " 'missing'."
        )
    index = np.pad(index, [(0, column.leaves_out) for column in columns], constant_values=-1)
    for column in columns:
        if column.column in question.by:
            raise ValueError(
                f"by={column.column!r}: is a column that is asked for, so every group would have"
                " one category alone. Group by another column."
            )
    if not question.by:
        return Cells(tuple(columns), index, CountsSpace(labels, size, axes=axes))
    types = [schema[_named(name, schema, "by")] for name in question.by]
    by = groups_of(question.by, types, question.keys)
    shape = (*by.index.shape, *index.shape)
    check_cells("by", len(by.groups) * len(labels))
    check_combinations("column", [*question.by, *(column.column for column in columns)], shape)
    space = GroupedCountsSpace.build(by.groups, labels, size, axes)
    within = by.index.reshape(*by.index.shape, *(1,) * index.ndim)
    cell = np.where(within < 0, space.k - 1, within * len(labels) + index)
    cell = np.where(index < 0, -1, cell)
    return Cells((*by.columns, *columns), cell, space)


def _named(column: Any, schema: Mapping[str, pl.DataType], argument: str) -> str:
    """The name of a column; `TypeError`/`ValueError` if the argument is not the name of one."""
    if not isinstance(column, str):
        raise TypeError(
            f"{argument}={told(column)}: must be the name of a column, a str; compute it in the"
            " plan"
            " first."
        )
    if column not in schema:
        raise ValueError(
            # Not which there are: of a CSV file without a header, they are somebody's record.
            f"{argument}={told(column)}: is not a column of the frame, which has {len(schema)}; its"
            " `collect_schema()` names them."
        )
    return column
