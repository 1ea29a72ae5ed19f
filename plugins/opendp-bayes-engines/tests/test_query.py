"""Releases through a Context of a table: what they promise, what they cost, and what is refused."""

import copy
import datetime
from typing import Any

import duckdb
import opendp.prelude as dp
import polars as pl
import pytest
from contexts import counts, made

import opendp_bayes as ob
from opendp_bayes_engines import columns, context
from tests.helpers.contexts import checked_context

#: Of Dask, which the door of the core silences, and these tests go around.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

_VOTES = ["yes", "no", None, "Yes", "yes", "no", "no"]
_REGIONS = ["north", "south", "north", None, "north", "south", "east"]
_COLUMNS = {"person": [1, 1, 1, 2, 2, 3, None], "vote": _VOTES, "region": _REGIONS}
FRAME = pl.DataFrame(_COLUMNS | {"age": [17, 18, None, 40, 55, 99, -3]})
VOTES: dict[str, Any] = {"categories": ["no", "yes"], "nulls": "none", "unknown": "other"}
TABLE = FRAME.lazy()


def test_arguments_and_moments_are_checked_before_the_table() -> None:
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
    for wrong in ({"split_evenly_over": 0}, {"ledger": "budget.ledger"}, {"privacy_unit": 1}):
        with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
            context(object(), **{"privacy_unit": unit, "privacy_loss": loss, **wrong})
    table = pl.LazyFrame({"day": [datetime.date(2020, 1, 1)]})
    with pytest.raises(TypeError, match="which is date in Python"):
        made(table).query().filter(("day", "<", datetime.datetime(2021, 1, 1)))


@pytest.mark.parametrize(
    ("condition", "match"),
    [
        (("age", "=", 18), r"op='=': must be one of '=='"),
        (("age", ">=", "18"), "type of its column, Int64"),
        (("age", ">=", True), "which is int in Python"),
        (("age", ">=", 18.0), "which is int in Python"),
        (("age", ">=", None), "which is int in Python"),
        (("age", "<", 2**63), "an integer of 64 bits"),
        (("age", "is_in", []), "must be a list of values"),
        (("age", "is_in", {18}), "must be a list of values"),
        (("age", "is_in", [18, "a"]), "which is int in Python"),
        (("age", "is_null", 1), "must be True or False"),
        (("vote", "==", b"yes"), "which is str in Python"),
        (("vote", "==", "\ud800"), "surrogates not allowed"),
        (("nothing", "==", 1), "not a column of the"),
        (("age", ">="), "must be .column, op, constant."),
        (["age", ">=", 18], "must be .column, op, constant."),
        (pl.col("age") >= 18, "must be .column, op, constant."),
    ],
)
def test_a_condition_that_does_not_fit_is_refused(condition: Any, match: str) -> None:
    with pytest.raises((TypeError, ValueError), match=match):
        made(TABLE).query().filter(("vote", "==", "yes"), condition)


def test_what_a_query_refuses() -> None:
    person = made(TABLE, contributions=1, identifier="person")
    for ask in (
        lambda: ob.posterior(person.query(), "vote", **VOTES),
        lambda: ob.discover(person.query(), "vote", nulls="n"),
    ):
        with pytest.raises(ValueError, match="limit them first"):
            ask()
    query = person.query()
    for m in (0, -1, 1.5, "2", True):
        with pytest.raises((TypeError, ValueError), match="m="):
            query.truncate_per_group(m)
    with pytest.raises(ValueError, match="and limits it once"):
        query.truncate_per_group(1).truncate_per_group(1)
    with pytest.raises(ValueError, match="unit with an identifier"):
        made(TABLE).query().truncate_per_group(1)
    with pytest.raises(ValueError, match="may hold nulls"):
        ob.discover(made(TABLE).query(), "vote")
    with pytest.raises((TypeError, ValueError), match=r"column=.*: is not a column"):
        made(TABLE).query().counts_of_values(["vote"], always=[], nulls="n")
    with pytest.raises(ValueError, match="range of 64-bit integers"):
        made(TABLE).query().counts_of_values("age", always=[], nulls=2**63)


def test_an_identifier_is_one_that_engines_share_and_a_query_stays() -> None:
    for name, match in (("real", "is not counted within"), ("list", "polars does not share")):
        table = pl.LazyFrame({"real": [1.5], "list": [[1]], "day": [datetime.date(2020, 1, 1)]})
        with pytest.raises(TypeError, match=match):
            made(table, contributions=1, identifier=name)
    assert made(table, contributions=1, identifier="day")
    computed = dp.unit_of(contributions=1, identifier=pl.col("day").dt.year())
    with pytest.raises(ValueError, match="must be one column by name"):
        context(table, privacy_unit=computed, privacy_loss=dp.loss_of(epsilon=1.0))
    bounds = dp.unit_of(contributions=[dp.polars.Bound(by=["day"], per_group=1, num_groups=1)])
    with pytest.raises(ValueError, match="must be unit_of"):
        context(table, privacy_unit=bounds, privacy_loss=dp.loss_of(epsilon=1.0))
    query = made(TABLE).query()
    older = query.filter(("age", ">=", 40))
    assert counts(query, TABLE, ("vote", ["no", "yes"], "none", "other")) == [3, 2, 1, 1]
    assert counts(older, TABLE, ("vote", ["no", "yes"], "none", "other")) == [1, 1, 0, 1]


@pytest.mark.parametrize("name", ["select", "group_by", "with_columns", "counts"])
def test_steps_that_an_engine_has_not_say_where_they_are(name: str) -> None:
    """And the way that they name answers."""
    table = duckdb.sql("SELECT range % 2 = 0 AS vote FROM range(100)")
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
    of = context(table, privacy_unit=unit, privacy_loss=loss, split_evenly_over=1)
    query = of.query()
    message = rf"{name}: is no step .* ob\.context\(opendp_bayes_engines\.columns\(table, names\)"
    with pytest.raises(AttributeError, match=message):
        getattr(query, name)
    way = checked_context(columns(table, ["vote"]))
    # Noise of scale 1 is above 30 with probability e^-30.
    number = way.query().select(dp.len(signed=True)).release().collect().item()
    assert abs(number - 100) <= 30
    assert copy.copy(query) == query
