"""Timing, tables that go to the terminal and, from `python -m benchmarks`, to RESULTS.md, and
sections of pages.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from textwrap import fill
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

#: Environment variable that names the Markdown file to which tables are appended.
MARKDOWN = "BENCHMARKS_MARKDOWN"


def milliseconds(*functions: Callable[[], Any], repeats: int = 5) -> list[float]:
    """The shortest time of each function. They take turns, so that whatever else the machine does
    meets all of them.
    """
    shortest = [float("inf")] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = perf_counter()
            function()
            shortest[i] = min(shortest[i], 1e3 * (perf_counter() - start))
    return shortest


def per_call(function: Callable[[], Any], calls: int = 20) -> Callable[[], Any]:
    """A function that makes `calls` calls, for work too short to time alone."""
    return lambda: [function() for _ in range(calls)]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], note: str) -> None:
    """Print a table and what it compares."""
    text = [[_text(cell) for cell in row] for row in rows]
    shown = Table(*columns, title=title, title_justify="left", caption=note, caption_justify="left")
    for row in text:
        shown.add_row(*row)
    Console(width=150).print(shown, "")
    if MARKDOWN in os.environ:
        page = "\n".join([f"## {title}", "", wrapped(note), "", markdown(columns, text), ""])
        with Path(os.environ[MARKDOWN]).open("a") as file:
            file.write(page)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of Markdown, with an empty line after it."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def wrapped(text: str) -> str:
    """Break a paragraph into lines of at most 100 columns, as on every page."""
    return fill(text, 100, break_long_words=False, break_on_hyphens=False)


def section(page: Path, title: str, text: str) -> None:
    """Write a section of a page, in place of the one with that title line, or after all others."""
    before, _, after = page.read_text(encoding="utf-8").partition(title)
    following = after[after.index("\n## ") :] if "\n## " in after else ""
    page.write_text(f"{before.rstrip()}\n\n{title}{text}{following}", encoding="utf-8")


def _text(cell: Any) -> str:
    return (
        f"{cell:,.3g}"
        if isinstance(cell, float) and abs(cell) < 100
        else f"{cell:,.0f}"
        if isinstance(cell, (int, float))
        else str(cell)
    )
