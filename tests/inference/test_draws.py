"""Draws of the true counts against their marginals, which other tests compare with exact ones."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution import draws_given_sum
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from tests.helpers.given_noise import given_noise
from tests.helpers.sweeps import slow

#: Of a false alarm of one test.
LEVEL = 1e-4
DRAWS = 4000
MANY_DRAWS = 20_000
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


@pytest.mark.parametrize("name", slow(SETTINGS, but=QUICK))
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


@pytest.mark.parametrize(("rounds", "draws"), [(200, MANY_DRAWS), (0, 1000)])
def test_many_draws_and_those_by_weights_have_the_marginals(rounds, draws, monkeypatch):
    """By rejection, and where that takes too long, by weights."""
    monkeypatch.setattr(draws_given_sum, "_ROUNDS", rounds)
    rng = np.random.default_rng(1)
    found = given_noise((5, 0, 9, 40), (1.0, 0.1, 5.0, 0.5), DiscreteLaplace(3.0), size=50)
    counts = found.sample(draws, rng)
    assert np.all(counts.sum(axis=1) == 50)
    assert p_values(found, counts, rng, range(4)).min() > LEVEL / 5


def test_equal_laws_and_groups_that_equal_sums_are_drawn_in_order():
    """The sum of all is kept, and no two columns are one. Of two pairs of equal laws, one pair
    is a group and the others are wanted alone.
    """
    prior, noise = (1.0, 0.5, 1.0, 1.0, 0.5), DiscreteLaplace(3.0)
    made = given_noise((5, 9, 5, 5, 9), prior, noise, size=35)
    drawn = made.sample(MANY_DRAWS, np.random.default_rng(2))
    assert np.all(drawn.sum(axis=1) == 35)
    alike = np.abs(drawn[:, 0][:, None] - drawn[:, [2, 3]]).sum(axis=0)
    assert np.all(alike > MANY_DRAWS)
    means = drawn.mean(axis=0)
    error = 5 * drawn.std(axis=0).max() * np.sqrt(2 / MANY_DRAWS)  # exceeded with 6e-7
    assert np.ptp(means[[0, 2, 3]]) < error
    assert np.ptp(means[[1, 4]]) < error
    assert means[0] + error < means[1]
    made = given_noise((5, 5, 9, 9), (1.0,) * 4, DiscreteLaplace(3.0), size=28)
    drawn = made.sample_sums([[0, 2], [1], [3]], MANY_DRAWS, np.random.default_rng(3))
    assert np.all(drawn.sum(axis=1) == 28)
    means, law = made.counts.mean(), made.counts.std()
    error = 5 * law.max() * np.sqrt(2 / MANY_DRAWS)  # exceeded with probability 6e-7
    assert np.abs(drawn.mean(axis=0) - [means[0] + means[2], means[1], means[3]]).max() < error
