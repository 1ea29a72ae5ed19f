"""A privacy unit of no records is refused over frames of engines, too."""

from typing import Any

import duckdb
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
import opendp_bayes_engines as engines

NO_RECORDS = r"query: its privacy unit has no records \(d_in=0\)"
VOTE = {"column": "vote", "categories": ["no", "yes"], "nulls": "no", "unknown": "no"}
UNITS = {
    "contributions": ({"contributions": 0}, None),
    "changes": ({"changes": 0}, 3),
    "identifiers": ({"contributions": 0, "identifier": "person"}, None),
}


def frames() -> list[Any]:
    frame = pl.DataFrame({"vote": ["no", "yes", "no"], "person": [1, 1, 2]})
    return [frame.lazy(), duckdb.from_arrow(frame.to_arrow())]


@pytest.mark.parametrize("engine", [0, 1], ids=["polars", "duckdb"])
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_of_no_records_is_refused(engine: int, name: str) -> None:
    unit, size = UNITS[name]
    query: Any = engines.context(
        frames()[engine],
        privacy_unit=dp.unit_of(**unit),  # type: ignore[arg-type]
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
    ).query()
    if "identifier" in unit:
        query = query.truncate_per_group(1)
    with pytest.raises(ValueError, match=NO_RECORDS):
        ob.posterior(query, size=size, **VOTE)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=rf"questions\['one'\]: {NO_RECORDS}"):
        ob.survey(query, {"one": {**VOTE, "size": size}})
    with pytest.raises(ValueError, match=NO_RECORDS):
        ob.posterior(query.group_by("person"), keys=[1], size=size, **VOTE)  # type: ignore[call-overload]
