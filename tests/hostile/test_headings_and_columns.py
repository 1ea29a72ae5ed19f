"""One column is one variable of the posterior of all tables, whatever its questions are called."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.results.release import Release
from tests.helpers.contexts import plain_context

VOTES, AGES = ["yes", "no"], ["young", "old"]
VOTE: dict[str, Any] = {"column": "vote", "categories": VOTES, "nulls": "no", "unknown": "no"}
BOTH: dict[str, Any] = {"column": ["vote", "age"], "categories": {"vote": VOTES, "age": AGES}}
BOTH |= {"nulls": {"vote": "no", "age": "old"}, "unknown": {"vote": "no", "age": "old"}}


@pytest.fixture
def asked() -> Callable[..., Any]:
    """A query of 300 records, in a Context of four queries."""
    frame = pl.LazyFrame(
        {"vote": ["yes"] * 200 + ["no"] * 100, "age": ["young", "old", "old"] * 100}
    )
    context = plain_context(frame, loss={"epsilon": 20.0}, parts=4)
    return context.query


def test_a_heading_and_its_column_are_one_variable(asked: Any) -> None:
    survey = ob.survey(asked(), {"Vote": VOTE, "Both": BOTH}).release()
    posterior: Any = survey.posterior
    assert posterior.variables == ("vote", "age")
    assert posterior.cliques == (("vote", "age"),)


def test_two_questions_of_one_column_are_two_looks_at_one_variable(asked: Any) -> None:
    survey = ob.survey(asked(), {"first": VOTE, "again": VOTE, "Both": BOTH}).release()
    posterior: Any = survey.posterior
    assert posterior.variables == ("vote", "age")
    assert posterior.tables == (("vote",), ("vote", "age"))
    arguments = {name: value for name, value in VOTE.items() if name != "column"}
    first, again = (ob.posterior(asked(), "vote", **arguments).release() for _ in range(2))
    kept = Release.from_json(again.to_json())
    posterior: Any = ob.combine_tables({"monday": first, "tuesday": kept}, draws_may_agree=True)
    assert posterior.variables == ("vote",)


def test_a_release_that_does_not_say_its_column_is_called_by_its_name(asked: Any) -> None:
    arguments = {name: value for name, value in VOTE.items() if name != "column"}
    one = replace(ob.posterior(asked(), "vote", **arguments).release(), columns=(), unknown=())
    posterior: Any = ob.combine_tables({"Vote": one})
    assert posterior.variables == ("Vote",)
