"""The section of a report that says how far its synthetic records agree with what was released."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: The most tables that no result has which the page shows; it says so.
_MOST_IMPLIED = 20


@dataclass(frozen=True)
class CopiesRow:
    """A table: its numbers as text, and where the picture has them, in per cent: the `bar` is the
    posterior's standard deviation, and the line goes from the difference of all copies to that of
    the worst cell.
    """

    name: str
    std: str
    combined: str
    difference: str
    largest: str
    one: str
    bar: float
    at: float
    width: float


@dataclass(frozen=True)
class Copies:
    """The section: the number of copies, a row for each table that a result has, those of the
    `implied` ones, of which there are `most_implied` or less, and the ticks of the pictures.
    """

    number: int
    measured: tuple[CopiesRow, ...]
    implied: tuple[CopiesRow, ...]
    ticks: tuple[tuple[str, float], ...]
    most_implied: int = _MOST_IMPLIED


def copies_section(agreement: Sequence[Mapping[str, Any]]) -> Copies | None:
    """The section of the rows of `agreement_of_copies`; None where there are none."""
    if not agreement:
        return None
    measured = [row for row in agreement if row["measured"]]
    implied = [row for row in agreement if not row["measured"]]
    implied.sort(key=lambda row: row["difference"], reverse=True)
    implied = implied[:_MOST_IMPLIED]
    shown = [*measured, *implied]
    end = _above(max(max(row["std"], row["largest_difference"]) for row in shown))
    smallest = min((row["std"] for row in shown if row["std"] > 0), default=0.01)
    decimals = max(1 - math.floor(math.log10(smallest)), 2)  # two digits of it
    return Copies(
        number=agreement[0]["copies"],
        measured=tuple(_row(row, end, decimals) for row in measured),
        implied=tuple(_row(row, end, decimals) for row in implied),
        ticks=tuple((f"{end * part:.6g}", 100 * part) for part in (0, 0.5, 1)),
    )


def _row(row: Mapping[str, Any], end: float, decimals: int) -> CopiesRow:
    def text(name: str) -> str:
        return "" if row[name] is None else f"{row[name]:.{decimals}f}"

    bar, at, furthest = (
        round(100 * row[name] / end, 3) for name in ("std", "difference", "largest_difference")
    )
    return CopiesRow(
        name=row["table"],
        std=text("std"),
        combined=text("combined_std"),
        difference=text("difference"),
        largest=text("largest_difference"),
        one=text("difference_of_one"),
        bar=bar,
        at=at,
        width=round(furthest - at, 3),
    )


def _above(highest: float) -> float:
    """The first of 1, 2, 5, 10 and so on, times a power of ten, that is not below."""
    if highest <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(highest))
    return next(step * unit for step in (1, 2, 5, 10) if highest <= step * unit * (1 + 1e-12))
