"""Statistical files and workbooks that others wrote, also those of `files_of_others.zip`."""

import datetime
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest
import xlsxwriter

import opendp_bayes as ob
from opendp_bayes.trusted.contexts import CheckedContext
from opendp_bayes_office.commands.options import has_labels
from opendp_bayes_office.files import tables
from opendp_bayes_office.files.files import EXTENSIONS, read
from tests.helpers.asked_of_files import records_of
from tests.helpers.command_line import run
from tests.helpers.contexts import checked_context
from tests.helpers.sources import ROOT

pyreadstat = pytest.importorskip("pyreadstat")
OTHERS = zipfile.ZipFile(ROOT / "tests" / "helpers" / "files_of_others.zip")
#: Hardly any noise.
SURE = ("--epsilon", "1e5", "-o", "-")


@pytest.fixture
def of_others(tmp_path: Path) -> Callable[[str], Path]:
    def extracted(name: str) -> Path:
        return Path(OTHERS.extract(name, tmp_path))

    return extracted


def opened(data: Any, **how: Any) -> CheckedContext:
    """A Context over a frame, or over what the office reads of a file."""
    frame = read(data, **how) if isinstance(data, Path) else data
    return checked_context(frame, loss={"epsilon": 1e5})


def counts(frame: Any, column: str, categories: Any, **arguments: Any) -> tuple[int, ...]:
    """The counts of the labels, of nulls and of others."""
    query = opened(frame, **arguments).query()
    asked = ob.posterior(query, column, categories=categories, nulls="none", unknown="rest")
    return asked.release().counts


def texts(path: Path, *, sheet: str | None = None, **how: Any) -> pl.DataFrame:
    """What the command reads."""
    return records_of(path, sheet=sheet, **how)


def counted(path: Path, *options: object) -> dict[Any, int]:
    """The counts that `release` gives."""
    release = ob.Release.from_json(run("release", path, *options, *SURE))
    return dict(zip(release.categories, release.counts, strict=True))


def asked_of(path: Path, head: str, column: str, of: str = "", *, code: int = 0) -> Any:
    """What `run` says of a specification, or the counts that it gives."""
    question = path.with_name("question.toml")
    question.write_text(
        f'title = "T"\n{head}\n[privacy]\nepsilon = 1e5\n[columns."{column}"]\n{of}\n'
        f'[[results]]\ncolumn = "{column}"\n'
    )
    said = run("run", question, path, *(["-o", "-"] if code == 0 else []), code=code)
    if code:
        return said
    release = ob.Release.from_json(said)
    return dict(zip(release.categories, release.counts, strict=True))


# --- Files that others wrote


def test_numbers_of_sas_have_labels_too(of_others, monkeypatch):
    """The catalogues that others wrote have texts alone."""
    catalogue, path = of_others("test_formats_win.sas7bcat"), of_others("missing_test.sas7bdat")
    of_a = {"A": {"A": "missing", 1.0: "one"}}
    original = pyreadstat.read_sas7bdat

    def described(*given: Any, **options: Any) -> Any:
        records, found = original(*given, **options)
        found.variable_to_label = {"var1": "A", "var9": "A"}
        return records, found

    monkeypatch.setattr(pyreadstat, "read_sas7bdat", described)
    labels = type("Labels", (), {"value_labels": of_a})
    monkeypatch.setattr(pyreadstat, "read_sas7bcat", lambda *_, **__: (None, labels))
    assert texts(path, labels=catalogue.name).row(0) == (None,) * 8 + ("one",)


def test_a_catalogue_of_something_else_is_refused(of_others, tmp_path):
    data, sample = of_others("test_data_linux.sas7bdat"), of_others("sample.sas7bdat")
    catalogue = of_others("test_formats_linux.sas7bcat").name
    for path, labels, message in (
        (sample, catalogue, f"data={catalogue}: has labels for none of the columns of sample.sas7"),
        (data, "none.sas7bcat", "data=none.sas7bcat: cannot be read as a catalogue of SAS"),
        (data, data.name, "data=test_data_linux.sas7bdat: cannot be read as a catalogue of SAS"),
    ):
        said = asked_of(path, f'labels = "{labels}"', "SEXA", "categories = ['x']", code=2)
        assert message in said
    said = asked_of(data, "labels = true", "SEXA", "categories = ['x']", code=2)
    assert "=True: is for SPSS and Stata" in said
    assert "labels='formats.sas7bcat'" in said
    said = asked_of(of_others("sample.sav"), f'labels = "{catalogue}"', "mylabl", code=2)
    assert "is for SAS, and sample.sav is SPSS" in said


# --- Files that packages write


