"""Functions of one's own: narwhals has no place for them in a plan, in any engine, so they are
applied to the frame before, as each engine does.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import opendp.prelude as dp
import pandas as pd
import polars as pl
import pytest
from contexts import made
from narwhals.exceptions import InvalidOperationError
from random_plans import ENGINES, SPARK_CONNECT

from opendp_bayes.questions.question import Question, Variable
from opendp_bayes_engines.engines import held

ROWS = pl.DataFrame({"vote": ["YES ", "yes", None, "No", "naïve"]})
ASKED = Question((Variable("vote", ["no", "yes"], "none", "other"),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    ROWS.write_parquet(path)
    return path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "step",
    [
        lambda frame, expr: frame.with_columns(expr),
        lambda frame, expr: frame.filter(expr == "yes"),
        lambda frame, expr: frame.select(nw.concat_str(expr, nw.lit("!"))),
    ],
    ids=["with_columns", "filter", "within an expression"],
)
def test_narwhals_applies_none_to_lazy_frames(
    engine: str, step: Callable[..., Any], path: Path, frame_in: Callable[[str, Path], Any]
) -> None:
    frame = nw.from_native(frame_in(engine, path))
    expr = nw.col("vote").map_batches(lambda votes: votes, return_dtype=nw.String)
    with pytest.raises((NotImplementedError, InvalidOperationError)):
        step(frame, expr)


def _plain(vote: str | None) -> str | None:
    return None if vote is None else vote.strip().lower()


def _plain_part(part: pd.DataFrame) -> pd.DataFrame:
    return part.assign(vote=pd.array(part["vote"].map(_plain, "ignore"), "string[pyarrow]"))


def applied(engine: str, path: Path, frame_in: Callable[[str, Path], Any]) -> Any:
    """The frame with a function of Python applied to a column, as a user of the engine does."""
    if engine == "polars":
        return pl.scan_parquet(path).select(pl.col("vote").map_elements(_plain, pl.String))
    if engine == "dask":
        frame = frame_in(engine, path)
        return frame.map_partitions(_plain_part, meta=frame._meta)
    if engine == "duckdb":
        import duckdb

        connection = duckdb.connect()
        connection.create_function("plain", _plain, ["VARCHAR"], "VARCHAR")
        return connection.sql(f"SELECT plain(vote) AS vote FROM '{path}'")
    if engine == "ibis":
        import ibis

        plain = ibis.udf.scalar.python(_plain, signature=(("string",), "string"))
        return frame_in(engine, path).select(vote=lambda table: plain(table.vote))
    frame = frame_in(engine, path)
    from pyspark.sql.types import StringType

    if engine == "spark":
        from pyspark.sql import functions as fn
    else:
        from pyspark.sql.connect import functions as fn

    # A function within one, which goes to Spark's Python by value: it does not know this module.
    plain_here = fn.udf(lambda vote: vote and vote.strip().lower(), StringType(), useArrow=False)
    return frame.select(plain_here("vote").alias("vote"))


@pytest.mark.parametrize("engine", ENGINES[: ENGINES.index(SPARK_CONNECT) + 1])
def test_a_function_applied_before(
    engine: str, path: Path, frame_in: Callable[[str, Path], Any]
) -> None:
    frame = applied(engine, path, frame_in)
    chain, _ = made(frame).query().counts_of(ASKED)
    assert chain(held(frame)[0]).tolist() == [1, 2, 1, 1]


def test_the_promise_is_asked_for(path: Path, frame_in: Callable[[str, Path], Any]) -> None:
    frame = applied("duckdb", path, frame_in)
    dp.disable_features("honest-but-curious")
    with pytest.raises(ValueError, match="features enabled first: honest-but-curious"):
        made(frame)
