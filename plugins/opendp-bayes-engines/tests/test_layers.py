"""Frames of SQLFrame and Ibis are taken down to the engine that runs them."""

import gc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import ibis
import narwhals as nw
import polars as pl
import pytest
from contexts import made, two_shares
from test_faults import VALUE, failing_rows, fails_without_data

from opendp_bayes.questions.question import Question, Variable
from opendp_bayes_engines import on_duckdb
from opendp_bayes_engines.engines import _ENGINES, held
from opendp_bayes_engines.layers import beneath

ASKED = Question((Variable("vote", ["no", "yes"], "none", "other"),))
BELOW = {
    "ibis": nw.Implementation.DUCKDB,
    "ibis on polars": nw.Implementation.POLARS,
    "sqlframe": nw.Implementation.DUCKDB,
}


def counts(frame: Any) -> list[int]:
    chain, _ = made(frame).query().filter(nw.col("n") < 6).counts_of(ASKED)
    counted: list[int] = chain(held(frame)[0]).tolist()
    return counted


def test_every_engine_of_narwhals_is_known() -> None:
    """A new one is looked at before its version is accepted: those in memory are refused."""
    of = nw.Implementation
    in_memory = {of.PANDAS, of.MODIN, of.CUDF, of.PYARROW}
    layers, plugins = {of.IBIS, of.SQLFRAME}, {of.UNKNOWN}
    assert set(of) == in_memory | layers | plugins | set(_ENGINES)


@pytest.mark.parametrize("engine", BELOW)
def test_the_engine_beneath_counts(
    engine: str, tmp_path: Path, frame_in: Callable[[str, Path], Any]
) -> None:
    votes = ["yes", "Yes", "yes ", "no", None, "yes", "yes"]
    path = tmp_path / "votes.parquet"
    pl.DataFrame({"vote": votes, "n": range(7)}).write_parquet(path)
    frame = frame_in(engine, path)
    assert beneath(nw.from_native(frame)).implementation is BELOW[engine]
    assert counts(frame) == [1, 2, 1, 2]


@pytest.mark.parametrize("engine", ["ibis", "sqlframe"])
def test_duckdb_beneath_is_given_a_table_of_many_categories(
    engine: str,
    tmp_path: Path,
    frame_in: Callable[[str, Path], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where queries do not see Python's variables, as Ibis has it."""
    monkeypatch.setattr(on_duckdb, "is_in", None)
    path = tmp_path / "votes.parquet"
    labels = [f"é{n}" for n in range(150)]
    pl.DataFrame({"vote": [*labels, *labels[:3], "É0", None], "n": range(155)}).write_parquet(path)
    frame = frame_in(engine, path)
    variables = (
        Variable("vote", labels, "none", "other"),
        Variable("n", list(range(150)), -1, -2),
    )
    query = made(frame).query()
    chain, _ = query.counts_of(Question(variables, joint=True))
    both = chain(held(frame)[0]).reshape(152, 152)
    assert both.sum(axis=1).tolist() == [2] * 3 + [1] * 147 + [1, 1]
    assert both.sum(axis=0).tolist() == [1] * 150 + [0, 5]


def test_a_frame_of_an_engine_is_what_it_was() -> None:
    frame = nw.from_native(pl.LazyFrame({"a": [1]}))
    assert beneath(frame) is frame


@pytest.mark.parametrize("engine", ["ibis on polars", "sqlframe"])
def test_a_row_that_fails(engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.parquet"
    if engine == "sqlframe":
        failing_rows("duckdb", path)
        session = pytest.importorskip("sqlframe.duckdb").DuckDBSession()
        # A cast of SQLFrame gives a null, as Spark's does by its settings.
        vote = "CASE WHEN vote = '1' THEN vote ELSE error(vote) END AS vote"
        frame = session.sql(f"SELECT {vote} FROM read_parquet('{path}')", dialect="duckdb")
        with pytest.raises(duckdb.Error, match=VALUE):
            frame.collect()
    else:
        rows = failing_rows("polars", path)
        frame = ibis.polars.connect({"votes": rows}).table("votes")
        with pytest.raises(pl.exceptions.InvalidOperationError, match=VALUE):
            frame.execute()
    fails_without_data(two_shares(frame), capfd)


@pytest.mark.parametrize("backend", [ibis.duckdb, ibis.polars])
def test_tables_in_memory_stay(backend: Any, tmp_path: Path) -> None:
    """Of Ibis, when it has forgotten them, and the connection."""
    pl.DataFrame({"vote": ["yes"], "n": [1]}).write_parquet(tmp_path / "votes.parquet")

    def frame() -> Any:
        table = backend.connect().read_parquet(tmp_path / "votes.parquet")
        return table.union(ibis.memtable(pl.DataFrame({"vote": ["no", "no"], "n": [2, 3]})))

    query = made(frame()).query()
    data = held(frame())[0]
    gc.collect()
    assert query.counts_of(ASKED)[0](data).tolist() == [2, 1, 0, 0]


def test_collations_are_overruled() -> None:
    connection = ibis.duckdb.connect()
    connection.con.execute("CREATE TABLE t (vote VARCHAR COLLATE NOCASE, n INTEGER)")
    connection.con.execute("INSERT INTO t VALUES ('yes', 1), ('Yes', 2), ('no', 3), (NULL, 4)")
    assert counts(connection.table("t")) == [1, 1, 1, 1]


def test_sqlite_is_refused() -> None:
    """With a reason that is true: a column of integers holds a text."""
    connection = ibis.sqlite.connect()
    with closing(connection.con) as database:
        database.execute("CREATE TABLE t (a INTEGER)")
        database.execute("INSERT INTO t VALUES (1), ('x')")
        table = connection.table("t")
        assert str(table.schema()["a"]) == "int64"
        assert database.execute("SELECT a FROM t").fetchall() == [(1,), ("x",)]
        with pytest.raises(ValueError, match="columns of SQLite hold values of any type"):
            held(table)


class Elsewhere:
    """A table of Ibis on a backend that is not here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get_backend(self) -> Any:
        return self


@pytest.mark.parametrize(
    ("backend", "reason"),
    [
        ("postgres", "it runs its queries on a server, of which no kind was tested"),
        ("datafusion", "how it compares texts and treats nulls was not tested"),
    ],
)
def test_ibis_on_other_backends_is_refused(
    backend: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ibis.memtable(pl.DataFrame({"a": [1]}))
    monkeypatch.setattr(type(table), "get_backend", lambda self: Elsewhere(backend))
    with pytest.raises(ValueError, match=f"Ibis on {backend} is refused: {reason}.*Use Ibis on"):
        held(table)


def test_sqlframe_on_others_is_refused() -> None:
    session = pytest.importorskip("sqlframe.standalone").StandaloneSession()
    frame = session.sql("SELECT 1 AS a")
    with pytest.raises(ValueError, match="SQLFrame with a StandaloneSession is refused"):
        held(frame)


def test_plugins_of_narwhals_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = nw.from_native(pl.LazyFrame({"a": [1]}))
    monkeypatch.setattr(type(frame), "implementation", nw.Implementation.UNKNOWN)
    with pytest.raises(TypeError, match="is read by a plugin of narwhals"):
        held(frame)
