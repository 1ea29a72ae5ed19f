"""Terms: expressions that give each row a value which depends on that row alone, and never fail."""

import datetime
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from opendp_bayes_engines.kinds import INT64, Column, Kind

#: PySpark writes years of less than four digits in a way that Java does not read.
_FIRST_YEAR = 1000
#: Characters of a constant text.
_LONGEST_TEXT = 10_000


@dataclass(frozen=True)
class Term:
    """An expression of a frame, with the public knowledge of its values.

    Attributes
    ----------
    expr : the expression, of one type for each kind.
    column : what its values may be.
    name : of the column it makes.
    reads : the columns of the frame that it reads.
    value : of a literal; None otherwise.
    is_column : whether it is a column of the frame, as it is.
    """

    expr: nw.Expr
    column: Column
    name: str
    reads: frozenset[str] = frozenset()
    value: bool | int | str | float | datetime.date | None = None
    is_column: bool = False

    @property
    def kind(self) -> Kind:
        return self.column.kind


class RefusedError(ValueError):
    """An expression that is not known to work row by row without failing."""


def literal(value: Any) -> Term:
    """The term of a constant; `RefusedError` for one that engines may understand differently."""
    kind = {
        bool: Kind.BOOLEAN,
        int: Kind.INTEGER,
        str: Kind.STRING,
        float: Kind.FLOAT,
        datetime.date: Kind.DATE,
    }.get(type(value))
    if kind is None:
        raise RefusedError(
            f"{type(value).__name__} is not a constant that means the same in every engine; use a"
            " bool, int, str, float or datetime.date."
        )
    limits = INT64
    if kind is Kind.INTEGER:
        if not INT64[0] < value <= INT64[1]:  # engines read the smallest one as minus one too many
            raise RefusedError(f"{value} must be less than 2**63 in absolute value.")
        limits = (value, value)
    if kind is Kind.FLOAT and value != value:
        raise RefusedError("nan is equal to nothing; use is_null(), which is true for it.")
    if kind is Kind.DATE and value.year < _FIRST_YEAR:
        raise RefusedError(f"{value}: PySpark takes no dates before the year {_FIRST_YEAR}.")
    if kind is Kind.STRING and not value.isprintable():
        raise RefusedError(f"{value!r} must consist of printable characters.")
    if kind is Kind.STRING and len(value) > _LONGEST_TEXT:
        raise RefusedError(f"a text of {len(value)} characters: must have at most {_LONGEST_TEXT}.")
    types = {
        Kind.BOOLEAN: nw.Boolean(),
        Kind.INTEGER: nw.Int64(),
        Kind.STRING: nw.String(),
        Kind.FLOAT: nw.Float64(),
        Kind.DATE: nw.Date(),
    }
    column = Column(kind, str(types[kind]), nullable=False, limits=limits)
    return Term(nw.lit(value, dtype=types[kind]), column, "literal", value=value)
