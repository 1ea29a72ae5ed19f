"""The engines whose frames are accepted: what has to be seen to before they count."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from opendp_bayes_engines.frames import FOUND, Held, Lazy, Partitioned, is_in, silent
from opendp_bayes_engines.kinds import Kind, column_of
from opendp_bayes_engines.layers import beneath, connection_of
from opendp_bayes_engines.steps import Frame, Schema, check_names

_Implementation = nw.Implementation


def held(given: Any) -> tuple[Held, Schema]:
    """A frame ready to be held by a Context, and what its columns may hold. Reads no rows.

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
    connection, frame = connection_of(frame), beneath(frame)
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
    made = make(frame, schema)
    if connection is not None:
        assert isinstance(made, Lazy)
        made = replace(made, found=partial(_found_by_duckdb, connection=connection))
    return made, schema


def _polars(frame: Frame, schema: Schema) -> Held:
    return Lazy(frame, settings=(("engine", "streaming"),))


def _duckdb(frame: Frame, schema: Schema) -> Held:
    """Text is compared byte by byte, whatever the collation of a column or of the connection, which
    the type does not show.
    """
    names = {name: '"' + name.replace('"', '""') + '"' for name in schema}
    native = frame.to_native().project(
        ", ".join(
            f'{quoted} COLLATE "binary" AS {quoted}'
            if schema[name].kind is Kind.STRING and schema[name].dtype == "String"
            else quoted
            for name, quoted in names.items()
        )
    )
    return Lazy(nw.from_native(native), found=_found_by_duckdb)


#: Categories up to which constants cost less than a table.
_FEW = 100
_CATEGORY = "category"


def _found_by_duckdb(groups: Frame, value: str, known: list[Any], connection: Any = None) -> Frame:
    """DuckDB reads each constant again for every step that follows: two seconds for 10^5. It reads
    an Arrow table once, by its connection, or where that lets queries see Python's variables.
    """
    import duckdb

    if len(known) <= _FEW:
        return is_in(groups, value, known)
    opendp_bayes_categories = pa.table({_CATEGORY: known})
    byte_by_byte = ' COLLATE "binary"' if isinstance(known[0], str) else ""
    others = [f"g.{name}" for name in groups.collect_schema().names() if name != FOUND]
    columns = ", ".join([*others, f"c.{_CATEGORY} IS NOT NULL AS {FOUND}"])
    alike = f"g.{value}{byte_by_byte} = c.{_CATEGORY}{byte_by_byte}"
    native = groups.to_native()
    if connection is not None:
        table = connection.from_arrow(opendp_bayes_categories).set_alias("c")
        return nw.from_native(native.set_alias("g").join(table, alike, how="left").project(columns))
    try:
        joined = native.query(
            "opendp_bayes_groups",
            f"SELECT {columns} FROM opendp_bayes_groups g"  # noqa: S608
            f" LEFT JOIN opendp_bayes_categories c ON {alike}",
        )
    except duckdb.Error:
        return is_in(groups, value, known)
    return nw.from_native(joined)


def _dask(frame: Frame, schema: Schema) -> Held:
    native = frame.to_native()
    for name, dtype in native.dtypes.items():
        # A partition with a null among such integers has floats, whatever the frame says.
        if isinstance(dtype, np.dtype) and dtype.kind in "iub":
            raise ValueError(
                f"frame: column {name!r} has the numpy type {dtype}, which holds no nulls, so that"
                " pandas makes floats of integers beside one. Use types that do: read_parquet(...,"
                " dtype_backend='pyarrow'), or `.astype('int64[pyarrow]')` for the column."
            )
    return Partitioned(native, schema)


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
    _Implementation.DUCKDB: _duckdb,
    _Implementation.DASK: _dask,
    _Implementation.PYSPARK: _pyspark,
    _Implementation.PYSPARK_CONNECT: _pyspark_connect,
}
