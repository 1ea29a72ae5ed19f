"""Find the engine of the data that a user passes, and make a table of it."""

from collections.abc import Callable
from typing import Any

from opendp_bayes_engines.tables import PolarsTable, Table


def table_of(data: Any) -> Table:
    """The table, without reading any of its rows.

    Raises
    ------
    TypeError
        For a frame in memory, or of an engine whose values are not known.
    """
    if type(data).__module__.startswith("narwhals."):
        data = data.to_native()
    for kind in type(data).__mro__:
        make_table = _TABLES.get((kind.__module__.partition(".")[0], kind.__name__))
        if make_table is not None:
            return make_table(data)
    raise TypeError(
        f"table={type(data).__module__}.{type(data).__name__}: must be a relation of DuckDB, a"
        " DataFrame of Dask or Spark, an Ibis table on DuckDB or polars, or a LazyFrame of polars."
        " A frame in memory is for ob.context."
    )


def _of_duckdb(relation: Any) -> Table:
    from opendp_bayes_engines.on_duckdb import DuckDBTable

    return DuckDBTable.from_native(relation)


def _of_dask(frame: Any) -> Table:
    from opendp_bayes_engines.on_dask import DaskTable

    return DaskTable.from_native(frame)


def _of_spark(frame: Any) -> Table:
    from opendp_bayes_engines.on_spark import SparkTable

    return SparkTable.from_native(frame)


def _of_ibis(table: Any) -> Table:
    """The table of the engine beneath, by the query that Ibis writes."""
    backend = table.get_backend()
    if backend.name == "duckdb":
        return _of_duckdb(backend.con.sql(backend.compile(table)))
    if backend.name == "polars":
        return PolarsTable.from_native(backend.compile(table))
    raise TypeError(
        f"table: Ibis on {backend.name} is not read. Use Ibis on DuckDB, which attaches SQLite,"
        " PostgreSQL and MySQL, or on polars, or hand over the frame of the engine itself."
    )


#: By the package and the name of a class.
_TABLES: dict[tuple[str, str], Callable[[Any], Table]] = {
    ("polars", "LazyFrame"): PolarsTable.from_native,
    ("duckdb", "DuckDBPyRelation"): _of_duckdb,
    ("_duckdb", "DuckDBPyRelation"): _of_duckdb,
    ("dask", "DataFrame"): _of_dask,
    ("pyspark", "DataFrame"): _of_spark,
    ("ibis", "Table"): _of_ibis,
}
