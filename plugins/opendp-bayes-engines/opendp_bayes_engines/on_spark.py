"""Spark, and Spark Connect."""

import secrets
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import polars as pl

from opendp_bayes_engines.kinds import DAYS, Column, schema_of
from opendp_bayes_engines.steps import ORDER
from opendp_bayes_engines.tables import LazyTable, names_in_frame

_TYPES: dict[str, Any] = {
    "BooleanType": pl.Boolean,
    "ByteType": pl.Int64,
    "ShortType": pl.Int64,
    "IntegerType": pl.Int64,
    "LongType": pl.Int64,
    "FloatType": pl.Float32,
    "DoubleType": pl.Float64,
    "StringType": pl.String,
    "CharType": pl.String,
    "VarcharType": pl.String,
    "DateType": pl.Date,
}
#: Rows that are handed over at a time, about.
_AT_A_TIME = 1_000_000


class SparkTable(LazyTable):
    """A DataFrame of Spark, whose driver is this process or a server."""

    @classmethod
    def from_native(cls, frame: Any) -> "SparkTable":
        types = ((field.name, type(field.dataType).__name__) for field in frame.schema)
        columns = ((column, Column(kind, _TYPES.get(kind))) for column, kind in types)
        return cls(frame, schema_of(columns))

    @property
    def _functions(self) -> Any:
        """The functions that make columns: those of a server have a module of their own."""
        remote = type(self.native).__module__.startswith("pyspark.sql.connect")
        return import_module("pyspark.sql.connect.functions" if remote else "pyspark.sql.functions")

    def read(self, names: Sequence[str], *, in_order: bool = False) -> Any:
        functions = self._functions
        columns = []
        for label, alias in names_in_frame(names).items():
            column = functions.col("`" + label.replace("`", "``") + "`")
            dtype = self.schema[label].dtype
            if dtype == pl.Int64:
                column = column.cast("bigint")
            elif dtype == pl.String:
                column = functions.try_validate_utf8(column).cast("binary")
            elif dtype == pl.Date:
                days = functions.unix_date(column).cast("bigint")
                column = functions.when(days.between(*DAYS), days)
            columns.append(column.alias(alias))
        if in_order:
            columns.append(functions.rand(secrets.randbits(63)).alias(ORDER))
        return self.native.select(*columns)

    def rows(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        for batch in self.batches(self.read(names, in_order=True)):  # which tells equal rows apart
            yield batch.drop(ORDER)

    def batches(self, frame: Any) -> Iterator[pl.DataFrame]:
        """Spark hands over the rows of its own partitions one by one, in minutes for 10^6, and
        those of a frame at once: so frames of some of the rows. They are computed once, and kept
        where shuffled rows are kept, until they are handed over.
        """
        functions = self._functions
        persisted = frame.persist()
        try:
            parts = 1 + persisted.count() // _AT_A_TIME
            part_of_row = functions.pmod(
                functions.xxhash64(functions.lit(secrets.randbits(63)), *persisted.columns),
                functions.lit(parts),
            )
            for number in range(parts):
                yield pl.DataFrame(persisted.filter(part_of_row == number).toArrow())
        finally:
            persisted.unpersist(blocking=True)
