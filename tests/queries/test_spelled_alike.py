"""Labels and names that nobody can tell apart on a page are said to be so, before reading."""

import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes_office.commands.app import app
from tests.helpers.contexts import checked_context

COMPOSED, APART = "caf\u00e9", "cafe\u0301"
SAID = "differ in nothing but blanks around them or the form of Unicode"


def asked(column: str, labels: list[str], **others: str) -> Any:
    frame = pl.LazyFrame(schema={"drink": pl.String, COMPOSED: pl.String, **others})
    context = checked_context(frame)
    return ob.posterior(context.query(), column, categories=labels, nulls="n", unknown="u")


@pytest.mark.parametrize("labels", [[COMPOSED, APART], ["tea", "tea "], ["x", " x", "y"]])
def test_labels_that_are_spelled_alike_are_said(labels: list[str]) -> None:
    with pytest.warns(UserWarning, match=f"{SAID}; they are counted apart."):
        asked("drink", labels)


def test_names_that_are_spelled_alike_are_said() -> None:
    with pytest.warns(UserWarning, match=f"it and another column of the frame {SAID}."):
        asked(COMPOSED, ["a", "b"], **{APART: pl.String})
    with pytest.warns(UserWarning, match="column='drink': it and another column"):
        asked("drink", ["a", "b"], **{"drink ": pl.String})


@pytest.mark.parametrize("labels", [["Tea", "tea"], ["ss", "\u00df"], ["a b", "ab"]])
def test_others_are_not(labels: list[str]) -> None:
    """Negative control."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked("drink", labels)


def test_so_it_is_for_a_file(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(f"{COMPOSED},{APART},vote \nyes,no,yes\n", encoding="utf-8")

    def said(column: str) -> str:
        options = ["--column", column, "--categories", "yes,no", "--epsilon", "1"]
        return " ".join(CliRunner().invoke(app, ["release", str(path), *options]).output.split())

    assert f"it and another column of the file {SAID}." in said(APART)
    assert SAID not in said("vote ")
    assert "check spelling, capitals and blanks" in said("vote")
