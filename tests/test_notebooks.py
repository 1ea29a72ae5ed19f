"""The notebooks of the gallery run, cell by cell, and are kept without outputs."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.sources import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
PICTURES = {
    "before_you_spend": 1,
    "poll_with_groups": 2,
    "register_by_quarter": 1,
    "survey_as_synthetic_records": 2,
}


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """One process for all notebooks, which takes seconds to start and to load what they import."""
    pytest.importorskip("ipykernel")
    managers = pytest.importorskip("jupyter_client.manager")
    manager = managers.AsyncKernelManager(kernel_name="python3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        yield manager
    if manager.has_kernel:
        asyncio.run(manager.shutdown_kernel(now=True))


#: What one notebook leaves to the next in the same process: names, and features of OpenDP. What
#: chains find, and how large errors are, is shown and not measured.
FORGET = """
import pytest
from tests.helpers.coarsened import coarsen
from tests.helpers.shortened import shorten
coarsen(setattr)
shorten(pytest.MonkeyPatch())
%reset -f
import opendp.mod
opendp.mod.GLOBAL_FEATURES.clear()
del opendp
"""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path: Path, kernel: Any) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(FORGET))
    client = nbclient.NotebookClient(notebook, km=kernel, timeout=600)
    client.execute()
    client.kc.stop_channels()
    kinds = [
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    ]
    assert kinds.count("image/png") == PICTURES[path.stem]
    assert "text/html" in kinds, "a table"


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
