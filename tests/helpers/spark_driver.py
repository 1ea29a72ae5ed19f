"""A Spark driver with a log of its own: counts a frame, fails on one, and prints as JSON."""

import json
import logging
import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
from pyspark.sql import SparkSession

import opendp_bayes as ob
from opendp_bayes_engines import context

VALUE = "avalueofarow"
dp.enable_features("contrib", "honest-but-curious")
#: The logger of failed tasks writes to a file of its own, and takes no part in the root's.
LOGS = """rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.own.type = File
appender.own.name = own
appender.own.fileName = {file}
appender.own.layout.type = PatternLayout
appender.own.layout.pattern = %m%ex%n
logger.tasks.name = org.apache.spark
logger.tasks.level = warn
logger.tasks.additivity = false
logger.tasks.appenderRef.own.ref = own
"""
#: A filter of the whole log that lets errors through, whatever comes after it.
ACCEPTING = """filter.errors.type = ThresholdFilter
filter.errors.level = error
filter.errors.onMatch = ACCEPT
filter.errors.onMismatch = NEUTRAL
"""


def released(frame: Any) -> Any:
    """What a release of `vote` stated, or how it failed."""
    unit, loss = dp.unit_of(contributions=1, identifier="person"), dp.loss_of(epsilon=1.0)
    of = context(frame, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1)
    asked = ob.posterior(
        of.query().truncate_per_group(1), "vote", categories=["no"], nulls="none", unknown="other"
    )
    try:
        return asked.release().epsilon
    except RuntimeError as error:
        return str(error)


def open_to_others(folder: Path) -> list[str]:
    """Files below a folder that another user could reach by the folders that Spark made."""
    found = []
    for path in folder.rglob("*"):
        try:
            ways = [path, *(way for way in path.parents if folder in way.parents)]
            modes = [stat.S_IMODE(way.stat().st_mode) for way in ways]
        except FileNotFoundError:
            continue
        if path.is_file() and all(mode & 0o005 for mode in modes):
            found.append(path.name)
    return found


def main(folder: Path, *, accepting: bool) -> None:
    own, wire, local = folder / "own.log", folder / "wire.log", folder / "local"
    settings = folder / "log4j2.properties"
    settings.write_text(LOGS.format(file=own) + (ACCEPTING if accepting else ""))
    logging.basicConfig(filename=wire, level=logging.DEBUG)  # all that Python and Java exchange
    os.umask(0o022)
    local.mkdir()
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.local.dir", str(local))
        .config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{settings}")
        .getOrCreate()
    )

    def rows(value: str) -> Any:
        """Of a file: a query has no value as a constant."""
        votes = [str(number) for number in range(19)]
        pl.DataFrame({"person": range(20), "vote": [*votes, value]}).write_parquet(folder / value)
        return session.read.parquet(str(folder / value))

    def written() -> list[str]:
        """The logs in which the value is, since they were emptied."""
        time.sleep(2)  # tasks that are ended later say why
        found = [file.name for file in (own, wire) if VALUE in file.read_text(errors="replace")]
        for file in (own, wire):
            os.truncate(file, 0)
        return found

    def shown() -> list[str]:
        """The logs in which a failure without a Context is."""
        written()
        with suppress(Exception):
            failing.collect()
        return written()

    failing = rows(VALUE).selectExpr("person", "CAST(CAST(vote AS INT) AS STRING) AS vote")
    rows("0").groupBy("vote").count().collect()
    happened: dict[str, Any] = {"open before": open_to_others(local), "shown before": shown()}
    happened["released"] = released(rows("0"))
    happened["open"] = open_to_others(local)
    happened["files"] = len(list(local.rglob("shuffle_*")))
    happened["failed"] = released(failing)
    happened["written"] = written()
    session.sparkContext.setLogLevel("WARN")
    happened["without a Context"] = shown()
    print("HAPPENED " + json.dumps(happened), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), accepting="accepting" in sys.argv[2:])