def test_a_value_that_is_not_whole_is_another_one_whatever_its_neighbours(tmp_path):
    """Negative control: by the values of the column its type would change."""
    path, column = tmp_path / "x.sav", "code"
    for values, rest in (([1.0, 2.0, 2.0], 0), ([1.0, 2.0, 1.5], 1), ([1.5, 2.5, 3.5], 3)):
        written = pd.DataFrame({column: values})
        pyreadstat.write_sav(written, str(path), variable_format={column: "F8.0"})
        found = counted(path, "--column", column, "--categories", "1,2")
        assert found["other"] == rest
        frame = read(path)
        assert frame.schema == {column: pl.Int64()}
        assert frame[column].null_count() == rest
    assert pl.Series([1.5]).cast(pl.Int64).to_list() == [1]  # what a cast would say


def test_days_beyond_the_calendar_are_nulls_and_stop_nothing(tmp_path):
    path = tmp_path / "x.sav"
    written = pd.DataFrame({"on": [13_744_944_000.0, 1e300, -1e300, 9e15]})
    pyreadstat.write_sav(written, str(path), variable_format={"on": "DATE11"})
    assert texts(path)["on"].to_list() == ["2018-05-06", None, None, None]


STATISTICAL = [
    name
    for name in OTHERS.namelist()
    if Path(name).suffix in (".sav", ".zsav", ".dta", ".sas7bdat", ".xpt")
]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_more_records_than_are_in_memory_at_a_time_are_all_read(
    tmp_path, of_others, monkeypatch, size
):
    path = tmp_path / "x.sav"
    pyreadstat.write_sav(pd.DataFrame({"n": [float(n) for n in range(10)]}), str(path))
    others = [of_others(name) for name in STATISTICAL]
    usual = [texts(other) for other in others]
    monkeypatch.setattr(tables, "_BATCH", size)
    assert texts(path)["n"].to_list() == list(map(str, range(10)))
    assert len(others) > 10
    assert max(frame.height for frame in usual) >= size
    assert all(texts(other).equals(frame) for other, frame in zip(others, usual, strict=True))


# --- Workbooks
def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    with xlsxwriter.Workbook(path) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for at, row in enumerate(rows):
                sheet.write_row(at + 2, 1, row)
    return path


def test_cells_of_times_days_and_zero_are_read_as_they_are_meant(tmp_path):
    """Excel keeps a time alone as that of a day before its first, and a day as its midnight."""
    path = tmp_path / "cells.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        day, time = (book.add_format({"num_format": of}) for of in ("yyyy-mm-dd", "hh:mm"))
        sheet.write_datetime(0, 0, datetime.datetime(2026, 5, 1), day)
        for row, value in enumerate((datetime.time(12, 30), datetime.time(0, 0)), 1):
            sheet.write_datetime(row, 0, value, time)
        sheet.write_datetime(3, 0, datetime.datetime(2026, 5, 1, 12, 30), day)
        sheet.write_number(4, 0, -0.0)
        sheet.write_formula(5, 0, "=1/0", None, "#DIV/0!")
        sheet.write_rich_string(6, 0, "y", book.add_format({"bold": True}), "es")
        sheet.set_row(6, None, None, {"hidden": True})
    frame = texts(path)
    values = ["12:30:00", "00:00:00", "2026-05-01 12:30:00", "0"]
    # And a record, whose only cell is an error.
    assert frame["2026-05-01"].to_list() == [*values, None, "yes"]


def test_a_header_that_may_be_a_record_is_not_shown(tmp_path):
    path = workbook(tmp_path / "x.xlsx", {"S": [["secret", "hidden", 5], ["yes", "no", 6]]})
    message = run("release", path, "--column", "vote", "--categories", "yes,no", *SURE, code=2)
    assert "not in the first row of x.xlsx" in message
    assert "secret" not in message
    assert "its first line may be data" in run("init", path, code=2)
    plain = workbook(tmp_path / "z.xlsx", {"S": [["vote"], ["secret"]]})
    assert "[columns.vote]\n# categories = []" in run("init", plain, "--header")
    empty = workbook(tmp_path / "y.xlsx", {"S": []})
    assert "its first row must name the columns" in run("init", empty, "--header", code=2)


# --- Codes that the file describes
CODED = {
    "vote": {3.0: "green", 1.0: "red", 2.0: "blue", -1.0: "no answer", -2.0: "refused", 4.0: " "},
    "party": {"b": "Blue", "a": "Ann's", "c": ""},
}


