"""Whoever writes a plan cannot make it fail at some values: a failure costs nothing, and would tell
whether they are there.
"""

import datetime
from itertools import product
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.trusted.plan_kinds import CASTS, EXPRESSIONS

BIG = 2**63 - 1
TEXTS = [
    "a",
    "",
    "1",
    "1e400",
    "9" * 30,
    "2020-01-01",
    "2020-01-01 10:00:00",
    "10:00",
    "true",
    None,
]
#: Values of each type at its ends, and of the kinds that others are made of.
VALUES: dict[str, list[pl.Series]] = {
    "Boolean": [pl.Series([True, False, None])],
    "integer": [
        pl.Series([0, 1, -1, BIG, -BIG, 2**40, None], dtype=pl.Int64),
        pl.Series([2**31 - 1, -(2**31), 5], dtype=pl.Int32),
        pl.Series([2**64 - 1, 3], dtype=pl.UInt64),
        pl.Series([200, 3], dtype=pl.UInt8),
    ],
    "float": [pl.Series([0.0, -0.0, 1e300, -1e300, float("nan"), float("inf"), 1e18, None])],
    "String": [pl.Series([*TEXTS, "300000-01-01", "-5", "NaN", "\u00e9\0"])],
    "Enum": [pl.Series(["a", "1", "2020-01-01", None], dtype=pl.Enum(["a", "1", "2020-01-01"]))],
    "Date": [pl.Series([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None])],
    "Time": [pl.Series([datetime.time(0, 0), datetime.time(23, 59, 59, 999999), None])],
    "Datetime": [
        pl.Series([datetime.datetime(*first, 1, 1), datetime.datetime(*last, 12, 31), None]).cast(
            pl.Datetime(unit)
        )
        for unit, first, last in [
            ("ms", [1], [9999]),
            ("us", [1], [9999]),
            ("ns", [1700], [2261]),
        ]
    ],
    "Duration": [
        pl.Series([0, BIG, -BIG, 5, None], dtype=pl.Int64).cast(pl.Duration(unit))
        for unit in ("ms", "us", "ns")
    ],
}
TO: dict[str, list[Any]] = {
    "Boolean": [pl.Boolean],
    "integer": [pl.Int8, pl.Int32, pl.Int64, pl.UInt8, pl.UInt32, pl.UInt64],
    "float": [pl.Float32, pl.Float64],
    "String": [pl.String],
    "Enum": [pl.Enum(["a", "b"])],
    "Date": [pl.Date],
    "Time": [pl.Time],
    "Datetime": [pl.Datetime(unit) for unit in ("ms", "us", "ns")],
    "Duration": [pl.Duration(unit) for unit in ("ms", "us", "ns")],
}
PARTS = {name: kind for name, kind in EXPRESSIONS.items() if name.startswith("TemporalExpr.")}


def fails(values: pl.Series, made: pl.Expr) -> bool:
    """True if polars fails at one of the values, also where each stands alone."""
    for some in (values, *(values[at : at + 1] for at in range(len(values)))):
        try:
            some.alias("c").to_frame().lazy().select(made).collect()
        except BaseException:  # noqa: BLE001 - a panic is no Exception
            return True
    return False


def part(kind: Any, value: pl.Expr) -> pl.Expr:
    return getattr(value.dt, kind.written.strip("`").removeprefix("dt."))()


@pytest.mark.parametrize("to", CASTS)
def test_accepted_casts_fail_at_no_value_nor_does_what_is_made_of_them(to: str) -> None:
    for of in CASTS[to]:
        for values, dtype in product(VALUES[of], TO[to]):
            made = pl.col("c").cast(dtype, strict=False)
            assert not fails(values, made), (of, dtype)
            after = [part(kind, made) for kind in PARTS.values() if to in kind.of]
            after += [
                made.cast(other, strict=False)
                for name, others in TO.items()
                if to in CASTS[name]
                for other in others
            ]
            for each in after:
                assert not fails(values, each), (of, dtype, each)


def test_others_fail() -> None:
    """Negative control: of the pairs that are not accepted, these fail at some values."""
    refused = [(of, to) for to, each in CASTS.items() for of in VALUES if of not in each]
    failing = {
        (of, to)
        for of, to in refused
        if any(
            fails(values, pl.col("c").cast(dtype, strict=False))
            for values, dtype in product(VALUES[of], TO[to])
        )
    }
    assert {("String", "Boolean"), ("Date", "Time"), ("Enum", "Date"), ("Time", "Enum")} <= failing
    year = pl.col("c").cast(pl.Datetime("ms"), strict=False).dt.year()
    assert fails(VALUES["integer"][0], year)


