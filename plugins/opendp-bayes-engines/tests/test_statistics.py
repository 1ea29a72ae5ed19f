"""Counts go by rows and not by the least and largest values of parts of a Parquet file, which leave
out NaN where pyarrow or pandas wrote them.
"""

import random
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from contexts import made

import opendp_bayes as ob
from opendp_bayes_engines import engines, on_duckdb

NAN = float("nan")
X = nw.col("x")
#: Conditions, and whether they hold for a number; None is a null, as NaN is to a plan.
CONDITIONS: dict[str, tuple[nw.Expr, Callable[[float | None], bool]]] = {
    "above": (X > 5.0, lambda x: x is not None and x > 5),
    "not below": (~(X < 5.0), lambda x: x is not None and x >= 5),
    "another": (X != 0.5, lambda x: x is not None and x != 0.5),
    "null": (X.is_null(), lambda x: x is None),
    "above or null": ((X > 5.0) | X.is_null(), lambda x: x is None or x > 5),
    "filled": (X.fill_null(7.0) > 5.0, lambda x: x is None or x > 5),
    "outside": (~X.is_between(0.0, 1.0), lambda x: x is not None and not 0 <= x <= 1),
}
#: DuckDB itself, and what is taken down to it or to polars.
ENGINES = [
    "polars",
    "duckdb",
    "dask",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("ibis", "sqlframe", "spark")),
]


def written(path: Path, values: list[float | None], rows: int = 2000, kind: Any = None) -> Path:
    """A file of pyarrow, whose statistics have no NaN."""
    table = pa.table({"x": pa.array(values, kind or pa.float64()), "s": ["a"] * len(values)})
    pq.write_table(table, path, row_group_size=rows)
    return path


def counted(frame: Any, condition: nw.Expr) -> int:
    """The rows for which a condition holds, without any noise to speak of."""
    query = made(frame, epsilon=1e4).query().filter(condition)
    arguments: dict[str, Any] = {"categories": ["a", "b"], "nulls": "b", "unknown": "b"}
    return ob.posterior(query, "s", **arguments).release().drawn[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_one_row_more_moves_one_row(engine: str, frame_in: Any, tmp_path: Path) -> None:
    values = [NAN] * 1000 + [0.5]
    few, more = written(tmp_path / "few", values), written(tmp_path / "more", [*values, 100.0])
    for name, (condition, _) in CONDITIONS.items():
        here, there = (counted(frame_in(engine, path), condition) for path in (few, more))
        assert there - here == (name != "null"), name


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("rounds", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_random_files_are_counted_as_python_counts(
    engine: str, rounds: int, frame_in: Any, tmp_path: Path
) -> None:
    source = random.Random(6)
    pools: list[list[float | None]] = [[NAN, 0.5], [NAN, 0.5, 100.0, None], [NAN], [NAN, 7.0, -0.0]]
    for number in range(rounds):
        values = source.choices(source.choice(pools), k=source.choice([3, 20, 200]))
        kind = source.choice([pa.float64(), pa.float32()])
        path = written(tmp_path / str(number), values, source.choice([2, 10, 1000]), kind)
        for condition, holds in CONDITIONS.values():
            known = [None if x is None or np.isnan(x) else x for x in values]
            assert counted(frame_in(engine, path), condition) == sum(map(holds, known))


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_by_statistics_one_row_more_moves_a_thousand(
    engine: str, frame_in: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control, as engines count when they may."""
    monkeypatch.setattr(on_duckdb, "_of_rows", lambda given: nullcontext())
    monkeypatch.setattr(engines, "_EVERY_ROW", engines.pl.QueryOptFlags())
    few = written(tmp_path / "few", [NAN] * 1000 + [0.5])
    more = written(tmp_path / "more", [NAN] * 1000 + [0.5, 100.0])
    moved = [
        abs(counted(frame_in(engine, few), condition) - counted(frame_in(engine, more), condition))
        for condition, _ in CONDITIONS.values()
    ]
    assert max(moved) >= 1000


@pytest.mark.parametrize("before", ["", "filter_pushdown", "statistics_propagation"])
def test_the_setting_of_a_session_is_what_it_was(before: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"SET disabled_optimizers = '{before}'")
    assert counted(connection.sql("SELECT 1.5::DOUBLE AS x, 'a' AS s"), X > 1.0) == 1
    with pytest.raises(RuntimeError, match="counting failed"):
        counted(connection.sql("SELECT 1.5::DOUBLE AS x, error('a')::VARCHAR AS s"), X > 1.0)
    asked = connection.sql("SELECT current_setting('disabled_optimizers')").fetchall()
    assert asked == [(before,)]


def test_a_session_whose_settings_are_locked_is_refused_unless_it_goes_by_rows() -> None:
    connection = duckdb.connect()
    connection.execute("SET lock_configuration = true")
    frame = connection.sql("SELECT 1.5::DOUBLE AS x, 'a' AS s")
    with pytest.raises(RuntimeError, match=r"configuration is locked.* run `SET disabled_opt"):
        counted(frame, X > 1.0)
    other = duckdb.connect()
    other.execute("SET disabled_optimizers = 'filter_pushdown,statistics_propagation'")
    other.execute("SET lock_configuration = true")
    assert counted(other.sql("SELECT 1.5::DOUBLE AS x, 'a' AS s"), X > 1.0) == 1
