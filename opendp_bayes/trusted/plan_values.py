"""Expressions of a plan, as polars writes them, read down to columns and constants: each is looked
up in `plan_kinds`, and refused by name if it is not there.
"""

import io
import json
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from opendp_bayes.trusted.boundary import silenced
from opendp_bayes.trusted.plan_kinds import (
    CASTS,
    CONSTANTS,
    EXPRESSIONS,
    OPERATORS,
    REFUSED,
    TYPES,
)

_DIVISIONS = ("Divide", "TrueDivide", "FloorDivide", "Modulus")
_ORDERS, _BITS = ("Lt", "LtEq", "Gt", "GtEq"), ("And", "Or", "Xor")
#: How polars' namespaces are written by users.
_SPACES = {"StringExpr": "str", "TemporalExpr": "dt", "ListExpr": "list", "ArrayExpr": "arr"}
_SPACES |= {"BinaryExpr": "bin", "StructExpr": "struct", "Categorical": "cat", "Boolean": ""}


class RefusedError(ValueError):
    """A part of a plan is refused: the message says which, why, and what to do.

    `name` is polars' own, whose parts are looked up in `REFUSED`; or any other text, with `why`,
    the entry there.
    """

    def __init__(self, name: str, why: str | None = None) -> None:
        parts = name.split(".") if why is None else [why]
        reason, remedy = REFUSED[next((part for part in parts if part in REFUSED), "")]
        super().__init__(f"{_shown(parts) if why is None else name} {reason}. {remedy}.")


@dataclass(frozen=True)
class Rows:
    """Knowledge of the rows at one step of a plan.

    Attributes
    ----------
    coded : the columns that are Categorical, or hold one.
    bounded : the names of columns by whose groups Bounds were stated.
    stale : those that were computed anew since, so that these Bounds are not about their groups.
    plan : that gives these rows, as polars writes it.
    """

    coded: frozenset[str]
    bounded: frozenset[str] = frozenset()
    stale: frozenset[str] = frozenset()
    plan: Any = None


@dataclass(frozen=True)
class Value:
    """An expression: the column it is called, whether it is a Categorical, and whether it has a
    value for each row rather than one for all.
    """

    name: str
    coded: bool = False
    of_rows: bool = True


def named(node: Any) -> tuple[str, Any]:
    """Return the kind of a node and its body."""
    if isinstance(node, str):
        return node, None
    if isinstance(node, dict) and len(node) == 1:
        (item,) = node.items()
        return item
    raise RefusedError("a step of unknown form", "")


def fields(body: Any, names: str) -> list[Any]:
    """The fields of a node, which must be those that are known, none more and none less."""
    wanted = names.split()
    if not isinstance(body, dict) or set(body) != set(wanted):
        raise RefusedError("a step with unknown arguments", "")
    return [body[name] for name in wanted]


def columns_of(node: Any) -> frozenset[str]:
    """The names of the columns that are read anywhere in a node."""
    nodes = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = {node["Column"]} if isinstance(node, dict) and "Column" in node else set()
    return frozenset(own).union(*map(columns_of, nodes))


def is_coded(dtype: Any) -> bool:
    """True if a type, as polars writes it, is a Categorical or holds one."""
    return "Categorical" in json.dumps(dtype)


def value_of(rows: Rows, node: Any) -> Value:
    """An expression of one row, checked with all that it is made of."""
    kind, body = named(node)
    if kind in _FORMS:
        return _FORMS[kind](rows, body)
    if kind != "Function":
        raise RefusedError(named(body)[0] if kind == "Agg" else kind)
    inputs, function = fields(body, "input function")
    kind, arguments = _function(function)
    if kind not in EXPRESSIONS or kind in _FORMS:
        raise RefusedError(kind)
    if kind == "Cut" and arguments["include_breaks"]:
        raise RefusedError("cut with include_breaks", "")
    if kind in ("Replace", "ReplaceStrict"):
        return _replaced(rows, inputs, arguments)
    if kind == "StringExpr.Strptime":
        _check_format(arguments)
    if kind == "FillNull" and _any_floats(rows, *inputs) and not _any_floats(rows, node):
        raise RefusedError("fill_null of floats with text", "zero")
    if (of := EXPRESSIONS[kind].of) and (found := _family(rows, inputs[0])) not in of:
        raise RefusedError(f"{_shown(kind.split('.'))} of {found}", "fails")
    if EXPRESSIONS[kind].by_label:
        (inner,) = inputs
        return replace(value_of(rows, inner), coded=False)
    return replace(_made_of(rows, *inputs), coded=kind == "Cut")


