"""Counting values that nobody listed, through a Context, beside the engine's own `group_by`, on
Parquet that this makes.

`python values.py --folder DIR --engines core polars duckdb spark` prints a row for each engine.
Each is a process of its own; what it counts, before any noise, has one fingerprint in all of them.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from engines import _peak, make, processor_time, scan, table

HEADER = ["engine", "rows", "values", "ours, s", "own, s", "ratio", "ours, elapsed s", "peak, MB"]


def own(engine: str, frame: Any) -> Callable[[], int]:
    """The engine's own numbers, as a user would take them into memory; returns how many."""
    if engine in ("core", "polars"):
        return lambda: frame.group_by("vote").len().collect(engine="streaming").height
    if engine == "duckdb":
        return lambda: frame.aggregate("vote, count(*)").to_arrow_table().num_rows
    if engine == "dask":
        return lambda: len(frame.groupby("vote").size().compute())
    return lambda: frame.groupBy("vote").count().toArrow().num_rows


def ours(engine: str, frame: Any, limit: int) -> Callable[[], Iterator[pl.DataFrame]]:
    """The batches that reach the noise; of people, where each has at most `limit` rows."""
    import opendp.prelude as dp

    import opendp_bayes as ob
    from opendp_bayes_engines import context
    from opendp_bayes_engines.opening import table_of
    from opendp_bayes_engines.tables import Rows

    dp.enable_features("contrib", "honest-but-curious")
    if engine == "core":
        count = ob.t.make_discovered_counts(
            dp.domain_of(frame, infer=True), dp.symmetric_distance(), column="vote", nulls=ob.DROP
        )
        return lambda: count(frame).batches()
    query = context(
        frame,
        privacy_unit=dp.unit_of(contributions=1, **({"identifier": "person"} if limit else {})),
        privacy_loss=dp.loss_of(epsilon=1.0, delta=1e-8),
    ).query()
    if limit:
        query = query.truncate_per_group(limit)
    counts, _ = query.counts_of_values("vote", always=[], nulls=ob.DROP)
    data = Rows(table_of(frame))
    return lambda: counts(data).batches()


def measure(engine: str, folder: Path, limit: int, repeats: int) -> dict[str, float]:
    """The shortest times of ours, then the largest memory, then the shortest of the engine's."""
    frame = scan(engine, folder)
    count, theirs = ours(engine, frame, limit), own(engine, frame)
    best = dict.fromkeys(("ours", "wall", "own"), float("inf"))
    for _ in range(repeats):
        cpu, wall = processor_time(), time.perf_counter()
        values = print_of = 0
        for batch in count():
            values += batch.height
            print_of += _fingerprint(batch)
        best["ours"] = min(best["ours"], processor_time() - cpu)
        best["wall"] = min(best["wall"], time.perf_counter() - wall)
    best |= {"values": values, "print": print_of, "peak": _peak()}
    for _ in range(repeats if not limit else 0):
        cpu = processor_time()
        assert theirs() == values
        best["own"] = min(best["own"], processor_time() - cpu)
    return best


def _fingerprint(batch: pl.DataFrame) -> int:
    """A number that the same batches have in common, whatever the order of their rows."""
    products = pl.col("key").hash(1, 2, 3, 4) % 2**31 * pl.col("number") % (2**31 - 1)
    return int(batch.select(products.cast(pl.UInt64).sum()).item())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--values", type=float, default=1e6)
    parser.add_argument("--limit", type=int, default=0, help="rows of each person, 0 for no people")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engines", nargs="+", default=["core", "polars", "duckdb", "dask"])
    parser.add_argument("--folder", type=Path, required=True, help="for the files; is not emptied")
    options = parser.parse_args()
    rows, k = int(options.rows), int(options.values)
    folder = options.folder / f"{rows}-{k}"
    make(folder, rows, k)
    lines, prints = [], set()
    for engine in options.engines:
        arguments = ["--alone", engine, str(folder), str(options.limit), str(options.repeats)]
        done = subprocess.run(  # noqa: S603
            [sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE
        )
        costs: dict[str, float] = json.loads(done.stdout.decode().splitlines()[-1])
        ratio = costs["ours"] / costs["own"]
        peak = "" if engine == "spark" else round(costs["peak"])
        lines.append(
            [engine, rows, costs["values"], costs["ours"], costs["own"], ratio, costs["wall"], peak]
        )
        prints.add(costs["print"])
    assert len(prints) == 1
    limited = f", at most {options.limit} rows of each person" if options.limit else ""
    table(
        "Values that nobody listed" + limited,
        HEADER,
        lines,
        "Seconds of processor time, then elapsed on a machine with other work to do; the shortest"
        f" of {options.repeats}. `own` is the engine's `group_by` and length, into memory. The"
        " numbers before noise were equal.",
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        engine, folder, limit, repeats = sys.argv[2:]
        sys.stdout.write(json.dumps(measure(engine, Path(folder), int(limit), int(repeats))))
    else:
        main()
