"""Files of one kind each, as they are scanned, and files of Parquet for the command."""

import random
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes_office.files.files import Source, frame_of, scannable, source
from opendp_bayes_office.files.reading import Reading, Steps
from opendp_bayes_office.files.tables import Table
from tests.helpers.command_line import run

pyreadstat = pytest.importorskip("pyreadstat")


# --- one file, as it is scanned
def test_every_value_of_csv_is_text_and_every_line_is_read_as_far_as_it_goes(tmp_path):
    """Types that are inferred would depend on the records, and a line could make a release fail."""
    path = tmp_path / "votes.csv"
    path.write_bytes(b"name,vote\n1,2\n3,4,5\n6\n\xff,7\n")
    with scannable(source(path, Reading(encoding="latin-1"))) as found:
        found.complete()
        frame = found.scan().collect()
    assert set(frame.schema.values()) == {pl.String}
    assert frame.rows() == [("1", "2"), ("3", "4"), ("6", None), ("\xff", "7")]


@pytest.mark.parametrize("extension", [".csv", ".parquet", ".arrow"])
def test_a_path_is_the_name_of_one_file_whatever_is_in_it(tmp_path, extension):
    kind = {".csv": "csv", ".parquet": "parquet", ".arrow": "ipc"}[extension]
    for name in ("votes[12]", "votes1", "votes*"):
        frame = pl.DataFrame({"file": [name]})
        getattr(frame, f"write_{kind}")(tmp_path / f"{name}{extension}")
    for name in ("votes[12]", "votes*"):
        with scannable(source(tmp_path / f"{name}{extension}")) as found:
            found.complete()
            assert found.scan().collect().to_series().to_list() == [name]


@pytest.mark.parametrize("kind", [pl.UInt64, pl.Int128, pl.UInt128])
def test_whole_numbers_beyond_64_bits_are_other_values_and_not_none(kind, tmp_path):
    largest = 2**64 - 1 if kind == pl.UInt64 else 2**100
    frame = pl.DataFrame({"n": [1, 2, 2, largest, 2**63, None]}, schema={"n": kind})
    path = tmp_path / "wide.parquet"
    frame.write_parquet(path)
    columns = ("--column", "n", "--categories", "1,2", "--nulls", "none")
    made = ob.Release.from_json(run("release", path, *columns, "--epsilon", "1e5", "-o", "-"))
    found = dict(zip(made.categories, made.counts, strict=True))
    assert found == {"1": 1, "2": 2, "none": 1, "other": 2}


def test_the_command_reads_a_folder_or_ends_in_one_line(tmp_path):
    for name, votes in (("a", ["no", "yes"]), ("b", ["yes", None])):
        pl.DataFrame({"vote": votes}).write_parquet(tmp_path / f"{name}.parquet")
    asked = ("--column", "vote", "--categories", "no,yes", "--nulls", "none", "--epsilon", "1e5")
    made = run("release", tmp_path, *asked, "-o", "-")
    assert ob.Release.from_json(made).counts == (1, 2, 1, 0)
    pl.DataFrame({"vote": ["yes"]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"vote": [1]}).write_parquet(tmp_path / "b.parquet")
    said = run(
        "release", tmp_path, "--column", "vote", "--categories", "yes", "--epsilon", "1", code=2
    )
    assert said.startswith("opendp-bayes: data=")
    assert "not all its files have the same columns" in said


@pytest.mark.parametrize("trim", [True, False])
def test_value_labels_are_trimmed_as_values_are(trim: bool) -> None:
    table = Table(("x",), lambda: iter(()), labels={"x": {"1": " yes ", "2": "no"}})
    found = Source(Path("x.sav"), "x.sav", ".sav", Reading(trim=trim), table=table)
    label = "yes" if trim else " yes "
    assert found.labels("x") == {"1": label, "2": "no"}
    assert found.codebook("x", Steps(null_values=[label])) == ["no"]


