"""Releases through a Context of frames: what they promise, what they cost, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from contexts import made
from random_plans import ENGINES

import opendp_bayes as ob
from opendp_bayes.inference.survey_tables.posterior_of_tables import survey_posterior
from opendp_bayes_engines import EngineContext, EngineQuery, context
from tests.helpers.grouped import with_groups

FRAME = pl.DataFrame(
    {
        "person": [1, 1, 1, 2, 2, 3, None],
        "vote": ["yes", "no", None, "Yes", "yes", "no", "no"],
        "region": ["north", "south", "north", None, "north", "south", "east"],
        "age": [17, 18, None, 40, 55, 99, -3],
    }
)
VOTES: dict[str, Any] = {"categories": ["no", "yes"], "nulls": "none", "unknown": "other"}


@pytest.fixture
def frame() -> Any:
    return FRAME.lazy()


@pytest.fixture(params=ENGINES)
def in_an_engine(
    request: pytest.FixtureRequest, frame_in: Callable[[str, Path], Any], tmp_path: Path
) -> Any:
    """The frame, in each engine in turn."""
    path = tmp_path / "frame.parquet"
    FRAME.write_parquet(path)
    return frame_in(request.param, path)


def test_a_release_through_each_engine_debits_equally(in_an_engine: Any) -> None:
    of = made(in_an_engine, shares=2, epsilon=2.0)
    query = of.query().filter(nw.col("age") >= 18)
    for _ in range(2):
        released = ob.posterior(query, "vote", **VOTES).release()
        assert released.categories == ("no", "yes", "none", "other")
        assert released.promise.relation == "add/remove"
        assert released.epsilon <= 1.0
        assert released.epsilon > 0.999
    with pytest.raises(ValueError, match="is spent; nothing is left"):
        of.query()
    with pytest.raises(ValueError, match="has answered as many queries"):
        ob.posterior(query, "vote", **VOTES).release()


@pytest.mark.parametrize(
    "step",
    [
        lambda query: query,
        lambda query: query.select("vote"),
        lambda query: query.with_columns(person=nw.col("vote")),
    ],
)
def test_a_context_within_has_no_identifier_once_its_rows_are_limited(
    frame: Any, step: Callable[[EngineQuery], EngineQuery]
) -> None:
    """It is debited when it is made, so it must answer afterwards."""
    unit = dp.unit_of(contributions=1, identifier="person")
    of = context(frame, privacy_unit=unit, privacy_loss=dp.loss_of(epsilon=9.0))
    assert of.identifier == "person"
    query = step(of.query(epsilon=4.0).truncate_per_group(2))
    nested = query.compositor(split_evenly_over=2).release()
    assert nested.identifier is None
    assert ob.posterior(nested.query(), "vote", **VOTES).release().promise.d_in == 2


def test_arguments_are_checked_before_the_frame_is_looked_at() -> None:
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
    for wrong in ({"split_evenly_over": 0}, {"ledger": "budget.ledger"}, {"privacy_unit": 1}):
        with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
            context(object(), **{"privacy_unit": unit, "privacy_loss": loss, **wrong})


def test_counts_behind_little_noise_are_those_of_the_plan(frame: Any) -> None:
    of = made(frame, shares=4, epsilon=400.0)
    query = of.query().with_columns(adult=nw.col("age") >= 18).select("vote", "adult")
    assert ob.posterior(query, "vote", **VOTES).release().drawn == (3, 2, 1, 1)
    adult = query.filter(adult=True)
    assert ob.posterior(adult, "vote", **VOTES).release().drawn == (2, 1, 0, 1)
    grouped = of.query().group_by("region")
    released = ob.posterior(
        grouped, "vote", **with_groups(VOTES, {"region": ["north", None]})
    ).release()
    assert released["north"].drawn == (0, 2, 1, 0)
    assert released[None].drawn == (0, 0, 0, 1)
    filled = of.query().with_columns(nw.col("vote").fill_null("no"))
    released = ob.posterior(filled, "vote", categories=["no", "yes"], unknown="other").release()
    assert released.drawn == (4, 2, 1)


def test_joint_tables_and_groups_of_several_columns(in_an_engine: Any) -> None:
    of = made(in_an_engine, shares=3, epsilon=600.0)
    query = of.query().with_columns(old=nw.col("age") >= 40)
    joint = ob.posterior(
        query,
        ["region", "vote"],
        categories={"region": ["north", "south"], "vote": ["no", "yes"]},
        nulls={"region": "nowhere", "vote": "none"},
        unknown={"region": "nowhere", "vote": "none"},
    ).release()
    assert dict(zip(joint.categories, joint.drawn, strict=True)) == {
        ("north", "no"): 0,
        ("north", "yes"): 2,
        ("north", "none"): 1,
        ("south", "no"): 2,
        ("south", "yes"): 0,
        ("south", "none"): 0,
        ("nowhere", "no"): 1,
        ("nowhere", "yes"): 0,
        ("nowhere", "none"): 1,
    }
    labels = with_groups(VOTES, {("region", "old"): [("north", True), ("south", False)]})
    grouped = ob.posterior(query, "vote", by=["region", "old"], **labels).release()
    assert grouped["north", True].drawn == (0, 1, 0, 0)
    assert grouped["south", False].drawn == (1, 0, 0, 0)
    labels = with_groups(VOTES, {"region": ["north"]})
    labels["nulls"] = {"vote": VOTES["nulls"], "region": "none"}
    labels["unknown"] = {"vote": VOTES["unknown"], "region": "other"}
    named = ob.posterior(of.query(), "vote", by="region", **labels).release()
    assert dict(zip(named, named.counts, strict=True)) == {
        "north": (0, 2, 1, 0),
        "none": (0, 0, 0, 1),
        "other": (3, 0, 0, 0),
    }


def test_a_survey_of_a_column_a_table_and_groups(in_an_engine: Any) -> None:
    """One share of the budget for all questions, whose releases are those of `posterior`."""
    of = made(in_an_engine, epsilon=1200.0)
    query = of.query().filter(nw.col("age") >= 18)
    regions = {"categories": ["north", "south"], "nulls": "nowhere", "unknown": "nowhere"}
    table = {name: {"region": regions[name], "vote": VOTES[name]} for name in regions}
    of_groups = with_groups(VOTES, {"region": ["north", "south", None]})
    asked: dict[str, Any] = {
        "vote": {"column": "vote", **VOTES},
        "both": {"column": ["region", "vote"], **table},
        "by region": {"column": "vote", "by": "region", **of_groups},
    }
    found = ob.survey(query, asked).release()
    assert tuple(found) == tuple(asked)
    assert 1199.0 < found.loss.epsilon <= 1200.0
    assert found["vote"].drawn == (2, 1, 0, 1)
    assert (
        dict(zip(found["both"].categories, found["both"].drawn, strict=True))[("nowhere", "other")]
        == 1
    )
    assert found["by region"]["south"].drawn == (2, 0, 0, 0)
    assert found["by region"]["north"].drawn == (0, 1, 0, 0)
    assert found["by region"][None].drawn == (0, 0, 0, 1)
    with pytest.raises(ValueError, match="is spent; nothing is left"):
        of.query()


def test_a_survey_of_people_with_several_rows(frame: Any) -> None:
    """A person moves two rows in each question, and in every part of the budget."""
    of = made(frame, epsilon=3.0, contributions=1, identifier="person")
    asked: dict[str, Any] = {
        "vote": {"column": "vote", **VOTES},
        "by region": {
            "column": "vote",
            "by": "region",
            **with_groups(VOTES, {"region": ["north"]}),
        },
    }
    survey = ob.survey(of.query().truncate_per_group(2), asked, {"vote": 1, "by region": 2})
    released = survey.release()
    assert (released["vote"].d_in, released["vote"].promise.relation) == (2, "add/remove")
    assert 0.999 < released["vote"].epsilon <= 1.0
    assert 1.999 < released["by region"].epsilon <= 2.0
    assert released.loss.epsilon <= 3.0
    with pytest.raises(ValueError, match="has answered as many queries"):
        survey.release()


def test_levels_are_estimated_together_also_of_limited_rows(in_an_engine: Any) -> None:
    """Which rows are kept does not depend on the question, and the release says so."""
    votes, first = ["no", "yes", "maybe", "never"], {"nulls": "no", "unknown": "no"}
    levels = ob.levels("vote", votes, branching=2, budget="rho", **first)
    people = made(in_an_engine, epsilon=900.0, contributions=3)
    together: Any = ob.survey(people.query(), levels).release().posterior
    assert together["vote"].counts.mean() == pytest.approx([5, 2, 0, 0], abs=0.01)
    assert together["vote by 2"].counts.mean() == pytest.approx([7, 0], abs=0.01)
    limited = made(in_an_engine, epsilon=900.0, contributions=1, identifier="person")
    found: Any = ob.survey(limited.query().truncate_per_group(1), levels).release()
    assert found["vote by 2"].drawn[0] == sum(found["vote"].drawn[:2])
    assert found["vote"].promise.kept == "the first row of each person by all 3 other columns"
    exact = np.array(found["vote"].drawn)
    assert found.posterior["vote"].counts.mean() == pytest.approx(exact, abs=0.01)
    fewer = made(in_an_engine, epsilon=900.0, contributions=1, identifier="person")
    other: Any = ob.survey(fewer.query().truncate_per_group(2), levels).release()
    with pytest.raises(ValueError, match="is of the first 2 rows of each person by all 3 other"):
        ob.combine({"vote": found["vote"], "vote by 2": other["vote by 2"]}, records="same")


def test_tables_of_limited_rows_have_one_posterior(in_an_engine: Any) -> None:
    of = made(in_an_engine, epsilon=60.0, contributions=1, identifier="person")
    region = {"categories": ["north", "south"], "nulls": "north", "unknown": "south"}
    both = {name: {"region": region[name], "vote": VOTES[name]} for name in region}
    asked = {"vote": {"column": "vote", **VOTES}, "both": {"column": ["region", "vote"], **both}}
    query = of.query().truncate_per_group(2)
    found: Any = ob.survey(query.filter(nw.col("age") > -9), asked, share="equal").release()
    together = survey_posterior(dict(found.items()), ess=20)
    assert together.records.mean() == pytest.approx(5, abs=1)


def test_the_columns_of_a_rule_are_named_where_the_plan_names_them(frame: Any) -> None:
    """Those of a file without a header are somebody's record."""
    query = made(frame, contributions=1, identifier="person").query()
    assert query.kept == query.filter(nw.col("age") > 9).kept == ""
    limited = query.select("vote", "person").filter(vote="yes").truncate_per_group(2)
    assert limited.kept == "the first 2 rows of each person by vote"
    assert limited.group_by("vote").kept == limited.select("vote").kept == limited.kept
    older = query.with_columns(old=nw.col("age") > 60).truncate_per_group(1)
    assert older.kept == "the first row of each person by all 4 other columns"


