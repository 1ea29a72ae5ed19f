"""Smoothed losses: what they promise at most, and in words."""

import math
from fractions import Fraction

import definitions
import numpy as np
import pytest
from paper import divergence

import opendp_bayes_smoothed as obs
from opendp_bayes_smoothed import SmoothedDP, SmoothedLoss

PI = [(Fraction(1, 4), Fraction(3, 4)), (Fraction(5, 8), Fraction(3, 8))]
GUARANTEE = SmoothedDP(6, ((0.25, 0.75), (0.625, 0.375)))
PLAIN = SmoothedLoss(GUARANTEE, obs.SamplingHistogram(rate=0.5))
NOISY = SmoothedLoss(GUARANTEE, obs.NoisySamplingHistogram(3.0, rate=0.5))


def test_a_pure_loss_is_one_with_a_delta_of_which_the_smallest_is_averaged() -> None:
    """`(e^p - e^ε) / (e^p + 1)`: attained by randomised response, and below nothing possible.
    Of every database the smaller of sampling and noise, beyond the reach of its own laws.
    """
    for scale in (30.0, 3.0, 0.5):
        loss = SmoothedLoss(GUARANTEE, obs.NoisySamplingHistogram(scale, rate=1.0))
        pure = loss.pure_epsilon
        p, q = math.exp(pure) / (1 + math.exp(pure)), 1 / (1 + math.exp(pure))
        for epsilon in (0.0, pure / 3, 0.99 * pure):
            attained = divergence([p, q], [q, p], epsilon)
            assert attained <= loss.promised_delta(epsilon) <= attained * (1 + 1e-11)
        assert loss.promised_delta(pure) == 0
    assert PLAIN.promised_delta(2.0) == 0.5
    much = SmoothedLoss(GUARANTEE, obs.NoisySamplingHistogram(1e-4, rate=0.5))
    assert much.promised_delta(2.0) == 0.5
    size = 600
    wide = SmoothedDP(size, GUARANTEE.vertices)
    loss = SmoothedLoss(wide, obs.NoisySamplingHistogram(1.0, rate=0.5))
    bound = loss.promised_delta(0.5)
    found = loss.delta(0.5)
    assert found <= min(obs.smoothed_delta(wide.vertices, size, 0.5, 0.5), bound)
    profiles = [obs.database_profile([x, size - x], 0.5, 0.5) for x in range(size + 1)]
    minima = np.minimum(profiles, bound)
    expected = obs.smoothed_value(lambda x: minima[x[0]], wide.vertices, size)
    assert found == pytest.approx(expected, rel=1e-6)


def test_composition_is_above_the_truth() -> None:
    """Proposition 5: two releases of samples of the same data, by the definition."""
    other = SmoothedLoss(GUARANTEE, obs.SamplingHistogram(rate=0.3))
    pairs = [(0.4, PLAIN.delta(0.4)), (0.6, other.delta(0.6))]
    epsilon, delta = obs.composed(pairs)

    def both(y):
        return definitions.both(*(definitions.sampled(y, n, "without") for n in (3, 2)))

    truth = definitions.smoothed_delta(both, PI, 6, epsilon)
    assert truth <= Fraction(delta) < 1
    assert Fraction(PLAIN.delta(epsilon)) < truth, "the control: one release alone"


def test_losses_are_stated_and_found_on_the_private_side() -> None:
    for loss, delta in ((PLAIN, 0.36), (NOISY, 0.01)):
        epsilon = loss.epsilon(delta)
        assert loss.delta(epsilon) <= delta < loss.delta(epsilon * (1 - 1e-5))
    assert (PLAIN.epsilon(0.3), PLAIN.epsilon(0.5)) == (math.inf, 0)
    assert NOISY.epsilon(1e-12) <= NOISY.pure_epsilon
    for delta in (0.0, 1.5):
        with pytest.raises(ValueError, match=r"delta=.*: .*greater than 0 and"):
            PLAIN.epsilon(delta)
    none = SmoothedLoss(GUARANTEE, obs.SamplingHistogram(rate=0.5), 0)
    assert (none.pure_epsilon, none.delta(0.0), none.epsilon(1e-9)) == (0, 0, 0)
    text = PLAIN.statement((0.1, 1.0))
    for epsilon in (0.1, 1.0):
        stated = text.split(f" at ε = {epsilon:g}")[0].split()[-1]
        delta = PLAIN.delta(epsilon)
        assert delta <= float(stated) <= 1.01 * delta
        assert float(f"{delta:.3g}") != float(stated) or float(f"{delta:.3g}") >= delta
    for part in (
        "on average over data sets of 6 independent records",
        "(0.25, 0.75); (0.625, 0.375)",
        "It says nothing of one data set",
    ):
        assert part in text


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
def test_the_loss_is_that_of_how_the_sample_is_drawn(epsilon: float) -> None:
    """The two ways are far from each other."""
    rows = [list(map(float, row)) for row in PI]
    expected = {
        how: obs.smoothed_delta(rows, 6, 0.5, epsilon, replacement=how)
        for how in ("without", "with")
    }
    assert expected["without"] != pytest.approx(expected["with"], rel=1e-2)
    for how, delta in expected.items():
        loss = SmoothedLoss(GUARANTEE, obs.SamplingHistogram(rate=0.5, replacement=how))
        assert loss.delta(epsilon) == pytest.approx(delta, rel=1e-9)


def test_more_records_lose_what_differential_privacy_says() -> None:
    """Of each way to draw; the probability that one of two is drawn, and of three."""
    for d_in in (2, 3):
        without = SmoothedLoss(GUARANTEE, obs.SamplingHistogram(rate=0.3), d_in)
        assert without.delta(0.0) == pytest.approx(min(1.0, d_in * 2 / 6))
        again = SmoothedLoss(GUARANTEE, obs.SamplingHistogram(rate=0.3, replacement="with"), d_in)
        assert again.delta(0.0) == pytest.approx(1 - (1 - d_in / 6) ** 2)
        noisy = obs.NoisySamplingHistogram(3.0, rate=0.3)
        pure = noisy.proven_loss(d_in, size=6, prior=np.ones(2)).epsilon
        loss = SmoothedLoss(GUARANTEE, noisy, d_in)
        assert loss.pure_epsilon == pure
        assert loss.delta(0.0) == pytest.approx(min(math.tanh(pure / 2), d_in * 2 / 6), rel=1e-9)
