"""Draws of counts given their sum, against the law of every count."""

import numpy as np
import pytest

from opendp_bayes.inference.convolution import draws_given_sum
from opendp_bayes.inference.convolution.draws_given_sum import DrawsGivenSum
from tests.helpers.given_noise import given_noise
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace
from tests.helpers.sweeps import some_of
from tests.inference.test_sums import convolved, numbers

DRAWS = 20_000
#: Kolmogorov's distance, which draws of the right law exceed with probability 2 exp(-2 * 2.5^2), or
#: 7.5e-6.
LARGEST = 2.5 / np.sqrt(DRAWS)


@pytest.mark.parametrize("total", [50, *some_of([40, 65], 1)])
@pytest.mark.parametrize("law", some_of([DiscreteLaplace(3.0), DiscreteGaussian(2.0)], 1))
@pytest.mark.parametrize("rounds", [200, 0], ids=["rejection", "weights"])
def test_each_count_has_its_law_given_the_sum(rounds, law, total, monkeypatch):
    """By rejection, and where that takes too long, by weights."""
    monkeypatch.setattr(draws_given_sum, "_ROUNDS", rounds)
    draws = DRAWS if rounds else DRAWS // 20
    known, (laws,), last = numbers(law, [5, 0, 9, 40], [1.0, 0.1, 5.0, 0.5], total)
    counts = DrawsGivenSum(known, np.arange(4)).of(np.full(draws, total), np.random.default_rng(1))
    assert np.all(counts >= 0)
    assert np.all(counts.sum(axis=1) == total)
    for i in range(4):
        rest = convolved([*laws[:i], *laws[i + 1 :]], max(last, total))
        own = np.append(laws[i], np.zeros(max(total - last, 0)))[: total + 1]
        right = own * np.append(rest, np.zeros(max(total + 1 - rest.size, 0)))[total::-1]
        above = np.cumsum(right / right.sum())
        found = np.cumsum(np.bincount(counts[:, i], minlength=total + 1)) / draws
        assert np.max(np.abs(found - above)) < LARGEST * np.sqrt(DRAWS / draws)
        if total == 50 and i == 3 and rounds:
            free = np.cumsum(own)  # the law without the sum is another
            assert np.max(np.abs(found - free)) > 2 * LARGEST


def test_equal_laws_come_in_the_order_of_their_categories():
    """The sum of all is kept, and no two columns are one."""
    prior, noise = (1.0, 0.5, 1.0, 1.0, 0.5), DiscreteLaplace(3.0)
    made = given_noise((5, 9, 5, 5, 9), prior, noise, size=35)
    drawn = made.sample(DRAWS, np.random.default_rng(2))
    assert np.all(drawn.sum(axis=1) == 35)
    alike = np.abs(drawn[:, 0][:, None] - drawn[:, [2, 3]]).sum(axis=0)
    assert np.all(alike > DRAWS)
    means = drawn.mean(axis=0)
    error = 5 * drawn.std(axis=0).max() * np.sqrt(2 / DRAWS)  # exceeded with probability 6e-7
    assert np.ptp(means[[0, 2, 3]]) < error
    assert np.ptp(means[[1, 4]]) < error
    assert means[0] + error < means[1]


def test_a_group_that_equals_a_sum_of_others_is_drawn_beside_them():
    """Of two pairs of equal laws, one pair is a group and the others are wanted alone."""
    made = given_noise((5, 5, 9, 9), (1.0,) * 4, DiscreteLaplace(3.0), size=28)
    drawn = made.sample_sums([[0, 2], [1], [3]], DRAWS, np.random.default_rng(3))
    assert np.all(drawn.sum(axis=1) == 28)
    means, law = made.counts.mean(), made.counts.std()
    error = 5 * law.max() * np.sqrt(2 / DRAWS)  # exceeded with probability 6e-7
    assert np.abs(drawn.mean(axis=0) - [means[0] + means[2], means[1], means[3]]).max() < error
