"""What is written for people carries nothing out in a spreadsheet; for programs labels stay."""

import csv
import json
import re
import zipfile
from pathlib import Path

import polars as pl
import pytest

import opendp_bayes as ob
from tests.helpers.command_line import run
from tests.helpers.releases import guarantee, release

LABELS = (
    *("=1+1", "+1+cmd|' /C calc'!A0", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "\n@A1", "  =1+1"),
    *("\uff1d1+1", "a;=1+1", "a\n+A1", '",=1+1,"', "http://example.org/", "-5", "+1.5", "plain"),
)
SAFE = {"http://example.org/", "-5", "+1.5", "plain"}
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def formulas(text: str) -> list[str]:
    """Cells that a spreadsheet would carry out, where commas, semicolons or tabs divide a line."""
    cells = [cell for row in csv.reader(text.splitlines(keepends=True)) for cell in row]
    cells += [part for cell in cells for part in re.split(r"[;\t\r\n]", cell)]
    return [cell for cell in cells if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)]


@pytest.fixture
def survey() -> ob.Survey:
    """Questions, groups and categories with such names, and an integer below 0."""
    one = release(tuple(range(len(LABELS))), LABELS)
    numbers = release((3, 4), (-1, 1))
    return ob.Survey(("=A1", "-1+2"), (one, numbers))


@pytest.fixture
def file(survey: ob.Survey, tmp_path: Path) -> Path:
    path = tmp_path / "survey.json"
    path.write_text(survey.to_json())
    return path


def test_a_table_of_csv_has_no_formula(file: Path, survey: ob.Survey, tmp_path: Path) -> None:
    run("show", file, "-o", tmp_path / "table.csv")
    text = (tmp_path / "table.csv").read_bytes().decode()
    assert formulas(text) == []
    rows = list(csv.DictReader(text.splitlines(keepends=True)))
    shown = [row["category"] for row in rows]
    assert set(shown) >= SAFE | {"'=1+1", "'@SUM(A1)", "'-1+1", "-1", "1"}
    wanted = survey.to_frame()
    assert [float(row["mean"]) for row in rows] == wanted["mean"].to_list()


def test_headings_of_a_table_of_csv_are_no_formulas(tmp_path: Path) -> None:
    noise = ob.LaplaceParameters(1.0, total="private")
    cells = (("a", 1), ("a", 2), ("b", 1), ("b", 2))
    axes = ("=1+1", "@SUM(A1)")
    table = ob.Release((9, 8, 7, 6), cells, (1.0,) * 4, noise, guarantee(None), axes)
    (tmp_path / "table.json").write_text(table.to_json())
    run("show", tmp_path / "table.json", "-o", tmp_path / "table.csv")
    text = (tmp_path / "table.csv").read_text()
    assert formulas(text) == []
    assert {"'=1+1", "'@SUM(A1)"} <= set(next(csv.reader(text.splitlines())))


def test_other_tables_and_synthetic_records_are_data(file, survey, tmp_path: Path) -> None:
    """A program that reads a copy reads the labels of the data."""
    rows = json.loads(run("show", file, "-o", "-"))
    assert [row["category"] for row in rows] == [*LABELS, "-1", "1"]
    assert survey.to_frame()["category"].to_list() == [*LABELS, "-1", "1"]
    labels = ("=1+1", "@A1", "plain")
    one = release((500, 300, 200), labels)
    paths = ob.Survey(("a",), (one,)).posterior.write_synthetic(tmp_path, 1, format="csv")
    assert set(pl.read_csv(paths[0])["a"]) == set(labels)


def test_a_workbook_has_neither_formulas_nor_links(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    run("show", file, "-o", tmp_path / "table.xlsx")
    with zipfile.ZipFile(tmp_path / "table.xlsx") as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
        texts = book.read("xl/sharedStrings.xml").decode()
    assert "<f>" not in sheet
    assert "hyperlink" not in sheet
    assert ">=1+1<" in texts
    assert ">http://example.org/<" in texts


def test_a_table_written_as_it_is_is_noticed(survey: ob.Survey) -> None:
    """Negative control."""
    found = formulas(survey.to_frame().write_csv())
    assert {"=1+1", "@SUM(A1)", "-1+1", "=A1", "-1+2"} <= set(found)
    assert "-5" not in found
