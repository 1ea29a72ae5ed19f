"""Every proof is named by the function that rests on it, and has a test that would notice."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.helpers.sources import ROOT
from tests.helpers.trusted_page import anchor_of, is_defined

#: The page, whichever folder it is in.
[PAGE] = (ROOT / "docs").rglob("proofs.md")
TEXT = PAGE.read_text(encoding="utf-8")
#: Headings under which nothing is proved that a function of this package rests on; plans of other
#: engines are the plugin's.
WITHOUT = {"Notation", "Errors in the papers", "Functions and tests", "Sources"}
WITHOUT |= {"Plans of other engines"}
_HEADING = re.compile(r"^###? (.*)$", re.MULTILINE)
_ROW = re.compile(r"^\| \[(.*?)\]\(#(.*?)\) \| `(.*?)` \| `(.*?)` \|$", re.MULTILINE)
HEADINGS = [heading for heading in _HEADING.findall(TEXT) if heading not in WITHOUT]
ROWS = _ROW.findall(TEXT)


@cache
def docstring(place: str) -> str:
    """Of `module.py::Class.method`, or of the module, in one line; or empty."""
    path, _, name = place.partition("::")
    research = path.startswith("opendp_bayes_research/")
    file = ROOT / ("plugins/opendp-bayes-research" if research else "opendp_bayes") / path
    node: ast.AST | None = ast.parse(file.read_text("utf-8")) if file.is_file() else None
    for part in name.split(".") if name else []:
        inside = ast.iter_child_nodes(node) if node is not None else ()
        node = next((one for one in inside if getattr(one, "name", None) == part), None)
    found = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
    return " ".join((ast.get_docstring(node) or "").split()) if found else ""


def names(text: str, heading: str) -> bool:
    """Whether a docstring names a proof, after the name of the page."""
    _, page, after = text.partition("proofs.md`")
    return bool(page) and re.search(rf'"{re.escape(heading)}[.,]?"', after) is not None


def test_every_proof_has_a_row_and_a_docstring() -> None:
    """Also those that stand in no row, whether a heading or the bold beginning of a paragraph."""
    assert len(HEADINGS) > 20
    assert [row[0] for row in ROWS] == HEADINGS
    assert [row[1] for row in ROWS] == [anchor_of(heading) for heading in HEADINGS]
    bold = (one.rstrip(".") for one in re.findall(r"^\*\*(.*?)\*\*", TEXT, re.MULTILINE))
    known = {*HEADINGS, *WITHOUT, *bold}
    every = {one: cited(one) for one in (ROOT / "opendp_bayes").rglob("*.py")}
    assert {path.name: said for path, said in every.items() if not set(said) <= known} == {}


@pytest.mark.parametrize(("heading", "anchor", "function", "test"), ROWS)
def test_a_proof_is_named_by_its_function_and_has_its_test(
    heading: str, anchor: str, function: str, test: str
) -> None:
    assert names(docstring(function), heading), f"{function} must name {heading!r}"
    assert is_defined(test), test


def cited(path: Path) -> list[str]:
    """Proofs that the docstrings of a module name."""
    text = " ".join(path.read_text("utf-8").split())
    lists = re.findall(r'proofs\.md`,((?: (?:and )?"[^"]+",?)+)', text)
    return [name.rstrip(".,") for each in lists for name in re.findall(r'"([^"]+)"', each)]


def test_what_is_not_named_is_noticed() -> None:
    """Negative control."""
    place = "mechanisms/laplace_parameters.py::LaplaceParameters.proven_loss"
    assert names(docstring(place), "Laplace noise")
    assert not names(docstring(place), "K-norm noise")
    assert docstring("mechanisms/laplace_parameters.py::LaplaceParameters.no_such") == ""
    assert docstring("mechanisms/no_such.py::proven_loss") == ""
    assert not names('See "Counts" of `docs/research/proofs.md`.', "Counts")
    assert not is_defined("tests/test_proofs_page.py::test_that_is_not_there")
    assert "Laplace noise" in cited(ROOT / "opendp_bayes/mechanisms/laplace_parameters.py")
