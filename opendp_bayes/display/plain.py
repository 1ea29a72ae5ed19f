"""A sheet as text, for a prompt: columns under each other, sentences below."""

import textwrap

from opendp_bayes.display.sheet import MOST_ROWS, Body, Cell, Sheet, Table, parts, shortened

#: Columns that sentences are wrapped at, those of the last column of a table too.
_WIDTH = 100


def rendered(sheet: Sheet, rows: int = MOST_ROWS, width: int = _WIDTH) -> str:
    """Everything on the sheet but how to read it; of its tables so many `rows` at most, with
    sentences wrapped at `width`.

    Examples
    --------
    >>> from opendp_bayes.display.sheet import Body, columns
    >>> table = Table(columns("category", "mean"), (Body((("yes", "0.25"), ("no", "0.75"))),))
    >>> print(rendered(Sheet((table,), title="Shares")))
    Shares
    category  mean
    yes       0.25
    no        0.75
    """
    whole = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines = [whole.fill(text) for text in (sheet.title, sheet.lead) if text]
    for table in shortened(sheet, rows).tables:
        lines += _lines(table, width)
    below = ["".join(map(_text, parts(note))) for note in sheet.notes]
    below += (f"{name} cannot be used. {reason}" for name, reason in sheet.refused)
    if sheet.conclusion is not None:
        below.append(f"{sheet.conclusion.word}: {sheet.conclusion.text}")
    return "\n".join([*lines, *map(whole.fill, below)])


def _lines(table: Table, width: int) -> list[str]:
    heading = [column.heading.replace("\n", " ") for column in table.columns]
    rows = [row for body in table.bodies for row in _rows(body)]
    if not table.columns[-1].number and len(heading) > 1:
        rows = _wrapped(heading, rows, width)
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if column.number else cell.ljust(width)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ).rstrip()
        for row in (heading, *rows)
    ]
    return [*lines, table.rest] if table.left else lines


def _wrapped(heading: list[str], rows: list[list[str]], width: int) -> list[list[str]]:
    """The rows with the sentences of their last cells in as many lines as they need."""
    others = [max(map(len, column)) + 2 for column in zip(heading, *rows, strict=True)][:-1]
    found = []
    for *cells, last in rows:
        first, *more = textwrap.wrap(last, max(width - sum(others), 20)) or [""]
        found += [[*cells, first], *([*[""] * len(cells), line] for line in more)]
    return found


def _rows(body: Body) -> list[list[str]]:
    """The cells as text; the name of a group stands before its first row."""
    rows = [list(map(_text, row)) for row in body.rows]
    if body.group is None:
        return rows
    return [["" if number else body.group, *row] for number, row in enumerate(rows)]


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.text
