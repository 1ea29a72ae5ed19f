"""What fails in an engine: an error without data, paid for, and nothing released."""

import os
import signal
import threading
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import ibis
import pandas as pd
import polars as pl
import pytest
from contexts import MESSAGE, two_shares

import opendp_bayes as ob
from opendp_bayes_engines.query import EngineContext

VALUE = "a value of a row"


def ask(of: EngineContext) -> Any:
    return ob.posterior(of.query(), "vote", categories=["no"], nulls="none", unknown="other")


def fails_without_data(of: EngineContext, capfd: pytest.CaptureFixture[str]) -> None:
    """A release fails, shows nothing of the data, and costs its share of the budget."""
    asked = ask(of)
    with pytest.raises(RuntimeError, match=MESSAGE) as caught:
        asked.release()
    shown: BaseException | None = caught.value
    while shown is not None:  # neither what caused it nor what it replaced
        assert VALUE not in str(shown)
        shown = shown.__cause__ or shown.__context__
    printed = capfd.readouterr()
    assert VALUE not in printed.out + printed.err
    assert len(of.d_mids) == 1


def releases(of: EngineContext) -> None:
    """The other share is there, and no third."""
    assert ask(of).release().epsilon <= 0.5
    with pytest.raises(ValueError, match="has been exhausted"):
        of.query()


def failing_rows(engine: str, path: Path) -> Any:
    """A frame that cannot be read, because one of its own casts fails on a row."""
    pl.DataFrame({"vote": ["1", VALUE]}).write_parquet(path)
    if engine == "polars":
        return pl.scan_parquet(path).select(pl.col("vote").cast(pl.Int64).cast(pl.String))
    if engine == "duckdb":
        return duckdb.connect().sql(
            f"SELECT CAST(CAST(vote AS INTEGER) AS VARCHAR) AS vote FROM '{path}'"
        )
    if engine == "ibis":
        table = ibis.duckdb.connect().read_parquet(path)
        return table.select(vote=table.vote.cast("int64").cast("string"))
    frame = dd.read_parquet(path, dtype_backend="pyarrow")
    return frame.map_partitions(_cast, meta=frame._meta)


def _cast(part: pd.DataFrame) -> pd.DataFrame:
    return part.astype("int64[pyarrow]").astype("string[pyarrow]")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["polars", "duckdb", "ibis", "dask"])
def test_engines_themselves_show_a_row_that_fails(engine: str, tmp_path: Path) -> None:
    """So that not to find it below says something."""
    frame = failing_rows(engine, tmp_path / "rows.parquet")
    read = {"polars": "collect", "duckdb": "fetchall", "ibis": "execute", "dask": "compute"}
    with pytest.raises(Exception, match=VALUE):
        getattr(frame, read[engine])()


@pytest.mark.parametrize("engine", ["polars", "duckdb", "ibis", "dask"])
def test_a_row_that_fails(engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fails_without_data(two_shares(failing_rows(engine, tmp_path / "rows.parquet")), capfd)


@pytest.mark.parametrize("engine", ["polars", "duckdb", "ibis", "dask"])
def test_a_file_that_is_removed(engine, tmp_path, frame_in, capfd):
    path, elsewhere = tmp_path / f"{VALUE}.parquet", tmp_path / "elsewhere.parquet"
    pl.DataFrame({"vote": ["yes", "no", None]}).write_parquet(path)
    of = two_shares(frame_in(engine, path))
    path.rename(elsewhere)
    fails_without_data(of, capfd)
    elsewhere.rename(path)
    releases(of)


def test_a_connection_that_is_lost(capfd: pytest.CaptureFixture[str]) -> None:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT '{VALUE}' AS vote")
    of = two_shares(connection.table("t"))
    connection.close()
    fails_without_data(of, capfd)


@pytest.fixture
def endless() -> Any:
    """A relation that takes minutes to count, and its connection."""
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    return connection, connection.sql(
        f"SELECT CASE WHEN hash(range) % 3 = 0 THEN '{VALUE}' ELSE 'no' END AS vote"
        " FROM range(10000000000)"
    )


def test_a_query_that_is_cancelled(endless: Any, capfd: pytest.CaptureFixture[str]) -> None:
    connection, relation = endless
    of = two_shares(relation)
    over = threading.Event()

    def cancel() -> None:
        while not over.wait(0.2):  # a query that has not begun yet is not cancelled
            connection.interrupt()

    thread = threading.Thread(target=cancel)
    thread.start()
    fails_without_data(of, capfd)
    over.set()
    thread.join()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_killed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, die = tmp_path / "rows.parquet", tmp_path / "die"
    pl.DataFrame({"vote": [VALUE, "no", None]}).write_parquet(path)

    def work(part: pd.DataFrame) -> pd.DataFrame:

        if die.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return part

    frame = dd.read_parquet(path, dtype_backend="pyarrow")
    of = two_shares(frame.map_partitions(work, meta=frame._meta))
    with dask.config.set(scheduler="processes", num_workers=1):
        die.touch()
        fails_without_data(of, capfd)
        die.unlink()
        releases(of)
