"""Counting through OpenDP against counting in plain polars: scans of files, and frames in
memory.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
from reporting import milliseconds, table

import opendp_bayes as ob

CATEGORIES = (10, 1000)


def make_frame(rows: int) -> pl.DataFrame:
    """An Enum, a String and an Int64 column for each number of categories, with unequal
    frequencies.
    """
    rng = np.random.default_rng(0)
    columns = {}
    for k in CATEGORIES:
        codes = rng.choice(k, rows, p=rng.dirichlet(np.ones(k)))
        enum = pl.Series(codes.astype(np.uint32)).cast(pl.Enum([f"category {i}" for i in range(k)]))
        columns |= {
            f"Enum, k={k}": enum,
            f"String, k={k}": enum.cast(pl.String),
            f"Int64, k={k}": pl.Series(codes),
        }
    return pl.DataFrame(columns)


def counter(scan: pl.LazyFrame, column: str) -> Callable[[], Any]:
    """Our count of a column, invoked through OpenDP."""
    kind, k = column.split(", k=")
    policy: dict[str, Any] = {"nulls": "missing"}
    if kind != "Enum":
        labels = (
            [f"category {i}" for i in range(int(k))] if kind == "String" else list(range(int(k)))
        )
        policy |= {"categories": labels, "unknown": "other"}
    count = ob.t.make_categorical_counts(
        dp.domain_of(scan, infer=True), dp.symmetric_distance(), column=column, **policy
    )
    return lambda: count(scan)


def in_polars(frame: pl.LazyFrame, column: str) -> list[Callable[[], pl.DataFrame]]:
    """Two queries that a user would write, one for each engine of polars."""
    query = frame.group_by(column).len()
    return [query.collect, lambda: query.collect(engine="streaming")]


def check(frame: pl.DataFrame, column: str, counts: np.ndarray) -> None:
    assert sorted(counts[counts > 0].tolist()) == sorted(
        frame.group_by(column).len()["len"].to_list()
    )


def scans(frame: pl.DataFrame, directory: Path) -> None:
    frame.write_ipc(directory / "frame.arrow")
    frame.write_parquet(directory / "frame.parquet")
    rows = []
    for name, scan in (
        ("scan_ipc", pl.scan_ipc(directory / "frame.arrow")),
        ("scan_parquet", pl.scan_parquet(directory / "frame.parquet")),
    ):
        for column in frame.columns:
            count = counter(scan, column)
            check(frame, column, count())
            ours, default, streaming = milliseconds(count, *in_polars(scan, column), repeats=7)
            rows.append([name, column, ours, default, streaming, ours / min(default, streaming)])
    table(
        f"Counting a file of {frame.height:,} rows",
        [
            "scan",
            "column",
            "ours, ms",
            "polars, ms",
            "polars streaming, ms",
            "ours / faster polars",
        ],
        rows,
        "`make_categorical_counts` invoked through OpenDP, beside"
        " `scan.group_by(column).len().collect()`. Wanted: a ratio of at most 1.3.",
    )


def in_memory(frame: pl.DataFrame) -> None:
    rows = []
    for columns in [[column] for column in frame.columns] + [frame.columns]:
        column, held = columns[0], frame.select(columns)
        write, *plain = milliseconds(
            lambda held=held: ob.on_disk(held).close(), *in_polars(held.lazy(), column)
        )
        with ob.on_disk(held) as scan:
            later, *again = milliseconds(
                counter(scan, column), *in_polars(held.lazy(), column), repeats=7
            )
        polars = min(*plain, *again)
        name = column if len(columns) == 1 else f"{column} of a frame of {len(columns)} columns"
        rows.append(
            [
                name,
                write,
                later,
                polars,
                (write + later) / polars,
                later / polars,
                (write + 10 * later) / (10 * polars),
            ]
        )
    table(
        f"Counting a frame in memory of {frame.height:,} rows",
        [
            "column",
            "write, ms",
            "count, ms",
            "polars, ms",
            "first count",
            "later count",
            "ten counts",
        ],
        rows,
        "`on_disk` writes the frame once; every count then scans the file. Polars counts the same"
        " frame in memory, on the faster of its engines. The last three columns are ratios: write"
        " and count, count alone, and one write with ten counts. Wanted: at most 3. Writing costs"
        " as much as the frame is wide, so select the columns you need before `on_disk`.",
    )


def surveys(rows: int, questions: int = 10) -> None:
    """Time a survey beside one question and beside as many questions asked one by one."""
    rng = np.random.default_rng(1)
    labels = [f"category {i}" for i in range(8)]
    values = {f"c{at}": rng.choice(labels, rows) for at in range(questions)}
    frame = pl.DataFrame({"person": rng.integers(0, rows // 2, rows), **values})
    every = {"categories": labels, "nulls": labels[0], "unknown": labels[0]}
    asked = {name: {"column": name, **every} for name in values}
    found = []
    with ob.on_disk(frame) as scan:
        for name, data in (("in memory", frame.lazy()), ("on disk", scan)):
            for limit in (None, 2):
                identifier = {} if limit is None else {"identifier": "person"}
                context = dp.Context.compositor(
                    data=data,
                    privacy_unit=dp.unit_of(contributions=2, **identifier),
                    privacy_loss=dp.loss_of(epsilon=1.0),
                    split_evenly_over=2 + questions,
                )

                def query(context: Any = context, limit: Any = limit) -> Any:
                    whole = context.query()
                    return whole if limit is None else whole.truncate_per_group(limit)

                seconds = []
                for ask in (
                    lambda: ob.survey(query(), asked).release(),
                    lambda: ob.posterior(query(), "c0", **every).release(),
                    lambda: [ob.posterior(query(), each, **every).release() for each in values],
                ):
                    start = process_time()
                    ask()
                    seconds.append(process_time() - start)
                whole, single, apart = seconds
                found.append([name, limit or "", whole, single, apart, apart / whole])
    table(
        f"{questions} questions to {rows:,} rows",
        ["frame", "rows of each person", "survey, s", "one question, s", "one by one, s", "ratio"],
        found,
        "Processor time of a survey of columns of text, of one of its questions, and of all asked"
        " one by one. A frame in memory crosses into Python once for all questions of a survey, and"
        " rows are limited once.",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    frame = make_frame(parser.parse_args().rows)
    dp.enable_features("contrib", "honest-but-curious")
    with tempfile.TemporaryDirectory() as directory:
        scans(frame, Path(directory))
    in_memory(frame)
    surveys(frame.height // 10)


if __name__ == "__main__":
    main()
