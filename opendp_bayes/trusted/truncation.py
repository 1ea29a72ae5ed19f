"""Limits on the rows of each identifier: the rule by which rows are kept, and whether a frame has
an order that such a rule can go by.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from opendp_bayes.trusted.boundary import ContractError

#: Steps of a frame, as polars carries it out, after which rows are in the order in which they were.
_IN_ORDER = {"Filter", "HStack", "Select", "SimpleProjection", "MapFunction", "Slice", "Cache"}
_IN_ORDER |= {"Union", "DataFrameScan", "Scan", "ipc scan"}
#: The rows, or the groups, that are kept: in the order of the frame or of the groups, in an order
#: that is drawn or by a hash, or in that of values that may tie.
Order = Literal["first", "last", "drawn", "sorted"]


@dataclass(frozen=True)
class RowLimit:
    """A limit on the rows of each identifier, or on its groups.

    Attributes
    ----------
    most : int
        The number that is kept, of groups one more.
    order : Order
        Which are kept.
    keys : tuple[str, ...]
        The columns whose values have so many rows each, an identifier among them; empty text for
        one that is computed.
    groups : tuple[str, ...]
        The columns that make groups, in like manner; empty where rows are limited.
    columns : frozenset[str]
        The names of all columns that it reads.
    """

    most: int
    order: Order
    keys: tuple[str, ...]
    groups: tuple[str, ...]
    columns: frozenset[str]

    @property
    def by_order(self) -> bool:
        """True if rows are kept by their order in the frame. Those that are sorted by a column
        still begin with it.
        """
        return not self.groups and self.order != "drawn"

    @property
    def rule(self) -> str:
        """The limit in words; empty for one that fixes nothing, or goes by computed columns."""
        if self.order not in ("first", "last") or not all((*self.keys, *self.groups)):
            return ""
        counted = _counted(self.most, "row")
        if self.groups:
            counted = f"{_counted(self.most - 1, 'group')} by {', '.join(self.groups)}"
        return f"the {self.order} {counted} of each {', '.join(self.keys)}"


@dataclass(frozen=True)
class Truncation:
    """Limits on the rows of each identifier, as a plan has them.

    Attributes
    ----------
    any : bool
        Whether there is one.
    by_order : bool
        Whether rows are kept by their order in the frame, whether or not `kept` has words for it,
        rather than at random or by values of their groups.
    kept : str
        Which rows are kept, in words, if a fixed rule decides it: the first ones, the last ones, or
        those of the least or greatest groups. Empty where no rows are limited, where some are drawn
        or ordered by values that may tie, and for limits by computed columns.
    """

    any: bool = False
    by_order: bool = False
    kept: str = ""

    @classmethod
    def of(cls, limits: Sequence[RowLimit]) -> "Truncation":
        """Put the limits of a plan together, the first one first."""
        rules = [limit.rule for limit in limits]
        rules_in_words = "; of these ".join(rules) if all(rules) else ""
        return cls(bool(limits), any(limit.by_order for limit in limits), rules_in_words)


def _counted(number: int, noun: str) -> str:
    return noun if number == 1 else f"{number} {noun}s"


def require_order(frame: pl.LazyFrame) -> None:
    """Raise `ContractError` for a frame that limits rows whose order polars may decide otherwise
    each time, or one record more may change for others. Reads no rows.
    """
    steps = list(_steps_in_order(frame._ldf.visit(), limited=False))
    if not steps or not all(steps):  # without a step, the limit was not seen
        raise ContractError(
            "the plan keeps the first or last rows of each identifier, and the frame has no fixed"
            " order: it joins, groups, sorts, shuffles or makes rows unique, or polars does not say"
            " what it does. Let these keep the order, with maintain_order=, or draw the rows, with"
            " keep='sample'."
        )


def _steps_in_order(visitor: Any, *, limited: bool) -> Iterator[bool]:
    """For each step of a frame up to the last limit, beginning there, whether those before it
    decide its order.
    """
    try:
        node = visitor.view_current_node()
    except NotImplementedError as error:  # a step that polars has no view of, by its name
        in_order = str(error) in _IN_ORDER
    else:
        exprs = [
            expression
            for expr in visitor.get_exprs()
            for expression in _expressions(visitor, expr.node)
        ]
        if is_filter := type(node).__name__ == "Filter":  # which moves no row
            limited |= any(type(expr).__name__ in ("Window", "str") for expr in exprs)
        in_order = _in_order(node) and (is_filter or not any(map(_reorders, exprs)))
    if limited:
        yield in_order
    for number in visitor.get_inputs():
        visitor.set_node(number)
        yield from _steps_in_order(visitor, limited=limited)


def _expressions(visitor: Any, number: int) -> Iterator[Any]:
    """An expression and all that it is made of; one that polars has no view of by its name."""
    try:
        expr = visitor.view_expression(number)
    except NotImplementedError as error:
        yield str(error)
        return
    yield expr
    for side in ("left", "right", "expr", "input", "function"):
        inner = getattr(expr, side, [])
        for node in inner if isinstance(inner, list) else [inner]:
            yield from _expressions(visitor, node)


def _reorders(expr: Any) -> bool:
    """True if an expression, of all columns, makes another order of rows, as steps of a frame do
    that have no `maintain_order`.
    """
    match type(expr).__name__:
        case "SortBy":
            return not expr.sort_options[0]
        case "Function":
            return bool(expr.function_data == ("unique", False))
        case _:
            return bool(expr == "random")  # shuffle and sample


def _in_order(node: Any) -> bool:
    match type(node).__name__:
        case "Sort":
            return bool(node.sort_options[0])
        case "Distinct":
            return bool(node.options[2])
        case "Join":
            return node.options[-1] in ("left_right", "right_left")
        case "GroupBy":
            return bool(node.maintain_order)
        case step:
            return step in _IN_ORDER
