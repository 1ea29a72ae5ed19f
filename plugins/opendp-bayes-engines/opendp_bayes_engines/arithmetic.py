"""Sums, products, quotients and limits of integers, which cannot exceed 64 bits."""

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import narwhals as nw

from opendp_bayes_engines.kinds import INT64, Kind
from opendp_bayes_engines.making import check, made
from opendp_bayes_engines.terms import RefusedError, Term, literal

#: Some engines divide as floating-point numbers, which are exact up to here.
_LARGEST_DIVIDEND = 2**52


def arithmetic(
    symbol: str, compute: Callable[[Any, Any], Any], *, swapped: bool = False
) -> Callable[..., Term]:
    """A sum, difference or product of integers; its limits follow from those of its terms."""

    def rule(left: Term, right: Term) -> Term:
        if swapped:
            left, right = right, left
        for term in (left, right):
            check(symbol, term, Kind.INTEGER)
        ends = [compute(x, y) for x in left.column.limits for y in right.column.limits]
        if min(ends) < INT64[0] or max(ends) > INT64[1]:
            raise RefusedError(
                f"{symbol}: may exceed 64 bits, where some engines fail and others go on with wrong"
                " values. Limit the columns first, as in `nw.col('age').clip(0, 120)`."
            )
        limits = (min(ends), max(ends))
        computed = made(compute(left.expr, right.expr), Kind.INTEGER, left, right, limits=limits)
        return replace(computed, name=right.name if swapped else left.name)

    return rule


def divided(symbol: str, compute: Callable[[Any, Any], Any]) -> Callable[..., Term]:
    """The quotient or the remainder of a number of at least 0 by a constant of at least 1."""

    def rule(left: Term, right: Term) -> Term:
        check(symbol, left, Kind.INTEGER)
        low, high = left.column.limits
        if type(right.value) is not int or right.value < 1 or low < 0 or high > _LARGEST_DIVIDEND:
            raise RefusedError(
                f"{symbol}: is accepted for numbers of at least 0 and at most 2**52, as in"
                " `clip(0, 120)`, and a constant of at least 1; engines disagree about anything"
                " else, or fail."
            )
        limits = (
            (low // right.value, high // right.value) if symbol == "//" else (0, right.value - 1)
        )
        return made(compute(left.expr, right.expr), Kind.INTEGER, left, limits=limits)

    return rule


def negative(term: Term) -> Term:
    difference: Term = arithmetic("-", operator.sub)(literal(0), term)
    return replace(difference, name=term.name)


def absolute(term: Term) -> Term:
    minus = negative(term)
    low, high = term.column.limits
    limits = (max(low, -high, 0), max(-low, high))
    expr = nw.when(term.expr < 0).then(minus.expr).otherwise(term.expr)
    return made(expr, Kind.INTEGER, term, limits=limits)


def clip(term: Term, lower: Term | None, upper: Term | None) -> Term:
    check("clip", term, Kind.INTEGER)
    low, high = term.column.limits
    expr = term.expr
    for bound, is_beyond in ((lower, operator.lt), (upper, operator.gt)):
        if bound is None:
            continue
        if type(bound.value) is not int:
            raise RefusedError("clip: is accepted with whole numbers as its bounds.")
        expr = nw.when(is_beyond(term.expr, bound.expr)).then(bound.expr).otherwise(expr)
        low, high = (
            (max(low, bound.value), max(high, bound.value))
            if bound is lower
            else (min(low, bound.value), min(high, bound.value))
        )
    if lower is not None and upper is not None and lower.column.limits[0] > upper.column.limits[0]:
        raise RefusedError("clip: its lower bound must not be above the upper one.")
    return made(expr, Kind.INTEGER, term, limits=(low, high))
