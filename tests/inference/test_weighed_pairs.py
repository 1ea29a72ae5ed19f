"""Mechanisms that weigh or flip, two categories and up to 1e9 records, against sums over panels
that share no code with the package.
"""

import numpy as np
import pytest
from scipy import special

from opendp_bayes.inference.engines import TwoCategories
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential
from tests.helpers.envelope import deviations
from tests.helpers.every_data_set import EveryDataSet, gaps
from tests.helpers.sweeps import some_of
from tests.helpers.weighed_pairs import Distances, OfPairs, divergence, panels

#: The stated error: of means and standard deviations in the latter, and of probabilities.
ERROR = 1e-3
MECHANISMS = [
    HellingerExponential(0.05),
    HellingerExponential(0.5, "local"),
    SmoothHellingerExponential(1.0, gamma=0.1),
    SmoothHellingerExponential(1.0, beta=0.01),
    PermuteAndFlip(0.05),
]


def setting(rng, least, most):
    """A mechanism, a prior, a release near it, against it or in a corner, and how many records."""
    size = int(np.exp(rng.uniform(np.log(least), np.log(most))))
    sparse = 10.0 ** rng.uniform(-6, -2)
    prior = [
        np.ones(2),
        10.0 ** rng.uniform(-6, 8, 2),
        10.0 ** rng.uniform(-2, 3, 2),
        np.full(2, 10.0 ** rng.uniform(-6, 8)),
        np.array([10.0 ** rng.uniform(-1, 4), sparse]),
        np.full(2, sparse),
    ][rng.integers(6)]
    prior = prior[:: rng.choice([1, -1])].copy()
    near_zero = int(size ** rng.random())
    expected = int(size * rng.beta(*np.maximum(prior, 1e-3)))
    first = [rng.integers(size + 1), 0, size, expected, size - near_zero, near_zero]
    scale = float(10.0 ** rng.uniform(-3, 0))
    mechanism = [
        HellingerExponential(scale),
        HellingerExponential(10 * scale, "local"),
        SmoothHellingerExponential(40 * scale, gamma=float(10.0 ** rng.uniform(-2, 0))),
        SmoothHellingerExponential(40 * scale, beta=float(10.0 ** rng.uniform(-4, 0))),
        PermuteAndFlip(scale),
    ][rng.integers(5)]
    return mechanism, prior, int(first[rng.integers(6)]), size


def of_first(release, mechanism, prior, first, size, used=None):
    """What the probability and the count of the first are off by."""
    made = release(used or mechanism, (first, size - first), size, prior.tolist())
    return deviations(made.posterior._engine, OfPairs(mechanism, first, prior, size), [0])


def deviation(release, mechanism, prior, first, size, used=None):
    """The largest of those."""
    return max(of_first(release, mechanism, prior, first, size, used).values())


def test_distances_are_those_in_200_bits():
    x = np.arange(41)
    for alpha in (1e-6, 0.5, 3e4):
        found = divergence(alpha + x[:, None], alpha + x)
        assert found == pytest.approx(-gaps(alpha, 40), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_panels_are_every_data_set(mechanism):
    prior, size, released = (0.01, 3.0), 90, 61
    every, pairs = EveryDataSet(prior, size), Distances(prior, size)
    right = every.log_likelihood(mechanism, np.array([released, size - released]))
    found = [pairs.log_likelihood(mechanism, released, float(x)) for x in every.sets[::9, 0]]
    assert found == pytest.approx(right[::9], abs=1e-9)


@pytest.mark.parametrize("seed", some_of(range(4), 1))
def test_random_settings(seed, release):
    made = setting(np.random.default_rng([13, seed]), 200, 400)
    assert deviation(release, *made) <= ERROR, made


@pytest.mark.parametrize(
    ("mechanism", "prior", "first", "size"),
    [
        (PermuteAndFlip(0.10697291507894163), (3.33553637, 1.4062496e-06), 1478, 1478),
        pytest.param(
            *(HellingerExponential(0.03), (3.33553637, 1.4062496e-06), 10**9, 10**9),
            marks=pytest.mark.slow,
        ),
    ],
    ids=repr,
)
def test_all_but_a_tail_is_one_count(mechanism, prior, first, size, release):
    """The tail has a hundred-millionth of the weight, and decides the deviation. Of one with 1e-20
    what is left out is 5 % of a deviation of 1e-12.
    """
    off = of_first(release, mechanism, np.array(prior), first, size)
    left_out = 0.05 if size == 10**9 else 0.0
    assert max(off["std"], off["count std"]) <= ERROR / 10 + left_out
    assert max(off["mean"], off["count mean"], off["cdf"]) <= ERROR / 10


@pytest.mark.parametrize(
    ("mechanism", "prior", "first", "size"),
    [
        (SmoothHellingerExponential(0.1026, gamma=0.1367), (1080.5, 1080.5), 40, 39445),
        (SmoothHellingerExponential(0.553, beta=0.379), (1.32e6, 2.79e7), 7747858, 7751807),
    ],
    ids=repr,
)
@pytest.mark.slow
def test_a_width_with_kinks_and_a_prior_against_the_release(mechanism, prior, first, size, release):
    """Exponents of thousands, of which a width that is off by 1e-5 makes hundredths."""
    assert deviation(release, mechanism, np.array(prior), first, size) <= ERROR / 2


def test_a_tail_of_any_weight_decides_a_deviation():
    """Of a likelihood that is the same everywhere but at one corner."""
    size, prior = 10**5, np.array([3.0, 1e-6])
    points, log_widths = panels(0, size, [0, size])
    for depth in (5.0, 30.0, 45.0, 60.0, 90.0):
        found = TwoCategories(
            lambda counts, depth=depth: np.where(counts[:, 1] == 0, 0.0, -depth),
            [size],
            prior,
            size,
        )
        log_weights = np.where(points == size, 0.0, -depth) + log_widths
        log_weights += log_rising(points, prior[0]) + log_rising(size - points, prior[1])
        weights = special.softmax(log_weights)
        a, b = prior[0] + points, prior[1] + (size - points)
        rest = b / (a + b)
        own = weights @ (a * b / (a + b) ** 2 / (a + b + 1)), weights @ rest
        std = np.sqrt(own[0] + weights @ (rest - own[1]) ** 2)
        assert np.sqrt(found.probabilities.variance()) == pytest.approx(std, rel=1e-4)


def test_a_scale_that_is_a_twentieth_off_is_seen(release):
    """Negative control."""
    prior = np.array([1.0, 0.02])
    for kind in (HellingerExponential, SmoothHellingerExponential, PermuteAndFlip):
        assert deviation(release, kind(0.3), prior, 110, 120) <= ERROR / 10
        assert deviation(release, kind(0.3), prior, 110, 120, used=kind(0.315)) > ERROR


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_many_random_settings(block, release):
    failures = []
    for seed in range(25):
        made = setting(np.random.default_rng([14, block, seed]), 200, 10**9)
        if not (off := deviation(release, *made)) <= ERROR:
            failures.append((off, made))
    assert not failures
