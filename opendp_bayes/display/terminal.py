"""A sheet on the terminal, and what is being done, with rich."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from html import escape
from importlib import import_module
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from opendp_bayes.display.sheet import CONTROLS, Cell, Marked, Sheet, Table, parts, shortened

_TONES = {"code": "", "good": "green", "bad": "bold red", "doubtful": "bold yellow"}
_WEIGHTS = {"plain": "", "strong": "bold", "faint": "dim"}
#: No column of texts is narrower, unless they are.
_NARROWEST = 6
#: Characters between two columns.
_BETWEEN = 3
#: Whether something is said to be done already.
_SHOWN: ContextVar[bool] = ContextVar("_SHOWN", default=False)


def rendered(sheet: Sheet) -> Group:
    """Everything on the sheet but `reading`, the conclusion last.

    In a narrow terminal texts take more lines, and numbers do not. Where these alone are too wide,
    so is the table, and no digit is left out: print it with `crop=False`.
    """
    return Group(*_pieces(sheet))


@contextmanager
def shown_while(what: str) -> Iterator[None]:
    """A block that shows what is being done, where somebody looks on: `progress.waiting`."""
    console = Console(stderr=True)
    if _SHOWN.get() or not (console.is_terminal or console.is_jupyter):
        yield
        return
    before = _SHOWN.set(True)
    try:
        if console.is_jupyter:
            with _in_notebook(f"{what} …"):
                yield
        else:
            columns = SpinnerColumn(), TextColumn("{task.description}", markup=False)
            with ExitStack() as opened:
                with suppress(OSError):  # a number of its own: libraries may write nothing to its
                    number = os.dup(console.file.fileno())
                    kept = open(number, "w", encoding=console.encoding)  # noqa: SIM115
                    console.file = opened.enter_context(kept)
                waits = Progress(*columns, TimeElapsedColumn(), console=console, transient=True)
                opened.enter_context(waits).add_task(what, total=None)
                yield
    finally:
        _SHOWN.reset(before)


@contextmanager
def _in_notebook(text: str) -> Iterator[None]:
    """A block below whose cell there is a text for as long as it takes; rich needs ipywidgets."""
    notebook: Any = import_module("IPython.display")
    both = {"text/html": f"<em>{escape(text)}</em>", "text/plain": text}
    shown = notebook.display(both, raw=True, display_id=True)
    try:
        yield
    finally:
        if shown is not None:
            shown.update(dict.fromkeys(both, ""), raw=True)


def _text(text: str, style: str = "") -> Text:
    """A text without the characters that a terminal would take for commands."""
    return Text(CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text), style)


def _pieces(sheet: Sheet) -> Iterator[RenderableType]:
    if sheet.title:
        yield _text(sheet.title, "bold")
    if sheet.lead:
        yield _text(f"{sheet.lead}\n")
    for table in shortened(sheet).tables:
        yield _table(table)
        if table.left:
            yield _text(table.rest)
    yield from (Text().join(map(_cell, parts(note))) for note in sheet.notes)
    if sheet.refused:
        yield from (_text(f"\n{name} cannot be used. {reason}") for name, reason in sheet.refused)
        yield Text()
    if sheet.conclusion is not None:
        style = f"bold {_TONES[sheet.conclusion.tone]}"
        yield _text(f"{sheet.conclusion.word}: {sheet.conclusion.text}", style)


@dataclass(frozen=True)
class _AtLeast:
    """A table on a console that is at least so wide, whatever it is."""

    table: RichTable
    width: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(options.max_width, self.width)
        yield from console.render(self.table, options.update(width=width))


def _table(table: Table) -> _AtLeast:
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        shown.add_column(
            column.heading,
            justify="right" if column.number else "left",
            overflow="fold",
            no_wrap=column.number,
            style=_WEIGHTS[column.weight],
        )
    for body in table.bodies:
        for number, row in enumerate(body.rows):
            group = () if body.group is None else (body.group if number == 0 else "",)
            last = number == len(body.rows) - 1
            shown.add_row(*map(_cell, (*group, *row)), end_section=last)
    least = -1
    for column, drawn in zip(table.columns, shown.columns, strict=True):
        widest = max((cell.cell_len for cell in drawn.cells if isinstance(cell, Text)), default=0)
        drawn.min_width = widest if column.number else min(widest, _NARROWEST)
        least += drawn.min_width + _BETWEEN
    return _AtLeast(shown, least)


def _cell(cell: Cell) -> Text:
    return _text(cell.text, _TONES[cell.tone]) if isinstance(cell, Marked) else _text(cell)
