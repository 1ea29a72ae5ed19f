"""The gate for plans: every step and expression is looked up in `plan_allowlist`, and any other is
refused by name, before anything is read.

OpenDP 0.16 has a check of its own, which accepts category codes. They are numbered in the order in
which labels occur, so that one record may move the counts of all others (`docs/guarantee.md`).
polars writes a plan as JSON, which names every step, expression and argument, and holds no data.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from opendp_bayes.trusted.boundary import silenced
from opendp_bayes.trusted.plan_allowlist import COMPARED, STEPS
from opendp_bayes.trusted.plan_values import (
    RefusedError,
    Rows,
    Value,
    columns_of,
    constants,
    current_value,
    expressions,
    fields,
    function_of,
    is_literal,
    named,
    value_among,
    value_of,
)
from opendp_bayes.trusted.truncation import Order, RowLimit


def check_plan(plan: pl.LazyFrame, source: pl.LazyFrame, bounds: Any = ()) -> Rows:
    """Look at a plan, and say what is known of the rows after it. Raises `ValueError` where
    anything in it may depend on other rows than its own, apart from limits on the rows of an
    identifier.

    Parameters
    ----------
    plan : LazyFrame
        Of a query. Nothing of it is carried out.
    source : LazyFrame
        A frame with the columns and types that OpenDP's domain has.
    bounds : Any, optional
        The distance of the privacy unit; its Bounds may name columns to group by.
    """
    keys = [key for bound in bounds for key in bound.by] if isinstance(bounds, Sequence) else []
    exprs = [pl.col(key) if isinstance(key, str) else key for key in keys]
    bounded = frozenset(column for expr in exprs for column in expr.meta.root_names())
    try:
        return _rows(written(plan), source, bounded)
    except RefusedError as error:
        raise ValueError(f"query: {error} docs/guarantee.md lists what is accepted.") from None
    except RecursionError:
        raise ValueError(
            "query: its plan has steps or functions too deep in each other; must have at most some"
            " 400 steps, and 60 functions in one expression. Compute columns in the frame, before"
            " the Context is opened."
        ) from None


def written(plan: pl.LazyFrame) -> Any:
    """The plan as polars writes it; `ValueError` for one that it cannot write."""
    try:
        with silenced():  # polars will drop the JSON form; OpenDP pins the version that has it
            return json.loads(plan.serialize(format="json"))
    except RecursionError:
        raise
    except Exception as error:  # noqa: BLE001 - polars promises no kind
        raise ValueError(
            "query: polars cannot write its plan down, so nobody can see which rows it looks at;"
            f" leave out Python functions and objects. ({type(error).__name__})"
        ) from None


def _rows(node: Any, source: pl.LazyFrame, bounded: frozenset[str]) -> Rows:
    """The rows after a step, which is checked with all steps before it."""
    step, body = named(node)
    if step == "IR":
        return _rows(fields(body, "dsl version")[0], source, bounded)
    if step == "DataFrameScan":
        if fields(body, "df schema")[1] != written(source).get(step, {}).get("schema"):
            raise RefusedError("a frame with other columns or types than the Context's", "source")
        return Rows(source, bounded)
    if step not in STEPS:
        raise RefusedError(function_of(body["function"])[0] if step == "MapFunction" else step)
    rows = _rows(body["input"], source, bounded)
    try:
        return _STEPS[step](rows, body)
    except RefusedError as error:
        error.args = (f"{_WRITTEN[step]}: {error}",)
        raise


def _filter(rows: Rows, body: Any) -> Rows:
    _, predicate = fields(body, "input predicate")
    limit = _limit(rows, predicate)
    if limit is None:
        value_among(rows, predicate, ("Boolean",), "a condition")
        return rows
    return replace(rows, bounded=rows.bounded | limit.columns, limits=(*rows.limits, limit))


def _with_columns(rows: Rows, body: Any) -> Rows:
    _, exprs, _ = fields(body, "input exprs options")
    values = [value_of(rows, expr) for expr in exprs]
    return _made_of(rows, exprs, values, rows.frame.with_columns(expressions(exprs)))


def _select(rows: Rows, body: Any) -> Rows:
    _, exprs, _ = fields(body, "input expr options")
    values = [value_of(rows, expr) for expr in exprs]
    if not any(value.of_rows for value in values):
        raise RefusedError("select of constants alone", "constants")
    return _made_of(rows, exprs, values, rows.frame.select(expressions(exprs)))


def _made_of(rows: Rows, exprs: Any, values: list[Value], frame: pl.LazyFrame) -> Rows:
    pairs = zip(exprs, values, strict=True)
    computed = {value.name for expr, value in pairs if expr != {"Column": value.name}}
    return replace(
        rows,
        frame=frame,
        stale=rows.stale | (rows.bounded & computed),
        computed=rows.computed | computed,
    )


def _limit(rows: Rows, node: Any) -> RowLimit | None:
    """The limit on the rows of an identifier that a predicate is, as OpenDP writes it; None for
    another predicate. OpenDP checks that `over` names the identifier.
    """
    if named(node)[0] != "BinaryExpr":
        return None
    window, operator, most = fields(node["BinaryExpr"], "left op right")
    if named(window)[0] != "Over" or operator != "Lt":
        return None
    numbers, keys, order, mapping = fields(window["Over"], "function partition_by order_by mapping")
    if order is not None or mapping != "GroupsToRows":
        raise RefusedError("Over")
    for key in keys:
        current_value(rows, key, (*COMPARED, "Categorical"), "truncation by groups")
    which, groups = _numbering(rows, numbers)
    columns = columns_of([keys, numbers])
    return RowLimit(_whole(most), which, _names(keys), _names(groups), columns)


def _whole(limit: Any) -> int:
    """A limit, which is a whole number: of 1.5 OpenDP counts one row, and polars keeps two."""
    numbers = constants(limit).to_list() if is_literal(limit) else []
    if [type(number) for number in numbers] != [int]:
        shown = ", ".join(map(repr, numbers)) or named(limit)[0]
        raise RefusedError(f"a limit of {shown}", "limit")
    return int(numbers[0])


def _names(keys: list[Any]) -> tuple[str, ...]:
    """The columns by name; empty text for one that is computed."""
    return tuple(body if kind == "Column" else "" for kind, body in map(named, keys))


def _numbering(rows: Rows, node: Any) -> tuple[Order, list[Any]]:
    """The order in which a limit numbers the rows of an identifier, or its groups, and the keys of
    these.

    One change of the order of rows alone: polars 1.36 numbers rows of other identifiers as well
    when it sorts by several keys, and gives numbers twice when it sorts numbers that were turned
    around.
    """
    for numbers, order in _ORDERS:
        if node == numbers:
            return order, []
    match node:
        case {"SortBy": body}:
            numbers, keys, _ = fields(body, "expr by sort_options")
            if len(keys) != 1:
                raise RefusedError("sort_by of several columns", "keys")
            value_among(rows, keys[0], COMPARED, "sort_by")
            if numbers == ROW_NUMBERS:
                return "sorted", []
        case {"Function": {"input": [groups], "function": {"Rank": {"options": options}}}} if (
            options["method"] == "Dense"
        ):
            keys = _group_keys(groups)
            for key in keys:
                current_value(rows, key, COMPARED, "truncate_num_groups by groups")
            if groups != {"Function": {"input": keys, "function": "AsStruct"}}:
                return "drawn", keys
            return "last" if options["descending"] else "first", keys
    raise RefusedError("Over")


def _group_keys(node: Any) -> list[Any]:
    """The keys by which groups are numbered: values of a row, in a struct or a hash of one."""
    kind, body = named(node)
    if kind == "Function" and named(body["function"])[0] in ("AsStruct", "Hash"):
        return [key for input_node in body["input"] for key in _group_keys(input_node)]
    return [node]


_STEPS: dict[str, Callable[[Rows, Any], Rows]] = {
    "Filter": _filter,
    "HStack": _with_columns,
    "Select": _select,
}
_WRITTEN = {"Filter": "filter", "HStack": "with_columns", "Select": "select"}
#: `pl.int_range(pl.len())`
ROW_NUMBERS = {
    "Function": {
        "input": [{"Literal": {"Dyn": {"Int": 0}}}, "Len"],
        "function": {"Range": {"IntRange": {"step": 1, "dtype": {"Literal": "Int64"}}}},
    }
}
_SHUFFLE = {"Random": {"method": "Shuffle", "seed": None}}
#: The numbers of rows, and in which order rows are kept by them.
_ORDERS: list[tuple[Any, Order]] = [
    (ROW_NUMBERS, "first"),
    ({"Function": {"input": [ROW_NUMBERS], "function": "Reverse"}}, "last"),
    ({"Function": {"input": [ROW_NUMBERS], "function": _SHUFFLE}}, "drawn"),
]
