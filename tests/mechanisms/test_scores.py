"""The certified change of a computed score, with errors so large that each part shows."""

from fractions import Fraction

import numpy as np
import pytest

from opendp_bayes.mechanisms import global_sensitivity
from opendp_bayes.mechanisms.exponential import posterior_exponential as scores

PRIOR = np.array([0.7, 2.0, 0.7])


def test_the_error_of_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the distance and `k + 8` roundings of it, which is at most 1."""
    assert scores.score_error(3) >= Fraction(scores.RELATIVE_ERROR) + Fraction(11, 2**53)
    assert scores.score_error(500) >= Fraction(scores.RELATIVE_ERROR) + Fraction(508, 2**53)
    monkeypatch.setattr(scores, "RELATIVE_ERROR", 0.125)
    assert Fraction(1, 8) <= scores.score_error(3) <= Fraction(1, 8) + Fraction(1, 2**48)


@pytest.mark.parametrize("d_in", [1, 2, 7])
@pytest.mark.parametrize("error", [0.1, 0.3])
def test_the_change_of_a_score_is_certified(d_in, error, monkeypatch):
    """With a sensitivity computed too low by all of its error; both scores add their own."""
    truth = Fraction(global_sensitivity(12, PRIOR))
    monkeypatch.setattr(scores, "RELATIVE_ERROR", error)
    monkeypatch.setattr(
        scores,
        "global_sensitivity",
        lambda size, prior: float(truth * (1 - Fraction(error))) * (1 + 2.0**-52),
    )
    change = Fraction(scores.score_change(d_in, size=12, prior=PRIOR))
    assert (
        d_in * truth + 2 * Fraction(error)
        <= change
        <= (d_in * truth + 2 * Fraction(error)) * (1 + Fraction(1, 2**40))
    )


def test_the_change_of_a_score_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "global_sensitivity", lambda size, prior: 0.3)
    for error in np.linspace(0.01, 0.3, 40).tolist():
        monkeypatch.setattr(scores, "RELATIVE_ERROR", error)
        for d_in in (1, 3):
            change = Fraction(scores.score_change(d_in, size=12, prior=PRIOR))
            assert change >= d_in * Fraction(0.3) / (1 - Fraction(error)) + 2 * scores.score_error(
                3
            )