def coded(path: Path) -> Path:
    """Labels are not written in the order of their codes; of the code 4 and of 'c' it is blank."""
    votes = [1.0, 2.0, 2.0, 3.0, 3.0, 3.0, -1.0, -1.0, -2.0, 4.0, 4.0, None]
    people = pd.DataFrame({"vote": votes, "party": ["a", "b", "c", *["b"] * 9]})
    if path.suffix == ".dta":
        labels = {"vote": {int(code): label for code, label in CODED["vote"].items()}}
        people["vote"] = people["vote"].astype("Int64")
        pyreadstat.write_dta(people, str(path), variable_value_labels=labels)
    else:
        pyreadstat.write_sav(people, str(path), variable_value_labels=CODED)
    return path


@pytest.mark.parametrize("extension", ["sav", "dta"])
def test_codes_of_every_batch_are_read_as_their_labels(tmp_path, monkeypatch, extension):
    path = coded(tmp_path / f"x.{extension}")
    usual = texts(path, labels=True)
    monkeypatch.setattr(tables, "_BATCH", 5)
    assert texts(path, labels=True).equals(usual)


def test_no_label_of_any_missing_range_is_a_category(tmp_path):
    """Whether a code is the lowest, the highest or within."""
    votes, span = [-2.0, -1.0, 1.0, 7.0, 8.0, 9.0, 10.0, 11.0], {"lo": 8, "hi": 10}
    labels = {-2: "two", -1: "one", 1: "red", 3: "blue"} | {at: f"{at}" for at in range(7, 12)}
    for ranges in ([-1, span], [span, -2], [-1, -2]):
        frame, of = pd.DataFrame({"vote": votes}), {"missing_ranges": {"vote": ranges}}
        of["variable_value_labels"] = {"vote": labels}
        pyreadstat.write_sav(frame, str(tmp_path / "x.sav"), **of)
        found = asked_of(tmp_path / "x.sav", "labels = true", "vote", 'nulls = "none"')
        missing = {code for code in (-1, -2) if code in ranges}
        missing |= {8, 9, 10} if span in ranges else set()
        known = {name: int(code in votes) for code, name in labels.items() if code not in missing}
        assert found == {**known, "none": len(missing), "other": 0}


#: What is refused before a record is read: a code in place of its label, and what is one value.
NEVER: dict[str, tuple[str, str, str]] = {
    "a code": ("", "categories = [1, 'red']", "categories: '1': is a code that the file calls 're"),
    "recoded code": ("", 'recode = { "1" = "blue" }', "recode: '1': is a code that the file calls"),
    "code of nulls": ("", "nulls = 3", "nulls: '3': is a code that the file calls 'green'"),
    "a category": ("null_values = [1]", "categories = ['red']", "'red' is also in null_values"),
    "recoded": ("", 'null_values = [1]\nrecode = { red = "blue" }', "'red' is also in null_values"),
}


@pytest.mark.parametrize("name", NEVER)
def test_a_code_in_place_of_its_label_and_what_is_one_value_are_refused(name, tmp_path):
    head, column, message = NEVER[name]
    path = coded(tmp_path / "x.sav")
    said = asked_of(path, f"labels = true\n{head}", "vote", column, code=2)
    assert message in " ".join(said.split())


@pytest.mark.parametrize("word", ["discover", "DROP"])
def test_a_word_of_a_specification_means_the_same_where_a_file_has_such_a_code(tmp_path, word):
    path = tmp_path / "x.sav"
    people = pd.DataFrame({"vote": ["a", word, "a"] * 30})
    pyreadstat.write_sav(people, str(path), variable_value_labels={"vote": {word: "label"}})
    column = 'categories = "discover"\nnulls = "DROP"'
    assert "must have a δ" in asked_of(path, "labels = true", "vote", column, code=2)
    written = path.with_name("question.toml").read_text().replace("1e5", "1e5\ndelta = 1e-6")
    path.with_name("question.toml").write_text(written)
    assert "label" in run("run", path.with_name("question.toml"), path, "-o", "-")


def test_a_text_that_is_a_code_and_the_label_of_another_one_is_the_label(tmp_path):
    path = tmp_path / "x.sav"
    people = pd.DataFrame({"vote": [1.0, 2.0, 2.0]})
    pyreadstat.write_sav(people, str(path), variable_value_labels={"vote": {1: "2", 2: "two"}})
    for listed in ('["2", "two"]', '[2, "two"]'):
        found = asked_of(path, "labels = true", "vote", f"categories = {listed}")
        assert found == {"2": 1, "two": 2, "other": 0}


