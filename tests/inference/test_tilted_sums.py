"""Counts with a private number of records in one tilt, against sums over all pairs."""

import numpy as np
import pytest

from opendp_bayes.inference.convolution.completions import Completions, ListedBeside, SmoothBeside
from opendp_bayes.inference.convolution.number_of_records import private
from opendp_bayes.inference.convolution.tilt_search import NO_FADE, Fade, balanced
from opendp_bayes.inference.convolution.tilted_sums import TiltedSums
from opendp_bayes.inference.laws.mixtures_of_counts import Bins
from tests.helpers.given_noise import categories_of
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace

LAST = 700
PRIOR = np.array([1.0, 0.1, 5.0, 0.5])


def part(law, drawn, prior=PRIOR):
    categories = categories_of(drawn, prior, law)
    total = private(categories, None)
    tilted = balanced(categories, np.ones(4), total)
    origin = np.zeros(4, dtype=np.int64)
    return TiltedSums(tilted, np.ones(4, dtype=int), total, origin, NO_FADE)


def rest_of(made, row):
    """The law of the others and the weights of numbers of records, one by one."""
    counts, law = np.arange(LAST + 1.0), np.ones(1)
    for i in set(range(4)) - {row}:
        own = np.exp(made.counts.log_probability(np.full(LAST + 1, i), counts))
        law = np.convolve(law, own)[: LAST + 1]
    return law


@pytest.mark.parametrize("kind", [ListedBeside, SmoothBeside])
@pytest.mark.parametrize("law", [DiscreteLaplace(9.0), DiscreteGaussian(20.0)])
def test_what_completes_counts(kind, law):
    made = part(law, [60, 20, 90, 40])
    bins = Bins(PRIOR.sum() - PRIOR, np.full(4, 0.2), np.full(4, 0.2))
    laws = made.sums.of(None, alone=True)
    if kind is SmoothBeside:
        found = SmoothBeside(made, laws, made.sums.each.outline, bins)
    else:
        found = ListedBeside(laws, *made.listed, bins)
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


def test_fades_of_neighbours_add_up_to_one():
    sizes = np.linspace(0, 100, 1001)
    below, above = Fade(-np.inf, -np.inf, 40, 60), Fade(40, 60, np.inf, np.inf)
    assert below(sizes) + above(sizes) == pytest.approx(np.ones(1001), abs=1e-15)
    assert below(np.array([40.0, 60.0])).tolist() == [1.0, 0.0]


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
