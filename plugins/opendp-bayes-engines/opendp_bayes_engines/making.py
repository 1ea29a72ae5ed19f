"""Helpers of the rules: make the term of an expression of other terms, and check terms."""

from collections.abc import Sequence

import narwhals as nw

from opendp_bayes_engines.kinds import INT64, Column, Kind
from opendp_bayes_engines.terms import RefusedError, Term, literal


def made(
    expr: nw.Expr,
    kind: Kind,
    *terms: Term,
    limits: tuple[int, int] = INT64,
    nullable: bool | None = None,
    copies: int = 1,
) -> Term:
    """The term that an expression of other terms makes: null where one of them is, unless told."""
    if nullable is None:
        nullable = any(term.column.nullable for term in terms)
    types = {Kind.BOOLEAN: "Boolean", Kind.INTEGER: "Int64", Kind.STRING: "String"}
    column = Column(kind, types[kind], nullable, limits, copies=copies)
    return Term(expr, column, terms[0].name, reads(terms))


def reads(terms: Sequence[Term]) -> frozenset[str]:
    return frozenset[str]().union(*(term.reads for term in terms))


def check(name: str, term: Term, *kinds: Kind) -> None:
    if term.kind not in kinds:
        raise RefusedError(
            f"{name}: is accepted for {' or '.join(kind.value for kind in kinds)} values, not for"
            f" {term.column.dtype}."
        )


def alike(name: str, left: Term, right: Term) -> tuple[Term, Term]:
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


def condition_of(term: Term, name: str) -> nw.Expr:
    """The condition of a filter or of `when`: a row for which it is unknown does not fulfil it, in
    every engine.
    """
    check(name, term, Kind.BOOLEAN)
    return term.expr
