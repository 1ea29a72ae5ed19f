"""Queries on a small frame, whose plans the gate looks at."""

from typing import Any

import opendp.prelude as dp
import polars as pl

from tests.helpers.leaking_plans import SCHEMA, B

Bound = dp.polars.Bound
FRAME = {"p": [1, 1, 2, 3], "x": [0.5, 0.5, 2.0, 0.5], "s": ["a", "b", "a", "b"], "i": [0, 1, 2, 3]}
OF_I = B | {"column": "i"}


def query(unit: Any = None, **columns: pl.DataType) -> Any:
    context = dp.Context.compositor(
        data=pl.LazyFrame(FRAME, schema=SCHEMA).cast(columns),
        privacy_unit=unit or dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
    )
    return context.query()


def of_persons(*bounds: Bound) -> Any:
    return dp.unit_of(contributions=list(bounds) or 1, identifier="p")
