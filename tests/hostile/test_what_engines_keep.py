"""Engines write rows to disk and repeat values in logs: none stays, and no other user reads it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import pandas as pd
import pytest

import opendp_bayes as ob
from tests.helpers.sources import ROOT

dask = pytest.importorskip("dask")
engines = pytest.importorskip("opendp_bayes_engines")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    made = tmp_path / "temporary"
    made.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(made))
    return made


def truncated_on_dask(**settings: Any) -> list[int]:
    import dask.dataframe as dd

    persons = pd.array([1, 2, 3, None] * 50, dtype="int64[pyarrow]")
    votes = pd.array(["a", "b", "c", "a"] * 50, dtype="string[pyarrow]")
    rows = pd.DataFrame({"person": persons, "vote": votes})
    with dask.config.set(settings):
        of = engines.context(
            dd.from_pandas(rows, npartitions=5),
            privacy_unit=dp.unit_of(contributions=1, identifier="person"),
            privacy_loss=dp.loss_of(epsilon=1000.0),
            split_evenly_over=1,
        )
        released = ob.posterior(
            of.query().truncate_per_group(2), "vote", categories=["a", "b"], nulls="n", unknown="o"
        ).release()
    return list(released.counts)


@pytest.mark.parametrize("method", [None, "disk", "tasks"])
def test_a_truncation_on_dask_leaves_nothing_on_disk(folder: Path, method: str | None) -> None:
    assert truncated_on_dask(**{"dataframe.shuffle.method": method}) == [4, 2, 0, 2]
    assert list(folder.rglob("*")) == []


def test_what_is_left_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: by Dask's own way, through the disk."""
    from dask.dataframe import DataFrame

    shuffle = DataFrame.shuffle
    monkeypatch.setattr(DataFrame, "shuffle", lambda self, on, **_: shuffle(self, on=on))
    assert truncated_on_dask() == [4, 2, 0, 2]
    assert [path.suffix for path in folder.iterdir()] == [".partd"]


@pytest.mark.slow
@pytest.mark.parametrize("log", ["", "accepting"], ids=["an appender", "a filter that accepts"])
def test_spark_writes_nothing_for_others(tmp_path: Path, log: str) -> None:
    """Under umask 022: no log has a value of a failed cast, and no other user can open a file. Both
    were so before the Context was made, and the log is so without it.
    """
    pytest.importorskip("pyspark", reason="pyspark is not installed: `make test-spark` installs it")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed: `apt-get install openjdk-17-jre-headless`")
    driver = ROOT / "tests/helpers/spark_driver.py"
    found = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    output: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", driver, tmp_path, log],
        **{"timeout": 900, "check": False, "env": os.environ | found, **output},
    )
    assert "HAPPENED" in done.stdout, done.stdout[-2000:]
    happened = json.loads(done.stdout.split("HAPPENED ")[1])
    assert happened["released"] == 1.0
    assert happened["files"] > 3
    assert happened["open"] == []
    assert happened["failed"].startswith("engines: counting: counting failed. The cause is")
    assert happened["written"] == []
    assert len(happened["open before"]) > 1
    assert "own.log" in happened["shown before"]
    assert "wire.log" in happened["without a Context"]
