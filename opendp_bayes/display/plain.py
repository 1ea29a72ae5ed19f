"""Tables as text, for a prompt: columns under each other, sentences below."""

import textwrap
from collections.abc import Sequence

from opendp_bayes.display.tables import Table

#: Columns that sentences are wrapped at.
_WIDTH = 100


def rendered(title: str, tables: Sequence[Table], notes: Sequence[str]) -> str:
    """A title, tables and sentences as lines.

    Examples
    --------
    >>> table = Table(("category", "mean"), (("yes", "0.25"), ("no", "0.75")))
    >>> print(rendered("Shares", [table], ["They add up."]))
    Shares
    category  mean
    yes       0.25
    no        0.75
    They add up.
    """
    wrapper = textwrap.TextWrapper(_WIDTH, break_long_words=False, break_on_hyphens=False)
    lines = [line for table in tables for line in _lines(table)]
    return "\n".join([*filter(None, [wrapper.fill(title)]), *lines, *map(wrapper.fill, notes)])


def _lines(table: Table) -> list[str]:
    heading = [heading.replace("\n", " ") for heading in table.headings]
    widths = [max(map(len, column)) for column in zip(heading, *table.rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if place < table.texts else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heading, *table.rows)
    ]
    return [*lines, *filter(None, [table.rest])]
