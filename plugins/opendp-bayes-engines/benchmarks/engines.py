"""Counting through a Context, and writing a column by `columns`, beside the engine's own
`group_by`, on Parquet that this makes.

`BENCHMARKS_MARKDOWN=RESULTS.md python engines.py --rows 1e9 --folder DIR` appends to RESULTS.md.
Every measurement is a
process of its own, ours and the engine's in turn, and its processor time is what counts: the
shortest of several. Spark's is that of its Java process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from reporting import table

ROWS_OF_A_FILE = 10_000_000


def labels(k: int) -> list[str]:
    return [f"category {number}" for number in range(k)]


def make(folder: Path, rows: int, k: int) -> None:
    """Parquet files of ten million rows: a text column, and a person with three rows each."""
    if (folder / "done").exists():
        return
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number, start in enumerate(range(0, rows, ROWS_OF_A_FILE)):
        size = min(ROWS_OF_A_FILE, rows - start)
        codes = pl.Series(rng.integers(k, size=size, dtype=np.uint32))
        frame = pl.DataFrame(
            {
                "vote": codes.cast(pl.Enum(labels(k))).cast(pl.String),
                "person": pl.Series(np.arange(start, start + size) // 3),
            }
        )
        frame.write_parquet(folder / f"part{number:04d}.parquet", row_group_size=1_000_000)
    (folder / "done").touch()


def scan(engine: str, folder: Path) -> Any:
    if engine in ("core", "polars"):
        return pl.scan_parquet(folder / "*.parquet")
    if engine == "duckdb":
        import duckdb

        duckdb.sql("SET memory_limit = '2GB'")
        return duckdb.read_parquet(str(folder / "*.parquet"))
    if engine == "dask":
        import dask.dataframe as dd

        return dd.read_parquet(str(folder / "*.parquet"), dtype_backend="pyarrow")
    if engine == "ibis":
        import ibis

        return ibis.duckdb.connect().read_parquet(str(folder / "*.parquet"))
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session.read.parquet(str(folder))


def own(engine: str, frame: Any) -> Callable[[], int]:
    """The engine's own count, as a user would write it; returns the number of groups."""
    if engine in ("core", "polars"):
        return lambda: frame.group_by("vote").len().collect(engine="streaming").height
    if engine == "duckdb":
        return lambda: len(frame.aggregate("vote, count(*)").fetchall())
    if engine == "dask":
        return lambda: len(frame.groupby("vote").size().compute())
    if engine == "ibis":
        return lambda: frame.group_by("vote").agg(n=frame.count()).to_pyarrow().num_rows
    return lambda: len(frame.groupBy("vote").count().collect())


def ours(engine: str, frame: Any, k: int, limit: int) -> Callable[[], int]:
    """The count of a Context, without noise, through OpenDP; returns the number of categories that
    occur.
    """
    import opendp.prelude as dp

    import opendp_bayes as ob
    from opendp_bayes.queries.question import Question, Variable
    from opendp_bayes_engines import context
    from opendp_bayes_engines.opening import table_of
    from opendp_bayes_engines.tables import Rows

    dp.enable_features("contrib", "honest-but-curious")
    policy = {"nulls": "null", "unknown": "other"}
    if engine == "core":
        count = ob.t.make_categorical_counts(
            dp.domain_of(frame, infer=True),
            dp.symmetric_distance(),
            column="vote",
            categories=labels(k),
            **policy,
        )
        return lambda: int((count(frame) > 0).sum())
    identifier = {"identifier": "person"} if limit else {}
    opened = context(
        frame,
        privacy_unit=dp.unit_of(contributions=1, **identifier),
        privacy_loss=dp.loss_of(epsilon=1.0),
    )
    query = opened.query()
    if limit:
        query = query.truncate_per_group(limit)
    count, _ = query.counts_of(Question((Variable("vote", labels(k), **policy),)))
    data = Rows(table_of(frame))
    return lambda: int((count(data) > 0).sum())


def written(frame: Any, k: int) -> Callable[[], int]:
    """The count of the core, of a file that the engine's column is written to."""
    from opendp_bayes_engines import columns

    return lambda: ours("core", columns(frame, ["vote"]), k, 0)()


