"""What a release promises, in sentences."""

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from opendp_bayes.display.wording import at_most, described, group_name
from opendp_bayes.mechanisms import SmoothHellingerExponential


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
