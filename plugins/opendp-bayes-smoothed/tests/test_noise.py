"""The profiles of a noised sample against the definition in rational arithmetic."""

import math
from fractions import Fraction

import definitions
import numpy as np
import pytest

from opendp_bayes_smoothed.noise import (
    _noised_laws,
    hockey_stick,
    log_noised_profiles,
    noise_kernel,
)
from tests.helpers import oracles


@pytest.mark.parametrize(
    ("size", "samples", "scale", "k", "largest"), [(3, 3, 0.5, 2, 15), (2, 1, 0.4, 3, 5)]
)
def test_the_noised_histogram_equals_the_definition(size, samples, scale, k, largest):
    """All counts of at least T for one outcome, against so many that hardly any is left out."""
    law = definitions.noised(samples, Fraction(math.exp(-1 / scale)), largest)
    for epsilon in (0.1, 0.6):
        logs = log_noised_profiles(size, samples, k, scale, epsilon)
        for x, log_delta in zip(oracles.data_sets(size, k), logs, strict=True):
            truth = definitions.profile(law, x, epsilon)
            left_out = k * math.exp(-(largest - samples) / scale)
            above = truth * Fraction(1 + 1e-9) + Fraction(left_out)
            assert truth <= Fraction(math.exp(log_delta)) <= above
            alone = definitions.profile(definitions.drawn(samples), x, epsilon)
            assert truth < alone, "the control: sampling without the noise is far above"


def test_the_kernel_is_a_law_and_errors_are_counted() -> None:
    """Negative control: the δ of 10 % less noise is above, that of 10 % more below. And the
    roundings of a sum over the samples between them. With probabilities too low by their error:
    still a bound, at every outcome.
    """
    own, less, more = (log_noised_profiles(8, 5, 2, scale, 0.2) for scale in (2.0, 1.8, 2.2))
    assert np.all(less > own)
    assert np.all(more < own)
    kernel = noise_kernel(6, 2, 1.7)
    assert kernel.shape == (7, 49)
    assert kernel.sum(axis=1) == pytest.approx(np.ones(7), rel=1e-13)
    assert log_noised_profiles(2000, 1000, 2, 2.0, 0.5) is None
    assert log_noised_profiles(10**6, 10, 3, 2.0, 0.5) is None
    for samples in (3, 30):
        _, error = _noised_laws(40, samples, 2, 5.0)
        assert error >= 2.0**-35 + (samples + 1) * 2.0**-51 + 2 * 2.0**-49 * samples / 5
    rng = np.random.default_rng(0)
    for error in (1e-3, 1e-9):
        seen = []
        for p, q in rng.dirichlet(np.ones(6), (50, 2)):
            wrong = p * (1 - error) / (1 + 1e-12), q * (1 + error) / (1 - 1e-12)
            for epsilon in (0.0, 0.5):
                truth = np.maximum(p - math.exp(epsilon) * q, 0).sum()
                assert truth <= hockey_stick(*wrong, epsilon, 1.01 * error)
                seen.append(hockey_stick(*wrong, epsilon, 0.0) < truth)
        assert any(seen), "the control"


@pytest.mark.parametrize("outcomes", [1, 5, 300])
def test_the_roundings_of_a_sum_are_counted(outcomes: int) -> None:
    """One of each outcome, and two more."""
    found = hockey_stick(np.ones(outcomes), np.zeros(outcomes), 1.0, 0.0)
    assert Fraction(found) >= outcomes * (1 + Fraction(outcomes + 2, 2**50))


def test_a_large_epsilon_leaves_what_the_neighbour_cannot_have() -> None:
    p, q = np.array([0.5, 0.5]), np.array([0.0, 1.0])
    assert hockey_stick(p, q, math.inf, 0.0) == pytest.approx(0.5)
    assert hockey_stick(p, np.array([1e-3, 0.999]), 700.0, 0.0) < 1e-250
