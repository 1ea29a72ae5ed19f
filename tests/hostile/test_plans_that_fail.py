"""Nobody can write a plan that fails at some values, which would tell that they are there."""

import datetime
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.unlisted.trusted import keys
from tests.helpers.contexts import checked_context
from tests.helpers.plans_at_ends import VALUES, column

C = pl.col
ROOT = Path(__file__).parents[2]


def chains(seed: int, number: int, *options: str) -> dict[str, Any]:
    """The answer of `plans_at_ends` from a process of its own, which some expressions end."""
    command = [sys.executable, "-m", "tests.helpers.plans_at_ends", str(seed), str(number)]
    environment = {**os.environ, "RUST_BACKTRACE": "0"}
    output: Any = {"capture_output": True, "text": True, "check": True}
    run = subprocess.run([*command, *options], cwd=ROOT, env=environment, **output)
    assert "panicked" not in run.stderr
    answer: dict[str, Any] = json.loads(run.stdout)
    return answer


@pytest.mark.parametrize(
    ("seed", "number"),
    [(1, 8), *(pytest.param(seed, 2500, marks=pytest.mark.slow) for seed in range(2, 10))],
)
def test_random_chains_are_counted_at_the_ends_of_every_type(seed: int, number: int) -> None:
    """With odd records and without, and counts move by no more than is stated."""
    answer = chains(seed, number)
    assert answer["failed"] == []
    assert answer["done"] == number
    assert answer["most"] >= 0.5  # the odd records are counted


def test_expressions_that_may_fail_are_noticed_and_the_remedy_is_the_frame() -> None:
    """Negative control: the gate does not look at types."""
    assert chains(15, 8, "--any-type")["failed"]
    with pytest.raises(ValueError, match="in the frame before"):
        asked("both", lambda q: q.with_columns(n=ATTACK), categories=[True, False])
    assert asked("before", lambda q: q, categories=[True, False]).release().d_in == 1


TEXT = {"b": "boolean", "i": "integer", "i32": "integer", "u": "integer", "u32": "integer"}
LABELS: dict[str, list[Any]] = {
    "boolean": [None, True],
    "integer": [None, -1, 2**63 - 1, -(2**63)],
    "text": [None, "a", "no value"],
}


@pytest.mark.parametrize("most", [keys.MOST_AT_ONCE, 0])
@pytest.mark.parametrize("name", ["b", "i", "i32", "u", "u32", "s", "e", "c", "d"])
def test_every_value_of_a_column_is_counted_by_itself(name, most, monkeypatch):
    """What this package computes of a column after the plan: at once, and in parts."""
    monkeypatch.setattr(keys, "MOST_AT_ONCE", most)
    _, ordinary, ends = VALUES[name]
    rows = column(name, [*ordinary, *ends, None]).to_frame()
    kind: Any = TEXT.get(name, "text")
    for nulls in LABELS[kind]:
        listed = () if nulls is None else (nulls,)
        count = keys.counted_in_frames(keys.Keys(name, kind, listed, nulls), ())
        batches = list(count(rows.lazy()).batches())
        assert sum(batch[keys.NUMBER].sum() for batch in batches) == len(rows) - (nulls is None)


ATTACK = (
    ((C("name") == "Ada") & (C("sick") == "yes"))
    .replace_strict({True: "2000 01 Jan"}, default="2000 01 January")
    .str.to_date("%Y %d %B", strict=False)
    .is_not_null()
)
LONG = C("name")
for _ in range(3):
    LONG = LONG + LONG
