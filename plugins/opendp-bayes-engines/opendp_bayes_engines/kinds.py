"""Kinds of values that a column of a frame may hold, whichever engine the frame is in."""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import narwhals as nw
from narwhals.dtypes import DType

from opendp_bayes.extend.framework import ColumnKind

#: What a 64-bit signed integer holds. Arithmetic is accepted where its results are proved to fit.
INT64 = (-(2**63), 2**63 - 1)

_INTEGERS: dict[type[DType], tuple[int, int]] = {
    nw.Int8: (-(2**7), 2**7 - 1),
    nw.Int16: (-(2**15), 2**15 - 1),
    nw.Int32: (-(2**31), 2**31 - 1),
    nw.Int64: INT64,
    nw.UInt8: (0, 2**8 - 1),
    nw.UInt16: (0, 2**16 - 1),
    nw.UInt32: (0, 2**32 - 1),
}


class Kind(Enum):
    """The kinds of values that mean the same in every engine, and OTHER for everything else."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    WIDE = "integer beyond 64 bits"
    STRING = "string"
    DATE = "date"
    FLOAT = "float"
    OTHER = "other"


@dataclass(frozen=True)
class Column:
    """Public knowledge of a column, without reading it.

    Attributes
    ----------
    kind : of its values.
    dtype : its type in the words of narwhals, without what it holds: an Enum within a list has
        labels, too.
    nullable : whether it may hold nulls; a float may hold NaN, which counts as a null.
    limits : the smallest and the largest value that an INTEGER can have.
    categories : the public labels, where the caller wrote them into the type.
    copies : texts of the data, or constants, that one value of a STRING joins at most: it is no
        longer than so many of them.
    """

    kind: Kind
    dtype: str
    nullable: bool = True
    limits: tuple[int, int] = INT64
    categories: tuple[str, ...] | None = None
    copies: int = 1

    @property
    def known(self) -> ColumnKind:
        """What a question is told of the column."""
        kinds: dict[Kind, Any] = {
            Kind.BOOLEAN: "boolean",
            Kind.INTEGER: "integer",
            Kind.WIDE: "integer",  # a category is within 64 bits, so any other value is unknown
            Kind.STRING: "text",
        }
        kind = kinds.get(self.kind, "other")
        # An Enum of an engine is text: its labels are not known.
        name = "String" if kind == "text" and self.categories is None else self.dtype
        return ColumnKind(kind, name, self.nullable, self.categories)


def column_of(dtype: DType) -> Column:
    """Describe a column of a narwhals type, by what does not depend on the data.

    The labels of an Enum do: engines and pandas make one of whatever values there are.
    """
    name = dtype.base_type().__name__
    for integer, limits in _INTEGERS.items():
        if dtype == integer:
            return Column(Kind.INTEGER, name, limits=limits)
    kinds: dict[type[DType], Kind] = {
        nw.Boolean: Kind.BOOLEAN,
        nw.UInt64: Kind.WIDE,
        nw.Int128: Kind.WIDE,
        nw.String: Kind.STRING,
        nw.Categorical: Kind.STRING,
        nw.Enum: Kind.STRING,
        nw.Date: Kind.DATE,
        nw.Float32: Kind.FLOAT,
        nw.Float64: Kind.FLOAT,
    }
    return Column(next((kind for of, kind in kinds.items() if dtype == of), Kind.OTHER), name)


def written_column_of(dtype: DType) -> Column:
    """Describe a column of polars, whose Enums have the labels that somebody wrote."""
    column = column_of(dtype)
    return replace(column, categories=tuple(dtype.categories)) if type(dtype) is nw.Enum else column


def leaf(name: str, column: Column) -> nw.Expr:
    """A column as plans read it: of one type for each kind, and NaN as null."""
    value = nw.col(name)
    if column.kind is Kind.INTEGER and column.dtype != "Int64":
        return value.cast(nw.Int64)
    if column.kind is Kind.STRING and column.dtype != "String":
        return value.cast(nw.String)
    if column.kind is Kind.FLOAT:
        return (value if column.dtype == "Float64" else value.cast(nw.Float64)).fill_nan(None)
    return value
