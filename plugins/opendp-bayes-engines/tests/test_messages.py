"""Errors show no rows: where a user gives a frame, a column of one or rows by mistake, they name
the type.
"""

from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import duckdb
import narwhals as nw
import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from contexts import made

import opendp_bayes as ob
from opendp_bayes_engines import context
from opendp_bayes_engines.query import EngineQuery

VALUE = "a value of a row"
ROWS = pl.DataFrame({"a": [VALUE, "x"]})
RELATION = duckdb.connect().from_arrow(ROWS.to_arrow())
A = nw.col("a")
GIVEN: dict[str, Any] = {
    "duckdb": RELATION,
    "narwhals over duckdb": nw.from_native(RELATION),
    "polars": ROWS,
    "polars series": ROWS["a"],
    "narwhals series": nw.from_native(ROWS["a"], series_only=True),
    "pandas": ROWS.to_pandas(),
    "pandas series": ROWS.to_pandas()["a"],
    "dask": dd.from_pandas(ROWS.to_pandas(), npartitions=1),
    "numpy": np.array([VALUE]),
    "records": [{"a": VALUE}],
    "tuples": [(VALUE,)],
}
ASK: dict[str, Callable[[EngineQuery, Any], Any]] = {
    "filter": lambda query, of: query.filter(of),
    "a constraint": lambda query, of: query.filter(a=of),
    "with_columns": lambda query, of: query.with_columns(of),
    "a new column": lambda query, of: query.with_columns(z=of),
    "select": lambda query, of: query.select(of),
    "truncate": lambda query, of: query.truncate_per_group(of),
    "group_by": lambda query, of: query.group_by(of),
    "==": lambda query, of: query.filter(of == A),
    "nested": lambda query, of: query.filter((A == "x") | ~(of == A)),
    "is_in": lambda query, of: query.filter(A.is_in(of)),
    "fill_null": lambda query, of: query.filter(A.fill_null(of) == "x"),
    "lit": lambda query, of: query.filter(nw.lit(of) == A),
    "contains": lambda query, of: query.filter(A.str.contains(of, literal=True)),
    "then": lambda query, of: query.with_columns(z=nw.when(A == "x").then(of).otherwise(A)),
    "is_between": lambda query, of: query.filter(A.is_between(of, of)),
    "concat_str": lambda query, of: query.with_columns(z=nw.concat_str(A, of)),
    "clip": lambda query, of: query.with_columns(z=A.str.len_chars().clip(of, of)),
    "col": lambda query, of: query.filter(nw.col(of)),
    "column=": lambda query, of: ob.posterior(query, of, categories=["x"]),
    "categories=": lambda query, of: ob.posterior(query, "a", categories=of, unknown="other"),
    "nulls=": lambda query, of: ob.posterior(query, "a", categories=["x"], nulls=of),
    "prior=": lambda query, of: ob.posterior(
        query, "a", categories=["x"], nulls="n", unknown="o", prior=of
    ),
    "mechanism=": lambda query, of: ob.posterior(
        query, "a", categories=["x"], nulls="n", unknown="o", mechanism=of
    ),
}


@pytest.mark.parametrize("ask", ASK)
def test_errors_show_no_rows(ask: str) -> None:
    shown = {}
    for name, given in GIVEN.items():
        query = made(ROWS.lazy(), contributions=1, identifier="a").query()
        if ask.endswith("="):
            query = query.truncate_per_group(1)
        try:
            ASK[ask](query, given)
        except Exception as error:  # noqa: BLE001 - whichever it is, and from whomever
            shown[name] = str(error)
    assert shown
    assert [name for name, message in shown.items() if VALUE in message] == []


def test_an_error_names_the_type() -> None:
    query = made(ROWS.lazy()).query()
    with pytest.raises(
        TypeError, match=r"predicates: must be a narwhals .* not a DuckDBPyRelation"
    ):
        query.filter(RELATION)
    with pytest.raises(ValueError, match="<narwhals expression>: DuckDBPyRelation is not a const"):
        query.filter(A == RELATION)
    with pytest.raises(ValueError, match=r"predicates=.*col\(a\).*: mean: is not among the steps"):
        query.filter(A.mean() == "x")
    with pytest.raises(ValueError, match=r"nw.col: takes the name .* not DuckDBPyRelation"):
        query.filter(nw.col(RELATION))  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", [{"contributions": 0}, {"changes": 0}])
@pytest.mark.parametrize("who", [{}, {"identifier": "a"}])
def test_a_unit_of_nothing_is_refused(unit: dict[str, int], who: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="privacy_unit: the distance=0: must be between 1 and"):
        context(
            ROWS.lazy(),
            privacy_unit=dp.unit_of(**unit, **who),  # type: ignore[arg-type]
            privacy_loss=dp.loss_of(epsilon=1.0),
        )
