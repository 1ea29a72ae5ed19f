"""Every expression of polars is accepted for a reason or refused, and other rows move none."""

import itertools
import operator
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from opendp_bayes.trusted import plan_validation, plan_values
from tests.helpers import every_expression as every, every_function
from tests.helpers.contexts import plain_context


def outcome(expr: pl.Expr) -> str | None:
    """None if the gate accepts it, otherwise what it says; anything else is an error."""
    empty = pl.LazyFrame(schema=every.SCHEMA)
    try:
        plan_validation.check_plan(empty.with_columns(z=expr), empty)
    except ValueError as error:
        return str(error)
    return None


@cache
def outcomes(receivers: tuple[str, ...]) -> dict[str, str | None]:
    """Of every expression."""
    return {label: outcome(expr) for label, expr in every.expressions(receivers).items()}


def test_a_categorical_is_read_by_its_label_alone():
    c = pl.col("c")
    by_label = [c, c.alias("d"), c.is_null(), c.is_not_null(), c.cast(pl.String)]
    assert [outcome(expr) for expr in (*by_label, c.cast(pl.Enum(["a"])))] == [None] * 6
    for expr in (c == "a", c.fill_null("a"), c.cast(pl.Int64), c.replace("a", "b")):
        assert "'c' is a Categorical, whose codes are read here" in str(outcome(expr))


#: Two operands, and constants that fit some types and not others.
OF_TWO = {
    **{name: getattr(operator, name) for name in ("eq", "ge", "sub", "or_")},
    "ne_missing": pl.Expr.ne_missing,
}
CONSTANTS = (True, 1, 1.5, "a", "no label")


@pytest.mark.parametrize("name", OF_TWO)
def test_a_constant_has_to_fit_on_either_side(name):
    """Of a column of each type: what is refused on the right is refused on the left."""
    combine, refused = OF_TWO[name], 0
    for column, constant in itertools.product(every.SCHEMA, CONSTANTS):
        own, literal = pl.col(column), pl.lit(constant)
        sides = [outcome(combine(own, literal)), outcome(combine(literal, own))]
        assert (sides[0] is None) == (sides[1] is None), (column, constant, sides)
        refused += sides[0] is not None
    assert 0 < refused < len(every.SCHEMA) * len(CONSTANTS)


#: Methods whose expressions are accepted, for the receivers and arguments that fit.
ACCEPTED = {
    *("add", "alias", "and_", "cast", "clip", "cut", "eq", "eq_missing", "floordiv", "ge", "gt"),
    *("is_finite", "is_infinite", "is_nan", "is_not_nan", "is_not_null", "is_null", "le", "lt"),
    *("mod", "mul", "ne", "ne_missing", "not_", "or_", "replace", "replace_strict", "sub", "xor"),
}


def test_every_method_is_known():
    """A new polars has to be looked at: what is in neither list fails here."""
    found = {name for name, _ in every.methods(("f",))}
    known = set((Path(__file__).parent / "every_method.txt").read_text().split())
    assert found == known
    assert known >= ACCEPTED


#: Functions of polars whose expressions are accepted, for the arguments that fit.
ACCEPTED_FUNCTIONS = {"col": 1, "lit": 5, "sql_expr": 1}


def test_every_function_is_known_and_accepted_for_a_reason_or_refused_by_name():
    """Labels are also those of `every.MORE`: what is accepted is seen not to move with rows."""
    assert every_function.functions() == set(every_function.FUNCTIONS)
    accepted = Counter()
    for label, expr in every_function.examples().items():
        said = outcome(expr)
        assert label in every.MORE
        if said is None:
            accepted[label[3 : label.index("(")]] += 1
        else:
            assert re.match(r"query: with_columns: \S.* (docs/guarantee\.md lists)", said), label
            assert "agg " not in said, label  # but the name of the aggregation
    assert accepted == ACCEPTED_FUNCTIONS


@pytest.fixture(
    scope="module", params=[("f", "c"), pytest.param(every.RECEIVERS, marks=pytest.mark.slow)]
)
def receivers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    of: tuple[str, ...] = request.param
    return of


def test_every_expression_is_accepted_for_a_reason_or_refused_by_name(receivers):
    for label, said in outcomes(receivers).items():
        if said is not None:
            assert re.match(r"query: with_columns: \S.* (docs/guarantee\.md lists)", said), label
        elif label not in every.MORE:
            method = label.partition(".")[2].partition("(")[0]
            trivial = {"meta.undo_aliases", "meta.as_expression"}
            trivial |= {"shrink_dtype", "pipe", "set_sorted"}
            assert method in ACCEPTED | trivial, label


#: By how methods begin, how those are named that polars' plan does not tell apart.
OTHERS = {"dp": "another library", "rolling_": "rolling_", "name": "name.suffix"}
OTHERS |= {"meta.as_selector": "a rule for columns"}


