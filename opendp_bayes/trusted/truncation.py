"""Limits on the rows of each identifier: the rule by which rows are kept, and whether a frame has
an order that such a rule can go by.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from opendp_bayes.trusted.boundary import ContractError

#: Steps of a frame, as polars carries it out, after which rows are in the order in which they were.
_IN_ORDER = {
    *("HStack", "Select", "SimpleProjection", "MapFunction", "Slice", "Cache"),
    *("Union", "DataFrameScan", "Scan", "ipc scan"),
}
#: Expressions, by polars' names of their nodes and functions, whose values are at the places of
#: the rows, where those of their parts are; and what holds their parts.
_IN_PLACE = {
    *("BinaryExpr", "Cast", "Column", "Literal", "Ternary"),
    *("BooleanFunction", "StringFunction", "TemporalFunction"),
    *("abs", "as_struct", "ceil", "clip", "coalesce", "fill_null", "floor", "negate"),
    *("replace", "replace_strict", "reverse", "round"),
}
_PARTS = "left", "right", "expr", "input", "predicate", "truthy", "falsy"
#: The rows that are kept: in the order of the frame, or drawn.
Order = Literal["first", "last", "drawn"]


@dataclass(frozen=True)
class RowLimit:
    """A limit on the rows of each identifier.

    Attributes
    ----------
    most : int
        The number that is kept.
    order : Order
        Which are kept.
    keys : tuple[str, ...]
        The columns whose values have so many rows each, an identifier among them.
    """

    most: int
    order: Order
    keys: tuple[str, ...]

    @property
    def rule(self) -> str:
        """The limit in words; empty for one that draws rows."""
        if self.order == "drawn":
            return ""
        rows = "row" if self.most == 1 else f"{self.most} rows"
        return f"the {self.order} {rows} of each {', '.join(self.keys)}"


def rule_of(limits: Sequence[RowLimit]) -> str:
    """The fixed rule by which rows are kept, in words: the first ones, or the last ones. Empty
    where no rows are limited, or some are drawn.
    """
    rules = [limit.rule for limit in limits]
    return "; of these ".join(rules) if all(rules) else ""


def require_order(frame: pl.LazyFrame, limits: Sequence[RowLimit]) -> None:
    """Raise `ContractError` where rows are kept by their order in a frame, and polars may decide
    that order otherwise each time, or one record more may change it for others. Reads no rows.
    """
    by_order = any(limit.order != "drawn" for limit in limits)
    if by_order and not all(_steps_in_order(frame._ldf.visit())):
        raise ContractError(
            "the plan keeps the first or last rows of each identifier, and the frame has no fixed"
            " order: it joins, groups, sorts, shuffles or makes rows unique, or computes what is"
            " not known to be of each row alone. Write it in its order first, by"
            " frame.sink_parquet(path), and open the Context on that file; or draw the rows, with"
            " keep='sample'."
        )


def _steps_in_order(visitor: Any) -> Iterator[bool]:
    """For each step of a frame, whether it leaves the rows in their order."""
    try:
        step = type(visitor.view_current_node()).__name__
    except NotImplementedError as error:  # a step that polars has no view of, by its name
        yield str(error) in _IN_ORDER
    else:
        in_place = (_is_in_place(visitor, expr.node) for expr in visitor.get_exprs())
        yield step == "Filter" or (step in _IN_ORDER and all(in_place))
    for number in visitor.get_inputs():
        visitor.set_node(number)
        yield from _steps_in_order(visitor)


def _is_in_place(visitor: Any, number: int) -> bool:
    """True if an expression is known to have the value of each row at its place, and its parts
    have.
    """
    try:
        expr = visitor.view_expression(number)
    except NotImplementedError as error:  # one that polars has no view of, by its name
        return str(error) == "cut"
    kind = type(expr).__name__
    if kind == "Function":
        function = expr.function_data[0]
        kind = function if isinstance(function, str) else type(function).__name__
    sides = (getattr(expr, side, []) for side in _PARTS)
    parts = (part for side in sides for part in (side if isinstance(side, list) else [side]))
    return kind in _IN_PLACE and all(_is_in_place(visitor, part) for part in parts)
