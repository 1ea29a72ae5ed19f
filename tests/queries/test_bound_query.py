"""Questions to queries of other kinds than polars, and several in one composition."""

from dataclasses import dataclass

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.context import Query

import opendp_bayes as ob
from opendp_bayes.extend.framework import ColumnKind, Question, counting, counting_values
from opendp_bayes.queries.bound_query import ask
from opendp_bayes.queries.question import Countable, Variable
from opendp_bayes.trusted.queryable_proxy import submitted
from tests.helpers.contexts import plain_context

VOTES = ["yes", "no", "yes", None, "other", "yes"]
REGIONS = ["n", "s", "n", "n", "s", "x"]


@dataclass
class ListQuery:
    """Data in Python lists, one for each column: a query of another kind than polars."""

    base: Query
    size: int | None
    kept: str = ""

    def counts_of(self, question):
        domain, metric = self.base._chain
        kinds = dict.fromkeys(["region", "vote"], ColumnKind("text", "str"))

        def groups(data, axes):
            rows = list(zip(*(data[of.column] for of in axes), strict=True))
            values = {str(i): [row[i] for row in rows] for i in range(len(axes))}
            frame = pl.DataFrame(values, schema=dict.fromkeys(values, pl.String))
            return frame.with_columns(number=pl.lit(1))

        return counting(domain, metric, question, kinds, groups, "ListQuery"), self.base

    def counts_of_values(self, column, *, always, nulls):
        kinds = {column: ColumnKind("text", "str")}

        def batches(data, keys):
            yield pl.DataFrame({"key": data[column]}).group_by("key").agg(number=pl.len())

        policy = {"always": always, "nulls": nulls}
        made = counting_values(*self.base._chain, column, kinds, batches, "ListQuery", **policy)
        return made, self.base


def listed(unit="contributions", loss=1.0, parts=1, **delta):
    metric = dp.symmetric_distance() if unit == "contributions" else dp.change_one_distance()
    context = dp.Context.compositor(
        data={"vote": VOTES, "region": REGIONS},
        privacy_unit=(metric, 1),
        privacy_loss=dp.loss_of(epsilon=loss, **delta),
        split_evenly_over=parts,
        domain=dp.user_domain("Lists", lambda value: isinstance(value, dict)),
    )
    return context


LABELS = {"categories": ["yes", "no"], "nulls": "none", "unknown": "none"}
GROUPED = LABELS | {"categories": {"vote": ["yes", "no"], "region": ["n", "s"]}}


def test_queries_of_other_kinds_are_counted_or_refused():
    context = listed(loss=400.0, parts=2)
    query = ListQuery(context.query(), None)
    assert isinstance(query, Countable)
    released = ob.posterior(query, "vote", **LABELS).release()
    assert (released.categories, released.counts) == (("yes", "no", "none"), (3, 1, 2))
    assert released.guarantee.relation == "add/remove"
    groups = ob.posterior(query, "vote", by="region", **GROUPED)
    assert groups.release().counts == ((2, 0, 1), (0, 1, 1))
    assert context.remaining_privacy_loss() == []
    with pytest.raises(TypeError, match="query on a polars frame"):
        ask(object(), Question((Variable("vote"),)))
    assert not isinstance(listed().query(), Countable)
    grouped = {"by": "region", **GROUPED, "mechanism": "knorm_parameters"}
    private = ListQuery(listed().query(), None)
    with pytest.raises(ValueError, match=r"public number .* those of the"):
        ob.posterior(private, "vote", **grouped)
    public = ListQuery(listed("changes").query(), 6)
    assert ob.posterior(public, "vote", size=6, **grouped).release().mechanism == (
        ob.KNormParameters(1.0)
    )


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
def test_several_questions_are_one_composition(measure):
    """Each within its share; the composition is one entry of the Context, and costs their sum."""
    frame = pl.LazyFrame({"vote": VOTES, "region": REGIONS})
    context = plain_context(frame, {"contributions": 2}, {measure: 1.0})
    query = context.query()
    asked = [
        ask(query, Question((Variable("vote", ["yes", "no"], "none", "none"),))),
        ask(query, Question((Variable("region", ["n", "s"], "other", "other"),), prior=2.0)),
    ]
    shares = (0.25, 0.75)
    parts = [one.measurement(share) for one, share in zip(asked, shares, strict=True)]
    for part, share in zip(parts, shares, strict=True):
        assert 0.99 * share < part.map(context.d_in) <= share
    whole = dp.c.make_composition(parts)
    assert whole.map(context.d_in) <= 1.0
    drawn = submitted(context, whole, context.d_in)
    restated = [
        one.restating(share)(released)
        for one, released, share in zip(asked, drawn, shares, strict=True)
    ]
    assert [released.d_in for released in restated] == [2, 2]
    spent = [getattr(released, measure) for released in restated]
    assert spent == [part.map(context.d_in) for part in parts]
    assert restated[1].prior == (2.0, 2.0, 2.0)
    assert len(context.current_privacy_loss()) == 1
