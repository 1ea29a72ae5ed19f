"""Spark: what it alone has, and a cluster in which things fail."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import pytest

import opendp_bayes as ob
from opendp_bayes_engines import columns, context, on_spark

pytest.importorskip("pyspark", reason="pyspark is not installed: `make test-spark` installs it")

from contexts import MESSAGE, counts, made, values
from spark_cluster import VALUE, outcome, two_shares

pytestmark = pytest.mark.slow


def failing(spark: Any) -> Any:
    """A frame that cannot be read, because one of its own casts fails on a row."""
    return spark.sql(
        f"SELECT CAST(CAST(IF(id = 2, '{VALUE}', '1') AS INT) AS STRING) AS vote FROM range(9)"
    )


def test_a_row_that_fails_is_not_shown(spark: Any) -> None:
    """By the error; Spark's own log is the owner's."""
    happened = outcome(two_shares(failing(spark)))
    assert happened["error"].startswith(f"ReleaseError: {MESSAGE}")
    assert VALUE not in happened["error"]
    assert happened["released"] is None
    with pytest.raises(RuntimeError, match=r"engines\.columns: writing failed") as caught:
        columns(failing(spark), ["vote"])
    assert VALUE not in str(caught.value)


def odd_texts(session: Any) -> Any:
    return session.sql(
        "SELECT CAST(CASE WHEN id < 2 THEN x'ff' WHEN id = 2 THEN x'fe' ELSE x'61' END AS STRING)"
        " AS text, CAST('A' AS STRING COLLATE UTF8_LCASE) AS other, DATE'-0044-03-15' AS day,"
        " CAST(1 AS DECIMAL(20, 0)) AS wide, TIMESTAMP'2020-01-01 00:00:00' AS at FROM range(4)"
    )


@pytest.mark.parametrize("session", ["spark", "connected"])
def test_bytes_collations_and_far_dates(session: str, request: pytest.FixtureRequest) -> None:
    table = odd_texts(request.getfixturevalue(session))
    written = columns(table, ["text", "other", "day"]).collect()
    assert sorted(written["text"], key=str) == [None, None, None, "a"]
    assert written["other"].to_list() == ["A"] * 4
    assert written["day"].null_count() == 4
    query = made(table).query()
    assert values(query, table, "text", "none") == {"none": 3, "a": 1}
    assert counts(query, table, ("other", ["a", "A"], "n", "o")) == [0, 4, 0, 0]
    assert counts(query.filter(("other", "==", "a")), table, ("text", ["a"], "n", "o")) == [0, 0, 0]
    for name, kind in (("wide", "DecimalType"), ("at", "TimestampType")):
        with pytest.raises(TypeError, match=f"has type {kind}, whose"):
            columns(table, [name])


def test_values_are_computed_once_and_nothing_is_kept(spark, monkeypatch):
    """A table that draws its values would be another in every reading."""
    monkeypatch.setattr(on_spark, "_AT_A_TIME", 5)
    table = spark.sql("SELECT CAST(rand() * 50 AS INT) AS number FROM range(200)")
    for _ in range(3):
        assert sum(values(made(table).query(), table, "number", ob.DROP).values()) == 200
    assert columns(table, ["number"]).collect().height == 200
    assert spark.sparkContext._jsc.getPersistentRDDs().isEmpty()


def test_many_categories(spark: Any) -> None:
    frame = spark.sql("SELECT CAST(id % 40000 AS STRING) AS vote FROM range(100000)")
    of = context(
        frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=400.0)
    )
    labels = [str(at) for at in range(5_000)]
    asked = ob.posterior(
        of.query(epsilon=400.0), "vote", categories=labels, nulls="null", unknown="other"
    )
    released = asked.release()
    assert released.noisy_counts == (3,) * 5_000 + (0, 85_000)


def test_a_cluster_in_which_things_fail(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("spark").stop()  # skips where there is none; one of them is enough
    import pyspark

    logs = Path(pyspark.__path__[0]) / "work"  # where a local cluster puts those of its workers
    before = set(logs.glob("app-*"))
    script = Path(__file__).with_name("spark_cluster.py")
    found = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    output: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    output |= {"timeout": 900, "check": False, "env": os.environ | found}
    done = subprocess.run([sys.executable, "-W", "ignore", script, tmp_path], **output)
    ours = set(logs.glob("app-*")) - before
    printed = [done.stdout, *(file.read_text() for app in ours for file in app.rglob("std*"))]
    for app in ours:
        shutil.rmtree(app)
    assert len(printed) > 3  # the driver's and those of several workers
    assert not any(VALUE in text for text in printed)
    assert "HAPPENED" in done.stdout, done.stdout[-2000:]
    happened = json.loads(done.stdout.split("HAPPENED ")[1])
    assert happened["executors"] == 2
    assert (happened["release"]["released"], happened["release"]["left"]) == (0.5, 1)
    assert (happened["back"]["released"], happened["back"]["left"]) == (0.5, 0)
    for name in ("row", "killed", "removed", "lost"):
        assert happened[name]["error"].startswith(f"ReleaseError: {MESSAGE}"), name
        assert (happened[name]["released"], happened[name]["left"]) == (None, 1), name
