"""Expressions of a plan, as polars writes them, read down to columns and constants: each is looked
up in `plan_allowlist`, and refused by name if it is not there, or not for values of its type.
"""

import io
import json
import re
from dataclasses import dataclass
from typing import Any

import polars as pl

from opendp_bayes.trusted.boundary import silenced
from opendp_bayes.trusted.plan_allowlist import (
    CASTS,
    COMPARED,
    COMPARISON,
    CONSTANTS,
    FAMILIES,
    FUNCTIONS,
    NUMBERS,
    OPERATORS,
    QUOTIENT,
    REFUSED,
    WRITTEN,
)
from opendp_bayes.trusted.truncation import RowLimit

#: Characters of a constant, and of a label to cast to.
_LONGEST_TEXT = 1000
#: How polars' namespaces are written by users.
_SPACES = {
    "string_expr": "str",
    "temporal_expr": "dt",
    "list_expr": "list",
    "array_expr": "arr",
    "binary_expr": "bin",
    "struct_expr": "struct",
    "categorical": "cat",
    "boolean": "",
    "stats": "",
}
_BORDERS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class RefusedError(ValueError):
    """A part of a plan is refused: the message says which, why, and what to do.

    `name` is polars' own, whose parts are looked up in `REFUSED`; or any other text, with `why`,
    the entry there.
    """

    def __init__(self, step: str, why: str | None = None) -> None:
        parts = step.split(".") if why is None else [why]
        reason, remedy = REFUSED[next((word for word in parts if word in REFUSED), "")]
        super().__init__(f"{shown(step) if why is None else step} {reason}. {remedy}.")


@dataclass(frozen=True)
class Rows:
    """Knowledge of the rows at one step of a plan.

    Attributes
    ----------
    frame : LazyFrame
        With their columns and types, and without rows.
    bounded : frozenset[str]
        The names of columns by whose groups Bounds were stated, which no later step computes anew.
    computed : frozenset[str]
        The names of columns that were computed anew.
    limits : tuple[RowLimit, ...]
        The limits on the rows of each identifier, the first one first.
    """

    frame: pl.LazyFrame
    bounded: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()
    limits: tuple[RowLimit, ...] = ()


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


def type_of(rows: Rows, node: Any) -> pl.DataType:
    """The type of an expression of one row, which is checked with all that it is made of."""
    kind, body = named(node)
    match kind:
        case "Column":
            return _type_in(rows, node)
        case "Alias":
            return type_of(rows, body[0])
        case "Literal":
            return _constant(rows, node)
        case "BinaryExpr":
            return _of_two(rows, node)
        case "Cast":
            return _cast(rows, node)
        case "Function":
            return _of_function(rows, node)
        case "Agg":
            kind, _ = named(body)
    raise RefusedError(kind)


def type_among(rows: Rows, node: Any, families: tuple[str, ...], what: str) -> pl.DataType:
    """The type of an expression, one of some; messages name `what` it is needed for."""
    dtype = type_of(rows, node)
    _check_family(node, dtype, families, what)
    return dtype


def _check_family(node: Any, dtype: pl.DataType, families: tuple[str, ...], what: str) -> None:
    family = _family(dtype)
    if family in families:
        return
    if family == "Categorical":
        raise RefusedError(repr(expressions([node])[0].meta.output_name()), "codes")
    raise RefusedError(f"{what} of {family}", "float" if family == "float" else "fails")


def _family(dtype: pl.DataType) -> str:
    """The name of a type in `FAMILIES`, or polars' own."""
    return FAMILIES.get(dtype.base_type(), str(dtype.base_type()))


def expressions(nodes: list[Any]) -> list[pl.Expr]:
    """Expressions as polars reads them back, which takes at most 128 levels."""
    try:
        with silenced():
            return [
                pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json") for node in nodes
            ]
    except Exception:  # noqa: BLE001 - polars promises no kind
        raise RefusedError(
            "an infinite or undefined number, or some 40 functions in each other,", "back"
        ) from None


def _type_in(rows: Rows, node: Any) -> pl.DataType:
    """The type of an expression of checked parts, from polars."""
    frame = rows.frame.select(*expressions([node]))
    try:
        with silenced():
            (dtype,) = frame.collect_schema().dtypes()
    except Exception:  # noqa: BLE001 - polars promises no kind
        raise RefusedError("an expression that polars cannot carry out", "") from None
    return dtype


def is_literal(node: Any) -> bool:
    return named(node)[0] == "Literal"


def _constant(rows: Rows, node: Any) -> pl.DataType:
    kind, _ = named(node["Literal"])
    dtype = _type_in(rows, node)
    is_single = kind in ("Dyn", "Scalar") and not dtype.is_nested()
    if not is_single or _family(dtype) not in CONSTANTS:
        raise RefusedError(_family(dtype) if is_single else "Series")
    constants(node)
    return dtype


