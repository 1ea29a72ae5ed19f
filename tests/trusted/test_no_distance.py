"""A privacy unit of no records is refused wherever a scale would be found for it."""

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.context import Query
from opendp.mod import OpenDPException

import opendp_bayes as ob
import opendp_bayes_research as research
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


@pytest.mark.parametrize("name", NOTHING)
def test_so_are_surveys_and_groups(name):
    size = NOTHING[name][2]
    with pytest.raises(ValueError, match=rf"questions\['all'\]: {NO_RECORDS}"):
        ob.survey(query(name), {"all": {**BOOLEAN, "size": size}})
    with pytest.raises(ValueError, match=NO_RECORDS):
        ob.posterior(query(name), by="g", categories={"g": [1, 2]}, size=size, **BOOLEAN)


class Counting:
    """A query of a plugin, whose unit has a number of records."""

    def __init__(self, d_in):
        context = plain_context(DATA, loss={"epsilon": 1}, parts=None)
        base = context.query(epsilon=0.5)._query
        self.base = Query(base._chain, base._output_measure, d_in, base._d_out, base._context)

    def counts_of(self, question):
        counts = ob.t.make_categorical_counts(*self.base._chain, **BOOLEAN)
        return counts, self.base


def test_queries_of_plugins_pass_the_refusal_of_distances_of_none():
    assert ob.posterior(Counting(1), **BOOLEAN).resolve().param == 2.0
    with pytest.raises(ValueError, match=NO_RECORDS):
        ob.posterior(Counting(0), **BOOLEAN)
    for wrong in (-1, True, 0.5, float("nan")):
        with pytest.raises((TypeError, ValueError, OpenDPException)):
            ob.posterior(Counting(wrong), **BOOLEAN)
    counts = ob.t.make_categorical_counts(
        dp.domain_of(DATA, infer=True), dp.symmetric_distance(), **BOOLEAN
    )
    posterior = counts >> ob.t.then_dirichlet_multinomial(prior=1.0)
    measurement = posterior >> ob.m.then_laplace_parameters(dp.max_divergence(), 1.0)
    assert counts.map(0) == 0
    assert measurement.map(0) == 0.0
    assert ob.exact_loss(ob.LaplaceParameters(1.0), size=4, prior=[1, 1], d_in=0).epsilon == 0.0


ONES = [1.0, 1.0]
OF_TEN = {"size": 10, "prior": ONES, "epsilon": 1.0}
PRIVATE = {"size": None, "prior": ONES, "rho": 0.1}
FOUND_FOR_A_DISTANCE = {
    "calibrate": lambda d_in: ob.calibrate(ob.LaplaceParameters(1.0), d_in=d_in, **OF_TEN),
    "calibrate to rho": lambda d_in: ob.calibrate(ob.GaussianParameters(1.0), d_in=d_in, **PRIVATE),
    "plan": lambda d_in: ob.plan(d_in=d_in, **OF_TEN),
    "smallest_epsilon": lambda d_in: research.smallest_epsilon(
        0.2, size=100, prior=ONES, d_in=d_in
    ),
    "smallest_size": lambda d_in: research.smallest_size(0.2, epsilon=1.0, prior=ONES, d_in=d_in),
}


@pytest.mark.parametrize("name", FOUND_FOR_A_DISTANCE)
def test_no_scale_is_found_for_a_distance_of_none(name):
    find = FOUND_FOR_A_DISTANCE[name]
    assert find(1) is not None
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=rf"d_in={wrong}: must be between 1 and"):
            find(wrong)
    with pytest.raises(TypeError, match=r"d_in=True: .*a whole number"):
        find(True)
