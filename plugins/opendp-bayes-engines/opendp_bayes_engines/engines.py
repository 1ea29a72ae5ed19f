"""Engines whose frames are accepted, and the checks that each needs before it counts."""

from collections.abc import Callable, Iterator
from typing import Any

import narwhals as nw
import polars as pl

from opendp_bayes.extend.framework import counted_in_parts
from opendp_bayes_engines.frames import Held, Lazy
from opendp_bayes_engines.kinds import Column, column_of, written_column_of
from opendp_bayes_engines.layers import beneath
from opendp_bayes_engines.on_dask import on_dask
from opendp_bayes_engines.on_duckdb import on_duckdb
from opendp_bayes_engines.on_spark import on_spark, on_spark_connect
from opendp_bayes_engines.steps import Frame, Schema, check_names
from opendp_bayes_engines.values import NUMBER

_Implementation = nw.Implementation


def held(given: Any) -> tuple[Held, Schema]:
    """A frame ready to be held by a Context, with the public knowledge of its columns. Reads no
    rows.

    Raises `ValueError`/`TypeError` for a frame whose engine is not known to count alike.
    """
    try:
        frame = nw.from_native(given)
    except TypeError:
        raise TypeError(
            f"data={type(given).__name__}: must be a frame of PySpark, DuckDB, Dask, Ibis or"
            " SQLFrame, or a polars LazyFrame."
        ) from None
    if not isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"data={type(given).__name__}: is in memory; make it lazy, as in"
            " `polars.DataFrame(frame).lazy()`, or write it to a file and scan that."
        )
    frame = beneath(frame)
    engine: nw.Implementation = frame.implementation
    make = _ENGINES.get(engine)
    if make is None:
        raise TypeError(
            f"data={type(given).__module__}.{type(given).__name__}: is read by a plugin of"
            " narwhals, which was not seen to count alike; write it to Parquet and read that with"
            " polars, DuckDB, Dask or PySpark."
        )
    described = written_column_of if engine is _Implementation.POLARS else column_of
    schema = {name: described(dtype) for name, dtype in frame.collect_schema().items()}
    check_names(schema)
    return make(frame, schema), schema


#: Polars would drop parts of a Parquet file unread by their least and largest values, which leave
#: out NaN where pyarrow or pandas wrote them: one row more in a part could bring a thousand back.
_EVERY_ROW = pl.QueryOptFlags(predicate_pushdown=False)


def _polars(frame: Frame, schema: Schema) -> Held:
    return Lazy(frame, _read, (("engine", "streaming"), ("optimizations", _EVERY_ROW)))


def _read(rows: Frame, column: Column) -> Iterator[pl.DataFrame]:
    values = rows.to_native()
    if NUMBER in values.collect_schema():  # people, of whom the rows to keep are sought once
        values = values.collect(engine="streaming", optimizations=_EVERY_ROW).lazy()
    return counted_in_parts(values)


_ENGINES: dict[nw.Implementation, Callable[[Frame, Schema], Held]] = {
    _Implementation.POLARS: _polars,
    _Implementation.DUCKDB: on_duckdb,
    _Implementation.DASK: on_dask,
    _Implementation.PYSPARK: on_spark,
    _Implementation.PYSPARK_CONNECT: on_spark_connect,
}
