"""The largest numbers and longest texts that are accepted: every engine has a value for them. A
step that fails on a row tells that the row is there, and costs nothing.
"""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import narwhals as nw
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes_engines import context

ENGINES = ["polars", "duckdb", "dask", "ibis", pytest.param("spark", marks=pytest.mark.slow)]
FARTHEST = 2**30
number, text = nw.col("n").clip(0, 2**52), nw.col("text")
#: Expressions, and what they are of the rows (2^52, "abc") and (2^52 - 1, "").
EXTREMES: dict[str, tuple[nw.Expr, tuple[str, str]]] = {
    "far slice": (text.str.slice(FARTHEST - 1, 1), ("", "")),
    "long slice": (text.str.slice(0, FARTHEST), ("abc", "")),
    "quotient by 1": ((number // 1).cast(nw.String), (str(2**52), str(2**52 - 1))),
    "quotient by 3": ((number // 3).cast(nw.String), (str(2**52 // 3), str((2**52 - 1) // 3))),
    "remainder": ((number % (2**52)).cast(nw.String), ("0", str(2**52 - 1))),
    "times 2047": ((number * 2047).cast(nw.String), (str(2047 * 2**52), str(2047 * (2**52 - 1)))),
    "quotient and back": (
        ((number // 2) * 2).cast(nw.String),
        (str(2**52), str(2**52 - 2)),
    ),
    "longest": (nw.concat_str(*[text] * 64), ("abc" * 64, "")),
    "doubled": (reduce(lambda of, _: nw.concat_str(of, of), range(6), text), ("abc" * 64, "")),
    "constant": (nw.concat_str(text, nw.lit("x" * 10_000)), ("abc" + "x" * 10_000, "x" * 10_000)),
}


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_largest_that_is_accepted_has_a_value(
    engine: str, name: str, tmp_path: Path, frame_in: Callable[[str, Path], Any]
) -> None:
    expr, values = EXTREMES[name]
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"n": [2**52, 2**52 - 1, 2**52], "text": ["abc", "", "abc"]}).write_parquet(path)
    of = context(
        frame_in(engine, path),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=500.0),
        split_evenly_over=1,
    )
    categories = list(dict.fromkeys([*values, "neither"]))
    query = of.query().with_columns(value=expr)
    found = ob.posterior(query, "value", categories=categories, nulls="none", unknown="other")
    expected = [2 * (label == values[0]) + (label == values[1]) for label in categories]
    assert found.release().counts == (*expected, 0, 0)


def test_what_is_joined_again_and_again_is_refused() -> None:
    """Also where slices, choices and columns of their own stand between."""
    of = context(
        pl.LazyFrame({"text": ["abc"]}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
    )
    query = of.query()
    for _ in range(6):
        query = query.with_columns(text=nw.concat_str("text", "text").str.slice(0, 1000))
    query = query.with_columns(text=nw.when(text == "").then(nw.lit("x")).otherwise(text))
    with pytest.raises(ValueError, match="at most 64 texts"):
        query.with_columns(text=nw.concat_str("text", "text"))
