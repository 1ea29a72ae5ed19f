"""Counts of several questions in one pass: the same counts and maps as of each question alone."""

from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from opendp.mod import OpenDPException

import opendp_bayes as ob
from opendp_bayes.surveys.survey_query import frames_of_the_same_rows
from opendp_bayes.trusted.spaces import CountsOfSeveral, CountsSpace
from tests.helpers.contexts import plain_context

C = pl.col
AGES, TOWNS = [0, 1, 2], ["x", "y"]
TYPES = {"who": pl.Int64, "age": pl.Int64, "town": pl.String}
OF_AGES = {"nulls": 0, "unknown": 2}
OF_BOTH = {"nulls": {"age": 0, "town": "x"}, "unknown": {"age": 2, "town": "y"}}
BY = {"categories": {"age": AGES, "town": TOWNS}}
QUESTIONS: dict[str, Any] = {
    "age": {"column": "age", "categories": AGES, **OF_AGES},
    "by town": {"column": "age", **BY, **OF_AGES, "by": "town"},
    "table": {"column": ["town", "age"], **BY, **OF_BOTH},
}
BOUND = dp.polars.Bound
#: The units of a Context, each with a limit that makes them records.
UNITS: list[tuple[dict[str, Any], Any]] = [
    ({"contributions": 3}, lambda q: q),
    ({"contributions": 3}, lambda q: q.filter(C("age") != 1)),
    ({"changes": 2}, lambda q: q),
    ({"contributions": 1, "identifier": "who"}, lambda q: q.truncate_per_group(2, keep="first")),
    ({"contributions": 2, "identifier": "who"}, lambda q: q.truncate_per_group(1, keep="last")),
    ({"changes": 1, "identifier": "who"}, lambda q: q.truncate_per_group(3, keep="first")),
    ({"contributions": [BOUND(by=["town"], per_group=2, num_groups=2)]}, lambda q: q),
]
Row = tuple[Any, Any, Any]


def asked(rows: list[Row], unit: Any, plan: Any) -> Any:
    data = pl.LazyFrame(rows, schema=TYPES, orient="row")
    context = plain_context(data, unit)
    size = {"size": len(rows)} if "changes" in unit and "identifier" not in unit else {}
    questions = {name: {**each, **size} for name, each in QUESTIONS.items()}
    return ob.survey(plan(context.query()), questions), data


def in_one_pass(frames: Any) -> Any:
    """The transformation to the counts of all questions, and those from there to each."""
    return frames[0].gate.counts([one.cells for one in frames])


def at_once(rows: list[Row], unit: Any, plan: Any) -> tuple[list[np.ndarray], list[int], Any]:
    """The counts of all questions, and the distance of each, in one pass."""
    survey, data = asked(rows, unit, plan)
    frames = frames_of_the_same_rows(survey.questions.values())
    assert len(frames) == len(QUESTIONS)
    together, each = in_one_pass(frames)
    counts, moved = together(data), together.map(survey._d_in)
    return [one(counts) for one in each], [one.map(moved) for one in each], survey


VALUES = st.sampled_from([*AGES, 7, None]), st.sampled_from([*TOWNS, "z", None])
ROWS = st.lists(st.tuples(st.integers(0, 3), *VALUES), min_size=1, max_size=8)


@pytest.mark.parametrize(("unit", "plan"), UNITS)
@given(rows=ROWS)
@settings(deadline=None, max_examples=4)
def test_counts_and_distances_are_those_of_each_question_alone(unit, plan, rows):
    counts, distances, survey = at_once(rows, unit, plan)
    data = asked(rows, unit, plan)[1]
    for asked_alone, own, distance in zip(
        survey.questions.values(), counts, distances, strict=True
    ):
        assert own.tolist() == asked_alone.counts(data).tolist()
        assert distance == asked_alone.counts.map(survey._d_in) == asked_alone.distance.stated


@pytest.mark.parametrize(("unit", "plan"), UNITS[3:6])
@given(rows=ROWS, more=st.lists(st.tuples(st.just(9), VALUES[0], VALUES[1]), max_size=5))
@settings(deadline=None, max_examples=4)
def test_one_identifier_more_moves_every_count_by_no_more_than_is_stated(unit, plan, rows, more):
    """One identifier more is half of a change, and one of its contributions."""
    before, distances, _ = at_once(rows, unit, plan)
    after, _, _ = at_once([*rows, *more], unit, plan)
    for one, other, distance in zip(before, after, distances, strict=True):
        assert np.abs(one - other).sum() <= distance


def test_limits_plans_and_spaces_of_questions_are_apart() -> None:
    """The negative control: without its limit, five rows of one person move more than 2."""
    rows: list[Row] = [(9, 0, "x")] * 5
    unit, plan = UNITS[3]
    limited, distances, _ = at_once(rows, unit, plan)
    assert [each.sum() for each in limited] == distances == [2, 2, 2]
    survey, data = asked(rows, {"contributions": 1}, lambda q: q)
    together, each = in_one_pass(frames_of_the_same_rows(survey.questions.values()))
    assert [one(together(data)).sum() for one in each] == [5, 5, 5]
    one, other = (asked([], {"contributions": 1}, plan)[0] for _, plan in UNITS[:2])
    mixed = [one.questions["age"], other.questions["age"]]
    assert frames_of_the_same_rows(mixed) == []
    assert len(frames_of_the_same_rows(one.questions.values())) == 3
    spaces = CountsSpace(("a", "b"), None), CountsSpace(("a", "c"), None), CountsSpace(("a",), 5)
    several = [CountsOfSeveral((spaces[0], other)) for other in spaces]
    assert len({each.identifier for each in several}) == 3
    assert several[0].domain != several[1].domain
    assert several[0].metric == several[1].metric


def test_what_is_no_counts_of_several_is_refused_without_showing_it() -> None:
    survey, data = asked([(1, 0, "x")], {"contributions": 1}, lambda q: q)
    together, (first, *_) = in_one_pass(frames_of_the_same_rows(survey.questions.values()))
    domain, counts = together.output_domain, together(data)
    assert domain.member(counts)
    for value in (counts[:2], list(counts), 123456, (*counts[:2], counts[0])):
        assert not domain.member(value)
    for value in (counts[:2], 123456):
        with pytest.raises(OpenDPException, match="hold counts of 3 questions") as caught:
            first(value)
        assert "123456" not in str(caught.value)
    with pytest.raises(ValueError, match="output of make_categorical_counts"):
        together >> ob.t.then_dirichlet_multinomial(prior=1.0)
