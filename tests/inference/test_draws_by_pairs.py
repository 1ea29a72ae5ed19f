"""Draws of counts given their sum, against the law of every count."""

import numpy as np
import pytest

from opendp_bayes.inference.convolution.draws_by_pairs import DrawsByPairs
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace
from tests.inference.test_sums_by_pairs import convolved, sums

DRAWS = 20_000
#: Kolmogorov's distance, which draws of the right law exceed with probability 2 exp(-2 * 2.5^2), or
#: 7.5e-6.
LARGEST = 2.5 / np.sqrt(DRAWS)


@pytest.mark.parametrize("total", [40, 50, 65])
@pytest.mark.parametrize("law", [DiscreteLaplace(3.0), DiscreteGaussian(2.0)])
def test_each_count_has_its_law_given_the_sum(law, total):
    made, laws, last = sums(law, [5, 0, 9, 40], [1.0, 0.1, 5.0, 0.5])
    size = np.full(DRAWS, total)
    drawn = DrawsByPairs(made).of(size, [0, 1, 2, 3], np.random.default_rng(1))
    counts = np.stack([drawn[i][0] for i in range(4)])
    assert np.all(counts >= 0)
    assert np.all(counts.sum(axis=0) == total)
    for i in range(4):
        rest = convolved(laws[:i] + laws[i + 1 :], last)
        right = laws[i][: total + 1] * rest[total::-1]
        above = np.cumsum(right / right.sum())
        found = np.cumsum(np.bincount(counts[i], minlength=total + 1)) / DRAWS
        assert np.max(np.abs(found - above)) < LARGEST
        if total == 50 and i == 3:
            free = np.cumsum(laws[i][: total + 1])  # the law without the sum is another
            assert np.max(np.abs(found - free)) > 2 * LARGEST
