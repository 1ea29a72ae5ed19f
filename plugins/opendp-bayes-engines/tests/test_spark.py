"""Spark: what it needs before it counts, what it prints, and a cluster in which things fail."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import narwhals as nw
import opendp.prelude as dp
import pytest

import opendp_bayes as ob
from opendp_bayes_engines import context, on_spark
from opendp_bayes_engines.engines import held

pytest.importorskip("pyspark", reason="pyspark is not installed: `make test-spark` installs it")

from contexts import MESSAGE
from spark_cluster import VALUE, outcome, two_shares

pytestmark = pytest.mark.slow


def failing(spark: Any) -> Any:
    """A frame that cannot be read, because one of its own casts fails on a row."""
    return spark.sql(
        f"SELECT CAST(CAST(IF(id = 2, '{VALUE}', '1') AS INT) AS STRING) AS vote FROM range(9)"
    )


class Printed:
    """What is printed from now on: by this process, and by Spark's Java process, whose log other
    threads write, some time after a query failed.
    """

    def __init__(self, capfd: pytest.CaptureFixture[str], java_log: Path) -> None:
        self._capfd, self._log = capfd, java_log
        capfd.readouterr()
        self._start = java_log.stat().st_size

    def by_java(self) -> str:
        time.sleep(1)
        return self._log.read_bytes()[self._start :].decode()

    def by_all(self) -> str:
        printed = self._capfd.readouterr()
        return printed.out + printed.err + self.by_java()

    def shows(self, text: str) -> bool:
        return any(text in self.by_java() for _ in range(30))


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str], spark: Any, java_log: Path) -> Any:
    """What is printed from the call on."""
    return lambda: Printed(capfd, java_log)


def fail(spark: Any) -> None:
    """Without a Context."""
    with pytest.raises(Exception, match=VALUE):
        failing(spark).groupBy("vote").count().collect()


def test_a_row_that_fails_is_not_shown(spark: Any, printed: Any) -> None:
    of = two_shares(failing(spark))
    since = printed()
    happened = outcome(of)
    assert happened["error"].startswith(f"ReleaseError: {MESSAGE}")
    assert (happened["released"], happened["left"]) == (None, 2)
    assert VALUE not in since.by_all()
    # Without a Context the same failure is shown, in the same log.
    spark.sparkContext.setLogLevel("WARN")
    since = printed()
    fail(spark)
    assert since.shows(VALUE)


def test_the_log_is_as_it_was(spark: Any, printed: Any) -> None:
    assert outcome(two_shares(spark.sql("SELECT 'no' AS vote")))["released"]
    since = printed()
    spark.range(10).groupBy("id").count().collect()
    assert " INFO " not in since.by_all()  # interactive sessions show warnings and errors
    fail(spark)
    assert since.shows(VALUE)


def test_after_a_failure_the_log_stays_off(spark: Any, printed: Any) -> None:
    """Tasks that are ended later say why, and no one knows when."""
    outcome(two_shares(failing(spark)))
    since = printed()
    fail(spark)
    assert "ERROR Executor" not in since.by_java()
    spark.sparkContext.setLogLevel("WARN")
    fail(spark)
    assert since.shows("ERROR Executor")


def test_collations_are_refused(spark: Any) -> None:
    frame = spark.sql("SELECT 'x' COLLATE UTF8_LCASE AS a, 'x' AS b")
    with pytest.raises(ValueError, match="column 'a' has the collation UTF8_LCASE"):
        held(frame)
    held(frame.select("b"))
    held(frame.select(frame.a.cast("string collate UTF8_BINARY").alias("a")))


def test_folders_that_are_not_found_are_warned_of(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark makes them for everybody to read; where they are found nothing is said."""
    frame = spark.sql("SELECT 'x' AS a")
    held(frame)
    monkeypatch.setattr(on_spark, "_TO_FOLDERS", (("SparkEnv", "noSuchField"),))
    with pytest.warns(UserWarning, match="other users of this machine may read records in them"):
        held(frame)


def test_a_sunday_is_the_seventh_day(spark: Any) -> None:
    """As in every other engine, and within the limits that arithmetic is accepted by."""
    frame = spark.sql("SELECT explode(sequence(date'2024-01-01', date'2024-01-14')) AS day")
    of = context(
        frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=400.0)
    )
    query = of.query(epsilon=400.0).with_columns(weekday=nw.col("day").dt.weekday())
    released = ob.posterior(
        query, "weekday", categories=list(range(8)), nulls=-1, unknown=-1
    ).release()
    assert released.drawn == (0, *(2,) * 7, 0)


def test_many_categories(spark: Any) -> None:
    frame = spark.sql("SELECT CAST(id % 40000 AS STRING) AS vote FROM range(100000)")
    of = context(
        frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=400.0)
    )
    labels = [str(at) for at in range(20_000)]
    asked = ob.posterior(
        of.query(epsilon=400.0), "vote", categories=labels, nulls="null", unknown="other"
    )
    released = asked.release()
    assert released.drawn == (3,) * 20_000 + (0, 40_000)


def test_a_cluster_in_which_things_fail(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("spark").stop()  # skips where there is none; one of them is enough
    import pyspark

    logs = Path(pyspark.__path__[0]) / "work"  # where a local cluster puts those of its workers
    before = set(logs.glob("app-*"))
    script = Path(__file__).with_name("spark_cluster.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    ours = set(logs.glob("app-*")) - before
    printed = [done.stdout, *(file.read_text() for app in ours for file in app.rglob("std*"))]
    for app in ours:
        shutil.rmtree(app)
    assert len(printed) > 3  # the driver's and those of several workers
    assert not any(VALUE in text for text in printed)
    assert "HAPPENED" in done.stdout, done.stdout[-2000:]
    happened = json.loads(done.stdout.split("HAPPENED ")[1])
    assert happened["executors"] == 2
    for name in ("release", "back"):
        assert (happened[name]["released"], happened[name]["left"]) == (0.5, 1)
    for name in ("row", "killed", "cancelled", "removed", "lost"):
        assert happened[name]["error"].startswith(f"ReleaseError: {MESSAGE}"), name
        assert (happened[name]["released"], happened[name]["left"]) == (None, 2), name
