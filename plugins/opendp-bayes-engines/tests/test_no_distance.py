"""A privacy unit of no records is refused over frames of engines, too."""

from typing import Any

import duckdb
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes_engines as engines

UNITS: list[dict[str, Any]] = [
    {"contributions": 0},
    {"changes": 0},
    {"contributions": 0, "identifier": "person"},
    {"changes": 0, "identifier": "person"},
]


def frames() -> list[Any]:
    frame = pl.DataFrame({"vote": ["no", "yes", "no"], "person": [1, 1, 2]})
    return [frame.lazy(), duckdb.from_arrow(frame.to_arrow())]


@pytest.mark.parametrize("engine", [0, 1], ids=["polars", "duckdb"])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_unit_of_no_records_is_refused(engine: int, unit: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="=0: must be between 1 and"):
        engines.context(
            frames()[engine],
            privacy_unit=dp.unit_of(**unit),
            privacy_loss=dp.loss_of(epsilon=1.0),
        )