BOOLEAN = C("income") == 1
ENUM = C("name").cast(pl.Enum(["Bob", "x"]), strict=False)
#: What fails at some values, and how it is called where it is refused.
MAY_FAIL: dict[str, tuple[pl.Expr, str]] = {
    "a condition in a date": (ATTACK, r"str\.to_date, "),
    "texts that grow": (LONG, r"\+ or add of String"),
    "a number of the other sign": (
        C("big").fill_null(-1),
        "a constant that is no integer|fill_null",
    ),
    "a date to text": (C("born").cast(pl.String), "cast to String of Date"),
    "a moment to text": (C("at").cast(pl.String), "cast to String of Datetime"),
    "text to Boolean": (C("name").cast(pl.Boolean), "cast to Boolean of String"),
    "text to a number": (C("name").cast(pl.Int64), "cast to integer of String"),
    "text to a date": (C("name").cast(pl.Date), "cast to Date is not among"),
    "a number to a date": (C("income").cast(pl.Datetime("ms")), "cast to Datetime is not among"),
    "a date to a time": (C("born").cast(pl.Time), "cast to Time is not among"),
    "a number to a duration": (C("income").cast(pl.Duration("ms")), "cast to Duration is not"),
    "the year of a date": (C("born").dt.year(), r"dt\.year is not among"),
    "the hour of a moment": (C("at").dt.hour(), r"dt\.hour is not among"),
    "is_nan of text": (C("name").is_nan(), "is_nan of String|cannot be carried out"),
    "a time zone": (C("name").str.to_datetime("%Y", time_zone="Europe/Berlin"), r"str\.to_date"),
    "a Boolean and a number": (BOOLEAN & 1, "& or and_ of integer"),
    "a Boolean divided": (BOOLEAN // 2, "// or floordiv of Boolean"),
    "two types of integers": (C("big") + C("income"), "two types|which are not the same type"),
    "a division by zero": (C("income") // 0, "by anything but a constant of at least 1"),
    "a division by -1": (C("income") // -1, "by anything but a constant of at least 1"),
    "a division by a column": (C("income") % C("income"), "by anything but a constant"),
    "the order of an Enum and text": (C("name") < ENUM, "which are not the same type"),
    "the order of an Enum and no label": (ENUM < "q", "a constant that is no Enum"),
    "a cut of an Enum": (ENUM.cut([0, 1]), "cut of Enum|cannot be carried out"),
    "a mapping of other types": (C("income").replace({"a": 1}), "a constant that is no integer|"),
    "a number beyond the type": (C("income").cast(pl.Int8).clip(0, 300), "a constant that is no"),
    "an Enum filled": (ENUM.fill_null("x"), "fill_null of Enum"),
    "a date filled": (C("born").fill_null(datetime.date(2000, 1, 1)), "fill_null of Date"),
    "numbers with a point clipped": (C("income").cast(pl.Float64).clip(0.0, 2.0), "clip of float"),
    "a long constant": (C("name").fill_null("x" * 1001), "longer than 1000 characters"),
    **{
        f"a long label {number}": (of.cast(pl.Enum(["x" * 1001]), strict=False), "longer than 1000")
        for number, of in enumerate((C("name"), ENUM, C("income").cut([0])))
    },
    "a long replacement": (C("name").replace({"a": "x" * 1001}), "longer than 1000 characters"),
    "a long part": (C("income").cut([0], labels=["a", "x" * 1001]), "longer than 1000"),
}


_COLUMNS = {"name": ["Ada", "Bob"], "sick": ["yes", "no"], "income": [1, 2], "big": [2**63, 1]}
_DATES = {"born": [datetime.date(2000, 1, 1), None], "at": [datetime.datetime(2000, 1, 1), None]}
ROWS = pl.DataFrame(_COLUMNS | _DATES, schema_overrides={"big": pl.UInt64})
CONTEXTS: dict[str, Any] = {}


def asked(which: str, plan: Any, **of: Any) -> Any:
    """A posterior query of both records, of the second one, or of what is computed before."""
    frames = {
        "both": lambda: ROWS,
        "second": lambda: ROWS[1:],
        "before": lambda: ROWS.with_columns(n=(C("name") == "Ada") & (C("sick") == "yes")),
    }
    if which not in CONTEXTS:
        CONTEXTS[which] = checked_context(frames[which](), loss={"epsilon": 100.0}, parts=None)
    others = {"nulls": ob.DROP, "unknown": ob.DROP}
    return ob.posterior(plan(CONTEXTS[which].query(epsilon=0.1)), "n", **others, **of)


@pytest.mark.parametrize("name", MAY_FAIL)
def test_a_plan_that_may_fail_is_refused_whoever_is_there(name: str) -> None:
    expr, said = MAY_FAIL[name]
    for which in ("both", "second"):
        with pytest.raises(ValueError, match=said):
            asked(which, lambda q: q.with_columns(n=expr), categories=["a", "b"])
        with pytest.raises(ValueError, match=said):
            asked(which, lambda q: q.filter(expr.is_null()), categories=["a", "b"])


ACCEPTED: dict[str, tuple[pl.Expr, list[Any]]] = {
    "is_nan of a number": (C("income").cast(pl.Float64).is_nan(), [True, False]),
    "the order of an Enum and a label": (ENUM < "x", [True, False]),
    "a cut": (C("income").cut([0], labels=["a", "b"]), ["a", "b"]),
    "a number to text": (C("income").cast(pl.String), ["1", "2"]),
    "a number filled": (C("big").fill_null(2**64 - 1), [0, 1]),
    "decades": (C("income") // 10 * 10, [0, 10]),
    "two dates": (C("born") == C("born"), [True, False]),
    "a constant of 1000 characters": (C("name").fill_null("x" * 1000), ["a", "b"]),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_others_are_released(name: str) -> None:
    expr, categories = ACCEPTED[name]
    released = asked("both", lambda q: q.with_columns(n=expr), categories=categories).release()
    assert len(released.counts) >= 1