def processor_time() -> float:
    """Seconds of this process and of the Java process that it started."""
    spent = time.process_time()
    for child in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, fields = child.read_text().rsplit(")", 1)
        except OSError:
            continue
        values = fields.split()
        if head.endswith("(java") and _is_below(int(values[1])):
            spent += (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")
    return spent


def _is_below(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


def measure(engine: str, folder: Path, k: int, limit: int, repeats: int) -> dict[str, float]:
    """The shortest time of each of both, in turn, in this process, and its largest memory."""
    frame = scan(engine, folder)
    both = {"own": own(engine, frame), "ours": ours(engine, frame, k, limit)}
    expected = min(k, both["own"]()) if limit == 0 else k
    both["columns"] = written(frame, k)
    best = {f"{counter} {clock}": float("inf") for counter in both for clock in ("cpu", "wall")}
    for _ in range(repeats):
        for counter, count in both.items():
            cpu, wall = processor_time(), time.perf_counter()
            counted = count()
            assert limit or counted == expected
            best[f"{counter} cpu"] = min(best[f"{counter} cpu"], processor_time() - cpu)
            best[f"{counter} wall"] = min(best[f"{counter} wall"], time.perf_counter() - wall)
    return best


def peak(engine: str, folder: Path, k: int, limit: int) -> dict[str, float]:
    """The largest resident memory of a process that does nothing else, in MB."""
    ours(engine, scan(engine, folder), k, limit)()
    return {"peak": _peak()}


def _peak() -> float:
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def truncation(engine: str, folder: Path, k: int, limit: int) -> dict[str, float]:
    """A count of at most `limit` rows of each person: its time, and the largest memory and disk in
    MB. DuckDB is given 500 MB of memory.
    """
    count, disk, over = ours(engine, scan(engine, folder), k, limit), [0], threading.Event()
    with tempfile.TemporaryDirectory() as spilled:
        if engine == "duckdb":
            import duckdb

            duckdb.sql(f"SET memory_limit = '500MB'; SET temp_directory = '{spilled}'")
            duckdb.sql("SET preserve_insertion_order = false")

        def watch() -> None:
            while not over.wait(0.5):
                disk.append(sum(file.stat().st_size for file in Path(spilled).rglob("*.tmp")))

        watcher = threading.Thread(target=watch)
        watcher.start()
        cpu, wall = processor_time(), time.perf_counter()
        count()
        spent = {"cpu": processor_time() - cpu, "wall": time.perf_counter() - wall}
        over.set()
        watcher.join()
    return {**spent, "peak": _peak(), "disk": max(disk) / 2**20}


def alone(
    what: str, engine: str, folder: Path, k: int, limit: int, repeats: int = 3
) -> dict[str, float]:
    arguments = [what, engine, str(folder), str(k), str(limit), str(repeats)]
    done = subprocess.run(  # noqa: S603
        [sys.executable, __file__, "--alone", *arguments], check=True, stdout=subprocess.PIPE
    )
    result: dict[str, float] = json.loads(done.stdout.decode().splitlines()[-1])
    return result


HEADER = ["engine", "rows", "k", "ours, s", "own, s", "ratio", "by columns, s"]
HEADER += ["ours, elapsed s", "own, elapsed s", "peak, MB"]


def row(engine: str, folder: Path, rows: int, k: int, limit: int = 0) -> list[Any]:
    repeats = 5 if rows <= 10**8 else 2
    best = alone("measure", engine, folder, k, limit, repeats)
    cells = [engine, rows, k, best["ours cpu"], best["own cpu"], best["ours cpu"] / best["own cpu"]]
    cells.append(best["columns cpu"])
    peak_mb = "" if engine == "spark" else round(alone("peak", engine, folder, k, limit)["peak"])
    return [*cells, best["ours wall"], best["own wall"], peak_mb]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="*", default=[1e7, 1e8])
    parser.add_argument("--engines", nargs="+", default=["core", "duckdb", "ibis", "dask", "spark"])
    parser.add_argument("--categories", type=int, nargs="*", default=[2, 10, 1000, 10_000])
    parser.add_argument("--rows-of-categories", type=float, default=1e7)
    parser.add_argument("--folder", type=Path, required=True, help="for the files; is not emptied")
    parser.add_argument("--truncated-rows", type=float, nargs="*", default=[1e7])
    arguments = parser.parse_args()
    sizes = [(int(rows), 10) for rows in arguments.rows]
    for title, cases in (
        ("Growth in rows", sizes),
        (
            f"Growth in categories, {arguments.rows_of_categories:.0e} rows",
            [(int(arguments.rows_of_categories), k) for k in arguments.categories],
        ),
    ):
        if not cases:
            continue
        lines = []
        for rows, k in cases:
            folder = arguments.folder / f"{rows}-{k}"
            make(folder, rows, k)
            lines += [row(engine, folder, rows, k) for engine in arguments.engines]
        table(
            title,
            HEADER,
            lines,
            "Seconds of processor time, then elapsed on a machine with other work to do. `core` is"
            " `make_categorical_counts` on a polars scan, the others go through `engines.context`;"
            " `own` is the engine's `group_by` and length. Wanted: a ratio of at most 1.1 for"
            " polars and DuckDB, 1.2 for Spark, whose memory is its Java process's and not shown.",
        )
    lines = []
    for rows in map(int, arguments.truncated_rows):
        folder = arguments.folder / f"{rows}-10"
        make(folder, rows, 10)
        for engine in {"polars", "duckdb"}.intersection(arguments.engines):
            costs = alone("truncation", engine, folder, 10, 2)
            lines.append(
                [
                    engine,
                    rows,
                    costs["cpu"],
                    costs["wall"],
                    round(costs["peak"]),
                    round(costs["disk"]),
                ]
            )
    if lines:
        header = ["engine", "rows", "ours, s", "elapsed s", "peak, MB", "disk, MB"]
        table(
            "At most two rows of each person",
            header,
            lines,
            "A person has three rows. DuckDB has 500 MB of memory and what disk it wants; polars"
            " what memory it wants.",
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        what, engine, folder, k, limit, repeats = sys.argv[2:]
        given: list[Any] = [engine, Path(folder), int(k), int(limit)]
        given += [int(repeats)] if what == "measure" else []
        known = {"measure": measure, "peak": peak, "truncation": truncation}
        sys.stdout.write(json.dumps(known[what](*given)))
    else:
        main()
