"""The steps of expressions that are accepted: row by row, defined for every value, and alike in
every engine. Each builds its expression from such terms, or refuses the types it is given.
"""

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import narwhals as nw

from opendp_bayes_engines.arithmetic import absolute, arithmetic, clip, divided, negative
from opendp_bayes_engines.kinds import Kind
from opendp_bayes_engines.making import alike, check, condition_of, made, reads
from opendp_bayes_engines.terms import RefusedError, Term, literal

#: Where a slice of a text may end; some engines fail at larger numbers.
_LAST_CHARACTER = 2**30
#: Texts that one text may join: what is joined again and again outgrows any memory.
_MOST_COPIES = 64
_ORDERED = (Kind.INTEGER, Kind.STRING, Kind.DATE, Kind.FLOAT)


def _comparison(
    symbol: str, compare: Callable[[Any, Any], Any], *kinds: Kind
) -> Callable[..., Term]:
    def rule(left: Term, right: Term) -> Term:
        left, right = alike(symbol, left, right)
        check(symbol, left, *kinds)
        return made(compare(left.expr, right.expr), Kind.BOOLEAN, left, right)

    return rule


def _logical(symbol: str, combine: Callable[[Any, Any], Any]) -> Callable[..., Term]:
    def rule(*terms: Term, ignore_nulls: bool = False) -> Term:
        if ignore_nulls:
            raise RefusedError("ignore_nulls=True: fill the nulls first, with fill_null(False).")
        for term in terms:
            check(symbol, term, Kind.BOOLEAN)
        return made(reduce(combine, (term.expr for term in terms)), Kind.BOOLEAN, *terms)

    return rule


def _when(condition: Term, then: Term, otherwise: Term | None = None) -> Term:
    chosen = nw.when(condition_of(condition, "when")).then(then.expr)
    if otherwise is None:
        column = replace(then.column, nullable=True, categories=None)
        return Term(chosen, column, then.name, condition.reads | then.reads)
    then, otherwise = alike("when/then/otherwise", then, otherwise)
    check("when/then", then, *_ORDERED, Kind.BOOLEAN)
    return replace(
        _merged(nw.when(condition_of(condition, "when")).then(then.expr), then, otherwise),
        reads=reads((condition, then, otherwise)),
    )


def _merged(chosen: Any, then: Term, otherwise: Term) -> Term:
    limits = (
        min(then.column.limits[0], otherwise.column.limits[0]),
        max(then.column.limits[1], otherwise.column.limits[1]),
    )
    nullable = then.column.nullable or otherwise.column.nullable
    copies = max(then.column.copies, otherwise.column.copies)
    column = replace(then.column, nullable=nullable, limits=limits, categories=None, copies=copies)
    return Term(chosen.otherwise(otherwise.expr), column, then.name)


def _fill_null(term: Term, value: Term, *, strategy: None, limit: None) -> Term:
    term, value = alike("fill_null", term, value)
    check("fill_null", term, *_ORDERED, Kind.BOOLEAN)
    filled = _merged(nw.when(~term.expr.is_null()).then(term.expr), term, value)
    column = replace(filled.column, nullable=value.column.nullable)
    return replace(filled, column=column, reads=reads((term, value)))


def _coalesce(*terms: Term) -> Term:
    return reduce(lambda left, right: _fill_null(left, right, strategy=None, limit=None), terms)


def _is_null(term: Term) -> Term:
    return made(term.expr.is_null(), Kind.BOOLEAN, term, nullable=False)


def _is_in(term: Term, *, other: Any) -> Term:
    if not isinstance(other, (list, tuple, set, frozenset)):
        raise RefusedError("is_in: is accepted with a list of constants.")
    constants = [literal(value) for value in other]
    if not constants:
        raise RefusedError("is_in: needs at least one constant.")
    check("is_in", term, Kind.INTEGER, Kind.STRING, Kind.DATE)
    for constant in constants:
        alike("is_in", term, constant)
    values = sorted({constant.value for constant in constants})  # type: ignore[type-var]
    # Some engines say false of a null, others null.
    expr = term.expr.is_in(values) | (term.expr != term.expr)
    return made(expr, Kind.BOOLEAN, term)


def _is_between(term: Term, lower: Term, upper: Term, *, closed: str) -> Term:
    above = operator.ge if closed in ("both", "left") else operator.gt
    below = operator.le if closed in ("both", "right") else operator.lt
    return _logical("is_between", operator.and_)(
        _comparison("is_between", above, *_ORDERED)(term, lower),
        _comparison("is_between", below, *_ORDERED)(term, upper),
    )


