"""The gate for plans: what depends on other rows is refused by name."""

import itertools
import json
import subprocess
import sys
from operator import methodcaller
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.trusted import plan_validation, plan_values, stable_plans as query_plan
from opendp_bayes.trusted.plan_validation import check_plan
from tests.helpers import leaking_plans
from tests.helpers.leaking_plans import CATEGORICAL, LEAKS, SCHEMA, C, counted, unchecked
from tests.helpers.plan_queries import OF_I, query


@pytest.mark.parametrize("name", LEAKS)
def test_codes_of_categories_are_refused(name):
    plan, arguments, message = LEAKS[name]
    with pytest.raises(ValueError, match=f"query: {message}"):
        ob.posterior(plan(query()), **arguments)


def test_without_the_gate_one_record_moves_a_thousand():
    """The negative control: OpenDP accepts them all, and the distance it states is 1."""

    def told(which):
        command, output = [sys.executable, leaking_plans.__file__, which], {"capture_output": True}
        return json.loads(subprocess.run(command, text=True, check=True, **output).stdout)

    few, more = told("as they are"), told("one more")
    moved = {
        name: sum(abs(a - b) for a, b in zip(few[name], more[name], strict=True)) for name in LEAKS
    }
    assert few["cut to codes"] == [1000, 0]
    assert more["cut to codes"] == [1, 1000]
    assert all(number >= 999 for number in moved.values()), moved


