"""Groups that nobody listed: what is drawn within each, what it costs, and what is refused."""

import math
import re
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.accounting.thresholds import fitted_discovery, loss_of_discovery
from opendp_bayes.mechanisms import Discovery, GaussianThreshold, OptimalThreshold
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.results.discovered import DiscoveredGroups

ROWS = [
    (f"c{number}", "yes" if at % 3 else "no") for number in range(30) for at in range(8 * number)
]
FRAME = pl.LazyFrame(ROWS, schema=["county", "vote"], orient="row")
LISTED = {"vote": ["yes", "no"], "county": "discover"}
ASKED: dict[str, Any] = {"by": "county", "categories": LISTED, "nulls": ob.DROP, "unknown": ob.DROP}


def query(frame: pl.LazyFrame = FRAME, unit: int = 1, **loss: float) -> Any:
    context = ob.context(
        frame,
        privacy_unit=dp.unit_of(contributions=unit),
        privacy_loss=dp.loss_of(**loss or {"epsilon": 2.0, "delta": 1e-6}),
        split_evenly_over=1,
    )
    return context.query()


@pytest.mark.parametrize(
    "loss", [{"epsilon": 2.0, "delta": 1e-6}, {"rho": 0.5, "delta": 1e-6}], ids=str
)
def test_a_group_that_is_shown_has_counts_near_its_own(loss: dict[str, float]) -> None:
    """Noise of 12 deviations is a false alarm in 1e9 runs for Laplace noise."""
    votes = ob.posterior(query(**loss), "vote", **ASKED, rest=0.2, always=["c0", "zz"]).release()
    assert isinstance(votes, DiscoveredGroups)
    assert list(votes)[:2] == ["c0", "zz"]
    assert "c29" in votes
    assert min(votes.shown.drawn[2:]) >= votes.shown.threshold
    true = pl.DataFrame(ROWS, schema=["county", "vote"], orient="row")
    for county, release in votes.items():
        own = true.filter(pl.col("county") == county)["vote"]
        counts = [int((own == vote).sum()) for vote in ("yes", "no")]
        assert np.abs(np.array(release.drawn) - counts).max() < 24
        assert release.promise == votes.shown.promise
        assert release.size is None
    spent = votes.shown.rho if "rho" in loss else votes.shown.epsilon
    assert spent <= loss.get("rho", loss.get("epsilon", 0.0))
    assert votes.shown.rest is not None


def test_groups_are_discovered_by_group_by_and_in_joint_tables_too() -> None:
    frame = FRAME.with_columns(young=pl.col("vote") == "no")
    listed = {"vote": ["yes", "no"], "young": [True, False], "county": "discover"}
    asked = ob.posterior(
        query(frame).group_by("county"),
        ["vote", "young"],
        categories=listed,
        nulls=ob.DROP,
        unknown={"vote": ob.DROP},
    )
    votes = asked.release()
    assert votes["c29"].axes == ("vote", "young")
    assert len(votes["c29"].drawn) == 4


def test_records_that_are_left_out_show_no_group() -> None:
    """A group is as large as what is counted in it; negative control: with nulls it is shown."""
    frame = pl.LazyFrame(
        {"county": ["a"] * 300, "vote": [None] * 300}, schema={"county": str, "vote": str}
    )
    votes = ob.posterior(query(frame), "vote", **ASKED).release()
    assert len(votes) == 0
    assert "Values" not in repr(votes)
    assert str(votes)
    counted = ob.posterior(query(frame), "vote", **ASKED | {"nulls": {"vote": "none"}}).release()
    assert list(counted) == ["a"]


def test_nulls_of_the_group_column_are_a_group_by_name() -> None:
    frame = pl.LazyFrame({"county": [None] * 200 + ["a"] * 200, "vote": ["yes"] * 400})
    nulls = {"vote": ob.DROP, "county": "nowhere"}
    votes = ob.posterior(query(frame), "vote", **ASKED | {"nulls": nulls}).release()
    assert list(votes) == ["nowhere", "a"]
    assert votes.shown.listed == 1


def shown_and_hidden(
    law: OptimalThreshold, count: int, moved: int, within: DiscreteLaplace, rest: DiscreteLaplace
) -> np.ndarray[Any, Any]:
    """The exact law of everything that is released of one key of `count` records: pairs of what is
    shown and of its cell, which moves by `moved`, then the rest, where it is hidden.
    """
    first, masses = law.masses
    span = np.arange(-300, 301)
    cells, rests = (np.exp(noise.log_mass(span)) for noise in (within, rest))
    width = span.size + 1
    shown = np.zeros((2 * masses.size + 2, width))
    hidden = np.zeros(width)
    for at, mass in enumerate(masses if count else []):
        noisy = count + first + at
        if noisy >= law.threshold:
            shown[noisy - law.threshold, moved : moved + span.size] += mass * cells
        else:
            hidden[moved : moved + span.size] += mass * rests
    if not count:
        hidden[: span.size] = rests
    return np.concatenate([shown.ravel(), hidden])


