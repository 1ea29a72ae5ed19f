"""Laws of integer noise: formulas against each other, and simulated draws against the law."""

import numpy as np
import pytest
from scipy.special import logsumexp

from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from tests.helpers import oracles

NOISE = [
    *(law(scale) for law in (DiscreteLaplace, FlooredLaplace) for scale in (0.4, 1.5, 7.0)),
    *(DiscreteGaussian(scale) for scale in (0.4, 1.5, 7.0)),
]
VALUES = np.arange(-6, 7)


@pytest.mark.parametrize("noise", NOISE, ids=repr)
def test_ratios_are_those_of_the_masses(noise: DiscreteLaplace | FlooredLaplace) -> None:
    """And little less would not do."""
    origin, step = np.meshgrid(VALUES, VALUES)
    found = noise.log_ratio(origin, step)
    assert found == pytest.approx(noise.log_mass(origin + step) - noise.log_mass(origin), abs=1e-9)
    all_values = np.arange(-noise.reach(60.0), noise.reach(60.0) + 1)
    log_mass = noise.log_mass(all_values)
    assert logsumexp(log_mass) == pytest.approx(0, abs=1e-13)
    for value in range(-3, 4):
        for tail, seen in (
            (noise.log_at_most, all_values <= value),
            (noise.log_at_least, all_values >= value),
        ):
            assert float(tail(value)) == pytest.approx(logsumexp(log_mass[seen]), abs=1e-12)
    reach, largest = noise.reach(30.0), float(noise.log_mass(0))
    assert max(noise.log_mass([-reach - 1, reach + 1])) < largest - 30
    assert max(noise.log_mass([2 - reach, reach - 2])) > largest - 30
    drawn = noise.simulate((2, 10_000), np.random.default_rng(1)).ravel()
    law = dict(zip(range(-40, 41), np.exp(noise.log_mass(np.arange(-40, 41))), strict=True))
    assert not oracles.rejects(drawn.tolist(), law)
    moved = {value + 1: probability for value, probability in law.items()}
    assert oracles.rejects(drawn.tolist(), moved)
