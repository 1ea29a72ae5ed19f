"""Tables of texts: what results display, without any layout."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opendp_bayes.display.wording import label_said

if TYPE_CHECKING:
    import polars as pl

#: Characters that a terminal takes for commands, those that turn the direction of writing, and
#: halves of characters, which no file can hold.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
#: What a heading says, by the name of a frame's column; others are their own headings.
_HEADINGS = {
    "group": "Group",
    "category": "Category",
    "count": "Released\ncount",
    "noisy_count": "Noisy\ncount",
}
#: The headings of intervals, by what stands before `lower` and `upper` in the names of a frame.
_INTERVALS = {
    "": "{} %\ninterval",
    "plug_in_": "Plug-in {} %\n(ignores noise)",
    "share_": "Share of shown,\n{} % interval",
}
#: Intervals are not shown as if they were narrower.
_LEAST_WIDTH = 1e-9


@dataclass(frozen=True)
class Table:
    """Rows of texts under headings.

    Attributes
    ----------
    headings : Sequence[str]
        Of the columns; lines are separated by line feeds.
    rows : Sequence[Sequence[str]]
        The cells of each row.
    texts : int, default 1
        How many of the first columns are texts; the others are numbers.
    left : int, default 0
        How many rows more there are, which are not shown.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1
    left: int = 0

    @property
    def rest(self) -> str:
        """The line below the rows where some are not shown; otherwise empty."""
        return f"and {self.left} more" if self.left else ""

    def first(self, most: int) -> "Table":
        """The table with so many rows at most."""
        shown = self.rows[:most]
        return replace(self, rows=shown, left=self.left + len(self.rows) - len(shown))


def estimates_table(frame: "pl.DataFrame", level: float, *, percent: bool = False) -> Table:
    """Table of a frame of estimates: its labels, its counts, and the means and intervals of
    probability `level`, where it has any; those of shares perhaps in per cent.
    """
    import polars as pl

    texts = [column for column, kind in frame.schema.items() if kind == pl.String]
    counts = [column for column in ("count", "noisy_count") if column in frame.columns]
    cells = [list(map(label_said, frame[column].fill_null("(null)"))) for column in texts]
    cells += [list(map(str, frame[column])) for column in counts]
    headings = [_HEADINGS.get(column, column) for column in (*texts, *counts)]
    for prefix, heading in _INTERVALS.items():
        if f"{prefix}lower" not in frame.columns:
            continue
        lower, upper = (frame[f"{prefix}{end}"].to_list() for end in ("lower", "upper"))
        if prefix != "plug_in_" or "lower" not in frame.columns:  # or the digits of the other
            decimals = decimals_of(lower, upper)
        is_share = percent and (prefix != "" or "share_lower" not in frame.columns)
        scale, places, unit = (100, decimals - 2, " %") if is_share else (1, decimals, "")
        if not prefix:
            headings.append("Mean")
            cells.append([f"{scale * mean:.{places}f}{unit}" for mean in frame["mean"]])
        headings.append(heading.format(f"{100 * level:.6g}"))
        lower, upper = ([scale * end for end in ends] for ends in (lower, upper))
        cells.append([f"{ends}{unit}" for ends in intervals(lower, upper, places)])
    return Table(headings, list(zip(*cells, strict=True)), len(texts))


def decimals_of(lower: Sequence[float], upper: Sequence[float]) -> int:
    """Decimals that give the narrowest interval two digits, and the widest no more than three; of
    probabilities three at least. What is certain asks for none.
    """
    widths = [b - a for a, b in zip(lower, upper, strict=True) if b - a > _LEAST_WIDTH]
    if not widths:
        return 0 if max(upper, default=1) > 1 else 3
    narrowest, widest = (1 - math.floor(math.log10(end)) for end in (min(widths), max(widths)))
    return max(3 if max(upper) <= 1 else 0, min(narrowest, widest + 1))


def intervals(lower: Sequence[float], upper: Sequence[float], decimals: int) -> list[str]:
    """The intervals as text, `0.372 to 0.455`, with that many decimals."""
    ends = zip(lower, upper, strict=True)
    return [f"{low:.{decimals}f} to {high:.{decimals}f}" for low, high in ends]


def figure(value: float, spread: float) -> str:
    """A number with two digits of a spread, and at most five decimals more than it needs.

    Examples
    --------
    >>> figure(0.123456, 0.0123), figure(12345.678, 321.0), figure(2.0, 0.0)
    ('0.123', '12346', '2.000')
    """
    if not math.isfinite(value):
        return f"{value:g}"
    usable = math.isfinite(spread) and spread > 0
    decimals = min(max(1 - math.floor(math.log10(spread)), 0), 12) if usable else 3
    return f"{value:.{decimals}f}"
