"""The recipes of docs/reports.md for other programs: R, where it is there, and Quarto's cells."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import opendp_bayes as ob
from tests.helpers.sources import ROOT
from tests.surveys.test_survey import SURVEY

PAGE = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a survey, and the command line of this package on the path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "survey.json").write_text(SURVEY.to_json())
    command = tmp_path / "bin" / "opendp-bayes"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m opendp_bayes_office "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(ob.__file__).parents[1]), prepend=os.pathsep)
    return tmp_path


R = shutil.which("Rscript")


def _has_r() -> bool:
    return R is not None and not subprocess.call([R, "-e", "library(jsonlite)"])


@pytest.mark.skipif(not _has_r(), reason="needs R with jsonlite")
def test_r_reads_a_release_into_the_same_table(saved: Path) -> None:
    (function,) = re.findall(r"^```r\n(read_release.*?^}\n)", PAGE, re.MULTILINE | re.DOTALL)
    script = f"""{function}
table <- read_release("survey.json", level = 0.9)
cat(jsonlite::toJSON(table, digits = NA, na = "null"))
"""
    (saved / "read.R").write_text(script)
    asked = subprocess.run([R, "read.R"], capture_output=True, text=True, check=True)
    found = json.loads(asked.stdout)
    for row, expected in zip(found, SURVEY.to_frame(0.9).to_dicts(), strict=True):
        texts = ("question", "group", "category")
        assert [row.get(name) for name in texts] == [expected.pop(name) for name in texts]
        assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("pictures")
def test_the_cells_of_the_quarto_page_run(saved: Path) -> None:
    (page,) = re.findall(r"^````markdown\n(.*?)^````$", PAGE, re.MULTILINE | re.DOTALL)
    cells = re.findall(r"^```\{python\}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    for cell in cells:
        exec(cell, names)  # noqa: S102
    (inline,) = re.findall(r"`\{python\} (.*?)`", page)
    assert len(cells) == 2
    assert eval(inline, names) == "0.4"  # noqa: S307
    assert names["survey"] == SURVEY
    assert sum(ax.axison for ax in names["figure"].axes) == 3
    assert yaml_keys(page) == ["title", "format", "jupyter"]


def yaml_keys(page: str) -> list[str]:
    """The fields of the page's header."""
    _, header, _ = page.split("---\n", 2)
    return re.findall(r"^(\w+):", header, re.MULTILINE)
