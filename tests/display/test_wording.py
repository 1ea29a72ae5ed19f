"""What a release promises, in sentences."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from opendp_bayes import PrivacyLoss
from opendp_bayes.display.wording import at_most, described, group_name, in_words
from opendp_bayes.mechanisms import SmoothHellingerExponential
from tests.helpers.releases import guarantee

PROMISE = guarantee(10, PrivacyLoss(epsilon=1.0, rho=0.25, range=2.0))
WITH_DELTA = PrivacyLoss(1.0, 0.25, 2.0, delta=1e-7)


CONCENTRATED = "ZeroConcentratedDivergence"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "differ by 1 record changed. The number of records, 10, is public."),
        ({"size": None}, "by 1 record added or removed. The number of records is private."),
        ({"d_in": 3}, "ε = 1 for data sets that differ by 3 records changed."),
        ({"measure": CONCENTRATED}, "ρ = 0.25 (zero-concentrated) for"),
        (
            {"loss": WITH_DELTA, "measure": f"Approximate({CONCENTRATED})"},
            "ρ = 0.25 (zero-concentrated), δ = 1e-07 for",
        ),
        ({"loss": WITH_DELTA, "measure": "Approximate(MaxDivergence)"}, "ε = 1, δ = 1e-07 for"),
        ({"loss": PrivacyLoss(math.inf, math.inf, math.inf)}, "ε = ∞ for"),
        ({"loss": PrivacyLoss(1.0000000001, 1.0, 2.0)}, "ε = 1.001 for"),
        ({"loss": PrivacyLoss(0.9999999999, 1.0, 2.0)}, "ε = 1 for"),
        ({"loss": PrivacyLoss(0.2, 1.0, 2.0)}, "ε = 0.2 for"),
    ],
)
def test_guarantee(changes: dict[str, object], expected: str) -> None:
    assert expected in in_words(replace(PROMISE, **changes))


def test_a_mechanism_is_described_by_the_parameters_that_are_set() -> None:
    assert (
        described(SmoothHellingerExponential(scale=4.00000000002))
        == "SmoothHellingerExponential(scale=4, gamma=1)"
    )


@given(st.floats(1e-300, 1e300))
def test_a_printed_bound_is_an_upper_bound(bound: float) -> None:
    """At least the shortest decimal that is the bound, and less than 0.1 % above."""
    printed = Fraction(at_most(bound))
    assert Fraction(repr(bound)) <= printed < Fraction(repr(bound)) * Fraction(1001, 1000)


@pytest.mark.parametrize(
    ("label", "said"), [(None, "(null)"), (True, "True"), (-3, "-3"), ("a, b", "a, b"), ("", "")]
)
def test_a_label_is_said_alike_alone_and_among_others(label: object, said: str) -> None:
    assert group_name(label) == said
    assert group_name((label, "x", label)) == f"{said}, x, {said}"