def test_two_columns_of_one_name_are_refused_by_every_door(tmp_path):
    people = tmp_path / "x.csv"
    people.write_text("secret,vote,secret\na,yes,b\n")
    book = workbook(tmp_path / "x.xlsx", {"S": [["secret", "vote", "secret"], ["a", "yes", "b"]]})
    blanks = tmp_path / "y.csv"
    blanks.write_text("vote, vote\nyes,no\n")
    for path in (people, book):
        with pytest.raises(ValueError, match="two of its columns have") as raised:
            opened(path)
        assert "secret" not in str(raised.value)
        for command in (("release", path, "--column", "vote", "--categories", "yes", *SURE),
                        ("init", path, "--column", "vote")):  # fmt: skip
            said = run(*command, code=2)
            assert "two of its columns have one name" in " ".join(said.split())
            assert "secret" not in said
    assert "two of its columns" in asked_of(blanks, "trim = true", "vote", code=2)
    assert asked_of(blanks, "", "vote", 'categories = ["yes"]') == {"yes": 1, "other": 0}
    nameless = tmp_path / "z.csv"
    nameless.write_text("vote,,\nyes,1,2\n")
    assert counts(nameless, "vote", ["yes"]) == (1, 0, 0)


# --- What is refused
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "labels of SAS": ("sample.sas7bdat", {"labels": True}, "labels=True: is for SPSS and Stata, "),
    "labels of Excel": ("mixed.xlsx", {"labels": True}, "labels=True: is for SPSS and Stata, "),
    "a sheet of SPSS": ("sample.sav", {"sheet": "A"}, "sheet='A': is for a workbook, and sample"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_with_a_file_is_refused(name, of_others):
    file, arguments, message = REFUSED[name]
    with pytest.raises(ValueError, match="^" + message):
        opened(of_others(file), **arguments)


# --- Columns that nobody asks for
def test_columns_of_types_that_opendp_does_not_know_are_left_out(tmp_path):
    people = pl.DataFrame({"vote": ["yes", "no"], "on": [datetime.date(2026, 5, 1)] * 2})
    odd = people.with_columns(
        for_=pl.duration(days=1), list=pl.concat_list("vote"), none=None, raw=pl.lit(b"x")
    )
    odd.write_parquet(tmp_path / "x.parquet")
    dated = people.to_pandas()
    dated["on"] = [datetime.date(2026, 5, 1)] * 2
    for frame in (people, odd, odd.lazy(), tmp_path / "x.parquet", dated):
        assert counts(frame, "vote", ["yes", "no"]) == (1, 1, 0, 0)
    context = opened(odd)
    assert list(context.left_out) == ["for_", "list", "none", "raw"]
    message = "has type Duration, for which OpenDP has no domain, so it is left out of the Context"
    with pytest.raises(ValueError, match=f"^column='for_': {message}"):
        ob.posterior(context.query(), "for_", categories=["a"], nulls="n", unknown="o")
    query = opened(odd).query().filter(pl.col("for_").is_not_null())
    with pytest.raises(ValueError, match=f"^query: its plan asks for 'for_', which {message}"):
        ob.posterior(query, "vote", categories=["yes"], nulls="n", unknown="o")
    with pytest.raises(ValueError, match=r"^column='on': .*type object of pandas"):
        ob.posterior(opened(dated).query(), "on", categories=["a"], nulls="n", unknown="o")


def test_an_identifier_that_was_left_out_is_named_with_the_reason():
    frame = pd.DataFrame({"vote": ["yes"], "who": pd.Series(["a"], dtype=object)})
    with pytest.raises(ValueError, match=r"identifier='who': .*type object of pandas"):
        checked_context(frame, {"contributions": 1, "identifier": "who"})


def test_no_copy_of_a_file_stays(of_others, tmp_path, monkeypatch):
    path, folder = of_others("sample.sav"), tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    context = opened(path)
    assert len(list(folder.iterdir())) == 1  # what the Context reads, and no text
    del context
    assert not list(folder.iterdir())


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize(
    ("listed", "are_codes"),
    [([], False), (["1", "-2", "3.0"], True), (["1", "refused"], False), (["yes"], False)],
)
def test_codes_are_read_as_their_labels_unless_codes_are_listed(extension, listed, are_codes):
    wanted = EXTENSIONS[extension] in tables.LABELLED and not are_codes
    assert has_labels(Path(f"data{extension}"), listed) == wanted
    assert has_labels(Path(f"DATA{extension.upper()}"), listed) == wanted


def test_single_numbers_of_stata_have_the_digits_that_tell_them_apart(tmp_path: Path) -> None:
    path, values = tmp_path / "x.dta", [0.1, 2.5, 1 / 3, 16777216.0]
    pd.DataFrame({"x": values}, dtype="float32").to_stata(path, write_index=False)
    assert records_of(path)["x"].to_list() == ["0.1", "2.5", "0.33333334", "16777216"]
