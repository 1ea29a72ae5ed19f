"""Answers about categories and quantities as labelled tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opendp_bayes.display import notebook, plain
from opendp_bayes.display.sheet import Body, Sheet, Table, columns
from opendp_bayes.mathematics.underflow import UnderflowIsZero

if TYPE_CHECKING:
    import polars as pl


class Shown(UnderflowIsZero):
    """Something with a sheet: the same table at a prompt and in a notebook."""

    def sheet(self) -> Sheet:
        """Sheet with the answer's tables."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return plain.rendered(self.sheet())

    def _repr_html_(self) -> str:
        return notebook.rendered(self.sheet())


class ShownAtOnce(UnderflowIsZero):
    """Something with a sheet that a prompt and a notebook show without what takes seconds."""

    def sheet(self, level: float = 0.95, *, wait: bool = True) -> Sheet:
        """Sheet with the tables of the result; without `wait`, of what is known at once."""
        raise NotImplementedError

    def __str__(self) -> str:
        return plain.rendered(self.sheet(wait=False), rows=20)

    def _repr_html_(self) -> str:
        """The table that notebooks show, with what is quick to compute or was computed before."""
        return notebook.rendered(self.sheet(wait=False))


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """The first column is text, the others are numbers."""
    return Table(columns(*headings), (Body(tuple(map(tuple, rows))),))


def figure(value: float, spread: float) -> str:
    """A number with two digits of a spread, and at most five decimals more than it needs.

    Examples
    --------
    >>> figure(0.123456, 0.0123), figure(12345.678, 321.0), figure(2.0, 0.0)
    ('0.123', '12346', '2.000')
    """
    if not np.isfinite(value):
        return f"{value:g}"
    usable = np.isfinite(spread) and spread > 0
    decimals = int(np.clip(1 - np.floor(np.log10(spread)), 0, 12)) if usable else 3
    return f"{value:.{decimals}f}"


def labelled_frame(
    labels: Mapping[str, Iterable[Any]], results: Mapping[str, Any]
) -> "pl.DataFrame":
    """A polars frame of columns of labels, as text, and of results. Names of labels that are those
    of other columns get `_` at their end.
    """
    import polars as pl

    named: dict[str, pl.Series] = {}
    for name, values in labels.items():
        while name in results or name in named:
            name += "_"
        named[name] = pl.Series(list(map(str, values)), dtype=pl.String)
    return pl.DataFrame({**named, **results})


def seconded(disagreement: float) -> str:
    """State in a sentence how far a second look at draws differs."""
    return f"other draws differ by {disagreement:.1f} standard errors at most."
