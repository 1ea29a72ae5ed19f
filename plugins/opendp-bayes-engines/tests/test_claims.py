"""What is claimed of an expression holds for its values: whether it may be null, its limits, the
texts that it joins; and it is no wider than it must be.
"""

from typing import Any

import narwhals as nw
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from random_plans import Said, conditions, numbers, rows, texts

from opendp_bayes_engines.engines import held
from opendp_bayes_engines.expressions import read
from opendp_bayes_engines.kinds import INT64, Kind
from opendp_bayes_engines.steps import Filter
from opendp_bayes_engines.terms import Term

ROWS = rows(seed=4, size=80)
SCHEMA = held(ROWS.lazy())[1]
A, T, N, F, B = (nw.col(name) for name in ("small", "text", "number", "real", "flag"))


def term(expr: Any) -> Term:
    return read(expr, SCHEMA, "expr")


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(number=numbers(3), text=texts(2), condition=conditions(2))
def test_claims_hold(number: Said, text: Said, condition: Said) -> None:
    for said in (number, text, condition):
        claimed = term(said.expr).column
        values = [said.means(row) for row in ROWS.to_dicts()]
        assert claimed.nullable or None not in values
        known = [value for value in values if value is not None]
        if claimed.kind is Kind.INTEGER:
            assert all(claimed.limits[0] <= value <= claimed.limits[1] for value in known)


@pytest.mark.parametrize(
    ("expr", "nullable"),
    [
        (nw.when(B).then(nw.lit("a")).otherwise(T), True),
        (nw.when(B).then(T).otherwise(nw.lit("a")), True),
        (nw.when(B).then(nw.lit("a")).otherwise(nw.lit("b")), False),
        (nw.when(B).then(nw.lit("a")), True),
        (T.fill_null("a"), False),
        (T.fill_null(nw.col("other")), True),
        (nw.coalesce(T, nw.col("other")), True),
        (nw.coalesce(T, nw.col("other"), nw.lit("a")), False),
        (T.is_null(), False),
        (nw.lit(1) == A, True),
        (A == 1, True),
        (nw.concat_str(nw.lit("a"), T), True),
        (nw.concat_str(T, nw.lit("a")), True),
        (nw.lit(True) & B, True),
        (B | nw.lit(True), True),
        (A + 1, True),
        (1 - A, True),
        (A.abs(), True),
        (A.clip(0, 9), True),
        (T.is_in(["a"]), True),
        (A.is_between(0, 9), True),
        (~B, True),
        (B.cast(nw.Int64), True),
        (T.str.len_chars(), True),
        (nw.col("day").dt.year(), True),
        (B.fill_null(False).cast(nw.Int64), False),
    ],
)
def test_nulls(expr: Any, nullable: bool) -> None:
    assert term(expr).column.nullable is nullable


@pytest.mark.parametrize("wanted", [True, False])
def test_a_null_of_otherwise_does_not_fulfil_a_condition(wanted: bool) -> None:
    data, schema = held(ROWS.lazy())
    either = nw.when(B).then(nw.lit(True)).otherwise(A > 0)
    step = Filter.build(schema, (either if wanted else ~either,), {})
    kept = data.then(step).frame.collect("polars").to_native()  # type: ignore[attr-defined]
    means = [
        True if row["flag"] else None if row["small"] is None else row["small"] > 0
        for row in ROWS.to_dicts()
    ]
    assert len(kept) == sum(value is wanted for value in means)


SMALL = (-128, 127)


