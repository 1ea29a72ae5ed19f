"""Limits on the rows of each identifier: the rule by which rows are kept, and whether a frame has
an order that such a rule can go by.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from opendp_bayes.trusted.boundary import ContractError
from opendp_bayes.trusted.plan_validation import LIMITING, ROW_NUMBERS, steps_of, written
from opendp_bayes.trusted.plan_values import named

#: Steps of a frame, as polars carries it out, after which rows are in the order in which they were.
_IN_ORDER = {"Filter", "HStack", "Select", "SimpleProjection", "MapFunction", "Slice", "Cache"}
_IN_ORDER |= {"Union", "DataFrameScan", "Scan", "ipc scan"}


@dataclass(frozen=True)
class Truncation:
    """Limits on the rows of each identifier, as a plan has them.

    Attributes
    ----------
    any : bool
        Whether there is one: a window.
    by_order : bool
        Whether rows are kept by their order in the frame, whether or not `kept` has words for it,
        rather than at random or by values of their groups.
    kept : str
        Which rows are kept, in words, if a fixed rule decides it: the first ones, the last ones, or
        those of the least or greatest groups. Empty where no rows are limited, where some are drawn
        or ordered by values that may tie, and for limits of another form than OpenDP's.
    """

    any: bool = False
    by_order: bool = False
    kept: str = ""

    @classmethod
    def of(cls, plan: pl.LazyFrame) -> "Truncation":
        """Read a plan that has passed `check_plan`; nothing of it is carried out."""
        node = written(plan)
        filters = [body["predicate"] for step, body in steps_of(node) if step == "Filter"]
        rules = [_rule(predicate) for predicate in reversed(filters) if _limits(predicate)]
        kept = "; of these ".join(rules) if all(rules) else ""
        return cls(_limits(node), _numbers_in_order(node), kept)


def _numbers_in_order(node: Any) -> bool:
    """True if the numbers of rows are anywhere in a node, and not shuffled. Those that are sorted
    by a column still begin with the order of the frame.
    """
    if node == ROW_NUMBERS:
        return True
    if isinstance(node, dict) and "Random" in (node.get("function") or ()):
        return False
    return any(map(_numbers_in_order, _parts(node)))


def _limits(node: Any) -> bool:
    """True if a window is anywhere in a node."""
    return (isinstance(node, dict) and "Over" in node) or any(map(_limits, _parts(node)))


def _parts(node: Any) -> Iterable[Any]:
    return node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()


def _rule(predicate: Any) -> str:
    """One limit in words; empty for one that fixes nothing, or has another form."""
    kind, body = named(predicate)
    if kind != "BinaryExpr" or body["op"] not in LIMITING:
        return ""
    sides = [body[side] for side in LIMITING[body["op"]]]
    match sides:
        case [
            {"Over": {"function": {"Function": function}, "partition_by": keys}},
            {"Literal": {"Dyn": {"Int": most}}},
        ]:
            most += body["op"] in ("LtEq", "GtEq")
            of = _names(keys)
        case _:
            return ""
    match function:
        case _ if {"Function": function} == ROW_NUMBERS:
            return of and f"the first {_counted(most, 'row')} of each {of}"
        case {"function": "Reverse", "input": [inner]} if inner == ROW_NUMBERS:
            return of and f"the last {_counted(most, 'row')} of each {of}"
        case {
            "function": {"Rank": {"options": {"method": "Dense", "descending": last}}},
            "input": [{"Function": {"function": "AsStruct", "input": groups}}],
        }:  # ranks begin at 1
            which, by = "last" if last else "first", _names(groups)
            return of and by and f"the {which} {_counted(most - 1, 'group')} by {by} of each {of}"
    return ""


def _names(keys: list[Any]) -> str:
    """The columns by name; empty if any is computed."""
    names = [key.get("Column", "") if isinstance(key, dict) else "" for key in keys]
    return ", ".join(names) if all(names) else ""


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
        exprs = [part for expr in visitor.get_exprs() for part in _expressions(visitor, expr.node)]
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
    for name in ("left", "right", "expr", "input", "function"):
        inner = getattr(expr, name, [])
        for part in inner if isinstance(inner, list) else [inner]:
            yield from _expressions(visitor, part)


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
        case name:
            return name in _IN_ORDER