COL = pl.col
ORACLES = {
    "text to Boolean": lambda q: q.with_columns(n=COL("name").cast(pl.Boolean)),
    "a number to a date": lambda q: q.with_columns(
        n=pl.lit(2**62).cast(pl.Datetime("ms"), strict=False).dt.year()
    ),
    "a date to a time": lambda q: q.with_columns(n=COL("born").cast(pl.Time)),
    "the hour of a date": lambda q: q.with_columns(n=COL("born").dt.hour()),
    "a number to a duration": lambda q: q.with_columns(n=COL("income").cast(pl.Duration("ms"))),
    "is_nan of text": lambda q: q.with_columns(n=COL("name").is_nan()),
    "is_finite of a date": lambda q: q.filter(COL("born").is_finite()),
    "a format that fails": lambda q: q.with_columns(n=COL("name").str.to_date("%p", strict=False)),
    "a time zone": lambda q: q.with_columns(
        n=COL("name").str.to_datetime("%Y", strict=False, time_zone="Europe/Berlin")
    ),
    "a Boolean and a number": lambda q: q.with_columns(n=(COL("income") == 1) & 1),
    "a Boolean divided": lambda q: q.with_columns(n=(COL("income") == 1) // 2),
    "the order of an Enum and text": lambda q: q.with_columns(
        n=COL("name") < COL("name").cast(pl.Enum(["Bob", "x"]), strict=False)
    ),
    "the order of an Enum and no label": lambda q: q.with_columns(
        n=COL("name").cast(pl.Enum(["Bob", "x"]), strict=False) < "q"
    ),
    "a cut of an Enum": lambda q: q.with_columns(
        n=COL("name").cast(pl.Enum(["Bob", "x"]), strict=False).cut([0, 1])
    ),
}


@pytest.mark.parametrize("name", ORACLES)
def test_a_plan_that_may_fail_is_refused_whoever_is_there(name: str) -> None:
    for present in ("Bob", "Eve"):
        rows = {"name": [present], "income": [1], "born": [datetime.date(2000, 1, 1)]}
        context = ob.context(
            pl.DataFrame(rows),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=1.0),
        )
        query = context.query(epsilon=0.1).filter(COL("name") == "Bob")
        with pytest.raises(ValueError, match=r"fails at some values|cannot be carried out on any"):
            ob.posterior(
                ORACLES[name](query), "name", categories=["a", "b"], unknown="a", nulls="a"
            )
        assert context.current_privacy_loss() == 0.0


ACCEPTED = {
    "text to a number": (lambda q: q.with_columns(n=COL("name").cast(pl.Int64)), [1, 2]),
    "a part of a date": (lambda q: q.with_columns(n=COL("born").dt.year()), [2000, 2001]),
    "text to a date": (
        lambda q: q.with_columns(n=COL("name").str.to_date("%Y-%m-%d").dt.year()),
        [2000, 2001],
    ),
    "is_nan of a number": (
        lambda q: q.with_columns(n=(COL("income") * 1.5).is_nan()),
        [True, False],
    ),
    "the order of an Enum and a label": (
        lambda q: q.with_columns(n=COL("name").cast(pl.Enum(["Bob", "x"]), strict=False) < "x"),
        [True, False],
    ),
    "a cut": (lambda q: q.with_columns(n=COL("income").cut([0], labels=["a", "b"])), ["a", "b"]),
    "a date to text": (
        lambda q: q.with_columns(n=COL("born").cast(pl.String)),
        ["2000-01-01", "x"],
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_others_are_released(name: str) -> None:
    plan, categories = ACCEPTED[name]
    rows = {
        "name": ["Bob", "2000-01-01"],
        "born": [datetime.date(2000, 1, 1), None],
        "income": [1, 2],
    }
    context = ob.context(
        pl.DataFrame(rows),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
    )
    query = plan(context.query(epsilon=0.1))
    assert (
        len(
            ob.posterior(query, "n", categories=categories, nulls=ob.DROP, unknown=ob.DROP)
            .release()
            .counts
        )
        >= 1
    )