@pytest.mark.parametrize("steps", [False, True])
def test_a_context_within_a_context(frame: Any, steps: bool) -> None:
    """It has one share of the outer budget, and the frame and the distance after the plan."""
    of = made(frame, shares=2, epsilon=4.0, contributions=1, identifier="person")
    query = of.query()
    if steps:
        query = query.filter(nw.col("age") >= 18).truncate_per_group(2)
    nested = query.compositor(split_evenly_over=2).release()
    assert isinstance(nested, EngineContext)
    for _ in range(2):
        inner = nested.query()
        inner = inner if steps else inner.truncate_per_group(2)
        released = ob.posterior(inner, "vote", **VOTES).release()
        assert released.d_in == 2
        assert 0.999 < released.epsilon <= 1.0
        assert released.promise.truncated
        assert released.promise.kept.startswith("the first 2 rows of each person by ")
    with pytest.raises(ValueError, match="is spent; nothing is left"):
        nested.query()
    assert ob.posterior(of.query().truncate_per_group(1), "vote", **VOTES).release().d_in == 1
    with pytest.raises(ValueError, match="group_by must be the last step"):
        made(frame).query().group_by("region").compositor(split_evenly_over=2)


def test_mistakes_in_a_survey_are_refused_before_data_are_read(frame: Any) -> None:
    query = made(frame).query()
    for asked, message in (
        ({"column": "vote", "by": "region", **VOTES}, "which groups there are"),
        ({"column": "nothing", **VOTES}, "'nothing'"),
        ({"column": "age"}, "vote.*column 'age' of type Int64"),
        ({"column": "vote", **with_groups(VOTES, {"region": ["north"]})}, "by=\\['region'\\]"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            ob.survey(query, {"vote": asked})
    people = made(frame, contributions=1, identifier="person").query()
    with pytest.raises(ValueError, match="limit them first"):
        ob.survey(people, {"vote": {"column": "vote", **VOTES}})


@pytest.mark.parametrize(
    ("unit", "steps", "asked", "relation", "d_in"),
    [
        ({"contributions": 3}, [], {}, "add/remove", 3),
        ({"contributions": 3}, ["filter", "select"], {}, "add/remove", 3),
        ({"changes": 2}, [], {"size": 7}, "change-one", 2),
        ({"changes": 2}, ["with_columns", "select"], {"size": 7}, "change-one", 2),
        ({"changes": 2}, ["filter"], {}, "add/remove", 4),
        ({"contributions": 2, "identifier": "person"}, ["truncate"], {}, "add/remove", 6),
        ({"changes": 2, "identifier": "person"}, ["truncate"], {}, "add/remove", 12),
        (
            {"contributions": 1, "identifier": "person"},
            ["filter", "with_columns", "truncate", "select"],
            {},
            "add/remove",
            3,
        ),
    ],
)
def test_what_a_release_promises(
    frame: Any, unit: Any, steps: list[str], asked: Any, relation: str, d_in: int
) -> None:
    of = made(frame, **unit)
    query = of.query()
    for step in steps:
        query = {
            "filter": lambda q: q.filter(nw.col("age") > 17),
            "select": lambda q: q.select("vote"),
            "with_columns": lambda q: q.with_columns(old=nw.col("age") > 60),
            "truncate": lambda q: q.truncate_per_group(3),
        }[step](query)
    released = ob.posterior(query, "vote", **VOTES, **asked).release()
    assert (released.promise.relation, released.promise.d_in) == (relation, d_in)
    assert released.epsilon <= 1.0


def test_other_budgets(frame: Any) -> None:
    for loss in (dp.loss_of(rho=0.1), dp.loss_of(epsilon=1.0, delta=1e-6)):
        of = context(
            frame,
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=loss,
            split_by_weights=[1, 3],
        )
        assert isinstance(of.query(), EngineQuery)
        ob.posterior(of.query(), "vote", **VOTES).release()
        ob.posterior(of.query(), "vote", **VOTES).release()
    of = context(
        frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(epsilon=1.0)
    )
    assert ob.posterior(of.query(epsilon=0.25), "vote", **VOTES).release().epsilon <= 0.25
    with pytest.raises(ValueError, match="no budget of its own"):
        ob.posterior(of.query(), "vote", **VOTES).release()


PERSON = {"contributions": 1, "identifier": "person"}
MISTAKES: dict[str, tuple[Any, Callable[[EngineQuery], Any], type[Exception], str]] = {
    "not truncated": (
        PERSON,
        lambda q: ob.posterior(q, "vote", **VOTES),
        ValueError,
        "limit them first, with `query.truncate_per_group",
    ),
    "identifier replaced": (
        PERSON,
        lambda q: q.with_columns(person=nw.col("age")),
        ValueError,
        "must leave the identifier 'person' as it is",
    ),
    "identifier computed": (
        PERSON,
        lambda q: q.with_columns(nw.col("person").fill_null(0)),
        ValueError,
        "must leave the identifier 'person' as it is",
    ),
    "identifier dropped": (
        PERSON,
        lambda q: q.select("vote"),
        ValueError,
        "must leave the identifier 'person' as it is",
    ),
    "truncated without identifier": (
        {"contributions": 1},
        lambda q: q.truncate_per_group(2),
        ValueError,
        "needs a privacy unit with an identifier",
    ),
    "truncated twice": (
        PERSON,
        lambda q: q.truncate_per_group(2).truncate_per_group(1),
        ValueError,
        "limits it once",
    ),
    "truncated to nothing": (
        PERSON,
        lambda q: q.truncate_per_group(0),
        ValueError,
        "m=0: must be between 1 and",
    ),
    "truncated to a half": (PERSON, lambda q: q.truncate_per_group(0.5), TypeError, "m="),
    "no column": (
        {"contributions": 1},
        lambda q: ob.posterior(q, "voted", **VOTES),
        ValueError,
        "'voted': is not a column of the frame",
    ),
    "a number without categories": (
        {"contributions": 1},
        lambda q: ob.posterior(q, "vote"),
        ValueError,
        "does not say publicly which categories",
    ),
    "groups without by": (
        {"contributions": 1},
        lambda q: ob.posterior(q, "vote", **with_groups(VOTES, {"region": ["north"]})),
        ValueError,
        "columns that make groups are named by",
    ),
    "no size": (
        {"changes": 1},
        lambda q: ob.posterior(q, "vote", **VOTES),
        ValueError,
        "size=None: under change-one neighbours",
    ),
    "size where it is private": (
        {"changes": 1},
        lambda q: ob.posterior(q.filter(nw.col("age") > 3), "vote", size=7, **VOTES),
        ValueError,
        "the number of records is private here",
    ),
    "step after group_by": (
        {"contributions": 1},
        lambda q: q.group_by("region").filter(nw.col("age") > 3),
        ValueError,
        "group_by must be the last step",
    ),
    "group_by twice": (
        {"contributions": 1},
        lambda q: q.group_by("region").group_by("vote"),
        ValueError,
        "group_by must be the last step",
    ),
    "group_by an expression": (
        {"contributions": 1},
        lambda q: q.group_by(nw.col("age") > 3),
        TypeError,
        "must be names of columns",
    ),
    "group_by nothing": ({"contributions": 1}, lambda q: q.group_by(), TypeError, "must be names"),
    "filter by nothing": ({"contributions": 1}, lambda q: q.filter(), ValueError, "at least one"),
    "select nothing": ({"contributions": 1}, lambda q: q.select(), ValueError, "at least one"),
    "select constants": (
        {"contributions": 1},
        lambda q: q.select(vote=nw.lit("yes")),
        ValueError,
        "must read a column",
    ),
    "a column twice": (
        {"contributions": 1},
        lambda q: q.select("vote", vote=nw.col("region")),
        ValueError,
        "must not make a column twice",
    ),
    "names that differ in case": (
        {"contributions": 1},
        lambda q: q.with_columns(Vote=nw.col("region")),
        ValueError,
        "differ in nothing but case",
    ),
    "a reserved name": (
        {"contributions": 1},
        lambda q: q.with_columns(opendp_bayes_1=nw.col("region")),
        ValueError,
        "is reserved",
    ),
    "a name that means more": (
        {"contributions": 1},
        lambda q: q.with_columns(nw.col("region").alias("a.b")),
        ValueError,
        "mean something else",
    ),
    "filter by a number": (
        {"contributions": 1},
        lambda q: q.filter("age"),
        ValueError,
        "filter: is accepted for boolean",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_refused_before_data_are_read(name: str) -> None:
    unit, ask, error, message = MISTAKES[name]

    def read_nothing(_: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("the data were read")

    frame = FRAME.lazy().map_batches(read_nothing, schema=FRAME.schema)
    of = made(frame, **unit)
    with pytest.raises(error, match=message):
        ask(of.query())


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        (dp.unit_of(contributions=1, ordered=True), "must be unit_of"),
        (dp.unit_of(l1=1.0), "must be dp.unit_of"),
        (dp.unit_of(contributions=1, identifier="nobody"), "'nobody' is not a column of the frame"),
        (dp.unit_of(contributions=1, identifier=pl.col("person") + 1), "the name of a column"),
        (dp.unit_of(contributions=1, identifier="weight"), "must be a string, an integer"),
    ],
)
def test_units_that_no_plan_is_proved_for(unit: Any, message: str) -> None:
    frame = FRAME.with_columns(weight=pl.lit(1.5)).lazy()
    with pytest.raises(ValueError, match=message):
        context(frame, privacy_unit=unit, privacy_loss=dp.loss_of(epsilon=1.0))


def test_without_features(frame: Any) -> None:
    dp.disable_features("honest-but-curious")
    with pytest.raises(ValueError, match="needs these OpenDP features"):
        made(frame)


def test_two_frames_with_other_columns_are_two_spaces(frame: Any) -> None:
    one, other = made(frame), made(frame.select("vote"))
    chain, _ = one.query().counts_of(_votes())
    with pytest.raises(dp.OpenDPException, match="domain"):
        other(chain >> dp.m.then_user_measurement(dp.max_divergence(), lambda x: 0, lambda d: 0.0))


def _votes() -> Any:
    from opendp_bayes.questions.question import Question, Variable

    return Question((Variable("vote", ["no", "yes"], "none", "other"),))
