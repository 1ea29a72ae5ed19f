"""Frames of SQLFrame and Ibis, which write queries for an engine: they are taken down to the engine
that runs them, so that what is known of it holds whoever wrote the query.
"""

from typing import Any

import narwhals as nw

from opendp_bayes_engines.steps import Frame


def beneath(frame: Frame) -> Frame:
    """The frame of the engine that runs a query; a frame of an engine as it is. Reads no rows.

    Raises `ValueError` for an engine that is not known to count alike.
    """
    layer = {
        nw.Implementation.SQLFRAME: _of_sqlframe,
        nw.Implementation.IBIS: _of_ibis,
    }.get(frame.implementation)
    if layer is None:
        return frame
    return nw.from_native(layer(frame.to_native()))


def _of_sqlframe(frame: Any) -> Any:
    from sqlframe.duckdb import DuckDBSession
    from sqlframe.spark import SparkSession

    session = frame.session
    # As SQLFrame itself runs it: its optimizer rewrites only what it prints.
    query = frame.sql(dialect=session.execution_dialect, optimize=False, pretty=False)
    if isinstance(session, DuckDBSession):
        return session._conn.sql(query)
    if isinstance(session, SparkSession):
        return session.spark_session.sql(query)
    raise ValueError(
        f"data: SQLFrame with a {type(session).__name__} is refused: it runs its queries on a"
        " server, of which no kind was tested, or nowhere. Use SQLFrame with DuckDB, which reads"
        " PostgreSQL and MySQL by its extensions, or with Spark."
    )


def _of_ibis(table: Any) -> Any:
    backend = table.get_backend()
    if backend.name not in _READERS:
        raise ValueError(
            f"data: Ibis on {backend.name} is refused: {_REFUSED.get(backend.name, _A_SERVER)}."
            f" Use Ibis on {', '.join(_READERS)}; DuckDB reads SQLite, PostgreSQL and MySQL by its"
            " extensions."
        )
    backend._run_pre_execute_hooks(table)  # tables in memory, and functions of one's own
    return _READERS[backend.name](backend, backend.compile(table))


_READERS = {
    "duckdb": lambda backend, query: backend.con.sql(query),
    "polars": lambda backend, query: query,
    "pyspark": lambda backend, query: backend._session.sql(query),
}
_A_SERVER = "it runs its queries on a server, of which no kind was tested"
_UNTESTED = "how it compares texts and treats nulls was not tested"
_REFUSED = {
    "datafusion": _UNTESTED,
    "flink": _UNTESTED,
    "sqlite": "columns of SQLite hold values of any type, whatever type they were declared with",
}
