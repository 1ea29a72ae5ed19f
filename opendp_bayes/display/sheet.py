"""A result's display: tables and sentences, as text, in a notebook and on a terminal."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opendp_bayes.display.renderings import as_html, as_text
from opendp_bayes.display.tables import Table
from opendp_bayes.display.wording import group_name
from opendp_bayes.mathematics.underflow import UnderflowIsZero

if TYPE_CHECKING:
    import polars as pl

#: Rows of all tables that a display has room for, and rows of a result that shows itself.
MOST_ROWS, _AT_ONCE = 1000, 20


@dataclass(frozen=True)
class Sheet:
    """Everything that a result displays of itself.

    Attributes
    ----------
    tables : tuple[Table, ...]
        In the order of reading.
    notes : tuple[str, ...]
        Sentences below the tables.
    title : str
        What the tables are of.
    """

    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    title: str = ""

    def first(self, rows: int = MOST_ROWS) -> "Sheet":
        """The sheet with so many rows at most, as many of each table."""
        most = max(1, rows // max(1, len(self.tables)))
        return replace(self, tables=tuple(table.first(most) for table in self.tables))

    def text(self, width: int = 100) -> str:
        """The sheet in lines of so many characters, for a prompt or a terminal."""

        shown = self.first()
        return as_text(shown.title, shown.tables, shown.notes, width)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        shown = self.first()
        return as_html(shown.title, shown.tables, shown.notes)


class Shown(UnderflowIsZero):
    """Something with a sheet: the same table at a prompt and in a notebook."""

    #: The sheet with the answer's tables.
    sheet: Callable[..., Sheet]

    def __repr__(self) -> str:
        return str(self.sheet())

    def _repr_html_(self) -> str:
        return self.sheet()._repr_html_()


class ShownAtOnce(UnderflowIsZero):
    """Something with a sheet that a prompt and a notebook show without what takes seconds."""

    #: The sheet with the tables of the result; without `wait`, of what is known at once.
    sheet: Callable[..., Sheet]

    def __str__(self) -> str:
        return str(self.sheet(wait=False).first(_AT_ONCE))

    def _repr_html_(self) -> str:
        """The table that notebooks show, with what is quick to compute or was computed before."""
        return self.sheet(wait=False)._repr_html_()


def labelled_frame(
    labels: Mapping[str, Iterable[Any]], results: Mapping[str, Any]
) -> "pl.DataFrame":
    """A polars frame of columns of labels, as text, and of results. Names of labels that are those
    of other columns get `_` at their end; None stays null.
    """
    import polars as pl

    named: dict[str, pl.Series] = {}
    for heading, values in labels.items():
        while heading in results or heading in named:
            heading += "_"
        texts = [None if value is None else group_name(value) for value in values]
        named[heading] = pl.Series(texts, dtype=pl.String)
    return pl.DataFrame({**named, **results})
