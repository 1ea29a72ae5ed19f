"""Resident memory of one process over many releases through one Context."""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import numpy as np
import opendp.prelude as dp
import polars as pl
from reporting import table

import opendp_bayes as ob

EVERY = 50


@contextmanager
def in_memory(frame: pl.DataFrame) -> Iterator[pl.LazyFrame]:
    yield frame.lazy()


def resident() -> float:
    """Resident memory of this process in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def measure(kind: str, rows: int, releases: int) -> list[object]:
    """Resident memory after every `EVERY` releases, and the mean time of one."""
    dp.enable_features("contrib", "honest-but-curious")
    codes = np.random.default_rng(0).integers(10, size=rows)
    frame = pl.DataFrame(
        {
            "category": (
                pl.Series(codes.astype(np.uint32)).cast(
                    pl.Enum([f"category {i}" for i in range(10)])
                )
            ),
            "other": codes,
        }
    )
    with (ob.on_disk if kind == "on_disk" else in_memory)(frame) as lazy:
        context = dp.Context.compositor(
            data=lazy,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=releases,
        )
        memory = [resident()]
        start = perf_counter()
        for i in range(1, releases + 1):
            ob.posterior(context.query(), "category", nulls="missing").release()
            if i % EVERY == 0:
                memory.append(resident())
        each = 1e3 * (perf_counter() - start) / releases
    return [kind, *memory, 1e3 * (memory[-1] - memory[1]) / (releases - EVERY), each]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--releases", type=int, default=300)
    arguments = parser.parse_args()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        rows = list(
            pool.map(
                partial(measure, rows=arguments.rows, releases=arguments.releases),
                ("on_disk", "in-memory LazyFrame"),
            )
        )
    table(
        f"Resident memory over {arguments.releases} releases, {arguments.rows:,} rows",
        [
            "data",
            *(f"after {i}, MB" for i in range(0, arguments.releases + 1, EVERY)),
            "growth, kB a release",
            "ms a release",
        ],
        rows,
        "Releases of the posterior of one Enum column (k=10) of a frame with an Int64 column"
        f" besides, through one Context. Growth is from release {EVERY} on.",
    )


if __name__ == "__main__":
    main()
