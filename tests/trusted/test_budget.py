"""What a budget of a query is, in each measure."""

import math

import opendp.prelude as dp
import polars as pl
import pytest
from opendp.mod import OpenDPException

import opendp_bayes as ob
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.trusted.budget import (
    check_query_budget,
    check_remaining,
    delta_of,
    loss_in,
    unit_in_words,
)
from tests.helpers.contexts import plain_context

PURE, ZCDP = dp.max_divergence(), dp.zero_concentrated_divergence()


@pytest.mark.parametrize("budget", [1e-300, 2.0, 1e300, (1.0, 0.0), (1.0, 1e-6)])
def test_a_budget_that_buys_something(budget):
    check_query_budget(budget)


@pytest.mark.parametrize("budget", [0.0, (0.0, 1e-6), -1.0, math.nan, math.inf, (math.inf, 1e-6)])
def test_a_budget_that_buys_nothing(budget):
    with pytest.raises(ValueError, match=r"epsilon or rho .*greater than 0"):
        check_query_budget(budget)


def test_budgets_have_the_delta_of_approximate_losses_and_units_any_order():
    assert delta_of(dp.approximate(PURE), (1.0, 1e-6)) == 1e-6
    assert delta_of(dp.approximate(PURE), None) == 0.0
    assert delta_of(dp.approximate(ZCDP), (1.0, 1e-6)) == 0.0
    assert delta_of(PURE, 1.0) == delta_of(ZCDP, 1.0) == 0.0
    orders = [["town", "year"], ["year", pl.col("town")]]
    one, other = (
        unit_in_words(*dp.unit_of(contributions=[dp.polars.Bound(by=by, per_group=2)]))
        for by in orders
    )
    assert one == other == "contributions: (by=town+year per_group=2)"


def test_a_loss_in_each_measure():
    loss = PrivacyLoss(epsilon=1.0, range=1.5, rho=0.25, delta=1e-6)
    assert loss_in(PURE)(loss) == (1.0,)
    assert loss_in(ZCDP)(loss) == (0.25,)
    assert loss_in(dp.approximate(PURE))(loss) == (1.0, 1e-6)
    assert loss_in(dp.approximate(ZCDP))(loss) == (0.25, 0.0)


def test_what_is_computed_of_a_column_makes_another_unit_than_the_column():
    """polars calls it after the column: a ledger of persons would take losses of households."""
    bound, household = dp.polars.Bound, pl.col("person") // 10
    column, computed = (
        {
            unit_in_words(*dp.unit_of(contributions=[bound(by=[key], per_group=2)])),
            unit_in_words(*dp.unit_of(contributions=2, identifier=key)),
        }
        for key in (pl.col("person"), household)
    )
    assert column == {
        "contributions: (by=person per_group=2)",
        "contributions: 2, identifier: person",
    }
    assert len(computed) == 2
    assert all("10" in words for words in computed)


#: A limit, and what is added to it or to its half: the sum is above by less than floats show.
FULL, TINY = 1.0, 2.0**-54
WITH_DELTA = dp.loss_of(epsilon=FULL, delta=0.5)
ADAPTIVE = {
    "epsilon": (dp.loss_of(epsilon=FULL), (FULL,), (TINY,)),
    "rho": (dp.loss_of(rho=FULL), (FULL,), (TINY,)),
    "the epsilon beside a delta": (WITH_DELTA, (FULL, 0.125), (TINY, 0.125)),
    "delta": (WITH_DELTA, (0.25, 0.5), (0.25, TINY / 2)),
    "rho beside a delta": (dp.loss_of(rho=FULL, delta=0.5), (FULL, 0.0), (TINY, 0.0)),
}


class Spent:
    """A Context with a privacy filter, of whose budget something is spent."""

    def __init__(self, limit, spent):
        data = pl.LazyFrame({"x": [True]})
        unit = dp.unit_of(contributions=1)
        made = dp.Context.compositor(data, privacy_unit=unit, privacy_loss=limit)
        self.queryable, self.d_out = made.queryable, limit[1]
        self._spent = spent if len(spent) > 1 else spent[0]

    def current_privacy_loss(self):
        return self._spent

    remaining_privacy_loss = current_privacy_loss


@pytest.mark.parametrize("name", ADAPTIVE)
def test_a_sum_that_floats_round_to_the_limit_is_above_it(name):
    """OpenDP adds upwards: its filter would refuse, and then everything after."""
    limit, spent, loss = ADAPTIVE[name]
    limits = limit[1] if isinstance(limit[1], tuple) else (limit[1],)
    sums = [a + b for a, b in zip(spent, loss, strict=True)]
    assert all(of <= at for of, at in zip(sums, limits, strict=True))
    of = Spent(limit, spent)
    with pytest.raises(ValueError, match="left of the Context's budget"):
        check_remaining(of, loss)
    check_remaining(of, tuple(0.0 for _ in loss))


@pytest.mark.parametrize(("pure", "measure"), [("epsilon", PURE), ("rho", ZCDP)])
def test_the_filter_of_opendp_rounds_up_too(pure, measure):
    """So the check refuses what the filter would, which then refuses everything."""
    context = plain_context([True] * 3, loss={pure: FULL}, parts=None)
    space = dp.vector_domain(dp.atom_domain(T=bool)), dp.symmetric_distance()

    def ask(loss):
        return context.queryable(
            dp.m.make_user_measurement(*space, measure, lambda _: 0, lambda _: loss)
        )

    ask(FULL)
    with pytest.raises(ValueError, match="left of the Context's budget"):
        check_remaining(context, (TINY,))
    check_remaining(context, (0.0,))
    with pytest.raises(OpenDPException, match="would exceed privacy budget"):
        ask(TINY)


@pytest.mark.parametrize("make", [dp.Context.compositor, ob.context])
def test_a_query_that_exceeds_what_is_left_closes_no_context(make):
    """A filter of OpenDP's that has refused once refuses everything after, so it is not asked."""
    frame = pl.LazyFrame({"x": [True, False]})
    unit, loss = dp.unit_of(contributions=1), dp.loss_of(epsilon=1.0)
    context = make(frame, privacy_unit=unit, privacy_loss=loss)

    def released(epsilon):
        return ob.posterior(context.query(epsilon=epsilon), "x", nulls=True).release()

    with pytest.raises(ValueError, match="exceeds what is left"):
        released(2.0)
    assert released(1.0).epsilon == 1.0