@pytest.mark.parametrize(("share_within", "share_rest"), [(0.5, 0.2), (0.3, 0.6), (0.5, 0.45)])
def test_all_outcomes_with_counts_within_and_the_rest_keep_the_promise(
    share_within: float, share_rest: float
) -> None:
    """Theorem 3 of `docs/research/proofs.md`: what a shown key tells beside its count, and what a
    hidden one adds to the rest, are never told together.
    """
    epsilon, delta = 1.2, 0.03
    found = fitted_discovery(
        "auto",
        epsilon=epsilon,
        delta=delta,
        d_in=1,
        rest=share_rest,
        within=share_within,
    )
    law, within, rest = found.law, found.within, found.rest
    assert isinstance(law, OptimalThreshold)
    assert isinstance(within, DiscreteLaplace)
    assert isinstance(rest, DiscreteLaplace)
    stated = loss_of_discovery(found, 1, concentrated=False)
    assert stated.epsilon <= epsilon
    assert stated.delta <= delta
    for count in range(len(law.weights) + 1):
        one = shown_and_hidden(law, count, 0, within, rest)
        other = shown_and_hidden(law, count + 1, 1, within, rest)
        for p, q in ((one, other), (other, one)):
            excess = np.maximum(p - math.exp(stated.epsilon) * q, 0.0).sum()
            assert excess <= stated.delta + 1e-9


def test_what_is_within_is_paid_for() -> None:
    """Negative control: with the law of a release without counts within, the promise breaks."""
    law = OptimalThreshold(1.2, 0.03)
    within, rest = DiscreteLaplace(1 / 0.6), DiscreteLaplace(1 / 0.24)
    worst = max(
        np.maximum(
            shown_and_hidden(law, count, 0, within, rest)
            - math.exp(1.2) * shown_and_hidden(law, count + 1, 1, within, rest),
            0.0,
        ).sum()
        for count in range(len(law.weights))
    )
    assert worst > 0.06
    stated = loss_of_discovery(Discovery(law, rest, within), 1, concentrated=False)
    assert stated.epsilon == pytest.approx(1.8)


def test_under_rho_all_parts_add_up() -> None:
    own = Discovery(GaussianThreshold(4.0, 25), DiscreteGaussian(10.0), DiscreteGaussian(5.0))
    loss = loss_of_discovery(own, 1, concentrated=True)
    assert loss.rho == pytest.approx(1 / 32 + 1 / 200 + 1 / 50)
    assert math.isinf(loss_of_discovery(own, 1, concentrated=False, delta=1e-6).epsilon)


def test_several_contributions_cost_what_the_map_says() -> None:
    asked = ob.posterior(query(unit=3, epsilon=2.0, delta=1e-6), "vote", **ASKED)
    measurement = asked.resolve()
    epsilon, delta = measurement.map(asked._d_in)
    assert epsilon <= 2.0
    assert delta <= 1e-6
    assert asked.summarize()["d_in"].item() == 3
    by_hand = measurement(FRAME)
    assert by_hand.shown.promise.d_in == 3
    assert by_hand.shown.promise == asked.release().shown.promise


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"by": None}, "'discover' is for the one column of by="),
        ({"by": ["county", "vote"]}, "'discover' is for the one column of by="),
        (
            {"categories": {"vote": "discover", "county": "discover"}},
            "'discover' is for the one column of by=",
        ),
        ({"categories": {"vote": ["yes"], "county": ["a"], "x": "discover"}}, "'discover' is for"),
        ({"unknown": {"county": "other", "vote": ob.DROP}}, "has no meaning for 'county'"),
        ({"prior": "learned"}, "must be numbers for groups"),
        ({"size": 10}, "size=10: must be left out"),
        ({"ordered": ["vote"]}, "ordered"),
        ({"nulls": None}, "nulls=None"),
        ({"rest": 2.0}, "above 0 and below 1"),
        ({"mechanism": "laplace_threshold"}, "optimal_threshold"),
        ({"mechanism": Discovery(OptimalThreshold(0.5, 1e-9))}, "must have noise within"),
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        ob.posterior(query(), "vote", **ASKED | changed).release()


def test_a_prior_is_a_number_or_one_for_each_category() -> None:
    votes = ob.posterior(query(), "vote", **ASKED, prior={"no": 5.0, "yes": 2.0}).release()
    assert votes["c29"].prior == (2.0, 5.0)