# What is refused, by name, and the remedy.
REFUSED = {
    "division": (lambda q: q.with_columns(i=C("i") / 10), "/ or truediv rounds otherwise"),
    "floor": (lambda q: q.filter(C("x") // 2 == 1), "filter: // or floordiv of float shows last"),
    "rest": (lambda q: q.select("i", x=C("i") % C("x")), "select: % or mod of float shows last"),
    "sum of floats of a row": (
        lambda q: q.with_columns(x=C("x") + 1.0),
        r"with_columns: \+ or add of float shows .* Cast it to integers first",
    ),
    "sign of zero": (
        lambda q: q.with_columns(s=C("x").cast(pl.String)),
        "with_columns: cast to String of float shows last digits or the sign of zero",
    ),
    "sign of zero as a category": (
        lambda q: q.with_columns(s=C("x").cast(pl.Enum(["-0.0", "0.0"]), strict=False)),
        "with_columns: cast to Enum of float shows last digits or the sign of zero",
    ),
    "codes": (lambda q: q.with_columns(i=CATEGORICAL.to_physical()), "to_physical reads the codes"),
    "over": (lambda q: q.with_columns(i=C("i").sum().over("s")), "with_columns: over looks at"),
    "rank": (lambda q: q.with_columns(i=C("i").rank()), "with_columns: rank is not among the"),
    "shift": (lambda q: q.filter(C("i").shift() == 1), "filter: shift is not among the"),
    "cum": (lambda q: q.select(i=C("i").cum_sum()), "select: cum_sum is not among the"),
    "text": (lambda q: q.with_columns(i=C("s").str.contains("a")), "with_columns: str.contains is"),
    "len": (lambda q: q.with_columns(i=pl.len()), "with_columns: len is not among"),
    "forward": (
        lambda q: q.with_columns(i=C("i").fill_null(strategy="forward")),
        "fill_null with a strategy, .* looks at other rows. Use `fill_null` with a value",
    ),
    "qcut": (lambda q: q.with_columns(i=C("x").qcut(2)), "Use `cut` with public breaks"),
    "breaks": (
        lambda q: q.with_columns(i=C("x").cut([1.0], include_breaks=True)),
        "cut to Struct is not among the steps",
    ),
    "series": (
        lambda q: q.with_columns(i=pl.lit(pl.Series([1, 2, 3, 4]))),
        "series has a value for each position",
    ),
    "selector": (lambda q: q.with_columns(pl.all()), r"a rule for columns, as pl\.all\(\)"),
    "format": (
        lambda q: q.with_columns(i=C("s").str.to_date()),
        r"str\.to_date, .*before the Context",
    ),
    "mapping": (
        lambda q: q.with_columns(i=C("i").replace(C("i"), C("p"))),
        "replace by values of rows might fail where there are any values",
    ),
    "mapping to a Categorical": (
        lambda q: q.with_columns(
            i=C("s").replace_strict(["a"], pl.Series(["b"], dtype=pl.Categorical), default=None)
        ),
        "replace_strict to Categorical makes a Categorical",
    ),
    "decimal": (lambda q: q.with_columns(i=C("s").cast(pl.Decimal(9, 2))), "cast to Decimal is"),
    "operator": (lambda q: q.with_columns(i=C("i") ** 2), "with_columns: pow.generic is not among"),
    "sort": (lambda q: q.sort("i"), "query: sort is not among the steps"),
    "unique": (lambda q: q.unique(), "query: unique is not among the steps"),
    "head": (lambda q: q.head(3), "query: head, limit, slice, tail.* is not among the steps"),
    "index": (lambda q: q.with_row_index(), "query: with_row_index or with_row_count is not among"),
    "constants": (lambda q: q.select(i=pl.lit(1)), "select: select of constants alone makes one"),
    "conditions": (lambda q: q.filter(C("i") > 0, C("x") > 0), "all_horizontal joins .* by `&`"),
    "drop_nulls": (lambda q: q.drop_nulls("s"), r"`drop_nulls\('x'\)` write `filter\(pl"),
    "groups": (lambda q: q.group_by("s").agg(C("i").max()), "or rolling makes a row of several"),
    "infinite": (
        lambda q: q.filter(C("x") < float("inf")).filter(C("i") > 0),
        r"filter: an infinite or undefined number, .* Write `x\.is_infinite\(\)`",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_looks_at_other_rows_is_refused(name):
    plan, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        ob.posterior(plan(query()), **OF_I)


OTHER = pl.LazyFrame(schema={"i": pl.Int64, "z": pl.Int64})
#: Every method of a frame that makes another one.
#: Steps that are asked with no arguments, with one, and others.
PLAIN = "approx_n_unique cache clear clone count first head inspect interpolate last lazy limit max"
PLAIN += " mean median melt min null_count reverse shift std sum tail unique unpivot var"
PLAIN += " with_row_count with_row_index"
ONE_ARGUMENT = {"cast": pl.String, "fill_nan": 0.0, "fill_null": 0, "filter": C("i") > 0}
_OF_I = "drop", "drop_nulls", "select", "select_seq", "set_sorted", "sort"
ONE_ARGUMENT |= dict.fromkeys(_OF_I, "i")
ONE_ARGUMENT |= {"drop_nans": "x", "explode": "l", "gather_every": 2, "quantile": 0.5}
ONE_ARGUMENT |= {"remove": C("i") > 0, "rename": {"i": "k"}, "unnest": "t", "with_context": OTHER}
ONE_ARGUMENT |= {"map_batches": lambda of: of, "pipe": lambda of: of.filter(C("i") > 0)}
ONE_ARGUMENT |= {"pipe_with_schema": lambda of, schema: of}
ONE_ARGUMENT |= {"sql": "select i from self where i > 0"}
STEPS: dict[str, Any] = {
    **{name: methodcaller(name) for name in PLAIN.split()},
    **{name: methodcaller(name, argument) for name, argument in ONE_ARGUMENT.items()},
    **{name: methodcaller(name, 2, by="i") for name in ("bottom_k", "top_k")},
    **{name: methodcaller(name, OTHER, on="i") for name in ("join", "join_asof", "update")},
    **{name: methodcaller(name, k=C("i")) for name in ("with_columns", "with_columns_seq")},
    "group_by": lambda f: f.group_by("i").agg(pl.len()),
    "group_by_dynamic": lambda f: f.group_by_dynamic("i", every="2i").agg(pl.len()),
    "join_where": lambda f: f.join_where(OTHER, C("i") < C("z")),
    "match_to_schema": lambda f: f.match_to_schema(f.collect_schema()),
    "merge_sorted": lambda f: f.merge_sorted(f, "i"),
    "pivot": lambda f: f.pivot("i", ["1"], values="x", index="s"),
    "rolling": lambda f: f.rolling("i", period="2i").agg(pl.len()),
    "slice": lambda f: f.slice(1, 2),
}
ACCEPTED_STEPS = {
    *("clear", "clone", "filter", "lazy", "pipe", "remove", "select", "select_seq"),
    *("sql", "with_columns", "with_columns_seq"),
}
#: Those that make none.
NO_STEPS = {
    *("collect", "collect_async", "collect_batches", "collect_schema", "columns", "describe"),
    *("deserialize", "dtypes", "explain", "fetch", "profile", "remote", "schema", "serialize"),
    *("show", "show_graph", "sink_batches", "sink_csv", "sink_ipc", "sink_ndjson", "sink_parquet"),
    "width",
}


def test_every_method_is_known_and_plans_of_another_frame_are_refused():
    """Its types would be those of that frame, not those of the data."""
    assert {name for name in dir(pl.LazyFrame) if name[0] != "_"} == set(STEPS) | NO_STEPS
    made = query(s=pl.Enum(["a", "b"]))
    other = pl.LazyFrame(schema=SCHEMA).with_columns(b=C("s").cast(pl.Enum(["a", "b"])))
    given = type(made)(other, object.__getattribute__(made, "_query"))
    with pytest.raises(ValueError, match="other columns or types"):
        ob.posterior(given, "b", nulls="a")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_accepted_or_named_as_it_is_written(name):
    schema = {**SCHEMA, "l": pl.List(pl.Int64), "t": pl.Struct({"q": pl.Int64})}
    frame, source = pl.LazyFrame(schema=schema), pl.LazyFrame(schema=schema)
    if name in ACCEPTED_STEPS:
        check_plan(STEPS[name](frame), source)
        return
    with pytest.raises(ValueError, match=rf"query: (.*[^\w.])?{name}\b"):
        check_plan(STEPS[name](frame), source)


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"Filter": {"input": {}, "more": 1}}, "a step of unknown form"),
        ({"A": 1, "B": 2}, "step of unknown form"),
        ({"Alias": [{"Function": {"input": [], "function": "IsNew"}}, "b"]}, "is_new is not among"),
        ({"Function": {"input": [], "function": "FillNull", "new": 1}}, "unknown arguments"),
        ({"BinaryExpr": {"left": "Len", "op": "New", "right": "Len"}}, "new is not among"),
    ],
)
def test_forms_that_are_not_known_are_refused(node, message):
    """A later polars may write other steps, and arguments that change what a step means."""
    empty = pl.LazyFrame(schema=SCHEMA)
    read = plan_validation._rows if "Filter" in node else plan_values.type_of
    arguments = (node, empty, frozenset()) if "Filter" in node else (plan_values.Rows(empty), node)
    with pytest.raises(ValueError, match=message):
        read(*arguments)


