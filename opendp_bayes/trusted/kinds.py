"""Describe a column without reading it: the kind of its values, and no label, because a type may
carry labels out of the data. A polars Enum is the exception, whose labels somebody wrote.
"""

import re
from dataclasses import dataclass
from typing import Literal

import polars as pl
from opendp.mod import Domain

from opendp_bayes.release_format.data import Value
from opendp_bayes.trusted.opendp_internals import frame_of

#: What a column holds. Only texts, integers and booleans are counted.
Kind = Literal["text", "integer", "boolean", "other"]
#: The type in Python of a value that is counted.
TYPE_OF: dict[Kind, type[Value]] = {"text": str, "integer": int, "boolean": bool}
#: The type in polars in which values are compared.
COMPARED_AS: dict[Kind, pl.DataType] = {
    "text": pl.String(),
    "integer": pl.Int64(),
    "boolean": pl.Boolean(),
}

#: What messages call the column of a vector, which has no name.
VALUES = "values"
_ATOMS = {
    "String": pl.String(),
    "bool": pl.Boolean(),
    "i32": pl.Int32(),
    "i64": pl.Int64(),
    "u32": pl.UInt32(),
    "u64": pl.UInt64(),
}


@dataclass(frozen=True)
class ColumnKind:
    """Public knowledge of a column.

    Attributes
    ----------
    kind : Kind
        Of its values.
    type : str
        The name of its type, without what the type holds.
    nullable : bool
        Whether it may hold nulls.
    declared : tuple[str, ...] or None
        The labels that a polars Enum was written with; None for every other type.
    """

    kind: Kind
    type: str
    nullable: bool = True
    declared: tuple[str, ...] | None = None


def kind_of(dtype: pl.DataType, *, nullable: bool = True) -> ColumnKind:
    """Describe a column of polars. Nothing else in the package reads the labels of a type."""
    type_name = dtype.base_type().__name__
    if isinstance(dtype, pl.Enum):
        return ColumnKind("text", type_name, nullable, tuple(dtype.categories))
    if isinstance(dtype, (pl.String, pl.Categorical)):
        return ColumnKind("text", type_name, nullable)
    if isinstance(dtype, pl.Boolean):
        return ColumnKind("boolean", type_name, nullable)
    return ColumnKind("integer" if dtype.is_integer() else "other", type_name, nullable)


def column_named(column: str) -> pl.Expr:
    """The column of this name: `pl.col` would take `*`, and what stands between `^` and `$`, for a
    pattern.
    """
    return pl.col(f"^{re.escape(column)}$" if is_pattern(column) else column)


def is_pattern(column: str) -> bool:
    """True if polars takes the name of a column for a pattern, wherever it means one column."""
    return column == "*" or (column.startswith("^") and column.endswith("$"))


def kinds_of_frame(domain: Domain) -> dict[str, ColumnKind]:
    """Describe the columns of a `LazyFrameDomain`."""
    return {
        column: kind_of(dtype, nullable=domain.get_series_domain(column).nullable)
        for column, dtype in frame_of(domain).collect_schema().items()
    }


def element_type(domain: Domain) -> pl.DataType:
    """The type of the elements of a vector, in polars; `TypeError` where they are not counted."""
    dtype = _ATOMS.get(str(domain.carrier_type).removeprefix("Vec<").removesuffix(">"))
    if dtype is None:
        raise TypeError(
            f"input_domain={domain}: must be a vector of text, integers or booleans, as in"
            " `dp.vector_domain(dp.atom_domain(T=str))`."
        )
    return dtype


def kinds_of_vector(domain: Domain) -> dict[str, ColumnKind]:
    """Describe the elements of a vector, as its only column; OpenDP lets no null in."""
    return {VALUES: kind_of(element_type(domain), nullable=False)}
