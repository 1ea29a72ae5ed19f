"""What a type checker says of queries. `make types` checks this file; nothing runs it."""

import opendp.prelude as dp
import polars as pl
from opendp.context import Query
from typing_extensions import assert_type

import opendp_bayes as ob
from opendp_bayes.queries.posterior_query import PosteriorQuery
from opendp_bayes.results.release import GroupedRelease


def every_kind_of_query(context: dp.Context, query: Query) -> None:
    """A query of the whole data gives a `Release`, one of groups a `GroupedRelease`."""
    whole = ob.posterior(context.query(), "vote", size=10, prior=[1, 2])
    assert_type(whole, PosteriorQuery[ob.Release])
    assert_type(whole.release().posterior, ob.NoiseAwarePosterior)
    planned = context.query(epsilon=0.5).filter(pl.col("age") > 17)
    assert_type(ob.posterior(planned, "vote").release(), ob.Release)
    groups = ob.posterior(context.query(), "vote", by="region", nulls="no")
    assert_type(groups.release()["north"], ob.Release)
    by_region = ob.posterior(query, "vote", by="region", categories={"region": ["north", "south"]})
    assert_type(by_region, PosteriorQuery[GroupedRelease])
    by_both = ob.posterior(
        context.query(),
        "vote",
        by=["state", "county"],
        categories={"vote": ["yes", "no"], "state": ["CA"], "county": ["LA"]},
    )
    assert_type(by_both.release()["CA", "LA"], ob.Release)
    table = ob.posterior(
        context.query(), ["region", "vote"], categories={"vote": ["yes", "no"]}, nulls="no"
    )
    assert_type(table.release().posterior.marginal("vote"), ob.NoiseAwarePosterior)
    assert_type(table.release().posterior.conditional("vote", region="n"), ob.NoiseAwarePosterior)
    named = ob.posterior(query, "vote", mechanism="smooth_hellinger_exponential", gamma=0.2)
    assert_type(named.release().epsilon, float)


def no_queries(context: dp.Context, frame: pl.LazyFrame) -> None:
    """An error that is not there any more is an error: strict mode warns of unused ignores."""
    ob.posterior(frame, "vote")  # type: ignore[call-overload]
    ob.posterior(context, "vote")  # type: ignore[call-overload]
    ob.posterior(context.query(), "vote", gamma=[0.2])  # type: ignore[call-overload]
    ob.posterior(context.query(), "vote").release().keys()  # type: ignore[attr-defined]
