"""Errors name the type of a frame, a column or rows given by mistake, and show no rows."""

import math
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


REFUSED: dict[str, dict[str, Any]] = {
    "a unit that OpenDP did not make": {"privacy_unit": 1},
    "no contributions": {"privacy_unit": dp.unit_of(contributions=0)},
    "fewer than none": {"privacy_unit": dp.unit_of(changes=-1)},
    "too many": {"privacy_unit": dp.unit_of(changes=2**31)},
    "a fraction": {"privacy_unit": dp.unit_of(contributions=1.5)},
    "contributions = True": {"privacy_unit": dp.unit_of(contributions=True)},
    "a unit of something else": {"privacy_unit": dp.unit_of(l1=2.0)},
    "no Bound": {"privacy_unit": dp.unit_of(contributions=[3])},
    "nobody's column": {"privacy_unit": dp.unit_of(contributions=1, identifier="person")},
    "a loss that OpenDP did not make": {"privacy_loss": 1.0},
    "a loss of 0": {"privacy_loss": dp.loss_of(epsilon=0.0)},
    "an infinite loss": {"privacy_loss": dp.loss_of(rho=math.inf)},
    "a δ of 1": {"privacy_loss": dp.loss_of(epsilon=1.0, delta=1.0)},
    "another measure": {"privacy_loss": (dp.renyi_divergence(), 1.0)},
    "no queries": {"split_evenly_over": 0},
    "no weights": {"split_by_weights": []},
    "a weight of 0": {"split_by_weights": [1, 0]},
    "both": {"split_evenly_over": 2, "split_by_weights": [1, 1]},
}


def message(open_context: Callable[..., Any], **wrong: Any) -> tuple[type[Exception], str]:
    given = {"privacy_unit": dp.unit_of(contributions=1), "privacy_loss": dp.loss_of(epsilon=1.0)}
    with pytest.raises((TypeError, ValueError)) as caught:
        open_context(ROWS.lazy(), **{**given, **wrong})
    return caught.type, str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
def test_a_context_refuses_what_the_one_of_polars_refuses(name: str) -> None:
    """By the same error, word for word."""
    wrong = REFUSED[name]
    found = message(context, **wrong)
    assert found == message(ob.context, **wrong)


@pytest.mark.parametrize("loss", [{"epsilon": -0.5}, {"epsilon": math.inf}, {"epsilon": True}])
def test_a_query_refuses_what_the_one_of_polars_refuses(loss: dict[str, Any]) -> None:
    unit, budget = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
    messages = []
    for of in (context, ob.context):
        opened = of(ROWS.lazy(), privacy_unit=unit, privacy_loss=budget)
        with pytest.raises((TypeError, ValueError), match="epsilon=") as caught:
            opened.query(**loss)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
