"""Every `>>>` of a page or a docstring is shown as code, and so is run by the tests."""

import ast
import re
from inspect import cleandoc
from pathlib import Path

import pytest

from tests.helpers.sources import PAGES, SOURCES

_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


def outside_of_code(page: str) -> list[str]:
    """Examples of a page that Markdown shows as a quotation of a quotation of a quotation."""
    return re.findall(r"^ *>>> .*", _FENCED.sub("", page), re.MULTILINE)


def inside_of_text(docstring: str) -> list[str]:
    """Paragraphs of a docstring with an example that is not their beginning, which are shown as
    text.
    """
    parts = cleandoc(docstring).split("\n\n")
    return [part for part in parts if ">>> " in part and not part.startswith(">>> ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_examples_of_pages_are_code(page: Path) -> None:
    assert not outside_of_code(page.read_text(encoding="utf-8"))


def test_examples_of_docstrings_begin_a_paragraph() -> None:
    docstrings = [
        ast.get_docstring(node, clean=False) or ""
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, _DOCUMENTED)
    ]
    assert sum(">>>" in docstring for docstring in docstrings) > 50
    assert not [part for docstring in docstrings for part in inside_of_text(docstring)]


def test_others_are_noticed() -> None:
    """Negative control."""
    assert outside_of_code("Text\n\n>>> 1 + 1\n2\n") == [">>> 1 + 1"]
    assert outside_of_code("```python\n>>> 1 + 1\n2\n```\n") == []
    assert inside_of_text("Text.\n\n    # Why\n    >>> 1 + 1\n    2") == ["# Why\n>>> 1 + 1\n2"]
    assert inside_of_text("Text.\n\n    >>> 1 + 1\n    2\n    >>> 2 + 2\n    4") == []
