"""Assign each record to the cell in which it is counted: the columns to group by, and from the
sizes of their groups to counts.
"""

import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from opendp_bayes.framework.columns import CategoricalColumn
from opendp_bayes.framework.groups import groups_of
from opendp_bayes.framework.joint_tables import check_combinations, table_of
from opendp_bayes.framework.kept_rows import RowLimits, require_order
from opendp_bayes.framework.merged_cells import merged_cells
from opendp_bayes.framework.on_disk import EVERY_ROW, require_file
from opendp_bayes.framework.question import Question
from opendp_bayes.framework.spaces import CountsSpace, GroupedCountsSpace
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Integers, check_cells
from opendp_bayes.release_format.data import Label


@dataclass(frozen=True, eq=False)
class Cells:
    """Every record is in one cell or in none, which its own values decide (`docs/proofs.md`,
    "Counts").

    Attributes
    ----------
    columns : the columns to group the records by.
    index : the number of the cell of every combination of positions, an array with an axis for
        each column; -1 where a record is not counted.
    space : of the counts of the cells.
    """

    columns: tuple[CategoricalColumn, ...]
    index: Integers
    space: CountsSpace

    def counts(self, groups: pl.DataFrame) -> Integers:
        """The number of records of each cell, shape `(k,)`, from a frame with a row for every
        combination of values that occurs: the values in the order of `columns`, and last the number
        of records. Rows of the same combination are added up.
        """
        *values, numbers = groups.get_columns()
        positions = [of.positions(value) for of, value in zip(self.columns, values, strict=True)]
        counts = np.zeros(self.space.k + 1, dtype=np.int64)  # the last one of no cell, at -1
        np.add.at(counts, self.index[tuple(positions)], numbers.to_numpy().astype(np.int64))
        return counts[:-1]

    def groups(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """The frame that `counts` takes, of rows that are not counted yet.

        Grouping by the values themselves, and giving each group its cell afterwards, costs no more
        than counting in plain polars.
        """
        values = {f"value_{at}": column.value for at, column in enumerate(self.columns)}
        return frame.select(**values).group_by(*values).len("number")


def counted(several: Sequence[Cells], frame: pl.LazyFrame, limits: RowLimits) -> list[Integers]:
    """The numbers of records of the cells of each question, arrays of shape `(k,)`, all of the same
    rows: where those of identifiers are limited, this is done once.

    Other frames are streamed once for each question: for all at once, polars would keep in memory
    what one question has read before another.

    Raises `ContractError` where the file of the frame is gone, or it has no fixed order and rows
    are kept by that.
    """
    require_file(frame)
    if limits.by_order:
        require_order(frame)
    # Limits may draw the rows of each identifier. By a seed that the session has set, one record
    # more would decide which rows of all others are drawn.
    pl.set_random_seed(secrets.randbits(64))
    if limits.any and len(several) > 1:
        used = {column.column: None for cells in several for column in cells.columns}
        frame = _collected(frame.select(*used)).lazy()
    return [cells.counts(_collected(cells.groups(frame))) for cells in several]


def _collected(frame: pl.LazyFrame) -> pl.DataFrame:
    return frame.collect(engine="streaming", optimizations=EVERY_ROW)


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
        CategoricalColumn.build(
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
