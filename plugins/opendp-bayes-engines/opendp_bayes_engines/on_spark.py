"""Spark: says nothing of what it reads while it counts, and lets nobody else read its files where
they are on this machine; texts are compared byte by byte.
"""

import logging
import os
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from threading import Lock
from typing import Any

import narwhals as nw
import polars as pl
import pyarrow as pa

from opendp_bayes_engines.frames import FOUND, Held, Lazy, silent
from opendp_bayes_engines.kinds import Column
from opendp_bayes_engines.steps import Frame, Schema
from opendp_bayes_engines.values import KEY, counted

#: In which PySpark repeats exceptions of queries, with the value at which a cast failed.
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
#: In which the way to Java repeats everything that it hears, at level DEBUG.
_WIRE = ("py4j.java_gateway", "py4j.clientserver")
#: Values that are handed over at a time, about.
_AT_A_TIME = 1_000_000
#: Held while the log is off: another thread would turn it on too early.
_QUIET = Lock()
#: The way from a session's environment to its folders for shuffles and spills: classes and fields.
#: Their methods cannot be asked for: Java would look for classes that Spark comes without.
_TO_FOLDERS = (
    ("SparkEnv", "blockManager"),
    ("storage.BlockManager", "diskBlockManager"),
    ("storage.DiskBlockManager", "localDirs"),
)


def on_spark(frame: Frame, schema: Schema) -> Held:
    """A frame of a session whose driver is this process.

    Raises `ValueError` for a column with a collation.
    """
    native = frame.to_native()
    _check_collations(native)
    context = native.sparkSession.sparkContext
    _make_private(context)
    return Lazy(frame, _read, quiet=partial(_quiet, context), found=_joined, texts=_texts)


def on_spark_connect(frame: Frame, schema: Schema) -> Held:
    """A frame of a server, whose log and files are out of reach.

    Raises `ValueError` for a column with a collation.
    """
    _check_collations(frame.to_native())
    return Lazy(frame, _read, quiet=_client_quiet, found=_joined, texts=_texts)


def _texts(rows: Frame) -> Frame:
    """Spark lets any bytes be a text, of which only characters can be shown."""
    native = rows.to_native()
    valid = _functions(native).make_valid_utf8(KEY)
    return nw.from_native(native.withColumn(KEY, valid))


def _functions(native: Any) -> Any:
    """The functions that make columns of a frame: those of a server have a module of their own."""
    remote = type(native).__module__.startswith("pyspark.sql.connect")
    return import_module("pyspark.sql.connect.functions" if remote else "pyspark.sql.functions")


def _read(rows: Frame, column: Column) -> Iterator[pl.DataFrame]:
    """Spark hands over the rows of its own partitions one by one, in minutes for 10^6, and those
    of a frame at once: so frames of some of the values. The values are counted once, and kept where
    shuffled rows are kept, until they are handed over.
    """
    numbers = counted(rows, column).to_native().persist()
    of = _functions(numbers)
    try:
        parts = 1 + numbers.count() // _AT_A_TIME
        part = of.pmod(of.xxhash64(of.lit(secrets.randbits(63)), KEY), of.lit(parts))
        for at in range(parts):
            yield pl.DataFrame(numbers.filter(part == at).toArrow())
    finally:
        numbers.unpersist(blocking=True)


def _check_collations(native: Any) -> None:
    for field in native.schema:
        collation = getattr(field.dataType, "collation", "UTF8_BINARY")
        if collation != "UTF8_BINARY":
            raise ValueError(
                f"data: column {field.name!r} has the collation {collation}, by which texts are"
                " equal that differ; cast it with `.cast('string collate UTF8_BINARY')`."
            )


def _make_private(context: Any) -> None:
    """Let nobody else into the folders that Spark's driver shuffles and spills to. Spark makes them
    for everybody to read.
    """
    from py4j.protocol import Py4JError

    try:
        found = context._jsc.sc().env()
        for of, name in _TO_FOLDERS:
            field = context._jvm.java.lang.Class.forName(f"org.apache.spark.{of}")
            field = field.getDeclaredField(name)
            field.setAccessible(True)
            found = field.get(found)
        for folder in found:
            os.chmod(folder.getPath(), 0o700)
    except (Py4JError, OSError):
        warnings.warn(
            "data: the folders that Spark shuffles and spills to were not found, or are not yours,"
            " so that other users of this machine may read records in them. Set spark.local.dir to"
            " a folder that only you can enter.",
            stacklevel=2,
        )


@contextmanager
def _client_quiet() -> Iterator[None]:
    from pyspark.logger import PySparkLogger

    # The loggers are PySpark's to make: one of another kind would break it.
    with silent(*map(PySparkLogger.getLogger, _LOGGERS), *map(logging.getLogger, _WIRE)):
        yield


@contextmanager
def _quiet(context: Any) -> Iterator[None]:
    """Let no logger of the driver's Java process say anything, whatever its level, its appenders
    and its filters are.

    After a failure all of them stay off: tasks that are ended later say why.
    """
    log4j = context._jvm.org.apache.logging.log4j
    answers, off = log4j.core.Filter.Result, log4j.Level.OFF
    nothing = log4j.core.filter.ThresholdFilter.createFilter(off, answers.NEUTRAL, answers.DENY)
    with _QUIET, _client_quiet():
        # A class loader may have loggers of its own.
        of_all = list(log4j.LogManager.getFactory().getSelector().getLoggerContexts())
        before = [loggers.getConfiguration().getFilter() for loggers in of_all]
        for loggers, own in zip(of_all, before, strict=True):
            configuration = loggers.getConfiguration()
            configuration.removeFilter(own)  # which could accept what the next one denies
            configuration.addFilter(nothing)
        try:
            yield
            for loggers, own in zip(of_all, before, strict=True):
                loggers.getConfiguration().addFilter(own)
        except BaseException:
            for loggers in of_all:
                kinds = loggers.getConfiguration().getLoggers()
                for name in kinds:
                    kinds[name].setLevel(off)
                loggers.updateLoggers()
            raise
        finally:
            for loggers in of_all:
                loggers.getConfiguration().removeFilter(nothing)


def _joined(groups: Frame, value: str, known: list[Any]) -> Frame:
    """Spark is told a constant at a time, which takes a minute for 10^5, but a table at once."""
    native = groups.to_native()
    categories = pa.table({value: known, FOUND: [True] * len(known)})
    table = native.sparkSession.createDataFrame(categories).hint("broadcast")
    # Another column of the same question may have been joined before.
    joined = nw.from_native(native.drop(FOUND).join(table, on=value, how="left"))
    return joined.with_columns(nw.col(FOUND).fill_null(nw.lit(False)))
