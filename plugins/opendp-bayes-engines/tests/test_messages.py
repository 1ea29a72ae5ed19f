"""Errors name the type of a frame, a column or rows given by mistake, and show no rows."""

from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from contexts import made

import opendp_bayes as ob
from opendp_bayes_engines import EngineQuery, columns, context

VALUE = "a value of a row"
ROWS = pl.DataFrame({"a": [VALUE, "x"]})
RELATION = duckdb.connect().from_arrow(ROWS.to_arrow())
PANDAS = ROWS.to_pandas()
GIVEN: dict[str, Any] = {"duckdb": RELATION, "polars": ROWS, "polars series": ROWS["a"]}
GIVEN |= {"pandas": PANDAS, "pandas series": PANDAS["a"], "numpy": np.array([VALUE])}
GIVEN["dask"] = dd.from_pandas(PANDAS, npartitions=1)
ASK: dict[str, Callable[[EngineQuery, Any], Any]] = {
    "filter": lambda query, of: query.filter(of),
    "column": lambda query, of: query.filter((of, "==", "a")),
    "op": lambda query, of: query.filter(("a", of, "a")),
    "constant": lambda query, of: query.filter(("a", "==", of)),
    "is_in": lambda query, of: query.filter(("a", "is_in", of)),
    "is_in one": lambda query, of: query.filter(("a", "is_in", [of])),
    "is_null": lambda query, of: query.filter(("a", "is_null", of)),
    "truncate": lambda query, of: query.truncate_per_group(of),
    "names": lambda query, of: columns(ROWS.lazy(), of),
    "name": lambda query, of: columns(ROWS.lazy(), [of]),
    "table": lambda query, of: made([of]),
    "column=": lambda query, of: ob.posterior(query, of, categories=["x"]),
    "categories=": lambda query, of: ob.posterior(query, "a", categories=of, unknown="other"),
    "nulls=": lambda query, of: ob.posterior(query, "a", categories=["x"], nulls=of),
}


@pytest.mark.parametrize("ask", ASK)
def test_errors_show_no_rows(ask: str) -> None:
    query = made(ROWS.lazy(), contributions=1, identifier="a").query()
    if ask.endswith("="):
        query = query.truncate_per_group(1)
    for of in GIVEN.values():
        with pytest.raises((TypeError, ValueError)) as caught:
            ASK[ask](query, of)
        assert VALUE not in str(caught.value)


@pytest.mark.parametrize("unit", [{"contributions": 0}, {"changes": 0}])
@pytest.mark.parametrize("who", [{}, {"identifier": "a"}])
def test_a_unit_of_nothing_is_refused(unit: dict[str, int], who: dict[str, str]) -> None:
    (name,) = unit
    with pytest.raises(ValueError, match=f"^{name}=0: must be between 1 and"):
        context(
            ROWS.lazy(),
            privacy_unit=dp.unit_of(**unit, **who),
            privacy_loss=dp.loss_of(epsilon=1.0),
        )
