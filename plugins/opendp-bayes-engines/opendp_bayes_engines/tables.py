"""Tables of any engine: the columns that are named, as they are within an engine, and their
numbers of rows.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Protocol

import narwhals as nw
import polars as pl

from opendp_bayes.extend.framework import Axis, Keys
from opendp_bayes_engines.kinds import Column, Schema, as_carried, carried, restored, schema_of
from opendp_bayes_engines.steps import ORDER, Frame, Limit, Step

_TYPES: dict[Any, Any] = {
    pl.Boolean: pl.Boolean,
    **dict.fromkeys(
        [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32], pl.Int64
    ),
    pl.UInt64: pl.UInt64,
    pl.Float32: pl.Float32,
    pl.Float64: pl.Float64,
    **dict.fromkeys([pl.String, pl.Categorical, pl.Enum], pl.String),
    pl.Date: pl.Date,
}
#: Columns of what is counted.
KEY, NUMBER = "key", "number"
#: From rows to the number of rows of each combination of their values, in `NUMBER`.
Count = Callable[[Frame], Frame]
#: Batches of counts, which may hold what ends with them.
Batches = Generator[pl.DataFrame, None, None]


def names_in_frame(names: Sequence[str]) -> dict[str, str]:
    """Names for columns in a frame, which no engine takes for anything else."""
    return {column: f"c{number}" for number, column in enumerate(names)}


class Table(Protocol):
    """A table of some engine. Nothing is read before its rows or counts are asked for."""

    @property
    def schema(self) -> Schema: ...

    def rows(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """The columns, in batches, with the names of `names_in_frame`."""
        ...

    def counts(
        self, names: Sequence[str], count: Count, identifier: str | None = None
    ) -> Iterator[pl.DataFrame]:
        """Apply `count` to the columns, in batches: each combination is in one row of one batch.

        With an `identifier` there is a column `ORDER`, and all rows of an identifier are counted at
        once.
        """
        ...


@dataclass(frozen=True, eq=False)
class LazyTable(ABC):
    """A table of an engine that has lazy frames of its own, which narwhals reads."""

    native: Any
    schema: Schema

    @abstractmethod
    def read(self, names: Sequence[str], *, in_order: bool = False) -> Any:
        """A frame of the engine with the columns, and with `ORDER` where that is needed."""

    @abstractmethod
    def batches(self, frame: Any) -> Iterator[pl.DataFrame]:
        """The rows of a frame of the engine."""

    def rows(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        return self.batches(self.read(names))

    def counts(
        self, names: Sequence[str], count: Count, identifier: str | None = None
    ) -> Iterator[pl.DataFrame]:
        frame = nw.from_native(self.read(names, in_order=identifier is not None))
        return self.batches(count(frame).to_native())


class PolarsTable(LazyTable):
    """A LazyFrame of polars."""

    @classmethod
    def from_native(cls, frame: pl.LazyFrame) -> "PolarsTable":
        types = ((column, dtype.base_type()) for column, dtype in frame.collect_schema().items())
        return cls(
            frame,
            schema_of((column, Column(kind.__name__, _TYPES.get(kind))) for column, kind in types),
        )

    def read(self, names: Sequence[str], *, in_order: bool = False) -> pl.LazyFrame:
        return read_polars(self.native, self.schema, names, in_order=in_order)

    def batches(self, frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
        yield frame.collect(engine="streaming")


def read_polars(
    frame: pl.LazyFrame, schema: Schema, names: Sequence[str], *, in_order: bool
) -> pl.LazyFrame:
    """A frame of polars as `LazyTable.read` gives it."""
    columns = [
        carried(pl.selectors.by_name(column), schema[column]).alias(alias)
        for column, alias in names_in_frame(names).items()
    ]
    # With a seed of its own: no session decides which rows of an identifier are kept.
    order = pl.int_range(pl.len()).shuffle(secrets.randbits(63)).alias(ORDER)
    return frame.select(*columns, *([order] if in_order else []))


@dataclass(frozen=True, eq=False)
class Rows:
    """The data of a Context: a table, and the steps that its rows go through."""

    table: Table
    steps: tuple[Step, ...] = ()

    def then(self, steps: tuple[Step, ...]) -> "Rows":
        return replace(self, steps=(*self.steps, *steps))

    def combinations(self, axes: Sequence[Axis]) -> pl.DataFrame:
        """The number of rows of each combination of values, as `Cells.counts` reads it."""
        names = names_in_frame([axis.column for axis in axes])
        columns = {alias: self.table.schema[column] for column, alias in names.items()}
        batches = self._counts(list(names), lambda frame, _: _counted(frame, *columns))
        return pl.concat(_few(restored(batch, columns), axes) for batch in batches)

    def values(self, keys: Keys) -> Batches:
        """The number of rows, or of people, of every value, as `counting_values` reads them."""
        column = self.table.schema[keys.column]
        label = _label(keys.nulls, column)

        def count(frame: Frame, names: Mapping[str, str]) -> Frame:
            value = nw.col(names[keys.column])
            values = {KEY: value if label is None else nw.coalesce(value, nw.lit(label))}
            if keys.person is None:
                return _counted(frame.select(**values), KEY)
            people = frame.select(**values, person=nw.col(names[keys.person]))
            return _counted(_counted(people, KEY, "person"), KEY)

        for batch in self._counts([keys.column], count):
            yield restored(batch, {KEY: column})

    def _counts(
        self, columns: Sequence[str], count: Callable[[Frame, Mapping[str, str]], Frame]
    ) -> Iterator[pl.DataFrame]:
        """Apply `count` to the rows that the steps keep, with their columns first."""
        needed = dict.fromkeys([*columns, *(step.column for step in self.steps)])
        names = names_in_frame(list(needed))
        limited = [step.column for step in self.steps if isinstance(step, Limit)]

        def count_kept(frame: Frame) -> Frame:
            for step in self.steps:
                frame = step.apply(frame, names)
            return count(frame, names)

        return self.table.counts(list(needed), count_kept, *limited)


def _counted(frame: Frame, *keys: str) -> Frame:
    return frame.group_by(*keys).agg(nw.len().cast(nw.Int64).alias(NUMBER))


def _few(batch: pl.DataFrame, axes: Sequence[Axis]) -> pl.DataFrame:
    """Merge all values that are no category into one, since there may be many."""
    *names, _ = batch.columns
    for column, axis in zip(names, axes, strict=True):
        value, values = pl.col(column), list(axis.values)
        if axis.kind == "boolean":
            continue
        stand_in: Any = f"{max(map(str, values), key=len, default='')}?"
        if axis.kind == "integer":
            stand_in = next(number for number in range(len(values) + 1) if number not in values)
        is_kept = value.is_null() | value.is_in(values)
        batch = batch.with_columns(
            pl.when(is_kept).then(value).otherwise(pl.lit(stand_in)).alias(column)
        )
    return batch.group_by(names).agg(pl.col(NUMBER).sum())


def _label(label: Any, column: Column) -> Any:
    """The label of nulls as a value within an engine; None where it is none of the column."""
    if label is not None and column.dtype == pl.Date:
        with suppress(ValueError):
            day = date.fromisoformat(label)
            return as_carried(day, column) if day.isoformat() == label else None
        return None
    return None if label is None else as_carried(label, column)
