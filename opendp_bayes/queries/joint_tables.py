"""The cells of a joint table: of all combinations of labels, or of those that are possible."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from opendp_bayes.mathematics.validation import MOST_BYTES, Integers, check_cells
from opendp_bayes.queries.columns import check_new
from opendp_bayes.queries.question import Question, as_cell
from opendp_bayes.queries.sentinels import LeftOut
from opendp_bayes.release_format.data import Label, Value
from opendp_bayes.release_format.labels import identity, place_of, places_of

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
        if question.unknown is not None:
            raise ValueError(
                f"unknown={question.unknown!r}: every combination of labels has a cell; one for all"
                " others belongs to cells=, which leaves some out. Give each column its label."
            )
        return tuple(product(*labels)), np.arange(math.prod(shape)).reshape(shape)
    cells = [as_cell(cell, len(shape), "cells") for cell in question.cells]
    index = np.full(shape, -1)
    for number, cell in enumerate(cells):
        absent = [x for x, place in zip(cell, places, strict=True) if identity(x) not in place]
        if absent:
            raise ValueError(
                f"cells: {cell!r} has {absent[0]!r}, which is not a label of its column."
            )
        at = tuple(place[identity(label)] for label, place in zip(cell, places, strict=True))
        if index[at] >= 0:
            raise ValueError(f"cells: {cell!r} is there twice.")
        index[at] = number
    return _completed(cells, index, question.unknown)


def check_combinations(argument: str, columns: Sequence[str], shape: Sequence[int]) -> None:
    """Raise `ValueError` for more combinations of labels than an index has room for."""
    check_cells(f"{argument}={list(columns)!r}", math.prod(shape), _BYTES)


def _completed(
    cells: list[tuple[Value, ...]], index: Integers, unknown: Any
) -> tuple[tuple[Label, ...], Integers]:
    """Complete the table with a cell for the records of every combination that has none, unless
    they are left out; raise `ValueError` where neither is said.
    """
    if unknown is not None and not isinstance(unknown, LeftOut):
        place = place_of(unknown, cells)
        if place is None:
            check_new("unknown", unknown, cells)
            place, cells = len(cells), [*cells, unknown]
        index[index < 0] = place
    if np.any(index < 0) and unknown is None:
        raise ValueError(
            f"cells: leaves out {np.count_nonzero(index < 0)} of {index.size} combinations of"
            " labels, and a record may be in one of them all the same. Pass unknown= with the cell"
            " to count it in: one of cells, or a new one, such as"
            f" unknown={('impossible',) * index.ndim!r}."
        )
    if len(cells) < 2:
        raise ValueError(f"cells={cells!r}: must be at least 2 with that of unknown=.")
    return tuple(cells), index
