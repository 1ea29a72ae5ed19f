"""Values that nobody listed: the rows that are counted of a frame, as every engine understands
them, and their numbers in batches that are dropped as they are read.
"""

import re
from collections.abc import Callable, Generator
from datetime import date
from typing import Any

import narwhals as nw
import polars as pl

from opendp_bayes.extend.framework import Keys
from opendp_bayes_engines.kinds import Column, Kind, leaf
from opendp_bayes_engines.steps import Frame, Schema

#: Columns of what is counted, and of what an engine needs beside them.
KEY, NUMBER, _PERSON = "key", "number", "person"
#: Their numbers as they are handed over, which end what the engine was told when they end.
Batches = Generator[pl.DataFrame, None, None]


def check_label(column: Column, label: Any) -> None:
    """Raise `ValueError` for a label of nulls that no engine can put among dates."""
    if column.kind is Kind.DATE and re.fullmatch(r"-?\d+ days", str(label)):
        raise ValueError(
            f"nulls={label!r}: reads like a date outside the years 1 to 9999; give another label."
        )


def rows_of(
    frame: Frame, keys: Keys, schema: Schema, texts: Callable[[Frame], Frame] = lambda rows: rows
) -> Frame:
    """A row for each record, or each person who has the value, with the value as `KEY`; a null
    stays one only where no value can be the label of nulls. `texts` makes of bytes that are no
    text one.
    """
    column = schema[keys.column]
    key = leaf(keys.column, column)
    if column.kind is Kind.WIDE:
        key = key.cast(nw.Int128)
    if keys.nulls is None:
        frame = frame.filter(~nw.col(keys.column).is_null())
    elif (label := _value(keys.nulls, column.kind)) is not None:
        key = nw.coalesce(key, label)
    columns = {KEY: key}
    if keys.person is not None:
        columns[_PERSON] = leaf(keys.person, schema[keys.person])
    rows = frame.select(**columns)
    if column.kind is Kind.STRING:
        rows = texts(rows)
    # Not `unique`, which numbers the rows of each; nor a number of distinct people, without nulls.
    return rows if keys.person is None else rows.group_by(KEY, _PERSON).agg(nw.len().alias(NUMBER))


def _value(label: Any, kind: Kind) -> nw.Expr | None:
    """The label of nulls as a value of the column; None where it is none."""
    if kind is Kind.DATE:
        try:
            day = date.fromisoformat(label)
        except ValueError:
            return None
        return nw.lit(day, dtype=nw.Date) if day.isoformat() == label else None
    types = {Kind.INTEGER: nw.Int64, Kind.WIDE: nw.Int128}
    return nw.lit(label, dtype=types[kind]) if kind in types else nw.lit(label)


#: Types in which values of a kind leave an engine, whatever formats its session has, and their own.
_ON_THE_WAY: dict[Kind, tuple[Any, Any]] = {
    Kind.WIDE: (nw.String, pl.Int128),
    Kind.BOOLEAN: (nw.Int64, pl.Boolean),
}


def counted(rows: Frame, column: Column) -> Frame:
    """The number of rows of each value, ready to leave an engine."""
    numbers = rows.group_by(KEY).agg(nw.len().cast(nw.Int64).alias(NUMBER))
    if column.kind not in _ON_THE_WAY:
        return numbers
    return numbers.with_columns(nw.col(KEY).cast(_ON_THE_WAY[column.kind][0]))


def batch_of(numbers: pl.DataFrame, column: Column) -> pl.DataFrame:
    """Numbers as they left an engine, with the values in the type of their kind."""
    if column.kind not in _ON_THE_WAY:
        return numbers
    return numbers.with_columns(pl.col(KEY).cast(_ON_THE_WAY[column.kind][1]))
