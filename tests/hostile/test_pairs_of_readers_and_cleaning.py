"""Every kind of file × every two cleaning steps: the frame of a plain model, or a refusal."""

import gzip
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyreadstat
import pytest

from opendp_bayes_office.files.files import EXTENSIONS, frame_of, scannable, source
from opendp_bayes_office.files.reading import Reading, Steps

#: Texts and whole numbers, as records have them, each another number of times.
HELD = [("a", 1), (" a ", 2), ("-9", -9), ("-8", 1), ("b", -8), ("b", None), (None, 2)]
RECORDS = [pair for at, pair in enumerate((*HELD, ("", 1), ("  ", 3))) for _ in range(1 + at)]
#: Labels of whole numbers, where a file has them.
LABELS = {1: "one", -8: " refused"}
Value = str | int | None


def csv_of(separator: str) -> bytes:
    rows = ("t", "n"), *RECORDS, ("", "")
    lines = (separator.join("" if x is None else f'"{x}"' for x in row) for row in rows[:-1])
    return "\n".join((*lines, "", "")).encode()  # with an empty line


def frame() -> pl.DataFrame:
    return pl.DataFrame(RECORDS, {"t": pl.String, "n": pl.Int64}, orient="row")


def in_pandas() -> pd.DataFrame:
    return pd.DataFrame(RECORDS, columns=["t", "n"])


def of_statistics(writer: str, **more: Any) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        records = in_pandas()
        if writer == "write_dta":
            records["n"] = records["n"].astype("Int64")
        getattr(pyreadstat, writer)(records, str(path), **more)

    return write


def in_parts(path: Path) -> None:
    path.mkdir()
    for at in range(2):
        frame()[at::2].write_parquet(path / f"{at}.parquet")


@dataclass(frozen=True)
class Reader:
    """A kind of file: how it is written, and what there is to clean."""

    write: Callable[[Path], Any]
    is_text: bool = True
    has_labels: bool = False
    pads: bool = False


_LABELLED = {"variable_value_labels": {"n": LABELS}}
READERS = {
    "x.csv": Reader(lambda path: path.write_bytes(csv_of(","))),
    "x.tsv": Reader(lambda path: path.write_bytes(csv_of("\t"))),
    "x.csv.gz": Reader(lambda path: path.write_bytes(gzip.compress(csv_of(",")))),
    "x.parquet": Reader(lambda path: frame().write_parquet(path), is_text=False),
    "x.arrow": Reader(lambda path: frame().write_ipc(path), is_text=False),
    "folder": Reader(in_parts, is_text=False),
    "x.xlsx": Reader(lambda path: in_pandas().to_excel(path, index=False)),
    "x.sav": Reader(of_statistics("write_sav", **_LABELLED), has_labels=True, pads=True),
    "x.dta": Reader(of_statistics("write_dta", **_LABELLED), has_labels=True, pads=True),
    "x.xpt": Reader(of_statistics("write_xport"), pads=True),
}
STEPS: dict[str, dict[str, Any]] = {"trim": {"trim": True}, "null_values": {"null_values": ["-9"]}}
STEPS |= {"of_columns": {}, "labels": {"labels": True}}
EVERY = [*((one,) for one in STEPS), *combinations(STEPS, 2)]


def cleaned(reader: Reader, steps: tuple[str, ...], column: str, value: Value) -> Value:
    """A value after the steps, as a plain model has it; None for no value."""

    def read(given: Value) -> Value:
        if given is None:
            return None
        if "labels" in steps and column == "n" and given in LABELS:
            given = LABELS[int(given)]
        given = str(given)
        if reader.pads and column == "t":
            given = str(given).rstrip(" ")
        given = given.strip() if "trim" in steps else given
        return None if given == "" and (reader.is_text or "trim" in steps) else given

    codes = [*["-9"] * ("null_values" in steps), *["-8"] * ("of_columns" in steps)]
    return None if str(value).strip() in codes else read(value)


def wanted(reader: Reader, steps: tuple[str, ...]) -> Counter[tuple[Value, Value]]:
    rows = [
        (cleaned(reader, steps, "t", text), cleaned(reader, steps, "n", number))
        for text, number in RECORDS
    ]
    return Counter(rows)


def how_of(steps: tuple[str, ...]) -> Reading:
    return Reading(**{name: of for step in steps for name, of in STEPS[step].items()})


def without_use(reader: Reader, steps: tuple[str, ...]) -> list[str]:
    """The options that such a file refuses, as it calls them."""
    return ["labels"] if "labels" in steps and not reader.has_labels else []


def test_every_kind_of_file_and_every_step_is_there_and_taken() -> None:
    """Negative control: every step changes what is to be there."""
    kinds = {EXTENSIONS[".".join(["", *name.split(".")[1:]])] for name in READERS if "." in name}
    assert kinds == set(EXTENSIONS.values())
    of_files = {"separator", "encoding", "sheet", "rows_above", "skip_rows"}
    assert {*STEPS, *of_files} == {*Reading.__struct_fields__, "of_columns"}
    for name, reader in READERS.items():
        usual = wanted(reader, ())
        for step in STEPS:
            if not without_use(reader, (step,)):
                assert wanted(reader, (step,)) != usual, (name, step)


@pytest.mark.parametrize("name", READERS)
def test_a_frame_is_what_the_steps_make_of_the_file(name: str, tmp_path: Path) -> None:
    reader, path = READERS[name], tmp_path / name
    reader.write(path)
    for steps in [(), *EVERY]:
        if problems := without_use(reader, steps):
            with pytest.raises(ValueError, match="|".join(problems)):
                source(path, how_of(steps))
            continue
        with scannable(source(path, how_of(steps))) as found:
            found.complete()
            own = Steps(null_values=["-8"] * ("of_columns" in steps))
            rows = frame_of(found, {"t": own, "n": own}).collect()
            assert Counter(rows.rows()) == wanted(reader, steps), steps
            book = found.codebook("n", own)
        labels = [cleaned(reader, steps, "n", code) for code in sorted(LABELS)]
        assert book == [of for of in labels if of is not None] * ("labels" in steps), steps
