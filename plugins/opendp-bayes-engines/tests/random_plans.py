"""The engines, and random plans: every expression beside a function of Python that says what it
means for one row, a dict; None is a null, and so is NaN.
"""

import datetime
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl
import pytest
from hypothesis import strategies as st

#: The engines that every test of counting runs on. Spark takes half a minute to start; the others
#: that are slow run on one of the first.
SPARK_CONNECT = pytest.param("spark connect", marks=pytest.mark.slow)
ENGINES = [
    "polars",
    "duckdb",
    "dask",
    "ibis",
    pytest.param("spark", marks=pytest.mark.slow),
    SPARK_CONNECT,
    *(
        pytest.param(engine, marks=pytest.mark.slow)
        for engine in (
            "sqlframe",
            "ibis on polars",
            "ibis on spark",
            "sqlframe on spark",
        )
    ),
]

Row = dict[str, Any]
Meaning = Callable[[Row], Any]

TEXTS = [
    "yes",
    "Yes",
    "yes ",
    " yes",
    "no",
    "",
    "é",
    "e\u0301",
    "naïve",
    "ß",
    "SS",
    "İ",
    "漢字",
    "🙂🙃",
    "a'b",
    'a"b',
    "a\\b",
    "a%_b",
    "NaN",
    "null",
    "\u00a0",
]
#: Of an Enum, where the engine has one.
LABELS = ["no", "NO", "No", "yes", "é", "e", "E"]
NUMBERS = [-(2**63) + 1, -(2**31), -7, -1, 0, 1, 2, 3, 17, 18, 99, 2**31, 2**63 - 1]
WIDE = [0, 1, 2, 2**31, 2**63 - 1, 2**63, 2**64 - 1]
FLOATS = [float("-inf"), -1.5, -0.0, 0.0, 0.1, 1.0, 1e300, float("inf"), float("nan")]
DATES = [
    datetime.date(1, 1, 1),
    datetime.date(1969, 12, 31),
    datetime.date(1970, 1, 1),
    datetime.date(2000, 2, 29),
    datetime.date(2020, 12, 31),
    datetime.date(2021, 1, 3),
    datetime.date(9999, 12, 31),
]
SCHEMA: dict[str, Any] = {
    "person": pl.Int64,
    "text": pl.String,
    "other": pl.String,
    "number": pl.Int64,
    "small": pl.Int8,
    "wide": pl.UInt64,
    "real": pl.Float64,
    "flag": pl.Boolean,
    "day": pl.Date,
    "label": pl.Enum(LABELS),
}
#: Spark has no unsigned integers: Parquet gives it decimals, which are refused as categories.
_VALUES: dict[str, list[Any]] = {
    "person": list(range(12)),
    "text": TEXTS,
    "other": TEXTS[:6],
    "number": NUMBERS,
    "small": [-128, -3, 0, 5, 127],
    "wide": WIDE,
    "real": FLOATS,
    "flag": [True, False],
    "day": DATES,
    "label": LABELS,
}


def rows(seed: int, size: int) -> pl.DataFrame:
    """Rows with every value somewhere, and nulls in all columns."""
    import random

    draw = random.Random(seed)
    return pl.DataFrame(
        {
            name: [
                values[row] if row < len(values) else draw.choice([*values, None])
                for row in range(size)
            ]
            for name, values in _VALUES.items()
        },
        schema=SCHEMA,
    )


@dataclass(frozen=True)
class Said:
    """An expression, and what it means."""

    expr: Any
    means: Meaning


def _null(value: Any) -> Any:
    return None if value is None or value != value else value


def column(name: str) -> Said:
    return Said(nw.col(name), lambda row: _null(row[name]))


def _both(left: Said, right: Said, apply: Callable[[Any, Any], Any]) -> Said:
    def means(row: Row) -> Any:
        x, y = left.means(row), right.means(row)
        return None if x is None or y is None else apply(x, y)

    return Said(apply(left.expr, right.expr), means)


def _constant(value: Any) -> Said:
    return Said(nw.lit(value), lambda row: value)


def _one(said: Said, expr: Any, apply: Callable[[Any], Any]) -> Said:
    def means(row: Row) -> Any:
        value = said.means(row)
        return None if value is None else apply(value)

    return Said(expr, means)


def _and(left: Said, right: Said) -> Said:
    def means(row: Row) -> Any:
        x, y = left.means(row), right.means(row)
        return False if x is False or y is False else None if x is None or y is None else True

    return Said(left.expr & right.expr, means)


def _or(left: Said, right: Said) -> Said:
    def means(row: Row) -> Any:
        x, y = left.means(row), right.means(row)
        return True if x is True or y is True else None if x is None or y is None else False

    return Said(left.expr | right.expr, means)


def _choice(condition: Said, then: Said, otherwise: Said) -> Said:
    def means(row: Row) -> Any:
        return (then if condition.means(row) is True else otherwise).means(row)

    return Said(nw.when(condition.expr).then(then.expr).otherwise(otherwise.expr), means)


def _filled(said: Said, value: Any) -> Said:
    def means(row: Row) -> Any:
        held = said.means(row)
        return value if held is None else held

    return Said(said.expr.fill_null(value), means)


