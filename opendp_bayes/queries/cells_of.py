"""The cells that a question asks for: which values are public, and where each record is counted."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from opendp_bayes.mathematics.telling import meant, told, warn
from opendp_bayes.mathematics.validation import check_cells
from opendp_bayes.queries.columns import DIFFER, labelled_column
from opendp_bayes.queries.groups import groups_of
from opendp_bayes.queries.joint_tables import check_combinations, table_of
from opendp_bayes.queries.question import Question
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.labels import twins
from opendp_bayes.trusted.cells import Cells
from opendp_bayes.trusted.kinds import ColumnKind
from opendp_bayes.trusted.spaces import CountsSpace


def cells_of(
    question: Question,
    kinds: Mapping[str, ColumnKind],
    size: int | None,
) -> Cells:
    """The cells that a question asks for.

    `kinds` has what is known of every column, and `size` is the number of records where it is
    public.

    Raises
    ------
    ValueError, TypeError
        For a column, key or policy that does not fit.
    """
    # A misspelt name is said before what is missing of the other columns.
    known = [kinds[_named(variable.column, kinds, "column")] for variable in question.variables]
    columns = [
        labelled_column(
            variable.column,
            kind,
            categories=variable.categories,
            nulls=variable.nulls,
            unknown=variable.unknown,
            recode=variable.recode,
        )
        for variable, kind in zip(question.variables, known, strict=True)
    ]
    axes = question.columns if question.joint else ()
    labels: tuple[Label, ...] = columns[0].labels
    index = np.arange(len(labels))
    if question.joint:
        if question.merge is None:
            every = math.prod(len(column.labels) for column in columns)
            check_cells("cells", every if question.cells is None else len(question.cells))
        labels, index = table_of([column.labels for column in columns], question)
    if question.merge is not None:
        from opendp_bayes.queries.merged_cells import merged_cells

        labels, index, axes = *merged_cells(labels, index, question), ()
    # Where a record is left out, its number is -1, which is the entry that is put after the last.
    index = np.pad(index, [(0, 1)] * index.ndim, constant_values=-1)
    index = index[np.ix_(*(column.number for column in columns))]
    leaves_out = bool(np.any(index < 0))
    if size is not None and leaves_out:
        raise ValueError(
            "nulls, unknown: ob.DROP leaves records out, and the number of records is public,"
            f" size={size}; every record must be counted. Name a category for them, such as"
            " 'missing'."
        )
    asked = tuple(column.axis for column in columns)
    of_columns: dict[str, Any] = {
        "axes": axes,
        "nulls": tuple(column.nulls for column in columns),
        "unknown": tuple(column.unknown for column in columns),
    }
    if not question.by:
        return Cells(asked, index, CountsSpace(labels, size, **of_columns))
    of_groups = [kinds[_named(name, kinds, "by")] for name in question.by]
    by = groups_of(question, of_groups)
    shape = (*by.index.shape, *index.shape)
    check_cells("by", len(by.groups) * len(labels))
    check_combinations("column", [*question.by, *question.columns], shape)
    space = CountsSpace.of_groups(by.groups, labels, size, by=question.by, **of_columns)
    within = by.index.reshape(*by.index.shape, *(1,) * index.ndim)
    rest = -1 if size is None else space.k - 1
    cell = np.where(within < 0, rest, within * len(labels) + index)
    cell = np.where(index < 0, -1, cell)
    return Cells((*by.axes, *asked), cell, space)


def _named(column: str, kinds: Mapping[str, ColumnKind], argument: str) -> str:
    """The name of a column; `ValueError` if the argument is not the name of one."""
    if column not in kinds:
        near = (
            " There is a similar name; check capitals and blanks." if meant(column, kinds) else ""
        )
        raise ValueError(
            # Not which there are: of a CSV file without a header, they are somebody's record.
            f"{argument}={told(column)}: is not a column of the frame, which has {len(kinds)}; its"
            f" `collect_schema()` names them.{near}"
        )
    if any(twins([column, name]) for name in kinds):
        warn(f"{argument}={column!a}: it and another column of the frame {DIFFER}.")
    return column
