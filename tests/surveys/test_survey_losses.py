"""Losses of a survey whose sums lie between two floats: each part is rounded to the safe side."""

from dataclasses import replace
from fractions import Fraction

import pytest

import opendp_bayes as ob

pytestmark = pytest.mark.usefixtures("computed_once")

PARTS = ("epsilon", "rho", "range", "delta")
PROMISE = ob.PrivacyGuarantee(None, 1, ob.PrivacyLoss(1.0, 0.5, 2.0), "MaxDivergence")
VOTE = ob.Release(
    (60, 40), ("yes", "no"), (1.0, 1.0), ob.LaplaceParameters(10.0, total="private"), PROMISE
)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("order", [1, -1])
def test_a_sum_that_floats_round_down_is_rounded_up(part: str, order: int) -> None:
    """Of a half and of what it takes in without a change, in either order."""
    loss = ob.PrivacyLoss(epsilon=0.5, rho=0.5, range=0.5, delta=0.5)
    losses = [loss, replace(loss, **{part: 2.0**-60})][::order]
    assert 0.5 + 2.0**-60 == 0.5
    releases = tuple(replace(VOTE, guarantee=replace(PROMISE, loss=one)) for one in losses)
    total = ob.Survey(("one", "other"), releases).loss
    for name in PARTS:
        exact = sum(Fraction(getattr(one, name)) for one in losses)
        assert exact <= Fraction(getattr(total, name)) <= exact + Fraction(2) ** -52