#: Columns by the kind of file, with values of each and what they read, and value labels.
WORDS = ["a", " a", "b ", "NA", " ", "", None, "-9", "true", "2026-05-01"]
COLUMNS: dict[str, dict[str, tuple[list[Any], Any, dict[Any, str]]]] = {
    ".parquet": {
        "text": (WORDS, pl.String, {}),
        "of many": (WORDS, pl.Categorical, {}),
        "listed": (["a", "NA", "-9", None], pl.Enum(["NA", "b", "a", "-9"]), {}),
        "flag": ([True, False, None], pl.Boolean, {}),
        "small": ([1, 2, -9, None], pl.Int8, {}),
        "large": ([1, 2**64 - 1, None], pl.UInt64, {}),
        "day": ([date(2026, 5, 1), date(1, 1, 1), None], pl.Date, {}),
    },
    ".sav": {
        "text": (WORDS, None, {"a": "Ann", "NA": " none", "b": "a"}),
        "code": ([1.0, 2.0, -9.0, 3.0, 7.0, None], None, {2: "two", 1: " a", -9: "NA", 7: "-8"}),
        "number": ([1.5, -9.0, 0.1, None], None, {-9: "nothing", 1.5: "half"}),
    },
}
COLUMNS[".dta"] = {
    "text": (WORDS, None, {}),
    "code": ([1, 2, -9, 3, 7, None], None, {2: "two", 1: " a", -9: "NA", 7: "-8"}),
}
#: Codes for no value that some columns have, and what is counted elsewhere.
CODES_OF = {
    "text": ["NA", "a", "b", "-9", -9, "none", "Ann"],
    "of many": ["NA", "b"],
    "listed": ["NA", "-9", -9],
    "flag": ["true"],
    "small": ["-9", 1],
    "large": [1, str(2**64 - 1)],
    "day": ["2026-05-01"],
    "code": [-9, "NA", "2", "two", "a", "-8", 3],
    "number": ["-9", "1.5"],
}
RECODES: list[dict[str, Any]] = [{}, {}, {"a": "A", "2": 1, "true": False, "two": "a"}]


def written(path: Path) -> None:
    """A file with the columns of its kind."""
    columns = COLUMNS[path.suffix]
    if path.suffix == ".parquet":
        values = [pl.Series(name, of, dtype) for name, (of, dtype, _) in columns.items()]
        pl.concat([of.to_frame() for of in values], how="horizontal").write_parquet(path)
        return
    types = {name: "Int64" for name in columns if path.suffix == ".dta" and name != "text"}
    values = {name: pd.Series(of, dtype=types.get(name)) for name, (of, _, _) in columns.items()}
    frame = pd.DataFrame(values)
    frame["text"] = frame["text"].fillna("")
    writer = pyreadstat.write_sav if path.suffix == ".sav" else pyreadstat.write_dta
    labels = {name: of for name, (_, _, of) in columns.items() if of}
    writer(frame, str(path), variable_value_labels=labels)


def cleaned(value: Any, labels: dict[str, str], how: Reading, steps: Steps) -> Any:
    """The definition, of one value."""
    if value is None:
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text.removesuffix(".0") if isinstance(value, float) else text
    if how.trim:
        text = text.strip()
    label = labels.get(text, text)
    label = label.strip() if how.trim else label
    codes = {str(code) for code in [*how.null_values, *steps.null_values]}
    if {text, label} & codes or (how.trim and text == ""):
        return None
    recoded = str(steps.recode.get(label, label))
    return recoded.lower() if isinstance(steps.recode.get(label), bool) else recoded


@pytest.mark.parametrize("extension", COLUMNS)
def test_steps_with_a_value_are_taken_one_after_the_other_in_every_file(extension, tmp_path):
    """Blanks, codes of the file and of the column, labels and recodes, with every type."""
    path, draws, columns = tmp_path / f"x{extension}", random.Random(1), COLUMNS[extension]
    written(path)
    for _ in range(60):
        of_file = draws.choice([[], ["NA"], ["-9", "NA"], [-9]])
        how = Reading(
            trim=draws.choice([True, False]),
            labels=extension != ".parquet" and draws.choice([True, False]),
            null_values=of_file,
        )
        asked = draws.sample(list(columns), draws.randint(1, len(columns)))
        steps = {
            name: Steps(
                null_values=draws.sample(CODES_OF[name], draws.choice([0, 0, 1])),
                recode=draws.choice(RECODES),
            )
            for name in asked
        }
        others = [name for name in columns if name not in asked]
        persons = draws.sample(others, min(1, len(others)))
        with scannable(source(path, how)) as found:
            frame = frame_of(found, steps, *persons)
            found.complete()
            records = frame.collect()
        for name in asked + persons:
            values, of = columns[name][0], columns[name][2] if name in asked else {}
            labels = {str(code): label for code, label in of.items()} if how.labels else {}
            codes = how if name in asked else Reading(trim=how.trim)
            if extension != ".parquet":  # where texts are filled up with blanks
                texts = (of.rstrip(" ") if isinstance(of, str) else of for of in values)
                values = [None if text == "" else text for text in texts]
            wanted = [cleaned(value, labels, codes, steps.get(name, Steps())) for value in values]
            assert records[name].to_list()[: len(values)] == wanted, (name, how, steps)
