"""Questions of unlisted categories: what may be asked, is foreseen, and is refused unread."""

import re
from datetime import date
from functools import partial
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.unlisted import Discovery, GaussianThreshold, LaplaceThreshold, OptimalThreshold
from opendp_bayes.unlisted.discovery_query import DiscoveryQuery
from tests.helpers.contexts import checked_context, plain_context

pytestmark = pytest.mark.usefixtures("coarse_errors", "short_chains")

FRAME = pl.LazyFrame({"key": ["a"] * 90 + ["b"] * 60 + ["c"], "n": [1] * 151, "x": [0.5] * 151})
ASKED: dict[str, Any] = {"nulls": ob.DROP}


def query(**loss: float) -> Any:
    context = checked_context(FRAME, loss=loss or {"epsilon": 1.0, "delta": 1e-8})
    return context.query()


@pytest.mark.parametrize(
    ("column", "by"), [("n", "key"), (["n", "key"], None)], ids=["groups", "joint table"]
)
def test_categories_that_are_listed_with_others_are_discovered_by_a_query_of_their_own(column, by):
    """As the refusal says, in one Context."""
    context = checked_context(FRAME, loss={"epsilon": 4.0, "delta": 1e-6}, parts=2)
    asked: Any = {"column": column, "by": by, "nulls": ob.DROP, "unknown": ob.DROP}
    message = r"column 'key' must have its categories listed .*ob\.discover\(query, 'key'\)"
    with pytest.raises(ValueError, match=message):
        ob.posterior(context.query(), **asked, categories={"n": [1, 2], "key": "discover"})
    shown = ob.discover(context.query(), "key", **ASKED).release()
    assert {"a", "b"} >= {*shown.categories} >= {"a"}
    listed = {"n": [1, 2], "key": shown.categories}
    release = ob.posterior(context.query(), **asked, categories=listed).release()
    keys = release.groups if by else {label[1] for label in release.categories}
    assert {*keys} == {*shown.categories}


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


def test_a_column_that_is_not_there_is_refused_without_the_names_of_others() -> None:
    with pytest.raises(ValueError, match="column='town'") as error:
        ob.discover(query(), "town", **ASKED)
    assert "key" not in str(error.value)


def test_only_queries_on_frames_are_asked() -> None:
    with pytest.raises(TypeError, match="query on a polars frame"):
        ob.discover(FRAME, "key", **ASKED)


def test_the_summary_says_what_will_be_shown_before_any_data_are_read() -> None:
    asked = ob.discover(query(), "key", **ASKED, rest=0.2)
    assert isinstance(asked, DiscoveryQuery)
    row = asked.summarize().row(0, named=True)
    law = OptimalThreshold(1.0, 1e-8, 0.8)
    assert row["mechanism"] == "OptimalThreshold"
    assert row["threshold"] == law.threshold
    shown = [row["shown_half"], row["shown_95"], row["shown_99"]]
    assert shown == [law.least_shown(share) for share in (0.5, 0.95, 0.99)]
    assert row["rest_std"] == pytest.approx(2**0.5 * 5)
    assert (row["epsilon"], row["delta"]) == (1.0, 1e-8)
    assert "debits=(1.0, 1e-08)" in repr(asked)


def test_a_discovery_is_used_as_it_is_and_its_threshold_is_the_parameter() -> None:
    own = Discovery(GaussianThreshold(8.0, 60))
    asked = ob.discover(query(rho=0.1, delta=1e-8), "key", **ASKED, mechanism=own)
    assert asked.param() == 60
    release = asked.release()
    assert release.discovery == own
    assert set(release.categories) <= {"a", "b"}
    assert release.rho == pytest.approx(1 / 128)


@pytest.mark.parametrize("name", ["optimal_threshold", "laplace_threshold", "gaussian_threshold"])
def test_every_law_is_asked_for_by_name(name: str) -> None:
    asked = ob.discover(query(), "key", **ASKED, mechanism=name)
    release = asked.release()
    assert release.discovery.law.name == name
    assert release.epsilon <= 1.0
    assert release.delta <= 1e-8


OPTIMAL, *OTHERS = ("optimal_threshold", "laplace_threshold", "gaussian_threshold")


@pytest.mark.parametrize("rest", [None, 0.25])
@pytest.mark.parametrize(
    ("name", "part"), [(OPTIMAL, "epsilon"), (OTHERS[0], "epsilon"), (OTHERS[1], "rho")]
)
def test_a_law_that_is_given_meets_either_part_of_a_budget(name, part, rest):
    """That which a budget buys, with its share for the rest; it exceeds less of either part."""
    of_key = partial(ob.discover, column="key", **ASKED)
    bought = of_key(query(**{part: 0.5, "delta": 1e-8}), mechanism=name, rest=rest).release()
    law, spent = bought.discovery, {of: getattr(bought, of) for of in (part, "delta")}
    assert (law.rest is None) == (rest is None)
    if law.rest is not None:
        assert law.rest.scale == pytest.approx(2.0 if part == "rho" else 8.0)
    assert of_key(query(**spent), mechanism=law).release().discovery == law
    for lowered in spent:
        less = spent | {lowered: 0.99 * spent[lowered]}
        with pytest.raises(ValueError, match="exceeds the budget"):
            of_key(query(**less), mechanism=law).release()


def test_a_query_without_a_budget_is_refused_with_one_to_ask_for() -> None:
    context = checked_context(FRAME, loss={"epsilon": 1.0, "delta": 1e-8}, parts=None)
    asked = ob.discover(context.query(epsilon=0.5, delta=1e-9), "key", **ASKED)
    assert asked.release().epsilon == 0.5
    with pytest.raises(ValueError, match="has no δ"):
        ob.discover(context.query(epsilon=0.1, delta=0.0), "key", **ASKED).release()


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


@pytest.mark.parametrize(
    ("always", "nulls"),
    [([], "missing"), (["2026-05-01"], "missing"), (["2026-05-01"], "2026-05-01")],
)
def test_days_and_another_label_for_nulls_are_accepted(always: list[str], nulls: str) -> None:
    assert set(asked_of_days(always, nulls).release().categories) >= {*always, nulls}
