"""Content of a result's display: tables, sentences around them and a verdict, without any layout.

`terminal`, `notebook` and `plain` show a sheet; they know no result.
"""

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

#: Characters that a terminal takes for commands, those that turn the direction of writing, and
#: halves of characters, which no file can hold.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
#: Rows of all tables that a display has room for, and of each in any case; the first are shown.
MOST_ROWS, _FEWEST_ROWS = 1000, 10
#: How a text stands out: as a name in code, or by whether it is good news.
Tone = Literal["code", "good", "bad", "doubtful"]


@dataclass(frozen=True)
class Marked:
    """A text that stands out."""

    text: str
    tone: Tone


Cell = str | Marked
Row = tuple[Cell, ...]
#: A sentence, in parts where one of them stands out.
Note = str | tuple[Cell, ...]


@dataclass(frozen=True)
class Column:
    """A heading, in lines, and how the cells below it are shown.

    Attributes
    ----------
    heading : str
        The lines are separated by line feeds.
    number : bool
        Whether the cells are short, stand on the right and are never broken.
    weight : {"plain", "strong", "faint"}
        `"strong"` for what is to be read first, `"faint"` for what is to be read last.
    full : str
        The heading where there is room for a longer one.
    """

    heading: str
    number: bool = True
    weight: Literal["plain", "strong", "faint"] = "plain"
    full: str = ""


@dataclass(frozen=True)
class Body:
    """Rows that belong together; those of a `group` have its name before them, in a column of its
    own.
    """

    rows: tuple[Row, ...]
    group: str | None = None


@dataclass(frozen=True)
class Table:
    """Columns and bodies; the first cell of a row, after the group, names its subject. `left` says
    how many rows are not shown.
    """

    columns: tuple[Column, ...]
    bodies: tuple[Body, ...]
    left: int = 0

    @property
    def rest(self) -> str:
        """What stands below the rows, where some are not shown; otherwise empty."""
        return f"and {self.left} more" if self.left else ""


@dataclass(frozen=True)
class Conclusion:
    """The verdict on a result: a word, and the sentence that it stands before."""

    word: str
    text: str
    tone: Tone


@dataclass(frozen=True)
class Sheet:
    """Everything that a result displays of itself, without layout.

    Attributes
    ----------
    tables : tuple[Table, ...]
        In the order of reading.
    notes : tuple[Note, ...]
        Sentences below the tables.
    title, lead : str
        What the tables are of, and the sentence after it.
    reading : str
        How to read the tables, where there is room for it.
    refused : tuple[tuple[str, str], ...]
        What is not in the tables, by name, and why.
    conclusion : Conclusion or None
        What it comes to; None where that is left to the reader.
    """

    tables: tuple[Table, ...]
    notes: tuple[Note, ...] = ()
    title: str = ""
    lead: str = ""
    reading: str = ""
    refused: tuple[tuple[str, str], ...] = ()
    conclusion: Conclusion | None = None


def shortened(sheet: Sheet, most: int = MOST_ROWS) -> Sheet:
    """The sheet with the first rows of its tables, as many of each as `most` rows of all allow."""
    sizes = [sum(len(body.rows) for body in table.bodies) for table in sheet.tables]
    limit, left = most, most
    for number, size in enumerate(sorted(sizes)):
        limit = max(left // (len(sizes) - number), min(_FEWEST_ROWS, most))
        left -= min(size, limit)
    if max(sizes, default=0) <= limit:
        return sheet
    tables = (_cut(table, size, limit) for table, size in zip(sheet.tables, sizes, strict=True))
    return replace(sheet, tables=tuple(tables))


def _cut(table: Table, size: int, limit: int) -> Table:
    """The first rows of a table of that size."""
    bodies, left = [], limit
    for body in table.bodies:
        rows = tuple(islice(body.rows, left))
        bodies += [replace(body, rows=rows)] if rows else []
        left -= len(rows)
    return replace(table, bodies=tuple(bodies), left=max(size - limit, 0))


def columns(*headings: str) -> tuple[Column, ...]:
    """A column of text, and columns of numbers."""
    first, *others = headings
    return (Column(first, number=False), *map(Column, others))


def parts(note: Note) -> tuple[Cell, ...]:
    """The parts of a sentence."""
    return (note,) if isinstance(note, str) else note
