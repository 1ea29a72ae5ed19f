"""A sheet as text, for a prompt: columns under each other, sentences below."""

from opendp_bayes.report.sheet import Cell, Note, Sheet, Table, parts


def rendered(sheet: Sheet) -> str:
    """Everything on the sheet but how to read it.

    >>> from opendp_bayes.report.sheet import Body, columns
    >>> table = Table(columns("category", "mean"), (Body((("yes", "0.25"), ("no", "0.75"))),))
    >>> print(rendered(Sheet((table,), title="Shares")))
    Shares
    category  mean
    yes       0.25
    no        0.75
    """
    lines = [sheet.title] if sheet.title else []
    for table in sheet.tables:
        lines += _lines(table)
    return "\n".join([*lines, *map(_note, sheet.notes)])


def _lines(table: Table) -> list[str]:
    heading = [column.heading.replace("\n", " ") for column in table.columns]
    rows = [[_text(cell) for cell in row] for body in table.bodies for row in body.rows]
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if column.number else cell.ljust(width)
            for cell, width, column in zip(row, widths, table.columns, strict=True)
        ).rstrip()
        for row in (heading, *rows)
    ]


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _note(note: Note) -> str:
    return "".join(map(_text, parts(note)))
