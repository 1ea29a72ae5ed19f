"""At most m rows of each identifier, whatever the order and whatever others do: by brute force over
tiny frames and their neighbours.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import narwhals as nw
import opendp.prelude as dp
import polars as pl
import pytest
from random_plans import ENGINES

from opendp_bayes.questions.question import Question, Variable
from opendp_bayes_engines import context
from opendp_bayes_engines.engines import held
from opendp_bayes_engines.steps import Truncate

Rows = tuple[tuple[str | None, int | None], ...]
VALUES: list[tuple[str | None, int | None]] = [("a", None), ("b", 1), (None, 1)]
#: Everything that one identifier may own, up to three rows.
OWNED = [rows for n in range(4) for rows in combinations_with_replacement(VALUES, n)]
SCHEMA = {"person": pl.Int64, "value": pl.String, "more": pl.Int64}
ASKED = Question((Variable("value", ["a", "b"], "null", "other"),))


def frame_of(owned: dict[int | None, Rows]) -> pl.DataFrame:
    rows = [(person, *row) for person, many in owned.items() for row in many]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@cache
def connection() -> Any:
    """To DuckDB: a new one takes as long as several counts."""
    return pytest.importorskip("duckdb").connect()


def native(engine: str, frame: pl.DataFrame, request: pytest.FixtureRequest) -> Any:
    if engine == "polars":
        return frame.lazy()
    if engine == "duckdb":
        return connection().from_arrow(frame.to_arrow())
    if engine == "dask":
        import dask.dataframe as dd
        import pandas as pd

        return dd.from_pandas(frame.to_pandas(types_mapper=pd.ArrowDtype), npartitions=2)
    if engine == "spark":
        spark = request.getfixturevalue("spark")
        return spark.createDataFrame(frame.to_arrow()).repartition(2)
    path = request.getfixturevalue("tmp_path") / "frame.parquet"
    frame.write_parquet(path)
    return request.getfixturevalue("frame_in")(engine, path)


def counts(engine: str, frame: pl.DataFrame, limit: int, request: Any) -> list[int]:
    given = native(engine, frame, request)
    made = context(
        given,
        privacy_unit=dp.unit_of(contributions=1, identifier="person"),
        privacy_loss=dp.loss_of(epsilon=1.0),
    )
    chain, _ = made.query().truncate_per_group(limit).counts_of(ASKED)
    assert chain.map(1) == limit
    counted: list[int] = chain(held(given)[0]).tolist()
    return counted


def _tiny(engine: str, often: int) -> Iterator[tuple[dict[int | None, Rows], int]]:
    """Every so many pairs of owners, an odd number, so that limits take turns."""
    every = {"polars": 43, "duckdb": 197}.get(engine, 247) // often | 1
    cases = product(OWNED, OWNED, (1, 2))
    for at, (one, other, limit) in enumerate(cases):
        if at % every == 0:
            yield {7: one, None: other}, limit


@pytest.mark.parametrize("often", [1, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_identifier_moves_at_most_m_rows(
    engine: str, often: int, request: pytest.FixtureRequest
) -> None:
    known: dict[Any, list[int]] = {}

    def of(owned: dict[int | None, Rows], limit: int) -> list[int]:
        key = (tuple(owned.items()), limit)
        if key not in known:
            known[key] = counts(engine, frame_of(owned), limit, request)
        return known[key]

    largest = 0
    for owned, limit in _tiny(engine, often):
        here = of(owned, limit)
        assert sum(here) == sum(min(limit, len(rows)) for rows in owned.values())
        for person in owned:
            there = of({**owned, person: ()}, limit)
            moved = sum(abs(x - y) for x, y in zip(here, there, strict=True))
            assert moved <= limit
            largest = max(largest, moved)
    assert largest == 2  # the bound is reached


ROWS: Rows = (("a", None), ("b", 1), (None, 1), ("b", None))
#: A quarter of all, in which each row comes first or second.
ORDERS = list(permutations(ROWS))[::4]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_order_of_rows_does_not_matter(engine: str, request: pytest.FixtureRequest) -> None:
    seen = {tuple(counts(engine, frame_of({1: rows, 2: ROWS}), 2, request)) for rows in ORDERS}
    assert len(seen) == 1


def test_a_truncation_by_the_order_of_rows_is_noticed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Truncate, "order", property(lambda self: []))
    seen = {tuple(counts("duckdb", frame_of({1: rows, 2: ROWS}), 2, request)) for rows in ORDERS}
    assert len(seen) > 1


def test_only_columns_of_known_order_stay() -> None:
    frame = pl.DataFrame({"person": [1], "value": ["a"], "list": [[1]], "at": [1.5]})
    made = context(
        frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier="person"),
        privacy_loss=dp.loss_of(epsilon=1.0),
    )
    assert list(made.query().truncate_per_group(1).schema) == ["person", "value", "at"]


def test_rows_that_tie_are_the_same_to_every_later_step() -> None:
    """0.0 and -0.0, and NaN and null, are equal in order and in every expression."""
    frame = pl.DataFrame({"person": [1] * 4, "real": [-0.0, 0.0, float("nan"), None]})
    made = context(
        frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1, identifier="person"),
        privacy_loss=dp.loss_of(epsilon=1.0),
    )
    for limit, zeros, nulls in ((1, 0, 1), (2, 0, 2), (3, 1, 2), (4, 2, 2)):
        query = made.query().truncate_per_group(limit)
        query = query.with_columns(
            asked=nw.when(nw.col("real").is_null())
            .then(nw.lit("null"))
            .when(nw.col("real") == 0.0)
            .then(nw.lit("zero"))
            .otherwise(nw.lit("else"))
        )
        chain, _ = query.counts_of(
            Question((Variable("asked", ["zero", "null", "else"], None, "x"),))
        )
        assert chain(held(frame.lazy())[0]).tolist() == [zeros, nulls, 0, 0]