def test_a_plan_that_cannot_be_written_is_refused():
    class Unwritable:
        def __reduce__(self) -> Any:
            raise TypeError

    held = Unwritable()
    plan = pl.LazyFrame(schema=SCHEMA).with_columns(
        b=C("i").map_elements(lambda value: (held, value)[1], return_dtype=pl.Int64)
    )
    with pytest.raises(ValueError, match="cannot write its plan down"):
        check_plan(plan, pl.LazyFrame(schema=SCHEMA))


def test_without_the_gate_division_moves_more_than_one_row(monkeypatch):
    """The negative control: 49.0 / 49.0 is 1 in a batch of one row, and below 1 in others."""
    monkeypatch.setattr(query_plan, "check_plan", unchecked)
    asked = {"column": "b", "categories": [True, False], "nulls": False}

    def counts(rows: int) -> list[int]:
        frame = pl.DataFrame([(1, 49.0, "a", 0)] * rows, schema=SCHEMA, orient="row")
        return counted(frame, lambda q: q.with_columns(b=C("x") / 49.0 >= 1), asked)

    found = [counts(rows) for rows in range(1, 2 * pl.thread_pool_size() + 2)]
    moved = [
        sum(abs(a - b) for a, b in zip(few, more, strict=True))
        for few, more in itertools.pairwise(found)
    ]
    assert max(moved) > 1
