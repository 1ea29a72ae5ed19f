"""Laws of sums, of all but each, and of some, against `np.convolve` of every count."""

import numpy as np
import pytest

from opendp_bayes.inference.convolution import sums as module
from opendp_bayes.inference.convolution.sums import Sums, part_of
from opendp_bayes.inference.convolution.tilted_counts import TiltedCounts
from tests.helpers.given_noise import categories_of
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace

CASES = [
    (DiscreteLaplace(3.0), [5, 0, 9, 40], [1.0, 0.1, 5.0, 0.5]),
    (DiscreteGaussian(2.0), [5, 0, 9, 40], [1.0, 0.1, 5.0, 0.5]),
    (DiscreteLaplace(60.0), [500, 900, 300, 0], [1.0, 2.0, 5.0, 0.5]),
    (DiscreteLaplace(200.0), [0, 0, 0, 3000], [0.3, 0.3, 0.5, 1.0]),
]
#: How often each count is there.
TIMES = [np.array([1, 1, 1, 1]), np.array([2, 1, 3, 1])]


def sums(law, drawn, prior, times=TIMES[0]):
    categories = categories_of(drawn, prior, law)
    last = int(2 * max(times @ np.maximum(drawn, 0), 50))
    tilted = TiltedCounts.of(categories, -1e-3, last)
    counts = np.arange(last + 1.0)
    laws = [np.exp(tilted.log_probability(np.full(last + 1, i), counts)) for i in range(len(drawn))]
    return Sums(tilted, times, 0, last), laws, last


def convolved(laws, last):
    found = np.ones(1)
    for law in laws:
        found = np.convolve(found, law)[: last + 1]
    return found


def distance(found, right):
    """The largest difference of cumulative probabilities."""
    return np.max(np.abs(np.cumsum(found) - np.cumsum(right)))


def several(laws, times):
    return [law for law, number in zip(laws, times, strict=True) for _ in range(number)]


@pytest.mark.parametrize("times", TIMES, ids=["once", "several times"])
@pytest.mark.parametrize(("law", "drawn", "prior"), CASES)
def test_the_sum_of_all_and_of_all_but_each(law, drawn, prior, times):
    made, laws, last = sums(law, drawn, prior, times)
    row, counts = np.zeros(last + 1, dtype=int), np.arange(last + 1.0)
    all_of_them = convolved(several(laws, times), last)
    assert distance(made.of([made.all]).density(row, counts), all_of_them) < 5e-4
    beside = made.of(None)
    for i in range(4):
        rest = beside.density(row + i, counts)
        right = convolved(several(laws, times - (np.arange(4) == i)), last)
        assert distance(rest, right) < 5e-4
        assert distance(rest, all_of_them) > 1e-3  # that of all is another


@pytest.mark.parametrize(("law", "drawn", "prior"), CASES)
def test_the_sums_of_some(law, drawn, prior):
    made, laws, last = sums(law, drawn, prior, TIMES[1])
    parts = [np.array([2, 0, 1, 0]), np.array([0, 1, 0, 0]), np.array([1, 1, 3, 1])]
    found = made.of([part_of(each) for each in parts])
    counts = np.arange(last + 1.0)
    for at, each in enumerate(parts):
        own = found.density(np.full(last + 1, at), counts)
        assert distance(own, convolved(several(laws, each), last)) < 1e-4


def test_far_tails_keep_their_digits_relative_to_the_largest():
    made, laws, last = sums(*CASES[1])
    row, counts = np.zeros(last + 1, dtype=int), np.arange(last + 1.0)
    whole = made.of([made.all]).density(row, counts)
    right = convolved(laws, last)
    seen = right > 1e-9 * right.max()
    assert whole[seen] == pytest.approx(right[seen], rel=1e-4)


def test_counts_that_nothing_is_needed_of_are_cut():
    """Of a sum of at most 60, with others of at least 40, no count goes on for long above 20."""
    categories = categories_of([3, 40], [1.0, 50.0], DiscreteLaplace(0.5))
    tilted = TiltedCounts.of(categories, 0.0, 4000)
    free = categories_of([3, 40], [1.0, 50.0], DiscreteLaplace(0.5), [False, True])
    wide = TiltedCounts.of(free, -1e-3, 4000)
    assert Sums(tilted, TIMES[0][:2], 0, 4000).each.outline.high[0] > 20
    assert wide.ends[1][0] > 1000
    assert Sums(wide, TIMES[0][:2], 60, 60).each.outline.high[0] < 60


def test_the_fourth_cumulants_of_many_counts_do_not_add_up(monkeypatch):
    """A thousand on a lattice that is longer than each of them is wide: the density of their sum
    is that of finer ones to 1e-4, and without finer lattices for the counts it would not be.
    """
    rng = np.random.default_rng(0)
    categories = categories_of(rng.integers(400, 900, 20), np.ones(20), DiscreteLaplace(60.0))
    tilted = TiltedCounts.of(categories, 0.0, 100_000)
    times, off = np.full(20, 50), {}
    row, at = np.zeros(9, dtype=int), tilted.mean @ times + 1000.0 * np.arange(-4, 5)

    def densities(**values):
        with monkeypatch.context() as patched:
            for name, value in values.items():
                patched.setattr(module, name, value)
            made = Sums(tilted, times, 0, 10**7)
            return made.of([made.all]).density(row, at)

    right = densities(_STEP=0.01)
    for name, cumulant in (("finer", module._CUMULANT), ("as long", 1e9)):
        off[name] = np.max(np.abs(densities(_CUMULANT=cumulant) / right - 1))
    assert off["finer"] < 3e-4
    assert off["as long"] > 3e-3
