"""The notebooks of the gallery run, cell by cell, and are kept without outputs."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opendp.mod import GLOBAL_FEATURES

from tests.helpers.command_line import run
from tests.helpers.sources import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
PICTURES = {
    "before_you_spend": 1,
    "poll_with_groups": 2,
    "register_by_quarter": 1,
    "survey_as_synthetic_records": 1,
}


def displayed(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell; what it displays at its end, as a notebook does."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else ast.Expr(ast.Constant(None))
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102
    expression = ast.fix_missing_locations(ast.Expression(last.value))
    return eval(compile(expression, "cell", "eval"), names)  # noqa: S307


@pytest.mark.usefixtures("coarse_errors", "short_chains", "pictures")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, as one that enabled no feature; its command line is run here, too."""
    from matplotlib import pyplot as plt

    def in_process(command: list[str], cwd: Path, **options: Any) -> SimpleNamespace:
        assert command[:3] == [sys.executable, "-m", "opendp_bayes_office"]
        with monkeypatch.context() as patch:
            patch.chdir(cwd)
            return SimpleNamespace(stdout=run(*command[3:]))

    html = SimpleNamespace(HTML=lambda text: SimpleNamespace(_repr_html_=lambda: text))
    monkeypatch.setitem(sys.modules, "IPython.display", html)
    monkeypatch.setattr(subprocess, "run", in_process)
    GLOBAL_FEATURES.clear()
    drawn, shown = 0, list[Any]()
    names: dict[str, Any] = {"display": shown.append}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            shown.append(displayed("".join(cell["source"]), names))
            drawn += len(plt.get_fignums())
            plt.close("all")
    if "place" in names:
        names["place"].cleanup()
    assert drawn == PICTURES[path.stem]
    assert any(one._repr_html_() for one in shown if hasattr(one, "_repr_html_")), "a table"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_a_run_left(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_every_notebook_is_in_the_gallery() -> None:
    page = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
    assert {path.stem for path in NOTEBOOKS} == set(PICTURES)
    assert [path.name for path in NOTEBOOKS if path.name not in page] == []
