"""Frames in sessions of engines whose settings are as far from the usual as they go."""

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest
from random_plans import LABELS

#: Settings of DuckDB that change what a query may mean, and that plans do not ask.
IRRELEVANT = {
    "TimeZone": "'Asia/Kathmandu'",
    "Calendar": "'buddhist'",
    "default_null_order": "'NULLS_FIRST_ON_ASC_LAST_ON_DESC'",
    "default_order": "'DESC'",
    "integer_division": "true",
    "ieee_floating_point_ops": "false",
    "error_on_division_by_zero": "false",
    "order_by_non_integer_literal": "true",
    "regex_match_operator_semantics": "'full'",
    "scalar_subquery_error_on_multiple_rows": "false",
    "old_implicit_casting": "true",
    "legacy_disable_null_type": "true",
    "disable_timestamptz_casts": "true",
    "preserve_identifier_case": "'uppercase'",
    "preserve_insertion_order": "false",
    "table_function_identifier_conversion": "'ENABLE_IMPLICIT_STRING'",
    "show_behavior": "'SETTING'",
    "enable_logging": "true",
    "warnings_as_errors": "true",
    "errors_as_json": "true",
    "python_enable_replacements": "false",
    "python_scan_all_frames": "true",
    "binary_as_string": "true",
    "arrow_large_buffer_size": "true",
    "arrow_lossless_conversion": "true",
    "arrow_output_list_view": "true",
    "arrow_output_version": "'1.4'",
    "produce_arrow_string_view": "true",
    "enable_fsst_vectors": "true",
    "threads": "3",
    "disabled_optimizers": "'filter_pushdown,statistics_propagation,common_subexpressions'",
    "perfect_ht_threshold": "0",
    "merge_join_threshold": "0",
    "nested_loop_join_threshold": "1000000",
    "prefer_range_joins": "true",
    "ordered_aggregate_threshold": "1",
    "dynamic_or_filter_threshold": "1000",
    "pivot_filter_threshold": "0",
}


def usual(connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The settings of a connection, by name."""
    rows = connection.sql("SELECT name, value FROM duckdb_settings()").fetchall()
    return dict(rows)


def make_hostile(connection: duckdb.DuckDBPyConnection) -> None:
    known = usual(connection)
    for name, value in IRRELEVANT.items():
        if name in known:
            connection.execute(f"SET {name} = {value}")


#: The engines that run on DuckDB.
ON_DUCKDB = ["duckdb", "ibis", "sqlframe"]
#: Tables of the user's are called as a plan might call one of its own.
TABLE = "opendp_bayes_categories"


def new(engine: str) -> tuple[duckdb.DuckDBPyConnection, Callable[[], Any]]:
    """A connection to DuckDB, and what makes a frame of its table."""
    if engine == "ibis":
        import ibis

        backend = ibis.duckdb.connect()
        return backend.con, lambda: backend.table(TABLE)
    if engine == "sqlframe":
        of = pytest.importorskip("sqlframe.duckdb").DuckDBSession
        of().stop()  # there is one in a process
        session = of(conn=duckdb.connect())
        query = f"SELECT * FROM {TABLE}"
        return session._conn, lambda: session.sql(query, dialect="duckdb")
    connection = duckdb.connect()
    return connection, lambda: connection.table(TABLE)


def fill(connection: duckdb.DuckDBPyConnection, rows: pl.DataFrame) -> None:
    """Rows as a table, in which `label` is an Enum."""
    given = rows.with_columns(pl.col("label").cast(pl.String)).to_arrow()
    enum = ", ".join(f"'{label}'" for label in LABELS)
    connection.execute(f"CREATE TYPE label AS ENUM ({enum})")
    columns = "* REPLACE (CAST(label AS label) AS label)"
    connection.from_arrow(given).project(columns).create(TABLE)