@st.composite
def numbers(draw: st.DrawFn, depth: int = 2) -> Said:
    kind = draw(
        st.sampled_from(
            ["column", "small", "sum", "part", "when", "date", "length", "flag", "clip"]
        )
    )
    if depth == 0 or kind == "column":
        return column("number")
    if kind == "small":
        return column("small")
    if kind == "clip":
        low, high = sorted(draw(st.tuples(st.integers(-9, 99), st.integers(-9, 99))))
        said = draw(numbers(depth - 1))
        return _one(said, said.expr.clip(low, high), lambda x: min(max(x, low), high))
    if kind == "sum":
        left, right = column("small"), draw(numbers(depth - 1))
        bounded = _one(right, right.expr.clip(-5, 50), lambda x: min(max(x, -5), 50))
        apply = draw(st.sampled_from([operator.add, operator.sub, operator.mul]))
        made = _both(left, bounded, apply)
        return draw(
            st.sampled_from(
                [made, _one(made, -made.expr, operator.neg), _one(made, made.expr.abs(), abs)]
            )
        )
    if kind == "part":
        said = draw(numbers(depth - 1))
        bounded = _one(said, said.expr.clip(0, 2**40), lambda x: min(max(x, 0), 2**40))
        by = draw(st.integers(1, 12))
        apply = draw(st.sampled_from([operator.floordiv, operator.mod]))
        return (
            _both(bounded, _constant(by), apply)
            if draw(st.booleans())
            else _one(bounded, apply(bounded.expr, by), lambda x: apply(x, by))
        )
    if kind == "when":
        return _choice(
            draw(conditions(depth - 1)), draw(numbers(depth - 1)), draw(numbers(depth - 1))
        )
    if kind == "date":
        day = column("day")
        name, of = draw(
            st.sampled_from(
                [
                    ("year", lambda d: d.year),
                    ("month", lambda d: d.month),
                    ("day", lambda d: d.day),
                    ("weekday", lambda d: d.isoweekday()),
                    ("ordinal_day", lambda d: d.timetuple().tm_yday),
                ]
            )
        )
        return _one(day, getattr(nw.col("day").dt, name)(), of)
    if kind == "flag":
        return _one(column("flag"), nw.col("flag").cast(nw.Int64), int)
    said = draw(texts(depth - 1))
    return _one(said, said.expr.str.len_chars(), len)


@st.composite
def texts(draw: st.DrawFn, depth: int = 2) -> Said:
    kind = draw(
        st.sampled_from(
            ["column", "other", "label", "slice", "filled", "joined", "number", "when", "constant"]
        )
    )
    if depth == 0 or kind == "column":
        return column("text")
    if kind in ("other", "label"):
        return column(kind)
    if kind == "constant":
        return _constant(draw(st.sampled_from(["yes", "é"])))
    if kind == "slice":
        said, start, length = (
            draw(texts(depth - 1)),
            draw(st.integers(0, 3)),
            draw(st.integers(1, 3)),
        )
        return _one(said, said.expr.str.slice(start, length), lambda s: s[start : start + length])
    if kind == "filled":
        return _filled(draw(texts(depth - 1)), draw(st.sampled_from(["none", *TEXTS[:4]])))
    if kind == "joined":
        left, right = draw(texts(depth - 1)), draw(texts(depth - 1))

        def means(row: Row) -> Any:
            parts = [left.means(row), right.means(row)]
            return None if None in parts else "/".join(parts)

        return Said(nw.concat_str(left.expr, right.expr, separator="/"), means)
    if kind == "number":
        said = draw(numbers(depth - 1))
        return _one(said, said.expr.cast(nw.String), str)
    return _choice(draw(conditions(depth - 1)), draw(texts(depth - 1)), draw(texts(depth - 1)))


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Said:
    kind = draw(
        st.sampled_from(
            [
                "flag",
                "number",
                "text",
                "real",
                "day",
                "in",
                "between",
                "null",
                "part",
                "and",
                "or",
                "not",
            ]
        )
    )
    compare = draw(
        st.sampled_from(
            [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
        )
    )
    if depth == 0 or kind == "flag":
        return column("flag")
    if kind == "number":
        return _both(draw(numbers(depth - 1)), _constant(draw(st.sampled_from(NUMBERS))), compare)
    if kind == "text":
        return _both(draw(texts(depth - 1)), draw(texts(depth - 1)), _bytewise(compare))
    if kind == "real":
        known = [x for x in FLOATS if x == x]
        return _both(column("real"), _constant(draw(st.sampled_from(known))), compare)
    if kind == "day":
        days = [day for day in DATES if day.year >= 1000]  # earlier constants are refused
        return _both(column("day"), _constant(draw(st.sampled_from(days))), compare)
    if kind == "in":
        said = draw(texts(depth - 1))
        known = draw(st.lists(st.sampled_from(TEXTS[:-1]), min_size=1, max_size=4))
        return _one(said, said.expr.is_in(known), lambda s: s in known)
    if kind == "between":
        said = draw(numbers(depth - 1))
        low, high = draw(st.integers(-9, 20)), draw(st.integers(0, 99))
        return _one(said, said.expr.is_between(low, high), lambda x: low <= x <= high)
    if kind == "null":
        said = draw(st.one_of(texts(depth - 1), numbers(depth - 1), st.just(column("real"))))
        return Said(said.expr.is_null(), lambda row: said.means(row) is None)
    if kind == "part":
        said, part = (
            draw(texts(depth - 1)),
            draw(st.sampled_from(["e", "yes", "%", "_", "\\", "'", "é"])),
        )
        name, ask = draw(
            st.sampled_from(
                [
                    ("contains", lambda s: part in s),
                    ("starts_with", lambda s: s.startswith(part)),
                    ("ends_with", lambda s: s.endswith(part)),
                ]
            )
        )
        arguments = {"literal": True} if name == "contains" else {}
        return _one(said, getattr(said.expr.str, name)(part, **arguments), ask)
    if kind == "not":
        said = draw(conditions(depth - 1))
        return _one(said, ~said.expr, operator.not_)
    combine = _and if kind == "and" else _or
    return combine(draw(conditions(depth - 1)), draw(conditions(depth - 1)))


def _bytewise(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(x: Any, y: Any) -> Any:
        return compare(x.encode(), y.encode()) if isinstance(x, str) else compare(x, y)

    return apply
