"""Assign each record to the cell in which it is counted: the columns to group by, and from the
sizes of their groups to counts.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from opendp_bayes.mathematics.validation import Integers
from opendp_bayes.release_format.data import Value
from opendp_bayes.trusted.kept_rows import RowLimits, require_order
from opendp_bayes.trusted.on_disk import EVERY_ROW, require_file
from opendp_bayes.trusted.spaces import CountsSpace

_NOT_A_CATEGORY = -1


@dataclass(frozen=True)
class CategoricalColumn:
    """A column with its categories and the positions of the buckets for nulls and for other values
    (None where they cannot occur; after the last label where they are left out).
    """

    column: str
    dtype: pl.DataType
    categories: tuple[Value, ...]
    labels: tuple[Value, ...]
    nulls: int | None
    unknown: int | None

    @property
    def leaves_out(self) -> bool:
        """True if some records are not counted."""
        return len(self.labels) in (self.nulls, self.unknown)

    @property
    def value(self) -> pl.Expr:
        """The column, of the type that the domain says it has.

        The cast changes nothing unless the frame has another type than OpenDP's domain says: polars
        makes `fill_null` with a string a String of an Enum.
        """
        return pl.col(self.column).cast(self.dtype, strict=False)

    def positions(self, values: pl.Series) -> Integers:
        """The position of each value's label among the labels."""
        index = self._found(values).cast(pl.Int64).fill_null(_NOT_A_CATEGORY).to_numpy()
        # A value that the domain excludes, but a plan made all the same, is counted too, in the
        # first category: failing would tell that it is there.
        buckets = [bucket or 0 for bucket in (self.unknown, self.nulls)]
        return np.where(
            index == _NOT_A_CATEGORY,
            np.take(buckets, values.is_null().cast(pl.Int64).to_numpy()),
            index,
        )

    def _found(self, values: pl.Series) -> pl.Series:
        """The position of each value among the categories; null for a null or another value."""
        kind: pl.DataType
        categories: list[Value] = list(self.categories)
        if isinstance(self.dtype, (pl.Enum, pl.Categorical)) or self.dtype == pl.String:
            # By label: the encoding of a Categorical depends on the data.
            kind, categories = pl.String(), [str(label) for label in categories]
        else:
            kind = pl.Boolean() if self.dtype == pl.Boolean else pl.Int64()
        known = pl.DataFrame({"value": pl.Series(categories, dtype=kind)}).with_row_index("at")
        given = values.cast(kind, strict=False).to_frame("value")
        return given.join(known, on="value", how="left", maintain_order="left")["at"]


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
