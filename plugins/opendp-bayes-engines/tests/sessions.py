"""Frames in sessions of engines whose settings are as far from the usual as they go."""

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest
from duckdb_settings import IRRELEVANT
from random_plans import LABELS


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


#: Sessions of SQLFrame, which `sessions_end` stops after each test.
OPEN: list[Any] = []


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
        OPEN.append(session)
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
