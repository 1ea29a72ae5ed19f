"""A sheet as both renderers show it, and who may know what."""

import ast
import io
import re
from pathlib import Path

import pytest
from rich.console import Console

import opendp_bayes
from opendp_bayes.display import notebook, terminal
from opendp_bayes.display.sheet import (
    Body,
    Column,
    Conclusion,
    Marked,
    Sheet,
    Table,
    columns,
)

PACKAGE = Path(opendp_bayes.__file__).parent
TABLE = Table(
    (Column("Group", number=False), *columns("Thing", "Amount")),
    (
        Body((("a", "1"), ("[b]<c>", Marked("2", "bad"))), group="first"),
        Body((("a", "30"),), group="second"),
    ),
)
SHEET = Sheet(
    (TABLE,),
    notes=("A note.", ("By ", Marked("f(x)", "code"), ".")),
    title="Title",
    lead="Lead.",
    reading="How to read it.",
    refused=(("Other", "it cannot."),),
    conclusion=Conclusion("Passed", "it is well.", "good"),
)


def on_terminal(sheet: Sheet, *, colours: bool = False) -> str:
    file = io.StringIO()
    system = "standard" if colours else None
    console = Console(file=file, width=60, force_terminal=colours, color_system=system)
    console.print(terminal.rendered(sheet))
    return file.getvalue()


def test_the_terminal_shows_everything_but_how_to_read_it() -> None:
    lines = [line.rstrip() for line in on_terminal(SHEET).splitlines() if line.strip()]
    assert lines[:2] == ["Title", "Lead."]
    rows = [line.split() for line in lines[2:-4] if "─" not in line]
    assert rows == [
        ["Group", "Thing", "Amount"],
        ["first", "a", "1"],
        ["[b]<c>", "2"],
        ["second", "a", "30"],
    ]
    assert lines[-4:] == [
        "A note.",
        "By f(x).",
        "Other cannot be used. it cannot.",
        "Passed: it is well.",
    ]


def test_news_have_colours_where_there_are_any() -> None:
    shown = on_terminal(SHEET, colours=True)
    assert re.search(r"\x1b\[1;31m *2", shown)
    assert "\x1b[1;32mPassed" in shown


def test_a_notebook_shows_everything_with_the_conclusion_first() -> None:
    shown = notebook.rendered(SHEET)
    below = shown.partition("</table></div>")[2]
    assert below.startswith(
        '<div style="max-width: 48em; margin: 0.7em 0"><strong>Passed:</strong>'
    )
    assert (
        "it is well. Title. Lead. A note. By <code>f(x)</code>. How to read it. <details><summary>"
        "Cannot be used: 1</summary><ul><li>Other: it cannot.</li></ul></details>" in below
    )
    assert "[b]&lt;c&gt;" in shown
    assert "<strong>2</strong>" in shown
    assert shown.count("rowgroup") == 2


@pytest.mark.parametrize("render", [on_terminal, notebook.rendered])
def test_what_is_missing_leaves_nothing_behind(render: object) -> None:
    shown = render(Sheet((Table(columns("A", "B"), (Body((("x", "1"),)),)),)))  # type: ignore[operator]
    for absent in ("None", "Cannot", "cannot", "<strong>", "code"):
        assert absent not in shown


@pytest.mark.parametrize("name", ["sheet", "terminal", "notebook", "progress"])
def test_what_shows_a_sheet_knows_no_result(name: str) -> None:
    tree = ast.parse((PACKAGE / "display" / f"{name}.py").read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {module for module in imported if str(module).startswith("opendp_bayes")}
    assert ours <= {"opendp_bayes.display.sheet", "opendp_bayes.display.terminal"}
