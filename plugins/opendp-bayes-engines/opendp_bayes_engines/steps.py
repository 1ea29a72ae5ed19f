"""The steps of a plan: the frame that each makes, and how far apart it may bring two frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import narwhals as nw

from opendp_bayes_engines.expressions import read
from opendp_bayes_engines.kinds import Column, Kind, leaf
from opendp_bayes_engines.making import condition_of, reads
from opendp_bayes_engines.terms import Term

Frame = nw.LazyFrame[Any]
Schema = dict[str, Column]
#: Names beginning so are those of columns that a step needs for itself.
RESERVED = "opendp_bayes_"
_MARKS = '.`*"\\'


class Step(Protocol):
    """One step: `reads` the columns it needs, `schema` what comes out, `kept` the columns that come
    out as they went in, `apply` the step itself.
    """

    @property
    def reads(self) -> frozenset[str]: ...

    @property
    def schema(self) -> Schema: ...

    @property
    def kept(self) -> frozenset[str]: ...

    def apply(self, frame: Frame) -> Frame: ...


@dataclass(frozen=True)
class Filter:
    """Keep the rows that fulfil every condition; a row for which one is unknown does not."""

    conditions: tuple[nw.Expr, ...]
    reads: frozenset[str]
    schema: Schema
    kept: frozenset[str]

    @classmethod
    def build(cls, schema: Schema, given: tuple[Any, ...], named: Mapping[str, Any]) -> "Filter":
        terms = [read(one, schema, "predicates") for one in given]
        terms += [read(nw.col(name) == value, schema, name) for name, value in named.items()]
        if not terms:
            raise ValueError("predicates=(): must name at least one condition.")
        if not all(term.reads for term in terms):
            raise ValueError(
                "predicates: each must read a column; one of constants alone does not."
            )
        return cls(
            tuple(condition_of(term, "filter") for term in terms),
            reads(terms),
            schema,
            frozenset(schema),
        )

    def apply(self, frame: Frame) -> Frame:
        return frame.filter(*self.conditions)


@dataclass(frozen=True)
class WithColumns:
    """Add columns, or replace them; with `only`, keep no others."""

    columns: tuple[nw.Expr, ...]
    only: bool
    reads: frozenset[str]
    schema: Schema
    kept: frozenset[str]

    @classmethod
    def build(
        cls, schema: Schema, given: tuple[Any, ...], named: Mapping[str, Any], *, only: bool
    ) -> "WithColumns":
        argument = "exprs"
        terms = [read(one, schema, argument) for one in flat(given)]
        terms += [
            read(nw.col(one) if isinstance(one, str) else one, schema, name)
            if isinstance(one, (str, nw.Expr))
            else read(nw.lit(one), schema, name)
            for name, one in named.items()
        ]
        names = [term.name for term in terms[: len(terms) - len(named)]] + list(named)
        if not terms:
            raise ValueError(f"{argument}=(): must name at least one column.")
        if only and not any(term.reads for term in terms):
            raise ValueError(
                f"{argument}: must read a column; engines disagree about how many rows constants"
                " alone have. Use with_columns."
            )
        if len(set(names)) < len(names):
            raise ValueError(f"{argument}: must not make a column twice; they make {names}.")
        made = dict(zip(names, (term.column for term in terms), strict=True))
        moved = {name for name, term in zip(names, terms, strict=True) if not _is_same(term, name)}
        result = made if only else {**schema, **made}
        check_names(result)
        return cls(
            tuple(_aliased(term, name) for name, term in zip(names, terms, strict=True)),
            only,
            reads(terms),
            result,
            frozenset(result) - moved,
        )

    def apply(self, frame: Frame) -> Frame:
        return frame.select(*self.columns) if self.only else frame.with_columns(*self.columns)


@dataclass(frozen=True)
class Truncate:
    """Keep at most `rows` rows of each identifier: the first by all columns, in the order of their
    names, nulls first.

    Only columns whose order is known stay, so that rows which tie are equal in everything that can
    be asked later: which rows of an identifier are kept, as far as anybody can tell, depends on the
    multiset of its rows alone.
    """

    identifier: str
    rows: int
    reads: frozenset[str]
    schema: Schema
    kept: frozenset[str]

    @classmethod
    def build(cls, schema: Schema, identifier: str, rows: int) -> "Truncate":
        kept = {name: of for name, of in schema.items() if of.kind is not Kind.OTHER}
        return cls(identifier, rows, frozenset(kept), kept, frozenset(kept))

    @property
    def order(self) -> list[str]:
        return sorted(set(self.schema) - {self.identifier})

    def rule(self, *, selected: bool) -> str:
        """Say which rows are kept. The columns are named if they were `selected`: those of a file
        without a header are somebody's record.
        """
        kept = "row" if self.rows == 1 else f"{self.rows} rows"
        by = ", ".join(self.order) if selected else f"all {len(self.order)} other columns"
        return f"the first {kept} of each {self.identifier} by {by}"

    def apply(self, frame: Frame) -> Frame:
        number, one = f"{RESERVED}number", f"{RESERVED}one"
        keys = {
            f"{RESERVED}{at}": _key(name, self.schema[name]) for at, name in enumerate(self.order)
        }
        order = list(keys) or [one]
        return (
            frame.select(*self.schema)
            .with_columns(
                nw.lit(1, dtype=nw.Int64).alias(one), *(e.alias(n) for n, e in keys.items())
            )
            .with_columns(nw.col(one).cum_sum().over(self.identifier, order_by=order).alias(number))
            .filter(nw.col(number) <= self.rows)
            .select(*self.schema)
        )


def check_names(names: Mapping[str, Any]) -> None:
    """Raise `ValueError` for names of columns that engines understand differently."""
    # By their places: of a file without a header, the names are somebody's record.
    folded: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if name.startswith(RESERVED):
            raise ValueError(f"columns: {name!r} begins with {RESERVED!r}, which is reserved.")
        pattern = name.startswith("^") and name.endswith("$")  # of polars
        if any(mark in name for mark in _MARKS) or pattern or not name.isprintable() or not name:
            raise ValueError(
                f"columns: the name of column {place} must be printable and without any of"
                f" {_MARKS} and '^...$', which mean something else in some engine; rename it."
            )
        if name.casefold() in folded:
            raise ValueError(
                f"columns: the names of columns {folded[name.casefold()]} and {place} differ in"
                " nothing but case, which engines do not always tell apart; rename one."
            )
        folded[name.casefold()] = place


def _key(name: str, column: Column) -> nw.Expr:
    """Expression by which a column is ordered: 0.0 and -0.0 are the same number."""
    value = leaf(name, column)
    return value + 0.0 if column.kind is Kind.FLOAT else value


def _is_same(term: Term, name: str) -> bool:
    return term.is_column and term.reads == {name}


def _aliased(term: Term, name: str) -> nw.Expr:
    # A column as it is stays as it is, so that grouping by it costs what it costs the engine.
    return nw.col(name) if _is_same(term, name) else term.expr.alias(name)


def flat(given: tuple[Any, ...]) -> list[Any]:
    """Arguments given one by one or in lists."""
    return [one for many in given for one in (many if isinstance(many, (list, tuple)) else [many])]
