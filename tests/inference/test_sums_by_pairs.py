"""Laws of sums, and of the sums of all but each, against `np.convolve` of every count."""

import numpy as np
import pytest

from opendp_bayes.inference.convolution.plan_of_sums import PlanOfSums
from opendp_bayes.inference.convolution.sums_by_pairs import SumsByPairs
from opendp_bayes.inference.convolution.tilted_counts import TiltedCounts
from tests.helpers.given_noise import categories_of
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace

CASES = [
    (DiscreteLaplace(3.0), [5, 0, 9, 40], [1.0, 0.1, 5.0, 0.5]),
    (DiscreteGaussian(2.0), [5, 0, 9, 40], [1.0, 0.1, 5.0, 0.5]),
    (DiscreteLaplace(60.0), [500, 900, 300, 0], [1.0, 2.0, 5.0, 0.5]),
    (DiscreteLaplace(200.0), [0, 0, 0, 3000], [0.01, 0.01, 0.05, 1.0]),
]


def sums(law, drawn, prior):
    categories = categories_of(drawn, prior, law)
    last = int(2 * max(sum(drawn), 50))
    tilted = TiltedCounts.of(categories, -1e-3, last)
    plan = PlanOfSums.of(np.arange(len(drawn)), np.sqrt(tilted.variance))
    counts = np.arange(last + 1.0)
    laws = [np.exp(tilted.log_probability(np.full(last + 1, i), counts)) for i in range(4)]
    return SumsByPairs(tilted, plan, 0, last), laws, last


def convolved(laws, last):
    found = np.ones(1)
    for law in laws:
        found = np.convolve(found, law)[: last + 1]
    return found


def distance(found, right):
    """The largest difference of cumulative probabilities."""
    return np.max(np.abs(np.cumsum(found) - np.cumsum(right)))


@pytest.mark.parametrize(("law", "drawn", "prior"), CASES)
def test_the_sum_of_all_and_of_all_but_each(law, drawn, prior):
    made, laws, last = sums(law, drawn, prior)
    row, counts = np.zeros(last + 1, dtype=int), np.arange(last + 1.0)
    whole = made.laws.composite(np.array([made.plan.root])).density(row, counts)
    assert distance(whole, convolved(laws, last)) < 1e-4
    for i in range(4):
        rest = made.beside(np.array([i])).density(row, counts)
        right = convolved(laws[:i] + laws[i + 1 :], last)
        assert distance(rest, right) < 1e-4
        assert distance(rest, convolved(laws, last)) > 1e-3  # that of all is another


def test_far_tails_keep_their_digits_relative_to_the_largest():
    made, laws, last = sums(*CASES[1])
    row, counts = np.zeros(last + 1, dtype=int), np.arange(last + 1.0)
    whole = made.laws.composite(np.array([made.plan.root])).density(row, counts)
    right = convolved(laws, last)
    seen = right > 1e-9 * right.max()
    assert whole[seen] == pytest.approx(right[seen], rel=1e-4)
