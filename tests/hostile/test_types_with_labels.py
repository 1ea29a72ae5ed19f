"""Labels that an engine took from the data are the data: no type of a column hands them out."""

import warnings
from collections.abc import Callable
from typing import Any

import narwhals as nw
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes_office.commands.app import app
from tests.helpers.contexts import ONE, ONE_RECORD, arguments, checked_context
from tests.helpers.sweeps import slow

duckdb = pytest.importorskip("duckdb")
engines = pytest.importorskip("opendp_bayes_engines")

CANARY = "canary-7f3"
_VOTES, _TOWNS = ["yes", "no", CANARY, "no"] * 5, [CANARY, "x", "y", "x"] * 5
ROWS = pd.DataFrame({"vote": pd.Categorical(_VOTES), "person": list(range(20))})
ROWS["town"] = pd.Categorical(_TOWNS, ordered=True)
BUCKETS: dict[str, Any] = {"nulls": "none", "unknown": "other"}
VOTE: dict[str, Any] = {"categories": ["yes", "no"], **BUCKETS}
MADE = "CREATE TABLE made AS SELECT * FROM given"
DISTINCT = (
    "CREATE TYPE label AS ENUM (SELECT DISTINCT CAST(vote AS VARCHAR) FROM given);"
    " CREATE TABLE made AS SELECT CAST(vote AS label) AS vote, CAST(town AS VARCHAR)::label2 AS"
    " town, [CAST(vote AS label)] AS several, {'one': CAST(vote AS label)} AS fields, person"
    " FROM given"
)
TOWNS = "CREATE TYPE label2 AS ENUM (SELECT DISTINCT CAST(town AS VARCHAR) FROM given)"


def connection(*queries: str) -> Any:
    made = duckdb.connect()
    made.register("given", ROWS)
    for query in queries:
        made.execute(query)
    return made


def by_ibis(*queries: str) -> Any:
    ibis = pytest.importorskip("ibis")
    backend = ibis.duckdb.from_connection(connection(*queries))
    return backend.table("made" if queries else "given")


def by_dask() -> Any:
    dd = pytest.importorskip("dask.dataframe")
    texts = {name: ROWS[name].astype("string[pyarrow]") for name in ("vote", "town")}
    return dd.from_pandas(pd.DataFrame(texts).assign(town=ROWS["town"]), npartitions=2)


ONE_QUERY: dict[str, Any] = arguments(ONE_RECORD, ONE, 1, {})
ROUTES: dict[str, Callable[[], Any]] = {
    "sql": lambda: duckdb.connect().sql("SELECT * FROM ROWS"),
    "register": lambda: connection().table("given"),
    "from_df": lambda: duckdb.connect().from_df(ROWS),
    "create table as": lambda: connection(MADE).table("made"),
    "create type as": lambda: connection(TOWNS, DISTINCT).table("made"),
    "narwhals": lambda: nw.from_native(connection(MADE).table("made")),
    "ibis": lambda: by_ibis(MADE),
    "ibis over a type": lambda: by_ibis(TOWNS, DISTINCT),
    "ibis over pandas": by_ibis,
    "dask": by_dask,
}


#: Of each engine the route that says most of its labels.
ONE_EACH = {"sql", "create type as", "narwhals", "ibis over a type", "dask"}


