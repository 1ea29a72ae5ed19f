"""The steps of expressions that are accepted: row by row, defined for every value, and alike in
every engine. Each builds its expression from such terms, or refuses the types it is given.
"""

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import narwhals as nw

from opendp_bayes_engines.kinds import INT64, Column, Kind
from opendp_bayes_engines.terms import RefusedError, Term, literal

_ORDERED = (Kind.INTEGER, Kind.STRING, Kind.DATE, Kind.FLOAT)


def _made(
    expr: nw.Expr,
    kind: Kind,
    *terms: Term,
    limits: tuple[int, int] = INT64,
    nullable: bool | None = None,
) -> Term:
    """The term that an expression of other terms makes: null where one of them is, unless told."""
    if nullable is None:
        nullable = any(term.column.nullable for term in terms)
    types = {Kind.BOOLEAN: "Boolean", Kind.INTEGER: "Int64", Kind.STRING: "String"}
    column = Column(kind, types[kind], nullable, limits)
    return Term(expr, column, terms[0].name, _reads(terms))


def _reads(terms: tuple[Term, ...]) -> frozenset[str]:
    return frozenset[str]().union(*(term.reads for term in terms))


def _check(name: str, term: Term, *kinds: Kind) -> None:
    if term.kind not in kinds:
        raise RefusedError(
            f"{name}: is accepted for {' or '.join(kind.value for kind in kinds)} values, not for"
            f" {term.column.dtype}."
        )


def _alike(name: str, left: Term, right: Term) -> tuple[Term, Term]:
    """Both terms, of one kind; a whole constant beside a float becomes one."""
    for one, other in ((left, right), (right, left)):
        if (
            one.kind is Kind.FLOAT
            and type(other.value) is int
            and float(other.value) == other.value
        ):
            known = literal(float(other.value))
            return (left, known) if other is right else (known, right)
    if left.kind is not right.kind:
        raise RefusedError(
            f"{name}: cannot compare {left.column.dtype} with {right.column.dtype} alike in every"
            " engine; cast one of them."
        )
    return left, right


def _comparison(
    symbol: str, compare: Callable[[Any, Any], Any], *kinds: Kind
) -> Callable[..., Term]:
    def rule(left: Term, right: Term) -> Term:
        left, right = _alike(symbol, left, right)
        _check(symbol, left, *kinds)
        return _made(compare(left.expr, right.expr), Kind.BOOLEAN, left, right)

    return rule


def _logical(symbol: str, combine: Callable[[Any, Any], Any]) -> Callable[..., Term]:
    def rule(*terms: Term, ignore_nulls: bool = False) -> Term:
        if ignore_nulls:
            raise RefusedError("ignore_nulls=True: fill the nulls first, with fill_null(False).")
        for term in terms:
            _check(symbol, term, Kind.BOOLEAN)
        return _made(reduce(combine, (term.expr for term in terms)), Kind.BOOLEAN, *terms)

    return rule


def _arithmetic(
    symbol: str, compute: Callable[[Any, Any], Any], *, swapped: bool = False
) -> Callable[..., Term]:
    """A sum, difference or product of integers; its limits follow from those of its terms."""

    def rule(left: Term, right: Term) -> Term:
        if swapped:
            left, right = right, left
        for term in (left, right):
            _check(symbol, term, Kind.INTEGER)
        ends = [compute(x, y) for x in left.column.limits for y in right.column.limits]
        if min(ends) < INT64[0] or max(ends) > INT64[1]:
            raise RefusedError(
                f"{symbol}: may exceed 64 bits, where some engines fail and others go on with wrong"
                " values. Limit the columns first, as in `nw.col('age').clip(0, 120)`."
            )
        limits = (min(ends), max(ends))
        made = _made(compute(left.expr, right.expr), Kind.INTEGER, left, right, limits=limits)
        return replace(made, name=right.name if swapped else left.name)

    return rule


