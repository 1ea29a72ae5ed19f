"""Names of columns, whatever they are, and headings beside the columns that they are of."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.results.release import Release
from opendp_bayes_office import read
from tests.helpers.command_line import run
from tests.helpers.contexts import checked_context, plain_context
from tests.helpers.sweeps import some_of

EXACT = 1e5
REST = {"nulls": "none", "unknown": "other"}
#: What a pattern would mean instead is the second column of each, of another value.
NAMES = ["*", "^vote.*$", "^$", "^vote$", "vote", ""]


def frame_of(name: str, kind: Any = pl.String) -> pl.DataFrame:
    votes = pl.Series(["a", "a", "a", "a", "b", None], dtype=kind)
    return pl.DataFrame({"person": range(6), "vote 2": ["b"] * 6, name: votes})


def query(frame: Any, **unit: Any) -> Any:
    context = checked_context(frame, unit or {"contributions": 1}, {"epsilon": EXACT})
    return context.query()


@pytest.mark.parametrize(
    ("name", "kind", "lazy"),
    some_of(product(NAMES, [pl.String, pl.Enum(["a", "b"]), pl.Categorical], [False, True]), 18),
)
def test_a_column_is_counted_by_its_name(name: str, kind: Any, lazy: bool) -> None:
    frame = frame_of(name, kind)
    plan = query(frame.lazy() if lazy else frame)
    asked = ob.posterior(plan, name, categories=["a", "b"], **REST)
    assert asked.release().counts[:3] == (4, 1, 1)


def test_a_pattern_of_polars_would_count_another_column() -> None:
    """Negative control."""
    counted = frame_of("^vote.*$").lazy().group_by(value=pl.col("^vote.*$")).len().collect()
    assert counted.rows() == [("b", 6)]


@pytest.mark.parametrize("name", NAMES)
def test_columns_make_groups_and_joint_tables_and_are_widened(name: str) -> None:
    labels = {name: ["a", "b"], "vote 2": ["b", "c"]}
    of_groups = ob.posterior(query(frame_of(name)), "vote 2", by=name, categories=labels, **REST)
    assert of_groups.release().counts == ((4, 0, 0, 0), (1, 0, 0, 0))
    table = ob.posterior(query(frame_of(name)), [name, "vote 2"], categories=labels, **REST)
    release = table.release()
    assert release.counts[release.categories.index(("a", "b"))] == 4
    numbers = pl.Series([1] * 6, dtype=pl.Int8)
    frame = pl.DataFrame({"vote 2": ["b"] * 6, name: numbers})
    asked = ob.posterior(query(frame), name, categories=[1, 2], **REST)
    assert asked.release().counts == (6, 0, 0, 0)


def test_rows_are_limited_once_for_questions_of_such_columns() -> None:
    frame = frame_of("*").with_columns(pl.Series("^b$", ["x"] * 6))
    plan = query(frame, contributions=1, identifier="person").truncate_per_group(1)
    of = {"nulls": "none", "unknown": "other"}
    questions = {"stars": {"column": "*", "categories": ["a", "b"], **of}}
    questions["roof"] = {"column": "^b$", "categories": ["x", "y"], **of}
    survey = ob.survey(plan, questions)
    found = survey.release()
    assert [found[name].counts[:2] for name in ("stars", "roof")] == [(4, 1), (6, 0)]


@pytest.mark.parametrize("name", ["*", "^person$"])
def test_an_identifier_that_polars_takes_for_a_pattern_is_refused(name: str) -> None:
    frame = frame_of("vote").with_columns(pl.Series(name, range(6)))
    with pytest.raises(ValueError, match=r"identifier=.*: must be one column"):
        query(frame, contributions=1, identifier=name)
    bound = dp.polars.Bound(by=[name], per_group=1, num_groups=1)
    with pytest.raises(ValueError, match=r"Bound.by=.*: must be one column"):
        query(frame, contributions=[bound])


SPECIFICATION = """
title = "Votes"
[privacy]
epsilon = 100000.0
unit = "one person"
identifier = "{person}"
rows_per_identifier = 1
[columns."{vote}"]
categories = ["a", "b"]
nulls = "b"
unknown = "DROP"
[columns."{region}"]
categories = ["n", "s"]
nulls = "s"
[[results]]
column = "{vote}"
by = "{region}"
"""


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("person", "vote", "region"),
    [("p", "^v.*$", "^region$"), ("p", "*", "^$"), ("p", "v", "*"), ("p", "", "^v$")],
)
def test_so_it_is_for_the_command(tmp_path, kind, person, vote, region):
    columns = {person: [*"12345"], vote: ["a", "a", "b", None, "z"]}
    others = {"votes": ["z"] * 5, "vote": ["z"] * 5}
    frame = pl.DataFrame(columns | {region: ["n", "n", "n", None, "s"]} | others)
    path, question = tmp_path / f"votes.{kind}", tmp_path / "q.toml"
    getattr(frame, f"write_{kind}")(path)
    question.write_text(SPECIFICATION.format(person=person, vote=vote, region=region))
    found = ob.Release.from_json(run("run", question, path, "-o", "-"))
    assert found.counts == ((2, 1), (0, 1))
    options = ("--column", vote, "--categories", "a,b", "--unknown", "DROP")
    limit = ("--identifier", person, "--rows-per-identifier", 1)
    by = ("--by", f"{region}=n,s", "--epsilon", EXACT, "-o", "-")
    found = ob.Release.from_json(run("release", path, *options, *limit, *by))
    alone = ob.Release.from_json(run("release", path, *options, "--epsilon", EXACT, "-o", "-"))
    assert alone.counts == (2, 1)
    assert found.counts == ((2, 1), (0, 0))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("given", "near"), [("vot", True), ("Votes", True), ("age", False)])
def test_a_name_that_is_nearly_right_is_said_to_be_so(tmp_path, kind, given, near):
    """The names of a CSV file are not told: without a header line they are somebody's record."""
    path = tmp_path / f"votes.{kind}"
    getattr(pl.DataFrame({"vote": ["a", "b"], "x": ["c", "d"]}), f"write_{kind}")(path)
    message = run("release", path, "--column", given, "--categories", "a,b", "--rho", 1, code=2)
    if kind == "csv":
        assert "check spelling, capitals and blanks" in message
        assert "'vote'" not in message
    else:
        assert "must be one of 'vote', 'x'" in message
    context = checked_context(read(path))
    with pytest.raises(ValueError, match="not a column of the") as caught:
        ob.posterior(context.query(), given, categories=["a", "b"], nulls="a", unknown="b")
    assert ("There is a similar name; check capitals and blanks." in str(caught.value)) == near
    assert "'vote'" not in str(caught.value)


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
    arguments = {name: value for name, value in VOTE.items() if name != "column"}
    one = replace(ob.posterior(asked(), "vote", **arguments).release(), columns=(), unknown=())
    posterior: Any = ob.combine_tables({"Vote": one})
    assert posterior.variables == ("Vote",)


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