@pytest.mark.parametrize(
    ("expr", "limits"),
    [
        (A, SMALL),
        (N, INT64),
        (nw.lit(5), (5, 5)),
        (A + A, (-256, 254)),
        (A - 1, (-129, 126)),
        (1 - A, (-126, 129)),
        (A * -2, (-254, 256)),
        (A * A, (-128 * 127, 128 * 128)),
        (-A, (-127, 128)),
        (A.abs(), (0, 128)),
        (A.clip(-5, 3).abs(), (0, 5)),
        (A.clip(3, 9).abs(), (3, 9)),
        (A.clip(-9, -3).abs(), (3, 9)),
        (A.clip(0, 9), (0, 9)),
        (A.clip(lower_bound=3), (3, 127)),
        (A.clip(upper_bound=3), (-128, 3)),
        (A.clip(lower_bound=200), (200, 200)),
        (A.clip(upper_bound=-200), (-200, -200)),
        (A.clip(0, 100) // 7, (0, 14)),
        (A.clip(20, 100) // 7, (2, 14)),
        (A.clip(0, 100) % 7, (0, 6)),
        (nw.when(B).then(A).otherwise(nw.lit(1000)), (-128, 1000)),
        (nw.when(B).then(nw.lit(1000)).otherwise(A), (-128, 1000)),
        (A.fill_null(-1000), (-1000, 127)),
        (nw.coalesce(A, nw.lit(300)), (-128, 300)),
        (B.cast(nw.Int64), (0, 1)),
        (nw.col("day").dt.month(), (1, 12)),
        (nw.col("day").dt.day(), (1, 31)),
        (nw.col("day").dt.weekday(), (1, 7)),
        (nw.col("day").dt.ordinal_day(), (1, 366)),
    ],
)
def test_limits(expr: Any, limits: tuple[int, int]) -> None:
    assert term(expr).column.limits == limits


@pytest.mark.parametrize(
    ("expr", "accepted"),
    [
        (N.clip(0, 2**63 - 2) + 1, True),
        (N.clip(0, 2**63 - 1) + 1, False),
        (N.clip(-(2**63) + 1, 0) - 1, True),
        (N + 0, True),
        (N - 1, False),
        (-N, False),
        (N.abs(), False),
        (N.clip(0, 2**52) // 2, True),
        (N.clip(0, 2**52 + 1) // 2, False),
        (N.clip(-1, 9) // 2, False),
        (A.clip(0, 9) // 1, True),
        (A.clip(0, 9) // 0, False),
        (A.clip(0, 9) % -1, False),
        (T.str.slice(2**30 - 1, 1), True),
        (T.str.slice(2**30 - 1, 2), False),
        (T.str.slice(0, 0), False),
        (T.str.slice(-1, 1), False),
        (A.clip(3, 3), True),
        (A.clip(4, 3), False),
    ],
)
def test_edges(expr: Any, accepted: bool) -> None:
    if accepted:
        assert term(expr).kind in (Kind.INTEGER, Kind.STRING)
    else:
        with pytest.raises(ValueError, match="expr="):
            term(expr)


@pytest.mark.parametrize(
    ("closed", "kept"), [("both", 5), ("left", 4), ("right", 4), ("neither", 3)]
)
def test_ends_of_an_interval(closed: Any, kept: int) -> None:
    data, schema = held(pl.LazyFrame({"n": [-1, 0, 1, 2, 3, 4, 5, None]}))
    step = Filter.build(schema, (nw.col("n").is_between(0, 4, closed=closed),), {})
    assert len(data.then(step).frame.collect().to_native()) == kept  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("dtype", "limits"),
    [
        (pl.Int8, (-(2**7), 2**7 - 1)),
        (pl.Int16, (-(2**15), 2**15 - 1)),
        (pl.Int32, (-(2**31), 2**31 - 1)),
        (pl.Int64, (-(2**63), 2**63 - 1)),
        (pl.UInt8, (0, 2**8 - 1)),
        (pl.UInt16, (0, 2**16 - 1)),
        (pl.UInt32, (0, 2**32 - 1)),
    ],
)
def test_limits_of_types(dtype: Any, limits: tuple[int, int]) -> None:
    frame = pl.DataFrame({"n": pl.Series(limits, dtype=dtype)}).lazy()
    assert held(frame)[1]["n"].limits == limits


def test_whole_constants_beside_floats() -> None:
    """Accepted where the float is the number, and not the next one to it."""
    assert term(F == 2**53).kind is Kind.BOOLEAN
    for whole in (2**53 + 1, -(2**53) - 1):
        with pytest.raises(ValueError, match="cannot compare Float64 with Int64"):
            term(whole < F)


@pytest.mark.parametrize("expr", [nw.lit(1) == 1, nw.lit("a").is_in(["a"]), nw.lit(1).is_null()])
def test_conditions_of_constants_alone_are_refused(expr: Any) -> None:
    with pytest.raises(ValueError, match="predicates: each must read a column"):
        Filter.build(SCHEMA, (B, expr), {})


def test_copies() -> None:
    two = nw.concat_str(T, T)
    assert term(two).column.copies == 2
    assert term(nw.concat_str(two, T)).column.copies == 3
    assert term(nw.when(B).then(T).otherwise(two)).column.copies == 2
    assert term(nw.when(B).then(two).otherwise(T)).column.copies == 2
    assert term(two.str.slice(0, 3)).column.copies == 2
    assert term(T.fill_null(two)).column.copies == 2
    assert term(nw.concat_str(*[T] * 64)).column.copies == 64
    with pytest.raises(ValueError, match="at most 64 texts"):
        term(nw.concat_str(*[T] * 65))
    with pytest.raises(ValueError, match="by a short one"):
        term(nw.concat_str(T, T, separator="-" * 65))


@pytest.mark.parametrize(
    ("expr", "columns"),
    [
        (nw.when(B).then(T).otherwise(nw.col("other")), {"flag", "text", "other"}),
        (nw.when(B).then(T), {"flag", "text"}),
        (T.fill_null(nw.col("other")), {"text", "other"}),
        (nw.coalesce(T, nw.col("other")), {"text", "other"}),
        (A.is_between(nw.col("number"), N), {"small", "number"}),
        (nw.concat_str(T, nw.col("other")), {"text", "other"}),
        (1 - A, {"small"}),
        (A.clip(0, 3), {"small"}),
        (A.abs(), {"small"}),
        (nw.lit(1), set()),
    ],
)
def test_columns_that_are_read(expr: Any, columns: set[str]) -> None:
    assert term(expr).reads == columns


@pytest.mark.parametrize(
    ("expr", "name"),
    [
        (A + N.clip(0, 1), "small"),
        (-A, "small"),
        (A.abs(), "small"),
        (A.alias("z"), "z"),
        (nw.when(B).then(T).otherwise(A.cast(nw.String)), "text"),
        (nw.coalesce(T, nw.col("other")), "text"),
        (T.fill_null("x"), "text"),
    ],
)
def test_names(expr: Any, name: str) -> None:
    """As narwhals, which says it on its own, has them."""
    assert term(expr).name == name
    assert ROWS.lazy().pipe(lambda f: nw.from_native(f).select(expr).columns) == [name]


@pytest.mark.parametrize("expr", [T, nw.col("label").cast(nw.String), T.str.slice(0, 1)])
def test_what_is_a_column_as_it_is(expr: Any) -> None:
    assert term(expr).is_column is (expr is T)
    assert term(nw.col("label")).column.categories == tuple(ROWS.schema["label"].categories)
    assert term(nw.col("label").cast(nw.String)).column.categories is None
    assert term(nw.when(B).then(nw.col("label"))).column.categories is None
    assert term(nw.col("label").fill_null("x")).column.categories is None
