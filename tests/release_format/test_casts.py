"""A message on a type that is not counted names the cast to write, and that cast works."""

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.release_format.casts import CASTS, how_to_cast
from tests.helpers.contexts import checked_context

#: By the name of a type, a column of it, and the label of its first value after the cast.
COLUMNS: dict[str, tuple[pl.Series, Any]] = {
    "Float16": (pl.Series([1.0, 2.0], dtype=pl.Float16), 1),
    "Float32": (pl.Series([1.0, float("nan")], dtype=pl.Float32), 1),
    "Float64": (pl.Series([1.0, float("inf")], dtype=pl.Float64), 1),
    "Decimal": (pl.Series([Decimal(1), None], dtype=pl.Decimal(10, 2)), 1),
    "Date": (pl.Series([date(2026, 5, 1), None]), "2026-05-01"),
    "Datetime": (pl.Series([datetime(2026, 5, 1, 23), None]), "2026-05-01"),
    "Time": (pl.Series([time(13, 30), None]), 13),
    "Duration": (pl.Series([timedelta(days=3), None]), 3),
    "List": (pl.Series([["yes", "no"], []]), "yes"),
    "Array": (pl.Series([[1, 2], None], dtype=pl.Array(pl.Int64, 2)), 1),
    "Struct": (pl.Series([{"NAME": "yes"}, None]), "yes"),
    "Null": (pl.Series([None, None]), "yes"),
}


def query(frame: Any) -> Any:
    context = checked_context(frame, loss={"epsilon": 1e5})
    return context.query()


def counts(plan: Any, label: Any) -> Any:
    other = "no" if isinstance(label, str) else 0
    asked = ob.posterior(plan, "x", categories=[label, other], nulls="none", unknown="other")
    return asked.release().counts


def test_every_type_that_is_not_counted_is_made_text() -> None:
    assert set(CASTS) == set(COLUMNS)
    assert {str(of.dtype.base_type()) for of, _ in COLUMNS.values()} == set(CASTS)
    assert how_to_cast("Object", "x") == "Make it text or whole numbers in the frame."


@pytest.mark.parametrize("name", CASTS)
def test_the_cast_that_a_message_names_works(name: str) -> None:
    column, label = COLUMNS[name]
    frame = column.to_frame("x")
    with pytest.raises((TypeError, ValueError)) as caught:
        counts(query(frame), label)
    written = f"pl.col('x').{CASTS[name][0]}"
    assert written in str(caught.value)
    cast = eval(written, {"pl": pl})  # noqa: S307 - of a table of ours
    first = int(name != "Null")
    assert counts(query(frame.with_columns(cast.alias("x"))), label)[0] == first
    assert re.search("in the frame(,| before the Context)", str(caught.value))
