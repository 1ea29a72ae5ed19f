"""One column is one variable of the posterior of all tables, whatever its questions are called."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
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
