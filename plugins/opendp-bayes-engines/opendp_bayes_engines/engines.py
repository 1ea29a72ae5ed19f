"""Engines whose frames are accepted, and the checks that each needs before it counts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import narwhals as nw
import polars as pl
import pyarrow as pa

from opendp_bayes_engines.frames import FOUND, Held, Lazy, silent
from opendp_bayes_engines.kinds import column_of
from opendp_bayes_engines.layers import beneath
from opendp_bayes_engines.on_dask import on_dask
from opendp_bayes_engines.on_duckdb import on_duckdb
from opendp_bayes_engines.steps import Frame, Schema, check_names

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
            f"frame={type(given).__name__}: must be a frame of PySpark, DuckDB, Dask, Ibis or"
            " SQLFrame, or a polars LazyFrame."
        ) from None
    if not isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"frame={type(given).__name__}: is in memory; make it lazy, as in"
            " `polars.DataFrame(frame).lazy()`, or write it to a file and scan that."
        )
    frame = beneath(frame)
    engine: nw.Implementation = frame.implementation
    make = _ENGINES.get(engine)
    if make is None:
        raise TypeError(
            f"frame={type(given).__module__}.{type(given).__name__}: is read by a plugin of"
            " narwhals, which was not seen to count alike; write it to Parquet and read that with"
            " polars, DuckDB, Dask or PySpark."
        )
    schema = {name: column_of(dtype) for name, dtype in frame.collect_schema().items()}
    if engine is _Implementation.DASK:
        # What pandas calls categories is taken from the data.
        schema = {name: replace(column, categories=None) for name, column in schema.items()}
    check_names(schema)
    return make(frame, schema), schema


#: Polars would drop parts of a Parquet file unread by their least and largest values, which leave
#: out NaN where pyarrow or pandas wrote them: one row more in a part could bring a thousand back.
_EVERY_ROW = pl.QueryOptFlags(predicate_pushdown=False)


def _polars(frame: Frame, schema: Schema) -> Held:
    return Lazy(frame, settings=(("engine", "streaming"), ("optimizations", _EVERY_ROW)))


#: In which PySpark repeats exceptions of queries, with the value at which a cast failed.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")


@contextmanager
def _client_quiet() -> Iterator[None]:
    from pyspark.logger import PySparkLogger

    # The loggers are PySpark's to make: one of another kind would break it.
    with silent(*map(PySparkLogger.getLogger, _LOGGERS)):
        yield


def _check_collations(native: Any) -> None:
    for field in native.schema:
        collation = getattr(field.dataType, "collation", "UTF8_BINARY")
        if collation != "UTF8_BINARY":
            raise ValueError(
                f"frame: column {field.name!r} has the collation {collation}, by which texts are"
                " equal that differ; cast it with `.cast('string collate UTF8_BINARY')`."
            )


def _pyspark(frame: Frame, schema: Schema) -> Held:
    native = frame.to_native()
    _check_collations(native)
    context = native.sparkSession.sparkContext

    @contextmanager
    def quiet() -> Iterator[None]:
        log4j = context._jvm.org.apache.logging.log4j
        root = log4j.LogManager.getContext(False).getConfiguration().getRootLogger()
        answers = log4j.core.Filter.Result
        nothing = log4j.core.filter.ThresholdFilter.createFilter(
            log4j.Level.OFF, answers.NEUTRAL, answers.DENY
        )
        with _client_quiet():
            root.addFilter(nothing)
            try:
                yield
            except BaseException:
                context.setLogLevel("OFF")  # tasks that are ended later say why
                raise
            finally:
                root.removeFilter(nothing)

    return Lazy(frame, quiet=quiet, found=_joined)


def _pyspark_connect(frame: Frame, schema: Schema) -> Held:
    """The log of the server is out of reach."""
    _check_collations(frame.to_native())
    return Lazy(frame, quiet=_client_quiet, found=_joined)


def _joined(groups: Frame, value: str, known: list[Any]) -> Frame:
    """Spark is told a constant at a time, which takes a minute for 10^5, but a table at once."""
    native = groups.to_native()
    categories = pa.table({value: known, FOUND: [True] * len(known)})
    table = native.sparkSession.createDataFrame(categories).hint("broadcast")
    # Another column of the same question may have been joined before.
    joined = nw.from_native(native.drop(FOUND).join(table, on=value, how="left"))
    return joined.with_columns(nw.col(FOUND).fill_null(nw.lit(False)))


_ENGINES: dict[nw.Implementation, Callable[[Frame, Schema], Held]] = {
    _Implementation.POLARS: _polars,
    _Implementation.DUCKDB: on_duckdb,
    _Implementation.DASK: on_dask,
    _Implementation.PYSPARK: _pyspark,
    _Implementation.PYSPARK_CONNECT: _pyspark_connect,
}
