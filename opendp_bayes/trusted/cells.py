"""Assign each record to the cell in which it is counted: the columns to group by, and from the
sizes of their groups to counts.
"""

import operator
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.release_format.data import Value
from opendp_bayes.trusted.kinds import COMPARED_AS, TYPE_OF, ColumnKind, Kind, column_named
from opendp_bayes.trusted.scanned_frames import collected, require_file
from opendp_bayes.trusted.spaces import CountsSpace
from opendp_bayes.trusted.truncation import RowLimit, require_order


@dataclass(frozen=True)
class Axis:
    """A column by which records are told apart: its public values, each at its own place, and the
    places of nulls and of everything else.

    Raises `ValueError` for values that are not so.

    Attributes
    ----------
    column : str
        Its name.
    kind : Kind
        Of its values.
    values : tuple[str or int or bool, ...]
        All different, of that kind; integers of 64 bits.
    null, unknown : int
        The places, any of the axis.
    """

    column: str
    kind: Kind
    values: tuple[Value, ...]
    null: int
    unknown: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        type_of_kind = TYPE_OF.get(self.kind)
        fit = type_of_kind is not None and all(type(value) is type_of_kind for value in self.values)
        if fit and type_of_kind is int:
            fit = all(-(2**63) <= int(value) < 2**63 for value in self.values)
        if not fit or len(set(self.values)) < len(self.values):
            raise ValueError(
                f"values: must be different values of column {self.column!r}, whose kind is"
                f" {self.kind}."
            )

    def places(self, values: pl.Series) -> Integers:
        """The place of each value, by the value alone."""
        compared = COMPARED_AS[self.kind]
        listed = pl.DataFrame({"value": pl.Series(self.values, dtype=compared)}).with_row_index(
            "at"
        )
        looked_up = values.cast(compared, strict=False).to_frame("value")
        joined = looked_up.join(listed, on="value", how="left", maintain_order="left")["at"]
        outside = np.where(values.is_null().to_numpy(), self.null, self.unknown)
        places = joined.cast(pl.Int64).fill_null(-1).to_numpy()
        return np.where(places < 0, outside, places)


@dataclass(frozen=True, eq=False)
class Cells:
    """Every record is in one cell or in none, which its own values decide
    (`docs/research/proofs.md`, "Counts").

    Raises `ValueError` for an index that does not fit the axes or the space. A number that no place
    may have would fail only if there were such a record, which tells that there is one.

    Attributes
    ----------
    axes : tuple[Axis, ...]
        The columns to group the records by.
    index : ndarray of int
        The number of the cell of every combination of places, an array with a dimension for each
        axis; -1 where a record is not counted, which none is under a public number.
    space : CountsSpace
        Of the counts of the cells: their labels, and the number of records where it is public.
    """

    axes: tuple[Axis, ...]
    index: Integers
    space: CountsSpace

    def __post_init__(self) -> None:
        index = np.array(self.index)
        index.setflags(write=False)  # or it could be made wrong after it was checked
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "axes", tuple(self.axes))
        lengths = [max(len(axis.values), axis.null + 1, axis.unknown + 1) for axis in self.axes]
        fits = self.index.ndim == len(self.axes) and self.index.dtype.kind == "i"
        fits = fits and all(map(operator.ge, self.index.shape, lengths))
        least = min((0, *(place for axis in self.axes for place in (axis.null, axis.unknown))))
        if not fits or least < 0:
            raise ValueError(
                f"index: must be whole numbers with a dimension for each axis, no shorter than"
                f" {lengths}, which {self.index.shape} is not."
            )
        lowest = -1 if self.space.size is None else 0
        if not (lowest <= self.index.min() and self.index.max() < self.space.k):
            raise ValueError(
                f"index: must be from {lowest} to {self.space.k - 1}, the number of a cell"
                f"{', or -1 for none' if lowest else ', because the number of records is public'}."
            )

    def check_kinds(self, kinds: Mapping[str, ColumnKind]) -> None:
        """Raise `ValueError` unless the frame has every column, and of the kind that is counted."""
        for axis in self.axes:
            if axis.column not in kinds or kinds[axis.column].kind != axis.kind:
                raise ValueError(
                    f"axes: the frame has no column {axis.column!r} of kind {axis.kind}."
                )

    def counts(self, groups: pl.DataFrame) -> Integers:
        """The number of records of each cell, shape `(k,)`, from a frame with a row for every
        combination of values that occurs: the values in the order of `axes`, and last the number
        of records. Rows of the same combination are added up.
        """
        *values, numbers = groups.get_columns()
        places = [axis.places(value) for axis, value in zip(self.axes, values, strict=True)]
        counts = np.zeros(self.space.k + 1, dtype=np.int64)  # the last one of no cell, at -1
        np.add.at(counts, self.index[tuple(places)], numbers.to_numpy().astype(np.int64))
        return counts[:-1]

    def groups(self, frame: pl.LazyFrame, types: Mapping[str, pl.DataType]) -> pl.LazyFrame:
        """The frame that `counts` takes, of rows that are not counted yet.

        `types` are those that OpenDP's domain gives the columns. The cast to them changes nothing
        but where polars itself does not know the type of a column, as after `fill_null` of an Enum.

        Grouping by the values themselves, and giving each group its cell afterwards, costs no more
        than counting in plain polars.
        """
        values = {
            f"value_{place}": column_named(axis.column).cast(types[axis.column], strict=False)
            for place, axis in enumerate(self.axes)
        }
        return frame.select(**values).group_by(*values).len("number")


def counted(
    several: Sequence[Cells],
    frame: pl.LazyFrame,
    types: Mapping[str, pl.DataType],
    limits: Sequence[RowLimit],
) -> list[Integers]:
    """The numbers of records of the cells of each question, arrays of shape `(k,)`, all of the same
    rows: where those of identifiers are limited, this is done once. `types` are those of the
    columns in OpenDP's domain.

    Other frames are streamed once for each question: for all at once, polars would keep in memory
    what one question has read before another.

    Raises
    ------
    ContractError
        Where the file of the frame is gone, or it has no fixed order and rows are kept by that.
    """
    require_file(frame)
    require_order(frame, limits)
    # Limits may draw the rows of each identifier. By a seed that the session has set, one record
    # more would decide which rows of all others are drawn.
    pl.set_random_seed(secrets.randbits(64))
    if limits and len(several) > 1:
        used = {axis.column: None for cells in several for axis in cells.axes}
        frame = collected(frame.select(map(column_named, used))).lazy()
    return [cells.counts(collected(cells.groups(frame, types))) for cells in several]
