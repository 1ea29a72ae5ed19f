"""Posteriors of mechanisms that weigh or flip candidates: of up to five categories against a sum
over every data set, and of two with up to 1e9 records against sums over panels. Neither shares code
with the package.
"""

import numpy as np
import pytest
from scipy import special

from opendp_bayes.inference.engines import TwoCategories
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential
from tests.helpers import oracles
from tests.helpers.envelope import deviations
from tests.helpers.every_data_set import EveryDataSet, gaps, weighed_counts
from tests.helpers.sweeps import some_of
from tests.helpers.weighed_pairs import Distances, OfPairs, divergence, panels

#: The stated error: of means and standard deviations in the latter, and of probabilities.
ERROR = 1e-3
#: Numbers of records up to which all data sets are listed here, by the number of categories.
LARGEST = {2: 400, 3: 40, 4: 16, 5: 10}


def few_records(rng, largest=LARGEST):
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


def two_categories(rng, least=200, most=10**9):
    """A mechanism, a release near its prior, against it or in a corner, and the prior."""
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
    seen = int(first[rng.integers(6)])
    return mechanism, np.array([seen, size - seen]), prior


def all_deviations(release, mechanism, released, prior, used=None, on_panels=False):
    """Of every count from a sum over every data set; or of the first from one over panels."""
    size = int(np.sum(released))
    made = release(used or mechanism, np.array(released).tolist(), size, prior.tolist())
    if on_panels:
        right, rows = OfPairs(mechanism, int(released[0]), prior, size), [0]
    else:
        right, rows = weighed_counts(mechanism, released, prior), range(prior.size)
    return deviations(made.posterior._engine, right, rows)


def deviation(*arguments, **options):
    """The largest of those."""
    return max(all_deviations(*arguments, **options).values())


@pytest.mark.parametrize("seed", range(20))
def test_random_settings(seed, release):
    made = few_records(np.random.default_rng([11, seed]), dict.fromkeys(LARGEST, 6))
    assert deviation(release, *made) <= ERROR, made


@pytest.mark.parametrize("seed", some_of(range(4), 1))
def test_random_settings_of_two_categories(seed, release):
    made = two_categories(np.random.default_rng([13, seed]), 200, 400)
    assert deviation(release, *made, on_panels=True) <= ERROR, made


@pytest.mark.parametrize("on_panels", [False, True])
def test_a_scale_that_is_a_twentieth_off_is_seen(on_panels, release):
    """Negative control."""
    released, prior = ((110, 10), np.array([1.0, 0.02])) if on_panels else ((2, 3, 1), np.ones(3))
    for kind in (HellingerExponential, SmoothHellingerExponential, PermuteAndFlip):
        of = kind(0.3), np.array(released), prior
        right = deviation(release, *of, on_panels=on_panels)
        assert right <= (ERROR / 10 if on_panels else 1e-6)
        assert deviation(release, *of, used=kind(0.315), on_panels=on_panels) > ERROR


def test_distances_in_200_bits_and_coins_in_any_order():
    mechanism, counts, prior = PermuteAndFlip(0.4), (2, 1), (0.7, 2.0)
    every = EveryDataSet(prior, 3)
    law = [
        oracles.permute_and_flip_law(tuple(row), prior, mechanism.scale).get(counts, 0.0)
        for row in every.sets.tolist()
    ]
    assert np.exp(every.log_likelihood(mechanism, counts)) == pytest.approx(law, rel=1e-12)
    x = np.arange(41)
    for alpha in (1e-6, 0.5, 3e4):
        found = divergence(alpha + x[:, None], alpha + x)
        assert found == pytest.approx(-gaps(alpha, 40), rel=1e-9, abs=1e-300)


MECHANISMS = [
    HellingerExponential(0.05),
    HellingerExponential(0.5, "local"),
    SmoothHellingerExponential(1.0, gamma=0.1),
    SmoothHellingerExponential(1.0, beta=0.01),
    PermuteAndFlip(0.05),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_the_panels_are_every_data_set(mechanism):
    prior, size, released = (0.01, 3.0), 90, 61
    every, pairs = EveryDataSet(prior, size), Distances(prior, size)
    right = every.log_likelihood(mechanism, np.array([released, size - released]))
    found = [pairs.log_likelihood(mechanism, released, float(x)) for x in every.sets[::9, 0]]
    assert found == pytest.approx(right[::9], abs=1e-9)


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
    released, prior = [first, size - first], np.array(prior)
    off = all_deviations(release, mechanism, released, prior, on_panels=True)
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
    released, prior = [first, size - first], np.array(prior)
    assert deviation(release, mechanism, released, prior, on_panels=True) <= ERROR / 2


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


#: Random settings, the first number of their seeds, blocks and how many settings are in each.
MANY = ((few_records, 12, 20, 100), (two_categories, 14, 10, 25))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "seed", "number"),
    [(made, (at, block), number) for made, at, blocks, number in MANY for block in range(blocks)],
)
def test_many_random_settings(made, seed, number, release):
    failures = []
    for each in range(number):
        setting = made(np.random.default_rng([*seed, each]))
        off = deviation(release, *setting, on_panels=made is two_categories)
        if not off <= ERROR:
            failures.append((off, setting))
    assert not failures
