"""Tables in a notebook: HTML without scripts, style sheets, colours or anything from elsewhere.

Notebooks bring their own colours, light or dark, and some of them no space between columns.
"""

from collections.abc import Sequence
from html import escape

from opendp_bayes.display.tables import Table

_SPACE = "padding: 0.3em 0.7em"
_TEXT = (
    'style="text-align: left; vertical-align: top; max-width: 26em; overflow-wrap: break-word;'
    f' {_SPACE}"'
)
_NUMBER = (
    'style="text-align: right; vertical-align: top; white-space: nowrap; font-variant-numeric:'
    f' tabular-nums; {_SPACE}"'
)
_LINE = 'style="border-bottom: 1px solid"'


def rendered(title: str, tables: Sequence[Table], notes: Sequence[str]) -> str:
    """The tables, and below them a paragraph that begins with the title."""
    sentences = " ".join(map(_text, [*filter(None, [title and f"{title}."]), *notes]))
    paragraph = f'<div style="max-width: 48em; margin: 0.7em 0">{sentences}</div>'
    return f"<div>{''.join(map(_table, tables))}{paragraph}</div>"


def _table(table: Table) -> str:
    """Wider than the notebook, it scrolls. The first cell of a row is its header."""
    texts, numbers = table.texts, len(table.headings) - table.texts
    styles = [_TEXT] * texts + [_NUMBER] * numbers
    head = _row('th scope="col"', styles, table.headings)
    rows = "".join(_row("td", styles, row) for row in table.rows)
    return (
        '<div style="overflow-x: auto"><table style="border-collapse: collapse"><thead'
        f" {_LINE}>{head}</thead><tbody {_LINE}>{rows}</tbody></table>{_text(table.rest)}</div>"
    )


def _row(tag: str, styles: Sequence[str], cells: Sequence[str]) -> str:
    tags = ['th scope="row"' if tag == "td" else tag, *[tag] * (len(cells) - 1)]
    shown = (
        f"<{tag} {style}>{_text(cell)}</{tag[:2]}>"
        for tag, style, cell in zip(tags, styles, cells, strict=True)
    )
    return f"<tr>{''.join(shown)}</tr>"


def _text(text: str) -> str:
    """Text, in which a number stays with its per cent sign."""
    return escape(text).replace(" %", "&nbsp;%").replace("\n", "<br> ")