def test_a_method_that_is_refused_is_named_as_it_is_written(receivers):
    """By its name, or where its argument or its column is at fault, by that."""
    at_fault = r"'\w+' is a Categorical|an expression that polars|an infinite|a constant|series"
    for label, said in outcomes(receivers).items():
        if said is None or label in every.MORE:
            continue
        said = said.removeprefix("query: with_columns: ")
        method = label.partition(".")[2].partition("(")[0]
        named = [method, *(to for of, to in OTHERS.items() if method.startswith(of))]
        pattern = "|".join(rf"(?<![a-z_]){re.escape(name)}(?![a-z])" for name in named)
        assert re.search(pattern, said) or re.match(at_fault, said), (label, said[:90])


def test_what_is_accepted_does_not_move_with_other_rows(receivers):
    """In processes of their own, since one process keeps the codes that it has given."""
    accepted = [label for label, said in outcomes(receivers).items() if said is None]
    codes = ["cut.to_physical", "cut.cast(int)", "Categorical.cast(int)"]
    assert len(accepted) > 40
    assert not set(codes) & set(accepted)
    here, there = (
        every.in_a_process(order, receivers, accepted + codes)
        for order in ("as they are", "the other way round")
    )
    assert [label for label in accepted if here[label] != there[label]] == []
    assert sum(isinstance(here[label], list) for label in accepted) > 40  # not errors alone
    assert all(here[label] != there[label] for label in codes), "codes must be seen to move"


@pytest.mark.slow
def test_what_opendp_accepts_is_accepted_or_a_known_fault():
    """OpenDP's list and ours: every expression it lets through beyond ours is one of codes, of
    a Categorical, or `to_physical`, which would be the same for a number; of what floats show of
    their batch; or one that may fail.
    """
    ours = outcomes(every.RECEIVERS)
    by_opendp = every.in_a_process("OpenDP", every.RECEIVERS, list(ours))
    let_through = [label for label, accepted in by_opendp.items() if accepted]
    assert len(let_through) > 300
    beyond = {label: said for label in let_through if (said := ours[label])}
    faults = [
        *("Categorical", "shows last digits or the sign of zero", "/ or truediv rounds otherwise"),
        *("might fail", "have a value for every one", "is not supported by OpenDP"),
        "is not read back by polars",
    ]
    found = [[fault for fault in faults if fault in said] for said in beyond.values()]
    assert all(found), beyond
    assert sorted(set(itertools.chain(*found))) == sorted(faults)
    assert {"cut.to_physical", "cut.cast(int)", "Categorical.cast(int)"} <= set(beyond)


def test_an_expression_has_the_type_that_polars_gives_it():
    empty = pl.LazyFrame(schema=every.SCHEMA)
    for label, expr in every.MORE.items():
        if outcome(expr) is None:
            written = plan_validation.written(empty.select(expr))["Select"]["expr"][0]
            dtype = plan_values.type_of(plan_values.Rows(empty), written)
            assert [dtype] == empty.select(expr).collect_schema().dtypes(), label


#: An expression that OpenDP does not support, what its refusal says to write, and that written.
REWRITTEN = {
    "is_in": (pl.col("s").is_in(["a", "b"]), "`replace_strict({'a': True, 'b': True}"),
    "is_between": (pl.col("i").is_between(1, 2), r"`(x >= 1) & (x <= 2)`"),
    "coalesce": (pl.coalesce(pl.col("s"), pl.lit("a")), "`fill_null` with a value"),
    "when": (
        pl.when(pl.col("i") > 2).then(pl.lit("a")).otherwise(pl.lit("b")),
        "`(x > 2).replace_strict",
    ),
    "strip_chars": (pl.col("s").str.strip_chars(), "in the frame before the Context"),
    "to_lowercase": (pl.col("s").str.to_lowercase(), "in the frame before the Context"),
}
WRITTEN = {
    "is_in": pl.col("s").replace_strict({"a": True, "b": True}, default=False),
    "is_between": (pl.col("i") >= 1) & (pl.col("i") <= 2),
    "coalesce": pl.col("s").fill_null("a"),
    "when": (pl.col("i") > 2).replace_strict({True: "a", False: "b"}),
    "strip_chars": pl.col("s").replace({" a": "a"}),
    "to_lowercase": pl.col("s").replace({"A": "a"}),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_what_opendp_does_not_support_is_reached_row_by_row(name: str) -> None:

    import opendp_bayes as ob

    texts = ["a", "b", " a" if name == "strip_chars" else "A", "b"] * 10
    texts[0] = None if name == "coalesce" else "a"
    frame = pl.LazyFrame({"s": texts, "i": [0, 1, 2, 3] * 10})
    meant, advice = REWRITTEN[name]
    plain = frame.select(meant.alias("z")).collect()["z"]
    boolean = plain.dtype == pl.Boolean
    labels = [True, False] if boolean else ["a", "b"]

    def query(expr: pl.Expr) -> Any:
        context = plain_context(frame, loss={"epsilon": 30.0})
        others = {"nulls": ob.DROP, "unknown": ob.DROP}
        asked = context.query().with_columns(z=expr)
        return ob.posterior(asked, "z", categories=labels, **others)

    with pytest.raises(ValueError, match=re.escape(advice)):
        query(meant)
    counts = [int((plain == label).sum()) for label in labels]
    assert list(query(WRITTEN[name]).release().counts) == counts
