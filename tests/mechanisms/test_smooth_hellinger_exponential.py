"""Certificates of EHDS and of the β variant, with errors so large that each part shows."""

import math
from fractions import Fraction

import numpy as np
import pytest

from opendp_bayes.mathematics.exponential.sensitivity import smallest_local_sensitivity
from opendp_bayes.mechanisms import SmoothHellingerExponential, global_sensitivity
from opendp_bayes.mechanisms.exponential import smooth_hellinger_exponential as module
from opendp_bayes.mechanisms.exponential.smooth_hellinger_exponential import _score_range
from tests.helpers import oracles

SIZE, PRIOR = 12, np.array([0.7, 2.0, 0.7])
OF_SAMPLER = Fraction(1, 10)


def close_above(value: float, least: Fraction) -> bool:
    return least <= Fraction(value) <= least * (1 + Fraction(1, 2**30))


def test_the_root_of_the_range_is_rounded_up() -> None:
    """`1 + sqrt(1 + change^2)`, compared by squares; also above the range of floats."""
    ends = Fraction(10) ** 200, Fraction(1, 10**9)
    for by in (*ends, *(Fraction(i, 97) for i in range(1, 400, 3))):
        assert 1 + by**2 <= (_score_range(by) - 1) ** 2 <= (1 + by**2) * (1 + Fraction(1, 2**49))


@pytest.mark.parametrize("d_in", [1, 3])
@pytest.mark.parametrize("gamma", [0.1, 1.3])
def test_the_loss_is_certified(gamma: float, d_in: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """`d (1 + sqrt(1 + gamma^2)) / scale` and four times the sampler's error."""
    monkeypatch.setattr(module, "exponent_error", lambda width, k: OF_SAMPLER)
    for scale in (0.3, 0.7, 2.0):
        loss = SmoothHellingerExponential(scale, gamma=gamma).proven_loss(
            d_in, size=SIZE, prior=PRIOR
        )
        bound = d_in * _score_range(Fraction(gamma)) / Fraction(scale) + 4 * OF_SAMPLER
        assert oracles.is_certified(loss, bound, Fraction(1, 2**30))


@pytest.mark.parametrize("gamma", [0.1, 1.3])
def test_the_smallest_width_is_certified(gamma: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the largest sensitivity was computed too high by all of its error."""
    largest, error = global_sensitivity(SIZE, PRIOR), 0.1
    monkeypatch.setattr(module, "RELATIVE_ERROR", error)
    for least in (2.0**-60, 0.4, 0.43):
        monkeypatch.setattr(
            module, "smallest_local_sensitivity", lambda size, prior, least=least: least
        )
        for scale in np.linspace(0.1, 2.0, 20).tolist():
            for arguments, reached in (
                ({"gamma": gamma}, 1 / (1 / largest + gamma * SIZE)),
                ({"beta": gamma / 10}, largest * math.exp(-gamma / 10 * SIZE)),
            ):
                width = SmoothHellingerExponential(scale, **arguments).smallest_width(SIZE, PRIOR)
                assert Fraction(width) <= Fraction(scale) * max(
                    Fraction(least), Fraction(reached) / (1 + 2 * Fraction(error))
                )


# The β variant.
def change_of(beta: float, score: Fraction, error: Fraction) -> Fraction:
    return Fraction(math.expm1(-beta)) * -score / (1 - error)


@pytest.mark.parametrize("beta", [0.01, 0.3, 2.0])
def test_the_pure_loss_of_beta_is_certified(beta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `1 - exp(-beta)` computed too low by all of its error."""
    error = Fraction(1, 8)
    monkeypatch.setattr(module, "_LIBM_ERROR", float(error))
    monkeypatch.setattr(module, "exponent_error", lambda width, k: OF_SAMPLER)
    largest_score = 1 / Fraction(smallest_local_sensitivity(SIZE, PRIOR))
    for d_in in (1, 3):
        loss = SmoothHellingerExponential(0.7, beta=beta).proven_loss(d_in, size=SIZE, prior=PRIOR)
        bound = (
            d_in * _score_range(change_of(beta, largest_score, error)) / Fraction(0.7)
            + 4 * OF_SAMPLER
        )
        assert close_above(loss.epsilon, bound)


def test_the_parameter_that_may_be_chosen_is_the_one_that_is_set() -> None:
    for name in ("gamma", "beta"):
        mechanism = SmoothHellingerExponential(1.0, **{name: 0.3})
        found, (least, most) = mechanism.smoothness
        assert found == name
        assert 0 < least < 0.3 < most