def constants(node: Any) -> pl.Series:
    """The values of a constant, or of a list of them."""
    (expr,) = expressions([node])
    values = pl.select(expr).to_series()
    values = values.explode() if values.dtype == pl.List else values
    _check_length(values)
    return values


def _check_length(texts: pl.Series) -> None:
    if texts.dtype == pl.String and (texts.str.len_chars() > _LONGEST_TEXT).any():
        raise RefusedError("a text", "long")


def _check_constant(node: Any, dtype: pl.DataType) -> None:
    """Check that a constant, or each of a list, is null or a value of a type, so that polars never
    fails to make it one.
    """
    values = constants(node)
    family, wanted = (FAMILIES.get(either.base_type()) for either in (values.dtype, dtype))
    fits = family == wanted or (family, wanted) in (("integer", "float"), ("String", "Enum"))
    try:
        if fits or values.dtype == pl.Null:
            values.cast(dtype, strict=True)
            return
    except pl.exceptions.PolarsError:
        pass
    raise RefusedError(f"a constant that is no {wanted or dtype}", "constant")


def _of_two(rows: Rows, node: Any) -> pl.DataType:
    """An operator of two values of one type, of one and a constant that its type has, or of two
    numbers that are compared.
    """
    left, op, right = fields(node["BinaryExpr"], "left op right")
    if op not in OPERATORS:
        raise RefusedError(str(op))
    accepted = OPERATORS[op]
    first, second = (type_among(rows, side, accepted.of, shown(op)) for side in (left, right))
    result = _type_in(rows, node)
    if accepted is COMPARISON and {_family(first), _family(second)} <= set(NUMBERS):
        return result
    if is_literal(right):
        _check_constant(right, first)
    elif is_literal(left):
        _check_constant(left, second)
    elif first != second:
        types = f"{first.base_type()} and {second.base_type()}"
        raise RefusedError(f"{shown(op)} of {types}, which are not the same type,", "fails")
    if accepted is QUOTIENT and (not is_literal(right) or constants(right).item() < 1):
        raise RefusedError(f"{shown(op)} by anything but a constant of at least 1", "fails")
    return result


def _cast(rows: Rows, node: Any) -> pl.DataType:
    inner, _, _ = fields(node["Cast"], "expr dtype options")
    dtype, result = type_of(rows, inner), _type_in(rows, node)
    family = _family(result)
    if family not in CASTS:
        raise RefusedError(f"cast to {family}", "Categorical" if family == "Categorical" else "")
    _check_family(inner, dtype, CASTS[family].of, f"cast to {family}")
    if isinstance(result, pl.Enum):
        _check_length(result.categories)
    return result


def _of_function(rows: Rows, node: Any) -> pl.DataType:
    """A function of one value, and of constants that its type has."""
    inputs, function = fields(node["Function"], "input function")
    kind, arguments = function_of(function)
    if kind not in FUNCTIONS:
        raise RefusedError(kind)
    first, *constants = inputs
    dtype = type_among(rows, first, FUNCTIONS[kind].of, shown(kind))
    if not all(map(is_literal, constants)):
        raise RefusedError(f"{shown(kind)} by values of rows", "constant")
    result = _type_in(rows, node)
    family = _family(result)
    if family not in (("Categorical",) if kind == "Cut" else COMPARED):
        raise RefusedError(f"{shown(kind)} to {family}", family if family in REFUSED else "")
    if kind == "Cut":
        _check_length(pl.Series(arguments["labels"] or [], dtype=pl.String))
    for position, constant in enumerate(constants):
        _check_constant(constant, result if position and kind == "ReplaceStrict" else dtype)
    if constants and result != dtype and kind != "ReplaceStrict":
        raise RefusedError(f"{shown(kind)} to {family}", "constant")
    return result


def function_of(node: Any) -> tuple[str, Any]:
    """The name of a function, after its namespace where it has one, and its arguments."""
    kind, arguments = named(node)
    inner = next(iter(arguments)) if isinstance(arguments, dict) else arguments
    if not isinstance(inner, str) or not inner[:1].isupper():  # the name of an argument
        return kind, arguments
    inner, arguments = named(arguments)
    return f"{kind}.{inner}", arguments


def shown(step: str) -> str:
    """Name of a kind as users of polars write it: `StringExpr.Contains` is `str.contains`."""
    *spaces, last = (_BORDERS.sub("_", word).lower() for word in step.split("."))
    spaces = [_SPACES.get(space, space) for space in spaces]
    written = ".".join(filter(None, (*spaces, last))).replace("bitwise.", "bitwise_")
    return WRITTEN.get(written) or WRITTEN.get(written.partition(".")[0]) or written
