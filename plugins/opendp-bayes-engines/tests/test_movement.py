"""One unit moves no more counts than the map says: by brute force over random plans, in every
engine, in sessions as far from the usual as they go.
"""

from collections.abc import Callable
from typing import Any

import dask
import dask.dataframe as dd
import narwhals as nw
import numpy as np
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pytest
from contexts import made
from hypothesis import HealthCheck, Phase, assume, given, settings, strategies as st
from random_plans import TEXTS, Said, conditions, rows, texts
from sessions import ON_DUCKDB, fill, make_hostile, new
from test_sessions import sessions_end  # noqa: F401

from opendp_bayes.questions.question import Question, Variable
from opendp_bayes_engines.engines import held
from opendp_bayes_engines.expressions import read
from opendp_bayes_engines.frames import Held
from opendp_bayes_engines.steps import Truncate

#: Labels that differ in blanks or the form of Unicode alone are counted apart.
pytestmark = pytest.mark.filterwarnings("ignore:.* differ in nothing but blanks:UserWarning")

ROWS = rows(seed=3, size=40).with_columns(person=pl.int_range(40) % 9)
VARIABLE = Variable("asked", [*TEXTS[:6], "NO"], "null", "unknown")


def frame_of(engine: str, given: pl.DataFrame) -> Any:
    if engine in ON_DUCKDB:
        connection, frame = new(engine)
        fill(connection, given)
        make_hostile(connection)
        return frame()
    if engine == "dask":
        pandas = given.to_pandas(types_mapper=pd.ArrowDtype)
        with dask.config.set({"dataframe.convert-string": False}):
            return dd.from_pandas(pandas.sample(frac=1, random_state=1), npartitions=5)
    if engine == "ibis on polars":
        import ibis

        return ibis.polars.connect({"rows": given.lazy()}).table("rows")
    return given.lazy()


def counts(
    frame: Any, ready: Held, rows: int, plan: Callable[[Any], Any], **unit: Any
) -> tuple[Any, Callable[[int], int]]:
    """What a plan counts, and how far one unit may move that."""
    size = None if "contributions" in unit else rows
    query = plan(made(frame, **unit).query())
    if query._plan is not None and query._space[1] == dp.symmetric_distance():
        size = None  # it is private after a filter
    chain, _ = query.counts_of(Question((VARIABLE,), size=size))
    each = 1 if size is None else 2  # records that change leave one category and enter another
    return np.array(chain(ready)), lambda units: each * chain.map(units)


def distance(one: Any, other: Any) -> int:
    return int(np.abs(one - other).sum())


#: Random settings of each engine, some and more. DuckDB is under three of them, and slowest.
SOME = {**dict.fromkeys(ON_DUCKDB, 2), "dask": 4, "polars": 4, "ibis on polars": 4}
MORE = [pytest.param(engine, 8, marks=pytest.mark.slow) for engine in SOME]


@pytest.mark.parametrize(("engine", "examples"), [*SOME.items(), *MORE])
def test_a_unit_moves_what_the_map_says(engine: str, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(condition=conditions(2), value=texts(2), limit=st.integers(1, 3), at=st.integers(0, 39))
    def moves(condition: Said, value: Said, limit: int, at: int) -> None:
        moves_what_the_map_says(engine, condition, value, limit, at)

    moves()


def moves_what_the_map_says(engine: str, condition: Said, value: Said, limit: int, at: int) -> None:
    schema = held(ROWS.lazy())[1]
    assume(read(condition.expr, schema, "condition").reads)

    def computed(query: Any) -> Any:
        return query.with_columns(asked=value.expr.cast(nw.String))

    def filtered(query: Any) -> Any:
        return computed(query.filter(condition.expr))

    def truncated(query: Any) -> Any:
        return computed(query.truncate_per_group(limit)).filter(condition.expr)

    without = ROWS[[row for row in range(40) if row != at]]
    changed = pl.concat(
        [
            without,
            ROWS[at].with_columns(
                label=pl.lit("E").cast(ROWS.schema["label"]),
                text=pl.lit("no"),
                number=None,
                flag=~pl.col("flag"),
            ),
        ]
    )
    nobody = ROWS.filter(pl.col("person") != at % 9)
    neighbours: list[tuple[pl.DataFrame, list[tuple[Any, dict[str, Any]]]]] = [
        (without, [(computed, {"contributions": 1}), (filtered, {"contributions": 3})]),
        (changed, [(computed, {"changes": 1}), (filtered, {"changes": 1})]),
        (nobody, [(truncated, {"contributions": 1, "identifier": "person"})]),
    ]

    def counted(given: pl.DataFrame, asked: list[tuple[Any, dict[str, Any]]]) -> list[Any]:
        frame = frame_of(engine, given)  # a hostile session takes as long as several counts
        ready, _ = held(frame)
        return [counts(frame, ready, len(given), plan, **unit) for plan, unit in asked]

    here = counted(ROWS, [each for _, asked in neighbours for each in asked])
    there = [found for other, asked in neighbours for found in counted(other, asked)]
    assert len(here) == len(there) == 5
    for (one, bound), (other, _) in zip(here, there, strict=True):
        assert distance(one, other) <= bound(1)
        assert bound(2) == 2 * bound(1)


def test_a_truncation_that_reads_others_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of rows in all instead of for each person moves more than its map says."""
    monkeypatch.setattr(Truncate, "apply", lambda self, frame: frame.head(self.rows * 4))

    def plan(query: Any) -> Any:
        return query.truncate_per_group(1).with_columns(asked=nw.col("text"))

    unit = {"contributions": 1, "identifier": "person"}
    ordered = ROWS.sort("person")
    fewer = ordered.filter(pl.col("person") != 0)
    here, bound = counts(ordered.lazy(), held(ordered.lazy())[0], len(ordered), plan, **unit)
    there, _ = counts(fewer.lazy(), held(fewer.lazy())[0], len(fewer), plan, **unit)
    assert distance(here, there) > bound(1)


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("engine", ["polars", "dask"])
def test_a_changed_identifier_moves_all_that_the_map_says(engine: str, limit: int) -> None:
    """The rows of one leave and those of another arrive, as many as are kept of each."""
    unit = {"changes": 1, "identifier": "person"}
    others, owned = ROWS.filter(pl.col("person") > 0), ROWS[: limit + 1]
    person = pl.col("person") * 0
    before, after = (
        pl.concat([others, owned.with_columns(person=person + at, text=pl.lit(text))])
        for at, text in ((0, TEXTS[0]), (9, TEXTS[1]))
    )

    def plan(query: Any) -> Any:
        return query.truncate_per_group(limit).with_columns(asked=nw.col("text"))

    def counted(given: pl.DataFrame) -> tuple[Any, Callable[[int], int]]:
        frame = frame_of(engine, given)
        return counts(frame, held(frame)[0], len(given), plan, **unit)

    (one, bound), (other, _) = counted(before), counted(after)
    assert distance(one, other) == bound(1) == 2 * limit
