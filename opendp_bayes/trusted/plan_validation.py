"""The gate for plans: every step and expression is looked up in `plan_allowlist`, and any other is
refused by name, before anything is read.

OpenDP 0.16 has a check of its own, which accepts category codes. They are numbered in the order in
which labels occur, so that one record may move the counts of all others (`docs/guarantee.md`).
polars writes a plan as JSON, which names every step, expression and argument, and holds no data.
"""

import json
from collections.abc import Callable, Iterator, Sequence
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
    current_value,
    expressions,
    fields,
    function_of,
    named,
    value_among,
    value_of,
)

#: Levels of objects and lists of a plan that is looked at, which takes some calls for each.
_MOST_LEVELS = 220
#: Comparisons of a limit: on which side the number of a row stands, and on which the limit.
LIMITING = {"Lt": ("left", "right"), "LtEq": ("left", "right")}
LIMITING |= {"Gt": ("right", "left"), "GtEq": ("right", "left")}


def check_plan(plan: pl.LazyFrame, source: pl.LazyFrame, bounds: Any = ()) -> None:
    """Raise `ValueError` for a plan in which anything may depend on other rows than its own, apart
    from limits on the rows of an identifier.

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
    bounded = frozenset(name for expr in exprs for name in expr.meta.root_names())
    try:
        _rows(written(plan), source, bounded)
    except RefusedError as error:
        raise ValueError(f"query: {error} docs/guarantee.md lists what is accepted.") from None


def is_kept(name: str, plan: pl.LazyFrame, source: pl.LazyFrame) -> bool:
    """True if a column of the source is surely what it was after a plan that `check_plan` has
    passed: no step computes it anew.
    """
    try:
        rows = _rows(written(plan), source, frozenset({name}))
    except RefusedError:  # a later step limits groups of the column, which was computed anew
        return False
    return name in rows.bounded - rows.stale


def steps_of(node: Any) -> Iterator[tuple[str, Any]]:
    """The steps of a plan that `check_plan` has passed, the last one first."""
    step, body = named(node)
    while step != "DataFrameScan":
        if step != "IR":
            yield step, body
        step, body = named(body["dsl"] if step == "IR" else body["input"])


def _schema(source: pl.LazyFrame) -> Any:
    scanned = written(source).get("DataFrameScan")
    if scanned is None:
        raise ValueError(
            "source: must be a frame in memory, as pl.LazyFrame(schema=...) makes one."
        )
    return scanned["schema"]


def written(plan: pl.LazyFrame) -> Any:
    """The plan as polars writes it; `ValueError` for one that it cannot write, or that is too deep
    to be looked at.
    """
    found: Any = None
    try:
        with silenced():  # polars will drop the JSON form; OpenDP pins the version that has it
            found = json.loads(plan.serialize(format="json"), object_hook=_with_closed_frame)
    except RecursionError:
        pass
    except Exception as error:  # noqa: BLE001 - polars promises no kind
        raise ValueError(
            "query: polars cannot write its plan down, so nobody can see which rows it looks at;"
            f" leave out Python functions and objects. ({type(error).__name__})"
        ) from None
    if found is None or _is_deep(found):
        raise ValueError(
            "query: its plan has steps or functions too deep in each other; must have at most"
            f" {_MOST_LEVELS} levels, which are some 100 steps, or 70 functions in one expression."
            " Compute columns in the frame, before the Context is opened."
        )
    return found


def _with_closed_frame(node: dict[str, Any]) -> dict[str, Any]:
    """Part of a plan, in which the bytes of a frame are a tuple: polars writes millions of them for
    an Enum of many labels, and nobody need look for steps there.
    """
    scan = node.get("DataFrameScan")
    if isinstance(scan, dict) and isinstance(scan.get("df"), list):
        scan["df"] = tuple(scan["df"])
    return node


def _is_deep(node: Any) -> bool:
    """True if more than `_MOST_LEVELS` objects or lists are in each other."""
    level = [node]
    for _ in range(_MOST_LEVELS):
        level = [
            part
            for one in level
            for part in (one.values() if isinstance(one, dict) else one)
            if isinstance(part, (dict, list))
        ]
    return bool(level)


def _rows(node: Any, source: pl.LazyFrame, bounded: frozenset[str]) -> Rows:
    """The rows after a step, which is checked with all steps before it."""
    step, body = named(node)
    if step == "IR":
        return _rows(fields(body, "dsl version")[0], source, bounded)
    if step == "DataFrameScan":
        if fields(body, "df schema")[1] != _schema(source):
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
    limited = _limited(rows, predicate)
    if limited is None:
        value_among(rows, predicate, ("Boolean",), "a condition")
        return rows
    return replace(rows, bounded=rows.bounded | limited)


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
    anew = {value.name for expr, value in pairs if expr != {"Column": value.name}}
    return Rows(frame, rows.bounded, rows.stale | (rows.bounded & anew))


def _limited(rows: Rows, node: Any) -> frozenset[str] | None:
    """The columns by whose groups a predicate limits the rows of an identifier; None for another
    predicate. OpenDP checks that `over` names the identifier.
    """
    kind, body = named(node)
    if kind == "Function" and body["function"] == {"Boolean": "AllHorizontal"}:
        return _all([_limited(rows, part) for part in body["input"]])
    if kind != "BinaryExpr":
        return None
    if body["op"] == "And":
        return _all([_limited(rows, body[side]) for side in ("left", "right")])
    window, limit = (body[side] for side in LIMITING.get(body["op"], ("left", "right")))
    if body["op"] not in LIMITING or named(window)[0] != "Over":
        return None
    function, by, order, mapping = fields(window["Over"], "function partition_by order_by mapping")
    if order is not None or mapping != "GroupsToRows" or columns_of(limit):
        raise RefusedError("Over")
    _check_whole(limit)
    for key in by:
        current_value(rows, key, (*COMPARED, "Categorical"), "truncation by groups")
    _check_numbers(rows, function)
    return columns_of([by, function])


def _check_whole(limit: Any) -> None:
    """Check that a limit is a whole number: of 1.5 OpenDP counts one row, and polars keeps two."""
    kind, value = named(limit)
    if kind == "Literal":
        kind, value = named(named(value)[1])
    if not kind.removeprefix("U").startswith("Int"):
        name = kind if value is None or isinstance(value, dict) else repr(value)
        raise RefusedError(f"a limit of {name}", "limit")


def _all(parts: list[frozenset[str] | None]) -> frozenset[str] | None:
    known = [part for part in parts if part is not None]
    return frozenset().union(*known) if len(known) == len(parts) else None


def _check_numbers(rows: Rows, node: Any) -> None:
    """Check how a limit numbers the rows of an identifier, or its groups.

    One change of their order alone: polars 1.36 numbers rows of other identifiers as well when it
    sorts by several keys, and gives numbers twice when it sorts numbers that were turned around.
    """
    if node == ROW_NUMBERS:
        return
    kind, body = named(node)
    if kind == "SortBy":
        inner, by, _ = fields(body, "expr by sort_options")
        if len(by) != 1:
            raise RefusedError("sort_by of several columns", "keys")
        value_among(rows, by[0], COMPARED, "sort_by")
    elif kind == "Function":
        (inner,), function = fields(body, "input function")
        kind, arguments = named(function)
        if kind == "Rank" and arguments["options"]["method"] == "Dense":
            _check_key(rows, inner)
            return
        if kind == "Random" and arguments["method"] == "Shuffle":
            if arguments["seed"] is not None:
                raise RefusedError(f"shuffle(seed={arguments['seed']})", "seed")
        elif kind != "Reverse":
            raise RefusedError("Over")
    else:
        raise RefusedError("Over")
    if inner != ROW_NUMBERS:
        raise RefusedError("Over")


def _check_key(rows: Rows, node: Any) -> None:
    """Check the key by which groups are numbered: values of a row, in a struct or a hash of one."""
    kind, body = named(node)
    if kind == "Function" and named(body["function"])[0] in ("AsStruct", "Hash"):
        for part in body["input"]:
            _check_key(rows, part)
    else:
        current_value(rows, node, COMPARED, "truncate_num_groups by groups")


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