@pytest.fixture(params=ROUTES)
def opened(request: pytest.FixtureRequest) -> Any:
    """A Context over the frame of a route."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = ROUTES[request.param]()
        return engines.context(frame, **ONE_QUERY)


def said(ask: Callable[[], Any]) -> str:
    """Everything that a question shows: its error, or its repr, its summary and its release."""
    try:
        query = ask()
    except (TypeError, ValueError) as error:
        return f"{error!r} {error}"
    return f"{query!r} {query.summarize().rows()} {query.resolve().input_domain}"


def questions(query: Any, **vote: Any) -> dict[str, Callable[[], Any]]:
    both = {"vote": vote.get("categories"), "town": ["x", "y"]}
    of_both = {**vote, "categories": both}
    nobody = {**vote, "categories": ["yes", "nobody"]}
    return {
        "posterior": lambda: ob.posterior(query, "vote", **vote),
        "groups that are given": lambda: ob.posterior(query, "vote", by="town", **of_both),
        "survey": lambda: ob.survey(query, {"vote": {"column": "vote", **vote}}),
        "joint table": lambda: ob.posterior(query, ["vote", "town"], **of_both),
        "no unknown": lambda: ob.posterior(query, "vote", **{**vote, "unknown": None}),
        "one that nobody has": lambda: ob.posterior(query, "vote", **nobody),
        "a number": lambda: ob.posterior(query, "vote", **{**vote, "categories": [1]}),
        "a comparison": lambda: query.filter(("vote", "==", 1)),
        "a condition": lambda: ob.posterior(query.filter(("vote", "!=", "x")), "vote", **vote),
        "a list": lambda: ob.posterior(query, "several", **VOTE),
        "fields": lambda: query.filter(("fields", "==", "x")),
    }


def test_a_type_hands_out_no_label_whether_it_is_in_it_or_not(opened: Any) -> None:
    """Guessed labels tell nothing: with or without a record of it the answer is the same."""
    query = opened.query()
    shown = [repr(opened), repr(query), repr(opened.schema), repr(query.domain)]
    for ask in (*questions(query, **VOTE).values(), *questions(query, **BUCKETS).values()):
        shown.append(said(ask))
    assert len(shown) > 20
    assert [text for text in shown if CANARY in text] == []
    query = opened.query()
    with pytest.raises(ValueError, match="does not declare its"):
        ob.posterior(query, "vote", **BUCKETS)
    query = opened.query()
    answers = set()
    for label in (CANARY, "nobody"):
        text = said(
            lambda label=label: ob.posterior(query, "vote", categories=["yes", label], nulls="none")
        )
        answers.add(text.replace(label, "..."))
    labels = ["yes", "no", CANARY]
    every = said(lambda: ob.posterior(query, "vote", categories=labels, nulls="none"))
    assert len(answers) == 1
    assert "unknown=None: column 'vote' of type String may hold values outside" in every


@pytest.mark.parametrize("opened", slow(ROUTES, but=ONE_EACH), indirect=True)
def test_only_what_was_asked_for_is_released(opened: Any) -> None:
    released = ob.posterior(opened.query(), "vote", **VOTE).release()
    assert released.categories == ("yes", "no", "none", "other")
    assert CANARY not in released.to_json()


def test_labels_in_a_type_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the whole name of a type is kept."""
    from opendp_bayes_engines.kinds import Column
    from opendp_bayes_engines.on_duckdb import DuckDBTable

    def whole(relation: Any) -> Any:
        types = zip(relation.columns, map(str, relation.types), strict=True)
        return DuckDBTable(relation, {name: Column(of, pl.String) for name, of in types})

    monkeypatch.setattr(DuckDBTable, "from_native", whole)
    of = engines.context(ROUTES["create type as"](), **ONE_QUERY)
    assert CANARY in repr(of.schema)
    assert CANARY in repr(of.query().domain)


ENUM = pl.Enum(["yes", "no", "never"])
OF_AN_ENUM = "of its type; an Enum that was made from the data is the data"


def frame(path: Any) -> pl.LazyFrame:
    pl.DataFrame(
        {"vote": ["yes", "no"] * 10, "sure": [True, False] * 10, "town": ["x", "y"] * 10},
        schema={"vote": ENUM, "sure": pl.Boolean, "town": pl.String},
    ).write_parquet(path)
    return pl.scan_parquet(path)


def test_the_summary_notes_an_enum_of_a_file(tmp_path: Any) -> None:
    query = checked_context(frame(tmp_path / "rows.parquet")).query()
    both = {"categories": {"town": ["x"]}, **BUCKETS}
    survey = ob.survey(
        query, {"a": {"column": "vote", "nulls": "none"}, "b": {"column": "vote", **VOTE}}
    )
    grouped = ob.posterior(query, "town", by="vote", categories={"town": ["x"]}, **BUCKETS)
    given = {"categories": {"town": ["x"], "vote": ["yes"]}, **BUCKETS}
    noted = {
        "enum": ob.posterior(query, "vote", nulls="none"),
        "given": ob.posterior(query, "vote", **VOTE),
        "table": ob.posterior(query, ["vote", "town"], **both),
        "groups": grouped,
        "given groups": ob.posterior(query, "town", by="vote", **given),
    }
    found = {name: one.summarize()["categories"].item() for name, one in noted.items()}
    assert found == {
        "enum": OF_AN_ENUM,
        "given": "given",
        "table": f"vote: {OF_AN_ENUM}, town: given",
        "groups": f"town: given, vote: {OF_AN_ENUM}",
        "given groups": "given",
    }
    assert survey.summarize()["categories"].to_list() == [OF_AN_ENUM, "given"]


def test_the_summary_notes_no_boolean(tmp_path: Any) -> None:
    query = checked_context(frame(tmp_path / "rows.parquet")).query()
    asked = ob.posterior(query, "sure", nulls=True)
    assert asked.summarize()["categories"].item() == "of its type"


NOTE = "of its type; an Enum that was made from the data is the data"


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_the_command_notes_an_enum_of_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    made = frame(tmp_path / "made.parquet").collect()
    made.write_parquet(name) if name.endswith("parquet") else made.write_ipc(name)

    def heard(*arguments: str) -> str:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 0, result.output
        return " ".join(result.stderr.split())

    release = ("release", name, "--epsilon", "1", "-o", "-")
    by_town = ("--column", "town", "--categories", "x")
    assert f"Categories of vote: {NOTE}" in heard(*release, "--column", "vote")
    assert NOTE in heard(*release, *by_town, "--by", "vote")
    assert NOTE not in heard(*release, *by_town)
    assert NOTE not in heard(*release, "--column", "sure")
    heard("init", name, "--column", "vote", "-o", "question.toml")
    assert NOTE in heard("run", "question.toml", name, "-o", "-")
    assert NOTE in heard("run", "question.toml", name, "--dry-run")
    assert NOTE in heard("report", "question.toml", name, "-o", "page.html")
    written = (tmp_path / "question.toml").read_text()
    assert "those of its type, which must not be made from the data" in written
