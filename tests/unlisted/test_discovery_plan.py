"""Plans of a discovery: the counts that each law shows, and what each loses."""

import math

import pytest

import opendp_bayes as ob
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.unlisted.laws_for_budgets import fitted_discovery, loss_of_discovery

LAWS = ("optimal_threshold", "laplace_threshold", "gaussian_threshold")


def test_the_counts_shown_are_those_of_the_chances_to_be_shown() -> None:
    """Against the probabilities themselves, and the laws' thresholds at ε = 1, δ = 1e-8."""
    found = ob.plan_discovery(epsilon=1.0, delta=1e-8)
    assert {row.name for row in found.rows} == set(LAWS)
    shown = {row.name: [row.least_shown(of) for of in (0.5, 0.95, 0.99)] for row in found.rows}
    assert shown["optimal_threshold"] == [19, 21, 23]
    assert shown["laplace_threshold"][0] == 20
    assert shown["gaussian_threshold"][0] == 31
    for row in found.rows:
        assert row.discovery is not None
        for share, least in zip((0.5, 0.95, 0.99), shown[row.name], strict=True):
            below, at = row.discovery.law.shown([least - 1, least])
            assert below < share <= at


@pytest.mark.parametrize(
    "asked",
    [
        {"epsilon": 1.0, "delta": 1e-6},
        {"epsilon": 2.0, "delta": 1e-8, "d_in": Distance.limited(3, 1), "rest": 0.25},
        {"epsilon": 2.0, "delta": 1e-6, "d_in": 2},
        {"rho": 0.1, "delta": 1e-8, "d_in": Distance.limited(2, 1), "rest": 0.2},
    ],
)
def test_every_row_is_within_the_budget_and_the_first_is_the_automatic_one(asked: dict) -> None:
    found = ob.plan_discovery(**asked)
    arguments = {"d_in": 1, "rest": 0.0} | asked
    assert found.recommended == fitted_discovery("auto", **arguments)
    halves = [row.least_shown(0.5) for row in found.rows if row.discovery is not None]
    assert halves == sorted(halves)
    of_rho = "rho" in asked
    for row in found.rows:
        if row.discovery is None:
            assert row.refused
            continue
        delta = 0.0 if of_rho else asked["delta"]
        of = row.discovery, arguments["d_in"]
        assert row.loss == loss_of_discovery(*of, concentrated=of_rho, delta=delta)
        assert row.loss is not None
        assert (row.loss.rho if of_rho else row.loss.epsilon) <= asked[
            "rho" if of_rho else "epsilon"
        ]
        assert row.loss.delta <= asked["delta"]
        assert (row.discovery.rest is not None) == bool(arguments["rest"])


def test_what_cannot_be_used_stands_last_with_the_reason() -> None:
    found = ob.plan_discovery(rho=0.1, delta=1e-8)
    assert [row.name for row in found.rows] == ["gaussian_threshold", *LAWS[:2]]
    assert found.rows[1].refused is not None
    assert found.rows[1].refused.startswith("has no rho of its own")
    with pytest.raises(ValueError, match=r"optimal_threshold: .*has no rho"):
        found.rows[1].least_shown(0.5)
    many = ob.plan_discovery(epsilon=5.0, delta=1e-6, d_in=Distance.limited(100, 1))
    assert [row.refused is None for row in many.rows] == [True, False, False]


def test_a_plan_is_a_table_a_frame_and_json() -> None:
    found = ob.plan_discovery(epsilon=1.0, delta=1e-8, rest=0.2, d_in=Distance.limited(2, 1))
    shown = " ".join(repr(found).split())
    for said in (
        "Plan for ε = 1, δ = 1e-08",
        "Neighbours differ by 2 records added or removed, at most 1 in one count.",
        "Recommended: OptimalThreshold(epsilon=0.5",
    ):
        assert said in shown
    assert "<table" in found._repr_html_()
    frame = found.to_frame()
    assert frame["law"].to_list() == [row.name for row in found.rows]
    assert frame["shown_95"].to_list() == [row.least_shown(0.95) for row in found.rows]
    assert frame["rest_std"].is_not_null().all()
    assert (frame["rho"] == math.inf).any()
    one = repr(ob.plan_discovery(epsilon=1.0, delta=1e-8))
    assert "Neighbours differ by 1 record added or removed." in one
    assert "rest" not in one


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"delta": 1e-8}, "epsilon=None, rho=None: one of"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta=0.0: must be"),
        ({"epsilon": 1.0, "delta": 1e-8, "d_in": 0}, "d_in=0: must be"),
        ({"epsilon": 1.0, "delta": 1e-8, "rest": 1.0}, r"rest=1.0: .*0 and below 1"),
    ],
)
def test_arguments_are_checked(asked: dict, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ob.plan_discovery(**asked)
