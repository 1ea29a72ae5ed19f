"""A privacy unit of no records is refused wherever a scale would be found for it."""

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from tests.helpers.contexts import plain_context

Bound = dp.polars.Bound
DATA = pl.LazyFrame(
    {"x": [True] * 6 + [False] * 4, "g": [1, 2] * 5, "id": list(range(5)) * 2},
    schema={"x": pl.Boolean, "g": pl.Int64, "id": pl.Int64},
)
BOOLEAN = {"column": "x", "nulls": False}
NO_RECORDS = r"query: its privacy unit has no records \(d_in=0\), so nothing would be protected"


#: Units, and the limits of a plan, by which a unit has no records.
def of_bounds(*bounds):
    return {"contributions": list(bounds)}, None, None


NO_GROUPS = Bound(by=["g"], per_group=2, num_groups=0)
NOTHING = {
    "contributions": ({"contributions": 0}, None, None),
    "changes": ({"changes": 0}, None, 10),
    "a Bound on the whole": of_bounds(Bound(per_group=0)),
    "no records per group": of_bounds(Bound(by=["g"], per_group=0, num_groups=3)),
    "no groups": of_bounds(NO_GROUPS),
    "one of several Bounds": of_bounds(Bound(per_group=4), NO_GROUPS),
    "no identifiers": ({"contributions": 0, "identifier": "id"}, 2, None),
    "no identifiers changed": ({"changes": 0, "identifier": "id"}, 2, None),
    "no rows of an identifier": ({"contributions": 1, "identifier": "id"}, 0, None),
}
LOSSES = [{"epsilon": 1.0}, {"rho": 0.1}, {"epsilon": 1.0, "delta": 1e-6}]


def query(name, loss=LOSSES[0]):
    unit, rows, _ = NOTHING[name]
    made = plain_context(DATA, unit, loss).query()
    return made if rows is None else made.truncate_per_group(rows)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("name", NOTHING)
def test_a_query_for_no_records_is_refused(name, loss):
    with pytest.raises(ValueError, match=NO_RECORDS):
        ob.posterior(query(name, loss), size=NOTHING[name][2], **BOOLEAN)


@pytest.mark.parametrize("name", NOTHING)
@pytest.mark.parametrize("mechanism", ["gaussian_parameters", ob.LaplaceParameters(1e-9)])
def test_whatever_the_mechanism(name, mechanism):
    with pytest.raises(ValueError, match=NO_RECORDS):
        ob.posterior(query(name), size=NOTHING[name][2], mechanism=mechanism, **BOOLEAN)
