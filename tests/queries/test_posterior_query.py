"""Posterior queries in a Context: units × losses, budgets, filters, nesting, mechanisms."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from opendp.mod import OpenDPException

import opendp_bayes as ob
from opendp_bayes.accounting.losses import loss_of
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.queries.bound_query import BoundQuery
from tests.helpers.contexts import checked_context, plain_context
from tests.helpers.sweeps import slow, some_of

Bound = dp.polars.Bound
ABC = pl.Enum(["a", "b", "c"])
SIZE = 12
DATA = pl.LazyFrame(
    {
        "x": pl.Series(["a", "b", None, "c", "a", "a", "b", "c", "a", None, "b", "a"], dtype=ABC),
        "s": ["a", "b", None, "zz", "a", "a", "b", "zz", "a", None, "b", "a"],
        "id": [1, 1, 2, 2, 3, 3, 3, 4, 5, 6, 6, 6],
        "g": [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3],
    }
)


def context(unit=None, loss=None, **arguments):
    return plain_context(
        DATA, unit or {"contributions": 1}, loss or {"epsilon": 1.0}, None, **arguments
    )


BOUNDS = [Bound(per_group=5), Bound(by=["g"], per_group=1, num_groups=3)]
# the privacy unit, what the plan must do about it, size, and the records that one unit changes, or
# adds and removes
UNITS = {
    "one change": ({"changes": 1}, None, SIZE, 1),
    "three changes": ({"changes": 3}, None, SIZE, 3),
    "one contribution": ({"contributions": 1}, None, None, 1),
    "four contributions": ({"contributions": 4}, None, None, 4),
    "bounds": ({"contributions": BOUNDS}, None, None, 3),
    "identifier": ({"contributions": 1, "identifier": "id"}, 2, None, 2),
    "three identifiers": ({"contributions": 3, "identifier": "id"}, 2, None, 6),
    "identifier changed": ({"changes": 1, "identifier": "id"}, 2, None, 4),
}
LOSSES = {
    "epsilon": ({"epsilon": 1.0}, lambda loss: (loss.epsilon,)),
    "epsilon, delta": ({"epsilon": 1.0, "delta": 1e-6}, lambda loss: (loss.epsilon, loss.delta)),
    "rho": ({"rho": 0.1}, lambda loss: (loss.rho,)),
    "rho, delta": ({"rho": 0.1, "delta": 1e-7}, lambda loss: (loss.rho, 0.0)),
}


LAPLACE = "laplace_parameters"


def ask(query, unit="one contribution", **arguments):
    _, rows, size, _ = UNITS[unit]
    plan = query if rows is None else query.truncate_per_group(rows)
    return ob.posterior(plan, "x", size=size, nulls="none", **arguments)


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


# --- units × losses
@pytest.mark.parametrize(("unit", "loss"), some_of(product(UNITS, LOSSES), 6))
def test_every_unit_under_every_loss(unit, loss):
    arguments, expressed = LOSSES[loss]
    privacy_unit, _, size, d_in = UNITS[unit]
    whole = context(privacy_unit, arguments, split_evenly_over=2)
    before = whole.remaining_privacy_loss()
    assert len(before) == 2
    budget = as_tuple(before[0])
    assert whole.current_privacy_loss() == []
    # The choice among mechanisms takes longest for few records and with δ; it is made under ε.
    mechanism = "auto" if size is None or loss == "epsilon" else LAPLACE
    query = ask(whole.query(), unit, mechanism=mechanism)
    measurement = query.resolve()
    spent = as_tuple(measurement.map(whole.d_in))
    assert all(a <= b for a, b in zip(spent, budget, strict=True))
    assert query.param() == measurement.param
    assert whole.remaining_privacy_loss() == before, "resolving spends nothing"
    by_hand = measurement(DATA)
    released = query.release()
    assert whole.current_privacy_loss() == [before[0]]
    assert by_hand.guarantee == released.guarantee, "also of a measurement that is invoked by hand"
    assert whole.remaining_privacy_loss() == [before[1]]
    # The release says what was spent on one privacy unit, and no smaller scale would have fitted.
    assert released.d_in == d_in
    assert released.size == size
    assert released.guarantee.relation == ("add/remove" if size is None else "change-one")
    assert released.mechanism.scale == measurement.param
    assert released.guarantee.measure == repr(whole.accountant.output_measure)
    assert expressed(released.loss) == spent
    smaller = replace(released.mechanism, scale=released.mechanism.scale * 0.99)

    def lost(mechanism):
        setting = Setting.of(mechanism, size, np.ones(4))
        return expressed(loss_of(setting, d_in, delta=released.delta))

    assert lost(released.mechanism) == spent
    assert lost(smaller)[0] > budget[0]
    with pytest.raises(ValueError, match="exceeds the budget"):
        ask(whole.query(), unit, mechanism=smaller).resolve()
    assert released.categories == ("a", "b", "c", "none")
    assert len(released.counts) == 4
    ask(whole.query(), unit).release()
    assert whole.remaining_privacy_loss() == []
    with pytest.raises(ValueError, match="Privacy allowance has been exhausted"):
        whole.query()


def test_budgets_are_divided_by_themselves_and_filters_refuse_after_too_much():
    """Tests keep the shares of a budget (`conftest.py`), which are no other budget's. The
    negative control: what happens in OpenDP when a measurement goes past our check.
    """
    for epsilon, parts in ((1.0, 1), (1.0, 2), (1.0, 3), (2.0, 3)):
        whole = context(loss={"epsilon": epsilon}, split_evenly_over=parts)
        assert whole.remaining_privacy_loss() == pytest.approx([epsilon / parts] * parts)
        assert sum(whole.remaining_privacy_loss()) <= epsilon
    whole = context()
    with pytest.raises(OpenDPException, match=r"filter is now exhausted|budget|exhausted"):
        whole(ask(whole.query(epsilon=1.5)).resolve())
    with pytest.raises(OpenDPException, match=r"exhausted"):
        ask(whole.query(epsilon=0.25)).release()


# --- plans

# With epsilon = 400 for one query and at most 8 moves the noise differs from 0 with probability
# below 1e-20.
EXACT = {"epsilon": 400.0}
cast_to_enum = pl.col("s").cast(pl.Enum(["b", "a"]), strict=False)
filled = pl.col("s").fill_null("b")
OF_TEXT = {"column": "s", "categories": ["a", "b"], "unknown": "other"}
PLANS = {
    "none": (lambda q: q, {"column": "x", "nulls": "none"}, (5, 3, 2, 2)),
    "filter": (lambda q: q.filter(pl.col("g") < 3), {"column": "x", "nulls": "none"}, (2, 3, 2, 1)),
    "select": (lambda q: q.select("x"), {"column": "x", "nulls": "none"}, (5, 3, 2, 2)),
    "cast": (lambda q: q.with_columns(cast_to_enum), {"column": "s", "nulls": "none"}, (3, 5, 4)),
    "fill nulls": (lambda q: q.with_columns(filled), OF_TEXT, (5, 5, 2)),
    "new column": (
        lambda q: q.with_columns(odd=pl.col("g") > 1),
        {"column": "odd", "categories": [True, False], "nulls": False},
        (8, 4),
    ),
    "two": (lambda q: q.with_columns(filled).filter(pl.col("g") == 1), OF_TEXT, (1, 2, 1)),
}


@pytest.mark.parametrize("name", PLANS)
def test_the_user_s_plan_comes_first(name):
    plan, arguments, expected = PLANS[name]
    whole = context(loss=EXACT, split_evenly_over=1)
    assert ob.posterior(plan(whole.query()), **arguments).release().counts == expected


# --- filters
def test_releases_beyond_the_budget_or_without_the_data_are_refused_first():
    whole = context()
    ask(whole.query(epsilon=0.75)).release()
    with pytest.raises(ValueError, match=r"loss 0\.5 .*: 1\.0, less 0\.75 .* about 0\.25\."):
        ask(whole.query(epsilon=0.5)).release()
    assert whole.current_privacy_loss() == 0.75
    assert ask(whole.query(epsilon=0.125)).release().epsilon <= 0.125
    number = whole.query(epsilon=0.0625).select(dp.len(signed=True)).release()
    assert number.collect().shape == (1, 1)
    assert whole.remaining_privacy_loss() == pytest.approx(0.0625)
    ask(whole.query(epsilon=whole.remaining_privacy_loss())).release()
    with pytest.raises(ValueError, match="left of the Context's budget"):
        ask(whole.query(epsilon=1e-3)).release()
    whole = plain_context(pl.concat([DATA] * 20), {"changes": 1})
    before = whole.remaining_privacy_loss()
    asked = {"column": "x", "size": 20 * SIZE, "nulls": "none"}
    query = ob.posterior(whole.query(), mechanism="hellinger_exponential", **asked)
    with pytest.raises(ValueError, match=r"size=240 and 4 cat.* KNormParameters\(scale=1\)"):
        query.release()
    assert whole.remaining_privacy_loss() == before
    ob.posterior(whole.query(), mechanism="knorm_parameters", **asked).release()


@pytest.mark.parametrize(("unit", "loss"), some_of(product(UNITS, LOSSES), 6))
def test_a_filter_exactly_exhausted(unit, loss):
    arguments, expressed = LOSSES[loss]
    whole = context(UNITS[unit][0], arguments)
    half = {name: value / 2 for name, value in arguments.items()}
    first = ask(whole.query(**half), unit, mechanism=LAPLACE).release()
    assert as_tuple(whole.current_privacy_loss()) == expressed(first.loss)
    left = whole.remaining_privacy_loss()
    rest = dict(zip(arguments, as_tuple(left), strict=True))
    ask(whole.query(**rest), unit, mechanism=LAPLACE).release()
    assert (
        0
        <= as_tuple(whole.remaining_privacy_loss())[0]
        <= (1e-5 if loss == "epsilon, delta" else 1e-8)
    )
    with pytest.raises(ValueError, match="left of the Context's budget"):
        ask(whole.query(**half), unit, mechanism=LAPLACE).release()


@settings(max_examples=8, deadline=None)
@given(shares=st.lists(st.floats(0.01, 0.7), min_size=1, max_size=7), total=st.floats(0.1, 3.0))
def test_no_sequence_of_queries_reaches_a_filter_that_refuses(shares, total):
    """Whatever passes our check must pass the filter, which else refuses everything."""
    whole = context(loss={"epsilon": total})
    for share in shares:
        query = ask(whole.query(epsilon=share * total), mechanism=LAPLACE)
        fits = query.resolve().map(1) <= whole.remaining_privacy_loss() * (1 - 1e-12)
        try:
            query.release()
        except ValueError as refusal:
            assert "exceeds what is left" in str(refusal)  # noqa: PT017
            assert not fits
    left = whole.remaining_privacy_loss()
    assert left >= 0
    if left > 1e-6:  # OpenDP rounds what is left to nearest, so all of it may be an ulp too much
        ask(whole.query(epsilon=left * (1 - 1e-12))).release()


# --- nesting
def nested(query, **arguments):
    """A Context inside a query; `LazyFrameQuery` does not forward `compositor`."""
    return object.__getattribute__(query, "_query").compositor(**arguments).release()


@pytest.mark.parametrize("unit", ["one change", "one contribution", "bounds"])
def test_a_nested_compositor(unit):
    whole = context(UNITS[unit][0], split_evenly_over=2)
    inner = nested(whole.query(), split_evenly_over=2)
    assert whole.remaining_privacy_loss() == [0.5]
    first = ask(inner.query(), unit).release()
    second = ask(inner.query(), unit).release()
    assert inner.remaining_privacy_loss() == []
    assert (first.epsilon, second.epsilon) == pytest.approx((0.25, 0.25))
    assert (first.d_in, first.size) == (UNITS[unit][3], UNITS[unit][2])
    assert ask(whole.query(), unit).release().epsilon == pytest.approx(0.5)
    with pytest.raises(ValueError, match="exhausted"):
        whole.query()


def test_nested_filters_and_compositors():
    whole = context(split_evenly_over=2)
    inner = nested(whole.query())
    ask(inner.query(epsilon=0.375)).release()
    with pytest.raises(ValueError, match="left of the Context's budget"):
        ask(inner.query(epsilon=0.25)).release()
    assert ask(inner.query(epsilon=0.125)).release().epsilon <= 0.125
    ask(whole.query()).release()
    assert whole.remaining_privacy_loss() == []
    whole = context()
    inner = nested(whole.query(epsilon=0.5), split_evenly_over=2)
    assert whole.current_privacy_loss() == pytest.approx(0.5)
    ask(inner.query()).release()
    ask(inner.query()).release()
    with pytest.raises(ValueError, match="exceeds what is left"):
        ask(whole.query(epsilon=0.75)).release()
    ask(whole.query(epsilon=0.25)).release()


# --- mechanisms
NAMED = {
    "auto": {},
    "laplace_parameters": {},
    "laplace_parameters floored": {"noise": "floored"},
    "laplace_parameters bounded": {"total": "bounded"},
    "hellinger_exponential": {},
    "smooth_hellinger_exponential": {},
    "smooth_hellinger_exponential gamma": {"gamma": 0.2},
}


# A loss that takes long to compute, with or without a smoothness to choose.
LONG = {("smooth_hellinger_exponential", loss) for loss in ("epsilon, delta", "rho", "rho, delta")}
LONG |= {("smooth_hellinger_exponential gamma", "epsilon, delta")}
LONG |= {("hellinger_exponential", loss) for loss in ("epsilon, delta", "rho", "rho, delta")}
LONG |= {("smooth_hellinger_exponential gamma", loss) for loss in ("rho", "rho, delta")}
LONG |= {(f"smooth_hellinger_exponential{more}", "epsilon") for more in ("", " gamma")}


@pytest.mark.parametrize(
    ("name", "loss"), slow(product(NAMED, LOSSES), but={*product(NAMED, LOSSES)} - LONG)
)
def test_mechanisms_by_name_have_the_smallest_scale_that_fits(name, loss):
    arguments, expressed = LOSSES[loss]
    whole = context({"changes": 1}, arguments, split_evenly_over=1)
    budget = as_tuple(whole.remaining_privacy_loss()[0])
    named = {"mechanism": name.split()[0], "prior": [1.0, 0.5, 2.0, 1.0], **NAMED[name]}
    released = ask(whole.query(), "one change", **named).release()
    mechanism, delta = released.mechanism, released.delta
    for option, value in NAMED[name].items():
        assert getattr(mechanism, option) == value

    def losses(scale):
        setting = Setting.of(replace(mechanism, scale=scale), SIZE, named["prior"])
        return expressed(loss_of(setting, 1, delta=delta))

    assert all(a <= b for a, b in zip(losses(mechanism.scale), budget, strict=True))
    assert losses(mechanism.scale * 0.99)[0] > budget[0]


@pytest.mark.parametrize(
    ("size", "epsilon", "kind"),
    [(1000, 1.0, ob.LaplaceParameters), (3, 0.1, ob.mechanisms.HellingerExponential)],
)
def test_auto_depends_on_public_things_only(size, epsilon, kind):
    """An exponential mechanism where the noise is larger than the counts."""
    found = []
    for yes in (0, size // 2, size):
        values = ["yes"] * yes + ["no"] * (size - yes)
        frame = pl.LazyFrame({"x": values}, schema={"x": pl.Enum(["yes", "no"])})
        whole = plain_context(frame, {"changes": 1}, {"epsilon": epsilon})
        found.append(ob.posterior(whole.query(), "x", size=size, nulls="no").release().mechanism)
    assert type(found[0]) is kind
    assert len(set(found)) == 1


POSITIVE = "every entry must be greater than 0"
EXPONENTIAL = ob.mechanisms.HellingerExponential(1.0)
BY_NAME = {"mechanism": EXPONENTIAL.name}
REFUSED = [
    ({"column": 3}, TypeError, r"column=3: .*a name, a str, or a list of names"),
    ({"mechanism": ob.LaplaceParameters}, TypeError, "mechanism=.*must be 'auto', the name"),
    ({"mechanism": 3}, TypeError, "mechanism=3: must be 'auto', the name"),
    ({"mechanism": "gaussian"}, ValueError, "='gaussian': is not .*; available: .*hellinger_exp"),
    ({"mechanism": EXPONENTIAL, "gamma": 1.0}, TypeError, "gamma: cannot be added to a mechanism"),
    ({"gamma": 1.0}, TypeError, "gamma=1.0: .* nor an option of mechanism='auto', .* name the"),
    (
        BY_NAME | {"noise": "floored"},
        TypeError,
        "noise='floored': .* option .*which has 'sensitivity'",
    ),
    (BY_NAME | {"scale": 2.0}, TypeError, "scale"),
    ({"mechanism": f"smooth_{EXPONENTIAL.name}", "gamma": -1.0}, ValueError, "gamma=-1.0: must be"),
    (BY_NAME | {"sensitivity": "local", "size": 150}, ValueError, "loss exceeds .* at every scale"),
    ({"prior": [1.0, 1.0]}, ValueError, r"prior=\[1.0, 1.0\]: has shape \(2,\); must have 4 e"),
    ({"prior": 0}, ValueError, f"prior=0: {POSITIVE}"),
    ({"prior": math.nan}, ValueError, f"prior=nan: {POSITIVE}"),
    ({"prior": [1.0, 1.0, 1.0, math.inf]}, ValueError, POSITIVE),
    ({"categories": []}, ValueError, r"categories=\[\]: must name at least one category"),
    ({"categories": ["a", "a", "b", "c"]}, ValueError, "must not repeat a label"),
    ({"categories": ["a"], "nulls": "a", "unknown": "a"}, ValueError, "needs at least two"),
    ({"nulls": None}, ValueError, r"nulls=None: column 'x' may hold nulls\. Pass nulls="),
    ({"categories": ["a"]}, ValueError, "unknown=None: .* Enum.*may hold values outside"),
    ({"size": None}, ValueError, "size=None: .*number of records is public; pass size="),
    ({"column": "y"}, ValueError, "column='y': is not a column of the frame, which has 4"),
    ({"column": "f"}, TypeError, "column='f': has type Float64; must be Enum, String"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), REFUSED)
def test_what_does_not_fit_is_refused_and_spends_nothing(arguments, kind, message):
    whole = context({"changes": 1}, split_evenly_over=1)
    query = whole.query()
    if arguments.get("column") == "f":
        query = query.with_columns(f=pl.col("g").cast(pl.Float64))
    with pytest.raises(kind, match=message):
        ob.posterior(query, **{"column": "x", "size": SIZE, "nulls": "none", **arguments}).release()
    assert whole.current_privacy_loss() == []
    ask(whole.query(), "one change").release()


def test_a_wrong_size_is_found_when_counting():
    """`size` is public, so the message may say that it is wrong; it does not say what is right."""
    whole = context({"changes": 1}, split_evenly_over=1)
    with pytest.raises(RuntimeError, match=r"^the number .* size=11, .* was declared") as caught:
        ob.posterior(whole.query(), "x", nulls="none", size=11).release()
    assert str(SIZE) not in str(caught.value).split("size=11")[1]


# --- privacy units that are refused
ONE_EACH = [Bound(per_group=1)]
UNITS_REFUSED = {
    "insert-delete": ({"contributions": 1, "ordered": True}, "InsertDeleteDistance"),
    "Hamming": ({"changes": 1, "ordered": True}, "InsertDeleteDistance|HammingDistance"),
    "local": ({"local": True}, "DiscreteDistance"),
    "bounds, ordered": ({"contributions": ONE_EACH, "ordered": True}, "InsertDeleteDistance"),
    "identifier": ({"contributions": 1, "identifier": "id"}, r"^query: .*\(3\)`.* SymmetricId"),
    "identifier changed": ({"changes": 1, "identifier": "id"}, r"^query: .*\(3\)`.* ChangeOneId"),
    "identifier with bounds": (
        {"contributions": ONE_EACH, "identifier": "id"},
        r"^query: with an identifier .*\.query\(\)\.truncate_per_group\(3\)`.* FrameDistance",
    ),
}


@pytest.mark.parametrize("name", UNITS_REFUSED)
def test_units_that_do_not_bound_records_are_refused_by_name(name):
    unit, message = UNITS_REFUSED[name]
    with pytest.raises((ValueError, OpenDPException), match=message) as found:
        ob.posterior(context(unit, split_evenly_over=1).query(), "x", nulls="none")
    assert "file an issue" not in str(found.value)


def test_plans_that_fail_or_prove_nothing_are_refused_before_the_data_are_read():
    """Whatever features are enabled."""
    made = context({"contributions": 1, "identifier": "id"}, split_evenly_over=2)
    limited = made.query().truncate_per_group(1, by=["g"])

    def asked(query):
        return ob.posterior(query, "x", by="g", categories={"g": [1, 2, 3]}, nulls="a")

    with pytest.raises(ValueError, match=r"on any data.* by `truncate_per_group`"):
        asked(limited.truncate_num_groups(2, by=["g"]))
    with pytest.raises(ValueError, match=r"on any data; .*nope"):
        asked(made.query().filter(pl.col("nope") == 1))
    assert asked(limited.truncate_per_group(2)).release().d_in == ob.Distance(2, 2, 1)
    words = pl.col("s")
    for applied in (
        words.map_elements(lambda text: text[:1], pl.String),
        words.map_batches(lambda texts: texts.rank(), is_elementwise=True),
    ):
        query = context(split_evenly_over=1).query().with_columns(first=applied)
        with pytest.raises(ValueError, match=r"with_columns: .* a function of your"):
            ob.posterior(query, "first", categories=["a"], nulls="a", unknown="a")
    whole = context({"contributions": [Bound(by=["g"], per_group=1)]}, split_evenly_over=1)
    with pytest.raises((ValueError, OpenDPException), match="no Bound limits the number"):
        ob.posterior(whole.query(), "x", nulls="none")


# --- the query object


@pytest.mark.parametrize("epsilon", [0.0, -0.5])
def test_a_query_without_a_positive_budget_is_refused(epsilon):
    with pytest.raises(ValueError, match=r"no budget of its own; .*context\.query\(epsilon=0\.5\)"):
        ask(context().query()).release()
    with pytest.raises(ValueError, match=r"a budget of .*greater than 0"):
        ask(context().query(epsilon=epsilon)).resolve()


@pytest.mark.parametrize("ask", [ob.posterior, ob.survey])
def test_what_was_paid_for_is_kept_where_nothing_can_be_made_of_it(ask, monkeypatch):
    """The debit comes first, so a failure after it must not lose the draw."""
    frame = pl.DataFrame({"vote": ["a"] * 30 + ["b"] * 10})
    of = checked_context(frame, loss={"epsilon": 9.0}, parts=None)
    question = {"categories": ["a", "b"], "nulls": ob.DROP, "unknown": ob.DROP}
    asked = {"vote": question | {"column": "vote"}}
    query = of.query(epsilon=8.0)
    made = ask(query, "vote", **question) if ask is ob.posterior else ask(query, asked)
    monkeypatch.setattr(BoundQuery, "restating", lambda *_: {}["a cause"])
    with pytest.raises(ob.ReleaseError, match="debited, but nothing could") as caught:
        made.release()
    drawn = caught.value.drawn
    counts = (drawn if ask is ob.posterior else drawn[0]).noisy_counts
    assert abs(counts[0] - 30) < 20
    assert of.current_privacy_loss() == 8.0
