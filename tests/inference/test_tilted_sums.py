"""Counts with a private number of records in one tilt, against sums over all pairs."""

import numpy as np
import pytest

from opendp_bayes.inference.convolution.completions import Completions, PrivateBeside
from opendp_bayes.inference.convolution.number_of_records import private
from opendp_bayes.inference.convolution.tilt_search import balanced
from opendp_bayes.inference.convolution.tilted_sums import TiltedSums
from opendp_bayes.inference.laws.mixtures_of_counts import Bins
from tests.helpers.given_noise import categories_of, given_noise
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace

LAST = 700
PRIOR = np.array([1.0, 0.1, 5.0, 0.5])


def part(law, drawn, prior=PRIOR):
    categories = categories_of(drawn, prior, law)
    total = private(categories, None)
    tilted = balanced(categories, np.ones(4), total.most_counts, total.pull)
    origin = np.zeros(4, dtype=np.int64)
    return TiltedSums(tilted, np.ones(4, dtype=int), total, origin, (0, np.inf))


def rest_of(made, row):
    """The law of the others and the weights of numbers of records, one by one."""
    counts, law = np.arange(LAST + 1.0), np.ones(1)
    for i in set(range(4)) - {row}:
        own = np.exp(made.counts.log_probability(np.full(LAST + 1, i), counts))
        law = np.convolve(law, own)[: LAST + 1]
    return law


@pytest.mark.parametrize("law", [DiscreteLaplace(9.0), DiscreteGaussian(20.0)])
def test_what_completes_counts(law):
    made = part(law, [60, 20, 90, 40])
    bins = Bins(PRIOR.sum() - PRIOR, np.full(4, 0.2), np.full(4, 0.2))
    laws = made.sums.of(None, alone=True)
    found = PrivateBeside(made, laws, made.sums.each.outline, bins)
    counts = np.arange(150.0)
    for row in range(4):
        law_of_rest = rest_of(made, row)
        size = counts[:, None] + np.arange(LAST + 1)
        right = np.exp(made.log_size(size) - found.log_scale) * law_of_rest
        weights = found.weights(np.full(150, row), counts)
        own = np.exp(made.counts.log_probability(np.full(150, row), counts))
        law_of_count, wanted = own * weights, own * right.sum(axis=1)
        assert law_of_count == pytest.approx(wanted, abs=1e-4 * wanted.sum())
        known = found.completions(np.full(150, row), counts)
        seen = wanted > 1e-3 * wanted.max()
        mean = np.bincount(known.point, known.weight * known.mean, 150)[seen] / weights[seen]
        wanted = (right @ np.arange(LAST + 1) / right.sum(axis=1))[seen]
        assert mean == pytest.approx(wanted, rel=1e-3)
        assert mean != pytest.approx(wanted + 1, rel=1e-3)


def test_each_number_of_records_has_one_tilt():
    """Between the outermost that weigh anything."""
    found = given_noise([60, 20, 90, 40], [1.0, 0.3, 5.0, 0.5], DiscreteGaussian(300.0))._tilts
    ends = np.array([each for _, each in found])
    assert len(found) > 2
    assert np.all(ends[1:, 0] == ends[:-1, 1] + 1)
    assert np.all(ends[:, 0] <= ends[:, 1])


def test_bins_with_high_numbers_take_no_memory():
    """Of a hundred million bins, of which each of a thousand counts has three."""
    rng = np.random.default_rng(0)
    point, weight = np.repeat(np.arange(1000), 9), rng.random(9000)
    mean, bins = rng.normal(size=9000), np.tile(np.repeat([3, 40, 10**8], 3), 1000)
    found = Completions(point, weight, mean, np.ones(9000)).binned(bins)
    right = np.add.reduceat(weight, np.arange(0, 9000, 3))
    assert found.point.tolist() == np.repeat(np.arange(1000), 3).tolist()
    assert found.weight == pytest.approx(right)
    assert found.weight * found.mean == pytest.approx(
        np.add.reduceat(weight * mean, np.arange(0, 9000, 3))
    )
