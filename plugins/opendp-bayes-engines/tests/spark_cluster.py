"""A Spark driver with two workers in which things fail; prints as JSON, for `test_spark.py`."""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import opendp.prelude as dp
from contexts import two_shares
from pyspark.sql import SparkSession, functions as fn

import opendp_bayes as ob

VALUE = "avalueofarow"
#: Of log4j, for executors. Spark takes one without an appender for none, and puts its own there.
QUIET = """rootLogger.level = off
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
"""
dp.enable_features("contrib", "honest-but-curious")


def executors() -> list[int]:
    """The executor processes below this one."""
    parents, found = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        if b"CoarseGrainedExecutorBackend" in command:
            found.append(int(folder.name))

    def is_ours(pid: int) -> bool:
        while pid in parents:
            if pid == os.getpid():
                return True
            pid = parents[pid]
        return False

    return [pid for pid in found if is_ours(pid)]


def outcome(of: Any) -> dict[str, Any]:
    """What a release through a Context gave, and how many shares of the budget are left."""
    asked = ob.posterior(
        of.query(), "vote", categories=["no", "yes"], nulls="none", unknown="other"
    )
    try:
        released: Any = asked.release().epsilon
        error = ""
    except Exception as raised:  # noqa: BLE001 - whatever it is, the test looks at it
        released, error = None, f"{type(raised).__name__}: {raised}"
    return {"released": released, "error": error, "left": len(of.d_mids)}


@contextmanager
def meanwhile(session: Any, act: Callable[[], Any]) -> Iterator[None]:
    """Do something as soon as tasks are running in the block."""
    tracker = session.sparkContext.statusTracker()

    def when_running() -> None:
        until(lambda: bool(tracker.getActiveStageIds()))
        time.sleep(1)
        act()

    thread = threading.Thread(target=when_running)
    thread.start()
    yield
    thread.join()


def until(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.5)
    raise TimeoutError("the cluster did not come up")


def main(folder: Path) -> None:
    quiet = folder / "log4j2.properties"
    quiet.write_text(QUIET)
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.task.maxFailures", "1")
        .config("spark.executor.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{quiet}")
        .getOrCreate()
    )
    votes = session.range(3000).select(
        fn.when(fn.col("id") % 3 == 0, "no").when(fn.col("id") % 3 == 1, "yes").alias("vote")
    )
    happened: dict[str, Any] = {"release": outcome(two_shares(votes))}
    until(lambda: len(executors()) == 2)
    happened["executors"] = len(executors())
    numbers = fn.when(fn.col("vote") == "yes", VALUE).otherwise("1").cast("int")
    happened["row"] = outcome(two_shares(votes.select(numbers.cast("string").alias("vote"))))
    slow = session.range(30_000_000_000).select(
        fn.when(fn.xxhash64("id") % 3 == 0, "no").otherwise(VALUE).alias("vote")
    )
    of = two_shares(slow)
    victims = executors()
    with meanwhile(session, lambda: [os.kill(pid, signal.SIGKILL) for pid in victims]):
        happened["killed"] = outcome(of)
    until(lambda: len(set(executors()) - set(victims)) == 2)
    with meanwhile(session, session.sparkContext.cancelAllJobs):
        happened["cancelled"] = outcome(of)
    path = folder / "votes.parquet"
    votes.write.parquet(str(path))
    of = two_shares(session.read.parquet(str(path)))
    path.rename(folder / "elsewhere.parquet")
    happened["removed"] = outcome(of)
    (folder / "elsewhere.parquet").rename(path)
    happened["back"] = outcome(of)
    gateway = session.sparkContext._gateway.proc
    of = two_shares(slow)
    with meanwhile(session, gateway.kill):
        happened["lost"] = outcome(of)
    print("HAPPENED " + json.dumps(happened), flush=True)  # noqa: T201
    os._exit(0)  # the session cannot be stopped any more


if __name__ == "__main__":
    main(Path(sys.argv[1]))
