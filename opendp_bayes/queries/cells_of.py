"""The cells that a question asks for: which values are public, and where each record is counted;
of a joint table those that are possible, of groups those that there are, and of merged categories
those that count several.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from opendp_bayes.mathematics.telling import meant, told, warn
from opendp_bayes.mathematics.validation import MOST_BYTES, Integers, check_cells
from opendp_bayes.queries.columns import DIFFER, check_new, labelled_column
from opendp_bayes.queries.question import DROP, LeftOut, Question, as_cell
from opendp_bayes.release_format.data import Key, Label, Value
from opendp_bayes.release_format.labels import identity, place_of, places_of, twins
from opendp_bayes.release_format.merging import merged_places
from opendp_bayes.trusted.cells import Axis, Cells
from opendp_bayes.trusted.kinds import ColumnKind
from opendp_bayes.trusted.spaces import CountsSpace


def cells_of(question: Question, kinds: Mapping[str, ColumnKind], size: int | None) -> Cells:
    """The cells that a question asks for.

    `kinds` has what is known of every column, and `size` is the number of records where it is
    public.

    Raises
    ------
    ValueError, TypeError
        For a column, key or policy that does not fit.
    """
    # A misspelt name is said before what is missing of the other columns.
    known_kinds = [
        kinds[_named(variable.column, kinds, "column")] for variable in question.variables
    ]
    columns = [
        labelled_column(
            variable.column,
            kind,
            categories=variable.categories,
            nulls=variable.nulls,
            unknown=variable.unknown,
        )
        for variable, kind in zip(question.variables, known_kinds, strict=True)
    ]
    axes = question.columns if question.joint else ()
    labels: tuple[Label, ...] = columns[0].labels
    index = np.arange(len(labels))
    if question.joint:
        if question.merge is None:
            combinations = math.prod(len(column.labels) for column in columns)
            check_cells("cells", combinations if question.cells is None else len(question.cells))
        labels, index = table_of([column.labels for column in columns], question)
    if question.merge is not None:
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
    counted_axes = tuple(column.axis for column in columns)
    of_columns: dict[str, Any] = {
        "axes": axes,
        "nulls": tuple(column.nulls for column in columns),
        "unknown": tuple(column.unknown for column in columns),
    }
    if not question.by:
        return Cells(counted_axes, index, CountsSpace(labels, size, **of_columns))
    of_groups = [kinds[_named(column, kinds, "by")] for column in question.by]
    axes_of_groups, groups, group_index = groups_of(question, of_groups)
    shape = (*group_index.shape, *index.shape)
    check_cells("by", len(groups) * len(labels))
    check_combinations("column", [*question.by, *question.columns], shape)
    space = CountsSpace.of_groups(groups, labels, size, by=question.by, **of_columns)
    within = group_index.reshape(*group_index.shape, *(1,) * index.ndim)
    rest_cell = -1 if size is None else space.k - 1
    cell = np.where(within < 0, rest_cell, within * len(labels) + index)
    cell = np.where(index < 0, -1, cell)
    return Cells((*axes_of_groups, *counted_axes), cell, space)


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
    if any(twins([column, column_of_frame]) for column_of_frame in kinds):
        warn(f"{argument}={column!a}: it and another column of the frame {DIFFER}.")
    return column


def merged_cells(
    labels: tuple[Label, ...], index: Integers, question: Question
) -> tuple[tuple[Label, ...], Integers]:
    """Merged labels, and the number of the merged category for every entry of `index`, where there
    was that of one of `labels`. Every record is still in one category (`docs/research/proofs.md`,
    "Counts").

    Raises
    ------
    ValueError, TypeError
        Unless `question.merge` has every label once.
    """
    merge: Any = question.merge
    number = np.append(merged_places(merge, labels), -1)  # the last of what is left out
    if question.by:
        raise ValueError(
            f"merge={told(merge)}: is of one table; ask for the joint table of the groups' column"
            " and this one, and merge its cells."
        )
    if len(merge) < 2:
        raise ValueError(
            f"merge={told(list(merge))}: must have at least 2 labels; add another. Of a noisy total"
            " from elsewhere noisy_counts(merge=...) makes a level."
        )
    return tuple(merge), number[index]


def groups_of(
    question: Question, kinds: Sequence[ColumnKind]
) -> tuple[tuple[Axis, ...], tuple[Key, ...], Integers]:
    """The groups of a question: every combination of the public values of its columns, and of the
    labels that their nulls and unknown values have. Those of several columns are tuples.

    Returns the axes of the columns, the groups, and the number of the group of every combination of
    places on the axes, or -1 where a record is in no group.

    Raises
    ------
    ValueError, TypeError
        For values that do not fit the columns.
    """
    columns = [
        labelled_column(
            variable.column,
            kind,
            categories=variable.categories,
            nulls=DROP if variable.nulls is None else variable.nulls,
            unknown=DROP if variable.unknown is None else variable.unknown,
            of_groups=True,
        )
        for variable, kind in zip(question.groups, kinds, strict=True)
    ]
    labels = [column.labels for column in columns]
    shape = tuple(map(len, labels))
    # The last on each axis is for what is in no group.
    check_combinations("by", question.by, [length + 1 for length in shape])
    check_cells("by", math.prod(shape))
    groups: Any = tuple(product(*labels)) if len(columns) > 1 else labels[0]
    numbers = np.arange(len(groups)).reshape(shape)
    index = np.pad(numbers, [(0, 1)] * len(shape), constant_values=-1)
    index = index[np.ix_(*(column.number for column in columns))]
    return tuple(column.axis for column in columns), groups, index


#: The most combinations of labels, those without a cell included.
LARGEST_TABLE = 5_000_000
_BYTES = MOST_BYTES // LARGEST_TABLE


def table_of(
    labels: Sequence[tuple[Value, ...]], question: Question
) -> tuple[tuple[Label, ...], Integers]:
    """The cells of a joint table, tuples of labels, and the number of the cell of every combination
    of labels, an array with an axis for each column.

    `labels` are those of each column, with the buckets for nulls and unknown values.

    Raises
    ------
    ValueError, TypeError
        For cells that do not fit them.
    """
    shape = tuple(map(len, labels))
    check_combinations("column", question.columns, shape)
    places = list(map(places_of, labels))
    if question.cells is None:
        return tuple(product(*labels)), np.arange(math.prod(shape)).reshape(shape)
    cells = [as_cell(cell, len(shape)) for cell in question.cells]
    index = np.full(shape, -1)
    for number, cell in enumerate(cells):
        try:
            corner = tuple(
                numbers[identity(label)] for label, numbers in zip(cell, places, strict=True)
            )
        except (KeyError, TypeError):  # a list has no hash
            raise ValueError(f"cells: {cell!r} has what is not a label of its column.") from None
        if index[corner] >= 0:
            raise ValueError(f"cells: {cell!r} is there twice.")
        index[corner] = number
    return _completed(cells, index, [variable.unknown for variable in question.variables])


def check_combinations(argument: str, columns: Sequence[str], shape: Sequence[int]) -> None:
    """Raise `ValueError` for more combinations of labels than an index has room for."""
    check_cells(f"{argument}={list(columns)!r}", math.prod(shape), _BYTES)


def _completed(
    cells: list[tuple[Value, ...]], index: Integers, unknown: Sequence[Any]
) -> tuple[tuple[Label, ...], Integers]:
    """Complete the table with a cell for the records of every combination that has none, that of
    the columns' unknown values, unless all of these are left out; raise `ValueError` where a column
    has no label for them.
    """
    labels = tuple(label for label in unknown if not (label is None or isinstance(label, LeftOut)))
    if np.any(index < 0) and len(labels) == index.ndim:
        number = place_of(labels, cells)
        if number is None:
            check_new("unknown", labels, cells)
            number, cells = len(cells), [*cells, labels]
        index[index < 0] = number
    elif np.any(index < 0) and (labels or None in unknown):
        raise ValueError(
            f"cells: leaves out {np.count_nonzero(index < 0)} of {index.size} combinations of"
            " labels, and a record may be in one of them all the same. Pass unknown= with a label"
            " for every column, whose cell counts them, one of cells or a new one: such as"
            " unknown='impossible'; or unknown=ob.DROP."
        )
    if len(cells) < 2:
        raise ValueError(f"cells={cells!r}: must be at least 2 with that of unknown=.")
    return tuple(cells), index
