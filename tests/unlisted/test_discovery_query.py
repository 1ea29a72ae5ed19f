"""Questions of unlisted categories: what may be asked, is foreseen, and is refused unread."""

import re
from datetime import date
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.unlisted import Discovery, LaplaceThreshold, OptimalThreshold
from tests.helpers.contexts import checked_context, plain_context

pytestmark = pytest.mark.usefixtures("coarse_errors", "short_chains")

FRAME = pl.LazyFrame({"key": ["a"] * 90 + ["b"] * 60 + ["c"], "n": [1] * 151, "x": [0.5] * 151})
ASKED: dict[str, Any] = {"nulls": ob.DROP}


def query(**loss: float) -> Any:
    context = checked_context(FRAME, loss=loss or {"epsilon": 1.0, "delta": 1e-8})
    return context.query()


EITHER = TypeError, ValueError


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"always": "abc"}, TypeError, "always='abc': must be a sequence"),
        ({"always": [1]}, TypeError, "does not fit"),
        ({"always": ["a", "a"]}, ValueError, "must not repeat"),
        ({"nulls": None}, ValueError, "nulls=ob.DROP"),
        ({"nulls": 7}, TypeError, "does not fit"),
        ({"mechanism": "laplace_parameters"}, ValueError, "laplace_parameters"),
        ({"mechanism": ob.LaplaceParameters(1.0)}, TypeError, "must be 'auto'"),
        ({"mechanism": Discovery(OptimalThreshold(2.0, 1e-8))}, ValueError, "exceeds the budget"),
        *(({"column": of}, EITHER, "column=") for of in (["key", "n"], 3, None)),
        *(({"rest": of}, ValueError, "above 0") for of in (0.0, 1.0, -0.2, True, "most", 1)),
        *(
            ({"mechanism": Discovery(law, rest), "rest": 0.2}, ValueError, "rest=0.2: cannot be")
            for law in (OptimalThreshold(0.5, 1e-9), LaplaceThreshold(4.0, 90))
            for rest in (None, DiscreteLaplace(9.0))
        ),
    ],
)
def test_arguments_are_checked_before_anything_is_read(arguments, error, message):
    def call():
        asked = ob.discover(query(), **{"column": "key"} | ASKED | arguments)
        assert "budget" in message, "of which a release knows"
        asked.release()

    with pytest.raises(error, match=re.escape(message)):
        call()


def test_only_columns_that_are_there_are_asked_of_queries_on_frames() -> None:
    with pytest.raises(ValueError, match="column='town'") as error:
        ob.discover(query(), "town", **ASKED)
    assert "key" not in str(error.value)
    with pytest.raises(TypeError, match="query on a polars frame"):
        ob.discover(FRAME, "key", **ASKED)


DAYS = pl.LazyFrame({"day": [date(2026, 5, 1), None] * 20})


def asked_of_days(always: list[str], nulls: str) -> Any:
    context = plain_context(DAYS, loss={"epsilon": 1.0, "delta": 1e-8})
    return ob.discover(context.query(), "day", always=always, nulls=nulls)


@pytest.mark.parametrize(
    ("always", "nulls"),
    [(["missing"], "missing"), (["2026-05-01", "missing"], "missing"), (["missing"], "2026-05-01")],
)
def test_a_value_that_is_always_shown_of_days_is_one_whatever_nulls_are_called(always, nulls):
    """The label of nulls may be any text; that of a value is a day, even if it names both."""
    with pytest.raises(ValueError, match="always='missing': is no date"):
        asked_of_days(always, nulls)
