"""Draws of the true counts against their marginals, which other tests compare with exact ones."""

import numpy as np
import pytest
from scipy import stats

from tests.helpers.given_noise import given_noise
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace

#: Of a false alarm of one test.
LEVEL = 1e-4
DRAWS = 4000
FEWER_DRAWS = 1500  # where a probability of the law takes long


def p_values(found, counts, rng, categories):
    """Of uniform ranks of the draws in the marginals and in the law of the number of records, ties
    broken at random.
    """
    values = []
    asked = [(found.counts.chosen(np.array([i])), counts[:, i : i + 1]) for i in categories]
    for law, at in [*asked, (found.records, counts.sum(axis=1, keepdims=True))]:
        low, high = law.cdf(at - 1)[:, 0], law.cdf(at)[:, 0]
        ranks = low + rng.random(len(at)) * (high - low)
        values.append(stats.kstest(ranks, "uniform").pvalue)
    return np.array(values)


SETTINGS = {
    "sparse": ((40_000, 400_000, 560_000, 3, 2), (0.3,) * 5, DiscreteLaplace(1e6), 10**6, None),
    "against the model": ((10, 10, 10), (1e-4, 1, 1), DiscreteLaplace(1.0), 10**9, None),
    "private": ((30, 12, 0), (1, 0.1, 2), DiscreteLaplace(10.0), None, stats.poisson(2000)),
    "flat": ((12, 12, 3, -4), (0.1, 3.0, 3.0, 0.02), DiscreteLaplace(6.0), None, None),
    "two": ((30, 12), (1, 1), DiscreteGaussian(10.0), 50, None),
    "alike": ((3,) * 40, (0.5,) * 40, DiscreteLaplace(2.0), 150, None),
}


#: Of a public and of a private number of records.
QUICK = ("sparse", "flat")


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x not in QUICK)) for x in SETTINGS]
)
def test_draws_have_the_marginals(name):
    drawn, prior, noise, size, records_prior = SETTINGS[name]
    rng = np.random.default_rng(0)
    found = given_noise(drawn, prior, noise, size=size, records_prior=records_prior)
    counts = found.sample(DRAWS if name == "alike" else FEWER_DRAWS, rng)
    assert counts.min() >= 0
    if size is not None:
        assert np.all(counts.sum(axis=1) == size)
    categories = range(min(len(drawn), 5))
    assert p_values(found, counts, rng, categories).min() > LEVEL / (len(categories) + 1)


def test_another_scale_is_noticed():
    """Negative control: noise that is a third wider."""
    drawn, prior, noise, size, _ = SETTINGS["alike"]
    rng = np.random.default_rng(0)
    found = given_noise(drawn, prior, noise, size=size)
    wider = given_noise(drawn, prior, DiscreteLaplace(2.7), size=size)
    assert p_values(found, wider.sample(DRAWS, rng), rng, [0]).min() < LEVEL
