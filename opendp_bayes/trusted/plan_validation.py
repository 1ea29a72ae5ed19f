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
    constants,
    expressions,
    fields,
    function_of,
    is_literal,
    named,
    type_among,
    type_of,
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
        type_among(rows, predicate, ("Boolean",), "a condition")
        return rows
    return replace(rows, bounded=rows.bounded.union(limit.keys), limits=(*rows.limits, limit))


def _with_columns(rows: Rows, body: Any) -> Rows:
    _, nodes, _ = fields(body, "input exprs options")
    return _made_of(rows, nodes, rows.frame.with_columns)


def _select(rows: Rows, body: Any) -> Rows:
    _, nodes, _ = fields(body, "input expr options")
    made = _made_of(rows, nodes, rows.frame.select)
    if not any(expr.meta.root_names() for expr in expressions(nodes)):
        raise RefusedError("select of constants alone", "constants")
    return made


def _made_of(rows: Rows, nodes: list[Any], step: Callable[[list[pl.Expr]], pl.LazyFrame]) -> Rows:
    for node in nodes:
        type_of(rows, node)
    exprs = expressions(nodes)
    names = [expr.meta.output_name() for expr in exprs]
    computed = {name for name, node in zip(names, nodes, strict=True) if node != {"Column": name}}
    for column in sorted(rows.bounded & computed):
        raise RefusedError(repr(column), "stale")
    return replace(rows, frame=step(exprs), computed=rows.computed | computed)


def _limit(rows: Rows, node: Any) -> RowLimit | None:
    """The limit on the rows of an identifier that a predicate is, as OpenDP writes it; None for
    another predicate. OpenDP checks that `over` names the identifier.
    """
    if named(node)[0] != "BinaryExpr":
        return None
    window, operator, most = fields(node["BinaryExpr"], "left op right")
    if named(window)[0] != "Over" or operator != "Lt":
        return None
    numbers, keys, *options = fields(window["Over"], "function partition_by order_by mapping")
    which = next((which for which, written in _NUMBERS.items() if numbers == written), None)
    if which is None or options != [None, "GroupsToRows"]:
        raise RefusedError("Over")
    for key in keys:
        if named(key)[0] != "Column":
            raise RefusedError("truncation by a computed column", "key")
        type_among(rows, key, (*COMPARED, "Categorical"), "truncation by groups")
    return RowLimit(_whole(most), which, tuple(key["Column"] for key in keys))


def _whole(limit: Any) -> int:
    """A limit, which is a whole number: of 1.5 OpenDP counts one row, and polars keeps two."""
    numbers = constants(limit).to_list() if is_literal(limit) else []
    if [type(number) for number in numbers] != [int]:
        shown = ", ".join(map(repr, numbers)) or named(limit)[0]
        raise RefusedError(f"a limit of {shown}", "limit")
    return int(numbers[0])


_STEPS: dict[str, Callable[[Rows, Any], Rows]] = {
    "Filter": _filter,
    "HStack": _with_columns,
    "Select": _select,
}
_WRITTEN = {"Filter": "filter", "HStack": "with_columns", "Select": "select"}
#: `pl.int_range(pl.len())`
_IN_ORDER = {
    "Function": {
        "input": [{"Literal": {"Dyn": {"Int": 0}}}, "Len"],
        "function": {"Range": {"IntRange": {"step": 1, "dtype": {"Literal": "Int64"}}}},
    }
}
_SHUFFLE = {"Random": {"method": "Shuffle", "seed": None}}
#: The numbers of rows, by which rows are kept.
_NUMBERS: dict[Order, Any] = {
    "first": _IN_ORDER,
    "last": {"Function": {"input": [_IN_ORDER], "function": "Reverse"}},
    "drawn": {"Function": {"input": [_IN_ORDER], "function": _SHUFFLE}},
}