def plain_value(rows: Rows, node: Any) -> Value:
    """An expression whose value is not a Categorical."""
    value = value_of(rows, node)
    if value.coded:
        raise RefusedError(repr(value.name), "codes")
    return value


def current_value(rows: Rows, node: Any) -> Value:
    """An expression that groups go by, in which no column was computed anew."""
    for name in sorted(columns_of(node) & rows.stale):
        raise RefusedError(repr(name), "stale")
    return value_of(rows, node)


def types_of(before: Any, nodes: list[Any]) -> list[pl.DataType]:
    """The types of expressions of the rows after a step, from polars. Reads nothing."""
    aliases = [{"Alias": [node, str(at)]} for at, node in enumerate(nodes)]
    options = {"run_parallel": True, "duplicate_check": True, "should_broadcast": True}
    written = {"Select": {"input": before, "expr": aliases, "options": options}}
    try:
        with silenced():
            plan = pl.LazyFrame.deserialize(io.StringIO(json.dumps(written)), format="json")
        return plan.collect_schema().dtypes()
    except Exception:  # noqa: BLE001 - polars promises no kind
        # It also takes at most 128 levels.
        raise RefusedError(
            "an infinite or undefined literal before group_by, or some 40 steps and functions in"
            " each other,",
            "",
        ) from None


def _column(rows: Rows, name: Any) -> Value:
    return Value(name, name in rows.coded)


def _alias(rows: Rows, body: Any) -> Value:
    inner, name = body
    return replace(value_of(rows, inner), name=name)


def _constant(rows: Rows, body: Any) -> Value:
    kind, of = named(body)
    if kind in ("Dyn", "Scalar"):
        kind, _ = named(of)
    if kind not in CONSTANTS:
        raise RefusedError("Series" if kind in ("Series", "List", "Range") else kind)
    return Value("literal", of_rows=False)


def _binary(rows: Rows, body: Any) -> Value:
    left, op, right = fields(body, "left op right")
    if op not in OPERATORS:
        raise RefusedError(str(op))
    value = _made_of(rows, left, right)
    _check_operands(rows, op, left, right)
    if op in _DIVISIONS and (op == "TrueDivide" or _any_floats(rows, left, right)):
        raise RefusedError("division with floats", "division")
    return value


def _check_operands(rows: Rows, op: str, left: Any, right: Any) -> None:
    """Check that an operator fails at no values of the types of its operands."""
    if op not in (*_DIVISIONS, *_ORDERS, *_BITS):
        return
    literals = [node for node in (left, right) if named(node)[0] == "Literal"]
    of_rows = [node for node in (left, right) if node not in literals]
    types = types_of(rows.plan, of_rows) if of_rows else []
    constants: list[pl.Series] = []
    with suppress(pl.exceptions.PolarsError):  # an infinite number, which polars does not read back
        constants += [pl.select(_as_expression(node)).to_series() for node in literals]
    types += [each.dtype for each in constants]
    booleans = [dtype == pl.Boolean for dtype in types]
    if any(booleans) and (op in _DIVISIONS or (op in _BITS and not all(booleans))):
        raise RefusedError(f"{op.lower()} of a Boolean", "fails")
    enums = [dtype for dtype in types if isinstance(dtype, pl.Enum)]
    labels = enums[0].categories.to_list() if op in _ORDERS and len(enums) == 1 else None
    if labels is not None and not (constants and constants[0].item() in labels):
        raise RefusedError("the order of an Enum and of what is none of its labels", "fails")


