"""Columns of a table of any engine in a private file, which the core reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from opendp_bayes.extend import told
from opendp_bayes.extend.framework import TemporaryFile, guarded
from opendp_bayes_engines.kinds import check_columns, restored
from opendp_bayes_engines.opening import table_of
from opendp_bayes_engines.tables import Table, names_in_frame

#: Files that were written: they are there for as long as this process.
_FILES: list[TemporaryFile] = []


def columns(table: Any, names: Sequence[str]) -> pl.LazyFrame:
    """Write columns of a table to a private temporary file, and scan it.

    Parameters
    ----------
    table : a table of DuckDB, Dask, Spark or Ibis
        Its engine computes the columns once; no other column is looked at.
    names : a list of str
        The columns that questions, filters and the privacy unit need.

    Returns
    -------
    frame : a polars LazyFrame
        For `opendp_bayes.context`. Integers have 64 bits, Enums are text. Text that is not UTF-8,
        and dates outside the years 1 to 9999, are null.

    Raises
    ------
    ValueError or TypeError
        For a table that is not read, a column that is not there, or one of another type than text,
        dates, Booleans and numbers of at most 64 bits.
    RuntimeError
        Without a cause, where the engine fails.

    Notes
    -----
    The file is a copy of these columns on this machine. Only you can read it, and it goes when
    Python ends.

    >>> import duckdb
    >>> table = duckdb.sql("SELECT 18 + range % 60 AS age, {'a': 1} AS other FROM range(100)")
    >>> columns(table, ["age"]).collect_schema()
    Schema([('age', Int64)])
    """
    opened = table_of(table)
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise TypeError(f"names={told(names)}: must be a list of different names of columns.")
    check_columns(opened.schema, names, counted=False)
    file = TemporaryFile()
    guarded(lambda path: _write(opened, names, path), "engines.columns: writing")(file.path)
    _FILES.append(file)
    return pl.scan_parquet(file.path)


def _write(table: Table, names: Sequence[str], path: Path) -> None:
    schema = {alias: table.schema[label] for label, alias in names_in_frame(names).items()}
    empty = pl.DataFrame(schema={alias: column.dtype for alias, column in schema.items()})

    def arrow(batch: pl.DataFrame) -> pa.Table:
        arrow = batch.to_arrow(compat_level=pl.CompatLevel.oldest())
        return arrow.rename_columns(list(names))

    # Without statistics, by which readers leave out rows that they did not look at.
    with pq.ParquetWriter(path, arrow(empty).schema, write_statistics=False) as writer:
        for batch in table.rows(names):
            writer.write_table(arrow(restored(batch, schema)))
