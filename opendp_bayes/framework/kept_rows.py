"""Limits on the rows of each identifier: the rule by which rows are kept, and whether a frame has
an order that such a rule can go by.
"""

from collections.abc import Iterator
from typing import Any

import polars as pl

from opendp_bayes.framework.boundary import ContractError
from opendp_bayes.framework.plan_gate import COMPARED, ROW_NUMBERS, written
from opendp_bayes.framework.plan_values import named

#: Steps of a plan after which rows are in the order in which they were.
_ROW_BY_ROW = ("Filter", "HStack", "Select")
#: The same of a frame, as polars carries it out.
_IN_ORDER = {*_ROW_BY_ROW, "SimpleProjection", "MapFunction", "Slice", "Cache", "Union"}
_IN_ORDER |= {"DataFrameScan", "Scan", "ipc scan"}


def kept_rows(plan: pl.LazyFrame) -> str:
    """Say which rows of each identifier a plan keeps, if a fixed rule decides it: the first ones,
    the last ones, or those of the least or greatest groups.

    Empty where no rows are limited, where some are drawn or ordered by values that may tie, and for
    limits of another form than OpenDP's. The plan has passed `check_plan`; nothing of it is carried
    out.
    """
    rules: list[str] = []
    step, body = named(written(plan))
    while step != "DataFrameScan":
        if step == "IR":
            step, body = named(body["dsl"])
            continue
        if step not in _ROW_BY_ROW:
            return ""
        if step == "Filter" and _limits(body["predicate"]):
            rules.insert(0, _rule(body["predicate"]))
        step, body = named(body["input"])
    return "; of these ".join(rules) if all(rules) else ""


def _limits(node: Any) -> bool:
    """True if a window is anywhere in a predicate."""
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return (isinstance(node, dict) and "Over" in node) or any(map(_limits, parts))


def _rule(predicate: Any) -> str:
    """One limit in words; empty for one that fixes nothing, or has another form."""
    kind, body = named(predicate)
    if kind != "BinaryExpr" or body["op"] not in COMPARED:
        return ""
    sides = [body[side] for side in COMPARED[body["op"]]]
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
    """Raise `ContractError` for a frame whose rows polars may give in another order each time, or
    where one record more may change the order of others. Reads no rows.
    """
    if not all(_steps_in_order(frame._ldf.visit())):
        raise ContractError(
            "the plan keeps the first or last rows of each identifier, and the frame has no fixed"
            " order: it joins, groups, sorts or makes rows unique, or polars does not say what it"
            " does. Let these keep the order, with maintain_order=, or draw the rows, with"
            " keep='sample'."
        )


def _steps_in_order(visitor: Any) -> Iterator[bool]:
    """For each step of a frame, from the last one, whether those before it decide its order."""
    try:
        yield _in_order(visitor.view_current_node())
    except NotImplementedError as error:  # a step that polars has no view of, by its name
        yield str(error) in _IN_ORDER
    for number in visitor.get_inputs():
        visitor.set_node(number)
        yield from _steps_in_order(visitor)


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
