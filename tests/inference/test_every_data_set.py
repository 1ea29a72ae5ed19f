"""Posteriors of mechanisms that weigh or flip candidates, of up to five categories, against a sum
over every data set that shares no code with the package.
"""

import numpy as np
import pytest

from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential
from tests.helpers import oracles
from tests.helpers.brute_force import EveryCount
from tests.helpers.envelope import deviations
from tests.helpers.every_data_set import EveryDataSet
from tests.helpers.noised_counts import Setting

#: The stated error: of means and standard deviations in the latter, and of probabilities.
ERROR = 1e-3
#: Numbers of records up to which all data sets are listed here, by the number of categories.
LARGEST = {2: 400, 3: 40, 4: 16, 5: 10}


def setting(rng, largest=LARGEST):
    """A mechanism, a prior, and a release from the model or against it."""
    k = int(rng.integers(2, 6))
    size = int(np.exp(rng.uniform(0, np.log(largest[k] + 1))))
    prior = [
        np.ones(k),
        10.0 ** rng.uniform(-6, 8, k),
        10.0 ** rng.uniform(-2, 3, k),
        np.full(k, 10.0 ** rng.uniform(-6, 8)),
    ][rng.integers(4)]
    theta = rng.dirichlet(np.maximum(prior, 1e-2))
    corner = np.zeros(k, dtype=np.int64)
    corner[rng.integers(k)] = size
    released = [
        rng.multinomial(size, theta / theta.sum()),
        rng.multinomial(size, np.full(k, 1 / k)),
        corner,
    ][rng.integers(3)]
    scale = float(10.0 ** rng.uniform(-2.5, 1.5))
    mechanism = [
        HellingerExponential(scale / 10),
        HellingerExponential(scale, "local"),
        SmoothHellingerExponential(scale, gamma=float(10.0 ** rng.uniform(-2, 0.5))),
        SmoothHellingerExponential(scale, beta=float(10.0 ** rng.uniform(-4, 0))),
        PermuteAndFlip(scale / 10),
    ][rng.integers(5)]
    return mechanism, released, prior


def deviation(release, mechanism, released, prior, used=None):
    size = int(released.sum())
    found = release(used or mechanism, released.tolist(), size, prior.tolist())
    every = EveryDataSet(prior, size)
    right = EveryCount(
        Setting((), prior, size), None, lambda _: every.log_likelihood(mechanism, released)
    )
    return max(deviations(found.posterior._engine, right, range(prior.size)).values())


@pytest.mark.parametrize("seed", range(20))
def test_random_settings(seed, release):
    made = setting(np.random.default_rng([11, seed]), dict.fromkeys(LARGEST, 6))
    assert deviation(release, *made) <= ERROR, made


def test_a_scale_that_is_a_twentieth_off_is_seen(release):
    """Negative control."""
    released, prior = np.array([2, 3, 1]), np.ones(3)
    for kind in (HellingerExponential, SmoothHellingerExponential, PermuteAndFlip):
        assert deviation(release, kind(0.3), released, prior) <= 1e-6
        assert deviation(release, kind(0.3), released, prior, used=kind(0.315)) > ERROR


def test_permute_and_flip_by_the_integral_is_the_first_head_in_any_order():
    mechanism, counts, prior = PermuteAndFlip(0.4), (2, 1), (0.7, 2.0)
    every = EveryDataSet(prior, 3)
    law = [
        oracles.permute_and_flip_law(tuple(row), prior, mechanism.scale).get(counts, 0.0)
        for row in every.sets.tolist()
    ]
    assert np.exp(every.log_likelihood(mechanism, counts)) == pytest.approx(law, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_random_settings(block, release):
    failures = []
    for seed in range(100):
        made = setting(np.random.default_rng([12, block, seed]))
        if not (off := deviation(release, *made)) <= ERROR:
            failures.append((off, made))
    assert not failures
