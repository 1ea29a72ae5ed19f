"""A sheet in a notebook: HTML without scripts, style sheets, colours or anything from elsewhere.

Notebooks bring their own colours, light or dark, and some of them no space between columns.
"""

from collections.abc import Iterator
from html import escape

from opendp_bayes.display.sheet import Body, Cell, Column, Sheet, Table, parts, shortened

_SPACE = "padding: 0.3em 0.7em"
_TEXT = (
    'style="text-align: left; vertical-align: top; max-width: 26em; overflow-wrap: break-word;'
    f' {_SPACE}"'
)
_NUMBER = (
    'style="text-align: right; vertical-align: top; white-space: nowrap; font-variant-numeric:'
    f' tabular-nums; {_SPACE}"'
)
#: What stands out does so without colours.
_TAGS = {"code": "code", "good": "em", "bad": "strong", "doubtful": "strong"}
_LINE = 'style="border-bottom: 1px solid"'


def rendered(sheet: Sheet) -> str:
    """Everything on the sheet: the tables, and below them a paragraph that begins with the
    conclusion.
    """
    paragraph = f'<div style="max-width: 48em; margin: 0.7em 0">{" ".join(_sentences(sheet))}</div>'
    return f"<div>{''.join(map(_table, shortened(sheet).tables))}{paragraph}</div>"


def _sentences(sheet: Sheet) -> Iterator[str]:
    if sheet.conclusion is not None:
        yield f"<strong>{_text(sheet.conclusion.word)}:</strong> {_text(sheet.conclusion.text)}"
    if sheet.title:
        yield f"{_text(sheet.title)}."
    if sheet.lead:
        yield _text(sheet.lead)
    yield from ("".join(map(_cell, parts(note))) for note in sheet.notes)
    if sheet.reading:
        yield _text(sheet.reading)
    if sheet.refused:
        items = "".join(f"<li>{_text(f'{name}: {why}')}</li>" for name, why in sheet.refused)
        summary = f"<summary>Cannot be used: {len(sheet.refused)}</summary>"
        yield f"<details>{summary}<ul>{items}</ul></details>"


def _table(table: Table) -> str:
    """Wider than the notebook, it scrolls."""
    head = "".join(
        f'<th scope="col" {_style(column)}>{_heading(column)}</th>' for column in table.columns
    )
    bodies = "".join(_body(body, table.columns) for body in table.bodies)
    return (
        '<div style="overflow-x: auto"><table style="border-collapse: collapse"><thead'
        f" {_LINE}><tr>{head}</tr></thead>{bodies}</table>{_text(table.rest)}</div>"
    )


def _body(body: Body, columns: tuple[Column, ...]) -> str:
    """The first cell of a row is its header, and before the first of a group stands that of all
    rows.
    """
    group = ""
    if body.group is not None:
        rows, columns = len(body.rows), columns[1:]
        group = f'<th scope="rowgroup" rowspan="{rows}" {_TEXT}>{_text(body.group)}</th>'
    shown = []
    for first, *others in body.rows:
        cells = "".join(
            f"<td {_style(column)}>{_cell(cell)}</td>"
            for column, cell in zip(columns[1:], others, strict=True)
        )
        shown.append(f'<tr>{group}<th scope="row" {_style(columns[0])}>{_cell(first)}</th>{cells}')
        group = ""
    return f"<tbody {_LINE}>{'</tr>'.join(shown)}</tr></tbody>"


def _style(column: Column) -> str:
    return _NUMBER if column.number else _TEXT


def _heading(column: Column) -> str:
    return _text(column.full or column.heading).replace("\n", "<br> ")


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return _text(cell)
    tag = _TAGS[cell.tone]
    return f"<{tag}>{_text(cell.text)}</{tag}>"


def _text(text: str) -> str:
    """Text, in which a number stays with its per cent sign."""
    return escape(text).replace(" %", "&nbsp;%")
