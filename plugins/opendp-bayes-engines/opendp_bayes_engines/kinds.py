"""Types of columns in which engines and polars have the same values, and how these are carried.

Within an engine, text is its bytes, so that no collation applies, and a date the number of its days
from 1970-01-01, so that no calendar does.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import polars as pl

from opendp_bayes.extend import told
from opendp_bayes.extend.framework import ColumnKind

_EPOCH = date(1970, 1, 1)
#: Days of the years 1 to 9999, which Python has. Other dates are null.
DAYS = ((date.min - _EPOCH).days, (date.max - _EPOCH).days)
_KINDS: dict[Any, Any] = {pl.Boolean: "boolean", pl.Int64: "integer", pl.String: "text"}
#: Types that are counted within an engine.
_COUNTED = (*_KINDS, pl.Date)


@dataclass(frozen=True)
class Column:
    """Public knowledge of a column, without reading it.

    Attributes
    ----------
    type : str
        The engine's name of its type, without what the type holds: labels of an Enum may be data.
    dtype : Any
        The type in which polars has the same values; None where it has none.
    """

    type: str
    dtype: Any = None

    @property
    def kind(self) -> ColumnKind:
        """The kind of the column, as a question takes it."""
        return ColumnKind(_KINDS.get(self.dtype, "other"), str(self.dtype))


Schema = Mapping[str, Column]


def schema_of(columns: Iterable[tuple[Any, Column]]) -> dict[str, Column]:
    """The columns by name, without those whose names differ in nothing but case: engines do not
    always tell them apart.
    """
    listed = [(label, column) for label, column in columns if isinstance(label, str)]
    names = Counter(label.casefold() for label, _ in listed)
    return {label: column for label, column in listed if names[label.casefold()] == 1}


def check_columns(schema: Schema, names: Sequence[str], *, counted: bool) -> None:
    """Raise `ValueError`/`TypeError` unless every column is there, and of a type that is read, or
    with `counted` one that is counted within an engine.
    """
    for label in names:
        column = schema.get(label) if isinstance(label, str) else None
        if column is None:
            raise ValueError(
                f"column={told(label)}: is not a column of the table, or another column has the"
                " same name but for case; rename one."
            )
        if column.dtype is None:
            raise TypeError(
                f"column={label!r}: has type {column.type}, whose values polars does not share;"
                " cast it in the table to text, a date, a Boolean or a number of at most 64 bits."
            )
        if counted and column.dtype not in _COUNTED:
            raise TypeError(
                f"column={label!r}: has type {column.type}, which is not counted within an engine;"
                f" open what engines.columns(table, [{label!r}, ...]) gives by ob.context."
            )


def as_carried(value: Any, column: Column) -> Any:
    """A constant as it is within an engine.

    Raises
    ------
    TypeError
        For one of another type than the column, `ValueError` for an integer beyond 64 bits or text
        that is not Unicode.
    """
    kinds = {pl.Boolean: bool, pl.Int64: int, pl.String: str, pl.Date: date}
    if type(value) is not kinds[column.dtype]:
        raise TypeError(
            f"constant={told(value)}: must be of the type of its column, {column.type}, which is"
            f" {kinds[column.dtype].__name__} in Python."
        )
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, date):
        return (value - _EPOCH) // timedelta(days=1)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"constant={value}: must be an integer of 64 bits.")
    return value


def carried(value: pl.Expr, column: Column) -> pl.Expr:
    """A column of a polars frame as it is within an engine."""
    if column.dtype == pl.String:
        return value.cast(pl.String).cast(pl.Binary)
    if column.dtype == pl.Date:
        days = value.cast(pl.Int32).cast(pl.Int64)
        return pl.when(days.is_between(*DAYS)).then(days)
    return value.cast(column.dtype)


def restored(batch: pl.DataFrame, columns: Mapping[str, Column]) -> pl.DataFrame:
    """Columns as they left an engine, in the types that polars has for them."""
    return batch.with_columns(
        pl.col(label).cast(pl.Int32 if column.dtype == pl.Date else column.dtype).cast(column.dtype)
        for label, column in columns.items()
    )