def _invert(term: Term) -> Term:
    check("~", term, Kind.BOOLEAN)
    return made(~term.expr, Kind.BOOLEAN, term)


def _cast(term: Term, *, dtype: Any) -> Term:
    kinds = ((nw.String, Kind.STRING), (nw.Int64, Kind.INTEGER))
    wanted = next((kind for of, kind in kinds if dtype == of), None)
    if wanted is term.kind:
        return replace(term, column=replace(term.column, categories=None), is_column=False)
    if wanted is Kind.STRING and term.kind is Kind.INTEGER:
        return made(term.expr.cast(nw.String), Kind.STRING, term)
    if wanted is Kind.INTEGER and term.kind is Kind.BOOLEAN:
        return made(term.expr.cast(nw.Int64), Kind.INTEGER, term, limits=(0, 1))
    raise RefusedError(
        f"cast: from {term.column.dtype} to {dtype} may fail, or differ between engines. Accepted"
        " are integer to String, Boolean to Int64, and Enum to String."
    )


def _text(name: str) -> Callable[..., Term]:
    """A question about a text and a constant one: yes or no."""

    def rule(term: Term, part: Term, *, literal: bool = True) -> Term:
        check(name, term, Kind.STRING)
        if not literal:
            raise RefusedError(f"{name}: needs literal=True; patterns differ between engines.")
        if type(part.value) is not str or not part.value:
            raise RefusedError(f"{name}: needs a constant text of at least one character.")
        ask = getattr(term.expr.str, name.removeprefix("str."))
        arguments = {"literal": True} if name == "str.contains" else {}
        return made(ask(part.value, **arguments), Kind.BOOLEAN, term)

    return rule


def _slice(term: Term, *, offset: int, length: int | None) -> Term:
    check("str.slice", term, Kind.STRING)
    if offset < 0 or length is None or length < 1:
        raise RefusedError("str.slice: needs an offset of at least 0 and a length of at least 1.")
    if offset + length > _LAST_CHARACTER:
        raise RefusedError("str.slice: must end within the first 2**30 characters.")
    copies = term.column.copies
    return made(term.expr.str.slice(offset, length), Kind.STRING, term, copies=copies)


def _length(term: Term) -> Term:
    check("str.len_chars", term, Kind.STRING)
    return made(
        term.expr.str.len_chars().cast(nw.Int64), Kind.INTEGER, term, limits=(0, 2**40)
    )  # no engine holds a longer text


def _concatenated(*terms: Term, separator: str, ignore_nulls: bool) -> Term:
    if ignore_nulls:
        raise RefusedError("ignore_nulls=True: fill the nulls first, with fill_null('').")
    for term in terms:
        check("concat_str", term, Kind.STRING)
    copies = sum(term.column.copies for term in terms)
    if copies > _MOST_COPIES or len(separator) > _MOST_COPIES:
        raise RefusedError(f"concat_str: must join at most {_MOST_COPIES} texts, by a short one.")
    joined = nw.concat_str(*(term.expr for term in terms), separator=separator)
    return made(joined, Kind.STRING, *terms, copies=copies)


def _part_of_date(name: str, limits: tuple[int, int]) -> Callable[[Term], Term]:
    def rule(term: Term) -> Term:
        check(f"dt.{name}", term, Kind.DATE)
        part = getattr(term.expr.dt, name)().cast(nw.Int64)
        if name == "weekday":
            part = (part + 6) % 7 + 1  # on Spark a Sunday is 0 instead of 7
        return made(part, Kind.INTEGER, term, limits=limits)

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
    "__add__": arithmetic("+", operator.add),
    "__sub__": arithmetic("-", operator.sub),
    "__rsub__": arithmetic("-", operator.sub, swapped=True),
    "__mul__": arithmetic("*", operator.mul),
    "__floordiv__": divided("//", operator.floordiv),
    "__mod__": divided("%", operator.mod),
    "__neg__": negative,
    "abs": absolute,
    "alias": lambda term, *, name: replace(term, name=name),
    "cast": _cast,
    "clip": lambda term, lower, upper: clip(term, lower, upper),
    "clip_lower": lambda term, lower: clip(term, lower, None),
    "clip_upper": lambda term, upper: clip(term, None, upper),
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
