"""What is known of a column without reading it: the kind of its values, and no label, because a
type may carry labels out of the data. A polars Enum is the exception, whose labels somebody wrote.
"""

from dataclasses import dataclass
from typing import Literal

import polars as pl
from opendp.domains import _lazyframe_from_domain
from opendp.mod import Domain

from opendp_bayes.release_format.data import Value

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


@dataclass(frozen=True)
class ColumnKind:
    """Public knowledge of a column.

    Attributes
    ----------
    kind : of its values.
    type : the name of its type, without what the type holds.
    nullable : whether it may hold nulls.
    declared : the labels that a polars Enum was written with; None for every other type.
    """

    kind: Kind
    type: str
    nullable: bool = True
    declared: tuple[str, ...] | None = None


def kind_of(dtype: pl.DataType, *, nullable: bool = True) -> ColumnKind:
    """Describe a column of polars. Nothing else in the package reads the labels of a type."""
    name = dtype.base_type().__name__
    if isinstance(dtype, pl.Enum):
        return ColumnKind("text", name, nullable, tuple(dtype.categories))
    if isinstance(dtype, (pl.String, pl.Categorical)):
        return ColumnKind("text", name, nullable)
    if isinstance(dtype, pl.Boolean):
        return ColumnKind("boolean", name, nullable)
    return ColumnKind("integer" if dtype.is_integer() else "other", name, nullable)


def kinds_in(frame: pl.LazyFrame) -> dict[str, ColumnKind]:
    """Describe the columns of a frame, any of which may hold nulls."""
    return {name: kind_of(dtype) for name, dtype in frame.collect_schema().items()}


def types_of(domain: Domain) -> pl.Schema:
    """The types that a `LazyFrameDomain` gives its columns."""
    return _lazyframe_from_domain(domain).collect_schema()


def kinds_of(domain: Domain) -> dict[str, ColumnKind]:
    """Describe the columns of the frames of a `LazyFrameDomain`."""
    return {
        name: kind_of(dtype, nullable=domain.get_series_domain(name).nullable)
        for name, dtype in types_of(domain).items()
    }
