"""The β bound with δ: its closed form in ball arithmetic, never below it and hardly above."""

from fractions import Fraction

import numpy as np
import pytest

from opendp_bayes.mathematics.simplex import number_of_candidates
from opendp_bayes.mechanisms import SmoothHellingerExponential
from opendp_bayes.mechanisms.exponential.posterior_exponential import exponent_error
from opendp_bayes.mechanisms.exponential.smooth_hellinger_exponential import _beta_change
from tests.helpers import oracles

#: How far above the closed form a bound may lie, relative: some roundings up.
ABOVE = 1e-12


def change(beta: float, d_in: int, score: oracles.arb) -> oracles.arb:
    """`sum over i < d_in of e^(beta i) + (e^(beta d_in) - 1) score`, term by term."""
    rate = oracles.real(beta)
    steps = sum(((rate * i).exp() for i in range(d_in)), start=oracles.arb(0))
    return steps + ((rate * d_in).exp() - 1) * score


def is_just_above(bound: float | Fraction, truth: oracles.arb) -> bool:
    return bool(truth <= oracles.real(bound) <= truth * (1 + oracles.real(ABOVE)))


@pytest.mark.parametrize("d_in", [1, 2, 3, 10])
@pytest.mark.parametrize("beta", [1e-9, 0.01, 0.3, 5.0])
@pytest.mark.parametrize("score", [0.0, 0.7, 40.0])
def test_the_change_of_a_score_over_several_records(beta: float, d_in: int, score: float) -> None:
    found = _beta_change(beta, d_in, Fraction(score))
    assert is_just_above(found, change(beta, d_in, oracles.real(score)))


@pytest.mark.parametrize("d_in", [1, 2, 3])
@pytest.mark.parametrize("delta", [1e-6, 0.3, 0.9])
@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_the_bound_with_delta(scale: float, delta: float, d_in: int) -> None:
    """`2 change / scale - ln(1 - delta)` for scores up to `scale ln(candidates / delta)`."""
    size, prior, beta = 10**8, np.ones(2), 1e-3
    mechanism = SmoothHellingerExponential(scale, beta=beta)
    loss = mechanism.proven_loss(d_in, size=size, prior=prior, delta=delta)
    assert loss.delta == delta, "the bound is used here"
    error = oracles.real(exponent_error(mechanism.smallest_width(size, prior), 2))
    candidates = oracles.real(number_of_candidates(size, 2))
    score = oracles.real(scale) * ((candidates / oracles.real(delta)).log() + 2 * error)
    without_delta = 2 * change(beta, d_in, score) / oracles.real(scale) + 4 * error
    truth = without_delta - (1 - oracles.real(delta)).log()
    assert is_just_above(loss.epsilon, truth)
    assert not is_just_above(loss.epsilon, without_delta), "negative control: without ln(1 - delta)"


def test_the_parameter_that_may_be_chosen_is_the_one_that_is_set() -> None:
    for name in ("gamma", "beta"):
        mechanism = SmoothHellingerExponential(1.0, **{name: 0.3})
        found, (least, most) = mechanism.smoothness
        assert found == name
        assert 0 < least < 0.3 < most
