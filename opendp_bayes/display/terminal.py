"""Tables on the terminal, and what is being done, with rich."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from opendp_bayes.display.tables import CONTROLS, Table

#: No column of texts is narrower, unless they are.
_NARROWEST = 6
#: Characters between two columns.
_BETWEEN = 3
#: Whether something is said to be done already.
_SHOWN: ContextVar[bool] = ContextVar("_SHOWN", default=False)


def rendered(title: str, tables: Sequence[Table], notes: Sequence[str]) -> Group:
    """A title, tables and sentences.

    In a narrow terminal texts take more lines, and numbers do not. Where these alone are too wide,
    so is the table, and no digit is left out: print it with `crop=False`.
    """
    shown: list[Text | _AtLeast] = [_text(title, "bold")] if title else []
    for table in tables:
        shown += [_table(table), *map(_text, filter(None, [table.rest]))]
    return Group(*shown, *map(_text, notes))


def _text(text: str, style: str = "") -> Text:
    """A text without the characters that a terminal would take for commands."""
    return Text(CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text), style)


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
    least = -1
    for place, (heading, *cells) in enumerate(zip(table.headings, *table.rows, strict=True)):
        is_text = place < table.texts
        widest = max((cell_len(cell) for cell in cells), default=0)
        narrowest = min(widest, _NARROWEST) if is_text else widest
        shown.add_column(
            _text(heading),
            justify="left" if is_text else "right",
            overflow="fold",
            no_wrap=not is_text,
            min_width=narrowest,
        )
        least += narrowest + _BETWEEN
    for row in table.rows:
        shown.add_row(*map(_text, row))
    return _AtLeast(shown, least)


@contextmanager
def shown_while(what: str) -> Iterator[None]:
    """A block that shows what is being done, where somebody looks on: `progress.waiting`."""
    console = Console(stderr=True)
    if _SHOWN.get() or not console.is_terminal:
        yield
        return
    before = _SHOWN.set(True)
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False)
    try:
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
