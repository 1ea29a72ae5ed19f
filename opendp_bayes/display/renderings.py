"""Tables as text, for a prompt and a terminal, columns under each other, and for a notebook as HTML
without scripts, style sheets, colours or anything from elsewhere. Sentences stand below.
"""

import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from itertools import chain, zip_longest

from opendp_bayes.display.tables import CONTROLS, Table

#: No column of texts becomes narrower, unless its texts are.
_NARROWEST = 6


def as_text(title: str, tables: Sequence[Table], notes: Sequence[str], width: int) -> str:
    """A title, tables and sentences as lines of so many characters.

    In a narrow terminal texts and headings take more lines, and numbers do not. Where these alone
    are too wide, so is the table, and no digit is left out.

    Examples
    --------
    >>> table = Table(("category", "mean"), (("yes", "0.25"), ("no", "0.75")))
    >>> print(as_text("Shares", [table], ["They add up."], 80))
    Shares
    category  mean
    yes       0.25
    no        0.75
    They add up.
    """
    wrapper = textwrap.TextWrapper(width, break_long_words=False, break_on_hyphens=False)
    lines = [line for table in tables for line in (*_lines(table, width), table.rest)]
    shown = [wrapper.fill(title), *lines, *map(wrapper.fill, notes)]
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", "\n".join(filter(None, shown)))


def _lines(table: Table, width: int) -> Iterator[str]:
    """The heading and the rows, without blanks at their ends."""
    columns = list(zip(table.headings, *table.rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    between = 2 * (len(columns) - 1)
    if sum(widths) + between > width:
        parts = (chain(*(cell.split("\n") for cell in column)) for column in columns)
        widths = [max(map(len, column)) for column in parts]
        room = width - between - sum(widths[table.texts :])
        most = max(_NARROWEST, room // max(1, table.texts))
        widths[: table.texts] = [min(text, most) for text in widths[: table.texts]]
    for row in (table.headings, *table.rows):
        cells = [textwrap.wrap(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            yield "  ".join(
                content.ljust(wide) if position < table.texts else content.rjust(wide)
                for position, (content, wide) in enumerate(zip(line, widths, strict=True))
            ).rstrip()


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


def as_html(title: str, tables: Sequence[Table], notes: Sequence[str]) -> str:
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
