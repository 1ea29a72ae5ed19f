"""What is written for people carries nothing out in a spreadsheet; for programs labels stay."""

import json
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
    noise = ob.LaplaceParameters(1.0, total="private")
    cells = (("a", 1), ("a", 2), ("b", 1), ("b", 2))
    axes = ("=1+1", "@SUM(A1)")
    table = ob.Release((9, 8, 7, 6), cells, (1.0,) * 4, noise, guarantee(None), axes)
    (tmp_path / "table.json").write_text(table.to_json())
    for source, labels in ((file, ["=1+1", "http://example.org/"]), ("table.json", axes)):
        run("show", tmp_path / source, "-o", tmp_path / f"{Path(source).stem}.xlsx")
        with zipfile.ZipFile(tmp_path / f"{Path(source).stem}.xlsx") as book:
            sheet = book.read("xl/worksheets/sheet1.xml").decode()
            texts = book.read("xl/sharedStrings.xml").decode()
        assert "<f>" not in sheet
        assert "hyperlink" not in sheet
        assert all(f">{label}<" in texts for label in labels)