def _check_format(arguments: Any) -> None:
    """Check that a format fails at no text, and that times are those of no zone, which leaves some
    of them out.
    """
    dtype, options = arguments
    if options["format"] is None:
        raise RefusedError("StringExpr.Strptime")
    if "inner" in json.dumps(dtype):
        raise RefusedError("a format with a time zone", "fails")
    ambiguous = {"Literal": {"Scalar": {"String": "raise"}}}
    function = {"StringExpr": {"Strptime": [dtype, options | {"strict": False}]}}
    node = {"Function": {"input": [{"Column": "c"}, ambiguous], "function": function}}
    try:
        with silenced():
            pl.DataFrame({"c": ["2000-01-01 10:00:00", "a"]}).select(_as_expression(node))
    except pl.exceptions.PolarsError:
        raise RefusedError(f"the format {options['format']!r}", "fails") from None


def _ternary(rows: Rows, body: Any) -> Value:
    predicate, truthy, falsy = fields(body, "predicate truthy falsy")
    return _made_of(rows, truthy, falsy, predicate)


def _cast(rows: Rows, body: Any) -> Value:
    inner, dtype, _ = fields(body, "expr dtype options")
    value, to = value_of(rows, inner), _type(dtype)
    if value.coded and to not in ("String", "Enum"):
        raise RefusedError(repr(value.name), "codes")
    of = _family(rows, inner)
    if to in ("String", "Enum") and of == "float":
        raise RefusedError(f"cast of a float to {to}", "zero")
    family = re.sub(r"^U?Int\d+$", "integer", re.sub(r"^Float\d+$", "float", to))
    if not value.coded and of not in CASTS[family] | {"Null"}:
        raise RefusedError(f"cast of {of} to {to}", "fails")
    return replace(value, coded=False)


def _family(rows: Rows, node: Any) -> str:
    """The type of an expression by name, all integers, and all floats, by one."""
    (dtype,) = types_of(rows.plan, [node])
    names = {dtype.is_integer(): "integer", dtype.is_float(): "float"}
    return names.get(True, str(dtype.base_type()))


def _any_floats(rows: Rows, *nodes: Any) -> bool:
    return any(dtype.is_float() for dtype in types_of(rows.plan, list(nodes)))


def _made_of(rows: Rows, *nodes: Any) -> Value:
    """A value of others, called after the first."""
    values = [plain_value(rows, node) for node in nodes]
    return replace(values[0], of_rows=any(value.of_rows for value in values))


def _replaced(rows: Rows, inputs: list[Any], arguments: Any) -> Value:
    """A mapping from constants to constants, none of which is a Categorical."""
    value, *constants = inputs
    if isinstance(arguments, dict) and arguments["return_dtype"] is not None:
        _type(arguments["return_dtype"])
    for node in constants:
        if named(node)[0] != "Literal":
            raise RefusedError("replace by values of rows", "")
        if name := _not_plain(node):
            raise RefusedError(name)
    return plain_value(rows, value)


def _not_plain(node: Any) -> str | None:
    """The type of the values of a constant or a list of constants, unless it is an accepted one."""
    (dtype,) = pl.select(_as_expression(node)).schema.dtypes()
    name = str((dtype.inner if isinstance(dtype, pl.List) else dtype).base_type())
    return None if name in TYPES | {"Null"} else name


def _as_expression(node: Any) -> pl.Expr:
    with silenced():
        return pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")


def _type(dtype: Any) -> str:
    """The name of an accepted type to cast to."""
    kind, of = named(dtype)
    name = named(of)[0] if kind == "Literal" else kind
    if name not in TYPES:
        raise RefusedError(name)
    return name


def _function(node: Any) -> tuple[str, Any]:
    """The name of a function, after its namespace where it has one, and its arguments."""
    kind, arguments = named(node)
    inner = next(iter(arguments)) if isinstance(arguments, dict) else arguments
    if not isinstance(inner, str) or not inner[:1].isupper():  # the name of an argument
        return kind, arguments
    inner, arguments = named(arguments)
    return f"{kind}.{inner}", arguments


def _shown(parts: list[str]) -> str:
    """Name of a kind as users of polars write it: `StringExpr.Contains` is `str.contains`."""
    *spaces, last = (re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", part).lower() for part in parts)
    known = (_SPACES.get(part, space) for part, space in zip(parts, spaces, strict=False))
    return ".".join(filter(None, (*known, last)))


_FORMS = {
    "Column": _column,
    "Alias": _alias,
    "Literal": _constant,
    "BinaryExpr": _binary,
    "Ternary": _ternary,
    "Cast": _cast,
}