def _divided(symbol: str, compute: Callable[[Any, Any], Any]) -> Callable[..., Term]:
    """The quotient or the remainder of a number of at least 0 by a constant of at least 1."""

    def rule(left: Term, right: Term) -> Term:
        _check(symbol, left, Kind.INTEGER)
        if type(right.value) is not int or right.value < 1 or left.column.limits[0] < 0:
            raise RefusedError(
                f"{symbol}: is accepted for numbers of at least 0, as in `clip(0, 120)`, and a"
                " constant of at least 1; engines disagree about anything else."
            )
        low, high = left.column.limits
        limits = (
            (low // right.value, high // right.value) if symbol == "//" else (0, right.value - 1)
        )
        return _made(compute(left.expr, right.expr), Kind.INTEGER, left, limits=limits)

    return rule


def _negative(term: Term) -> Term:
    made: Term = _arithmetic("-", operator.sub)(literal(0), term)
    return replace(made, name=term.name)


def _absolute(term: Term) -> Term:
    minus = _negative(term)
    low, high = term.column.limits
    limits = (max(low, -high, 0), max(-low, high))
    expr = nw.when(_surely(term.expr < 0)).then(minus.expr).otherwise(term.expr)
    return _made(expr, Kind.INTEGER, term, limits=limits)


def _clip(term: Term, lower: Term | None, upper: Term | None) -> Term:
    _check("clip", term, Kind.INTEGER)
    low, high = term.column.limits
    expr = term.expr
    for bound, is_beyond in ((lower, operator.lt), (upper, operator.gt)):
        if bound is None:
            continue
        if type(bound.value) is not int:
            raise RefusedError("clip: is accepted with whole numbers as its bounds.")
        expr = nw.when(_surely(is_beyond(term.expr, bound.expr))).then(bound.expr).otherwise(expr)
        low, high = (
            (max(low, bound.value), max(high, bound.value))
            if bound is lower
            else (min(low, bound.value), min(high, bound.value))
        )
    if lower is not None and upper is not None and lower.column.limits[0] > upper.column.limits[0]:
        raise RefusedError("clip: its lower bound must not be above the upper one.")
    return _made(expr, Kind.INTEGER, term, limits=(low, high))


def _surely(condition: nw.Expr) -> nw.Expr:
    """A condition that is false where it is unknown, as that of `when` and `filter` is in SQL."""
    return condition.fill_null(nw.lit(False))


def surely(term: Term, name: str) -> nw.Expr:
    """The condition of a filter or of `when`: a row for which it is unknown does not fulfil it."""
    _check(name, term, Kind.BOOLEAN)
    return _surely(term.expr) if term.column.nullable else term.expr


def _when(condition: Term, then: Term, otherwise: Term | None = None) -> Term:
    chosen = nw.when(surely(condition, "when")).then(then.expr)
    if otherwise is None:
        column = replace(then.column, nullable=True, categories=None)
        return Term(chosen, column, then.name, condition.reads | then.reads)
    then, otherwise = _alike("when/then/otherwise", then, otherwise)
    _check("when/then", then, *_ORDERED, Kind.BOOLEAN)
    return replace(
        _merged(nw.when(surely(condition, "when")).then(then.expr), then, otherwise),
        reads=_reads((condition, then, otherwise)),
    )


def _merged(chosen: Any, then: Term, otherwise: Term) -> Term:
    limits = (
        min(then.column.limits[0], otherwise.column.limits[0]),
        max(then.column.limits[1], otherwise.column.limits[1]),
    )
    nullable = then.column.nullable or otherwise.column.nullable
    column = replace(then.column, nullable=nullable, limits=limits, categories=None)
    return Term(chosen.otherwise(otherwise.expr), column, then.name)


def _fill_null(term: Term, value: Term, *, strategy: None, limit: None) -> Term:
    term, value = _alike("fill_null", term, value)
    _check("fill_null", term, *_ORDERED, Kind.BOOLEAN)
    filled = _merged(nw.when(~term.expr.is_null()).then(term.expr), term, value)
    column = replace(filled.column, nullable=value.column.nullable)
    return replace(filled, column=column, reads=_reads((term, value)))


def _coalesce(*terms: Term) -> Term:
    return reduce(lambda left, right: _fill_null(left, right, strategy=None, limit=None), terms)


def _is_null(term: Term) -> Term:
    return _made(term.expr.is_null(), Kind.BOOLEAN, term, nullable=False)


def _is_in(term: Term, *, other: Any) -> Term:
    if not isinstance(other, (list, tuple, set, frozenset)):
        raise RefusedError("is_in: is accepted with a list of constants.")
    constants = [literal(value) for value in other]
    if not constants:
        raise RefusedError("is_in: needs at least one constant.")
    _check("is_in", term, Kind.INTEGER, Kind.STRING, Kind.DATE)
    for constant in constants:
        _alike("is_in", term, constant)
    values = sorted({constant.value for constant in constants})  # type: ignore[type-var]
    # Some engines say false of a null, others null.
    expr = term.expr.is_in(values) | (term.expr != term.expr)
    return _made(expr, Kind.BOOLEAN, term)


def _is_between(term: Term, lower: Term, upper: Term, *, closed: str) -> Term:
    above = operator.ge if closed in ("both", "left") else operator.gt
    below = operator.le if closed in ("both", "right") else operator.lt
    return _logical("is_between", operator.and_)(
        _comparison("is_between", above, *_ORDERED)(term, lower),
        _comparison("is_between", below, *_ORDERED)(term, upper),
    )


def _invert(term: Term) -> Term:
    _check("~", term, Kind.BOOLEAN)
    return _made(~term.expr, Kind.BOOLEAN, term)


def _cast(term: Term, *, dtype: Any) -> Term:
    kinds = ((nw.String, Kind.STRING), (nw.Int64, Kind.INTEGER))
    wanted = next((kind for of, kind in kinds if dtype == of), None)
    if wanted is term.kind:
        return replace(term, column=replace(term.column, categories=None), is_column=False)
    if wanted is Kind.STRING and term.kind is Kind.INTEGER:
        return _made(term.expr.cast(nw.String), Kind.STRING, term)
    if wanted is Kind.INTEGER and term.kind is Kind.BOOLEAN:
        return _made(term.expr.cast(nw.Int64), Kind.INTEGER, term, limits=(0, 1))
    raise RefusedError(
        f"cast: from {term.column.dtype} to {dtype} may fail, or differ between engines. Accepted"
        " are integer to String, Boolean to Int64, and Enum to String."
    )


def _text(name: str) -> Callable[..., Term]:
    """A question about a text and a constant one: yes or no."""

    def rule(term: Term, part: Term, *, literal: bool = True) -> Term:
        _check(name, term, Kind.STRING)
        if not literal:
            raise RefusedError(f"{name}: needs literal=True; patterns differ between engines.")
        if type(part.value) is not str or not part.value:
            raise RefusedError(f"{name}: needs a constant text of at least one character.")
        ask = getattr(term.expr.str, name.removeprefix("str."))
        arguments = {"literal": True} if name == "str.contains" else {}
        return _made(ask(part.value, **arguments), Kind.BOOLEAN, term)

    return rule


def _slice(term: Term, *, offset: int, length: int | None) -> Term:
    _check("str.slice", term, Kind.STRING)
    if offset < 0 or length is None or length < 1:
        raise RefusedError("str.slice: needs an offset of at least 0 and a length of at least 1.")
    return _made(term.expr.str.slice(offset, length), Kind.STRING, term)


def _length(term: Term) -> Term:
    _check("str.len_chars", term, Kind.STRING)
    return _made(
        term.expr.str.len_chars().cast(nw.Int64), Kind.INTEGER, term, limits=(0, 2**40)
    )  # no engine holds a longer text


def _concatenated(*terms: Term, separator: str, ignore_nulls: bool) -> Term:
    if ignore_nulls:
        raise RefusedError("ignore_nulls=True: fill the nulls first, with fill_null('').")
    for term in terms:
        _check("concat_str", term, Kind.STRING)
    joined = nw.concat_str(*(term.expr for term in terms), separator=separator)
    return _made(joined, Kind.STRING, *terms)


def _part_of_date(name: str, limits: tuple[int, int]) -> Callable[[Term], Term]:
    def rule(term: Term) -> Term:
        _check(f"dt.{name}", term, Kind.DATE)
        part = getattr(term.expr.dt, name)().cast(nw.Int64)
        return _made(part, Kind.INTEGER, term, limits=limits)

    return rule


#: What an expression may begin with, beside `nw.col` and `nw.lit`.
ROOTS: dict[str, Callable[..., Term]] = {
    "all_horizontal": _logical("all_horizontal", operator.and_),
    "any_horizontal": _logical("any_horizontal", operator.or_),
    "coalesce": _coalesce,
    "concat_str": _concatenated,
    "when_then": _when,
}
#: What may follow.
RULES: dict[str, Callable[..., Term]] = {
    "__eq__": _comparison("==", operator.eq, *_ORDERED, Kind.BOOLEAN),
    "__ne__": _comparison("!=", operator.ne, *_ORDERED, Kind.BOOLEAN),
    "__lt__": _comparison("<", operator.lt, *_ORDERED),
    "__le__": _comparison("<=", operator.le, *_ORDERED),
    "__gt__": _comparison(">", operator.gt, *_ORDERED),
    "__ge__": _comparison(">=", operator.ge, *_ORDERED),
    "__and__": _logical("&", operator.and_),
    "__or__": _logical("|", operator.or_),
    "__invert__": _invert,
    "__add__": _arithmetic("+", operator.add),
    "__sub__": _arithmetic("-", operator.sub),
    "__rsub__": _arithmetic("-", operator.sub, swapped=True),
    "__mul__": _arithmetic("*", operator.mul),
    "__floordiv__": _divided("//", operator.floordiv),
    "__mod__": _divided("%", operator.mod),
    "__neg__": _negative,
    "abs": _absolute,
    "alias": lambda term, *, name: replace(term, name=name),
    "cast": _cast,
    "clip": lambda term, lower, upper: _clip(term, lower, upper),
    "clip_lower": lambda term, lower: _clip(term, lower, None),
    "clip_upper": lambda term, upper: _clip(term, None, upper),
    "dt.day": _part_of_date("day", (1, 31)),
    "dt.month": _part_of_date("month", (1, 12)),
    "dt.ordinal_day": _part_of_date("ordinal_day", (1, 366)),
    "dt.weekday": _part_of_date("weekday", (1, 7)),
    "dt.year": _part_of_date("year", (-(2**31), 2**31)),
    "fill_null": _fill_null,
    "is_between": _is_between,
    "is_in": _is_in,
    "is_null": _is_null,
    "str.contains": _text("str.contains"),
    "str.ends_with": _text("str.ends_with"),
    "str.len_chars": _length,
    "str.slice": _slice,
    "str.starts_with": _text("str.starts_with"),
}
