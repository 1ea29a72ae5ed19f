"""Files of one kind each, as they are scanned, and files of Parquet for the command."""

import gzip
from pathlib import Path

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes_office.files.csv_text import FileError
from opendp_bayes_office.files.files import EXTENSIONS, Source, frame_of, scannable, source
from opendp_bayes_office.files.reading import Reading, Steps
from opendp_bayes_office.files.tables import Table
from tests.helpers.command_line import run


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


def compressed(text: bytes, extension: str) -> bytes:
    if extension.endswith(".gz"):
        return gzip.compress(text)
    return text


@pytest.mark.parametrize("extension", [one for one, kind in EXTENSIONS.items() if kind == "CSV"])
def test_the_separator_is_that_of_the_extension_compressed_or_not(tmp_path, extension):
    path = tmp_path / f"votes{extension}"
    path.write_bytes(compressed(b"a,b\tc\n", extension))
    with scannable(source(path)) as found:
        assert found.header == (("a,b", "c") if "tsv" in extension else ("a", "b\tc"))


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


def test_the_command_reads_a_folder(tmp_path):
    for name, votes in (("a", ["no", "yes"]), ("b", ["yes", None])):
        pl.DataFrame({"vote": votes}).write_parquet(tmp_path / f"{name}.parquet")
    asked = ("--column", "vote", "--categories", "no,yes", "--nulls", "none", "--epsilon", "1e5")
    made = run("release", tmp_path, *asked, "-o", "-")
    assert ob.Release.from_json(made).counts == (1, 2, 1, 0)


def test_files_that_cannot_be_read_together_end_in_one_line(tmp_path):
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
    assert found.understood("x", 1) == label
    assert found.codebook("x", Steps(null_values=[label])) == ["no"]


#: By the type of a column of Parquet, codes that can be there, and some that never can.
CODES = {
    pl.Int64: (["0", "7", "-7", 7], ["-0", "007", "-07", "+7", "7.0", ""]),
    pl.Boolean: (["true", "false"], ["True", "1", ""]),
    pl.Enum(["a", "7"]): (["a", "7", 7], ["b", "07"]),
    pl.String: (["a", "007", ""], []),
}


@pytest.mark.parametrize("dtype", CODES, ids=str)
def test_a_code_for_no_value_is_written_as_the_column_has_it(dtype, tmp_path):
    pl.DataFrame(schema={"x": dtype}).write_parquet(tmp_path / "x.parquet")
    found, (possible, impossible) = source(tmp_path / "x.parquet"), CODES[dtype]
    frame_of(found, {"x": Steps(null_values=possible)})
    for code in impossible:
        with pytest.raises(FileError, match="can never be a value"):
            frame_of(found, {"x": Steps(null_values=[code])})
