"""A private number of records: sums over one number q, and sums under tilts where counts are spread
over too many numbers, against every data set.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution import counts_given_noise, counts_given_q
from opendp_bayes.inference.convolution.counts_given_q import TooWideError, _spread
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from tests.helpers.brute_force import EveryCount
from tests.helpers.dense_counts import Dense
from tests.helpers.envelope import errors, posterior
from tests.helpers.given_noise import given_noise
from tests.helpers.noised_counts import Look, Setting
from tests.helpers.oracles import FALSE_ALARM
from tests.helpers.sweeps import some_of

ERROR = 1e-3
LAPLACE, FLOORED = Look("laplace", 1.5, [3, 0, -2]), Look("floored", 0.8, [1, 0, 2])
#: Settings that can be listed, and the largest count that matters.
LISTED = {
    "equal": (Setting((LAPLACE,), np.ones(3)), 44),
    "sparse": (Setting((LAPLACE,), np.full(3, 1e-3)), 44),
    "unequal, looks": (
        Setting((FLOORED, Look("gaussian", 2.5, [2, 1, 1])), np.array([0.5, 3.0, 20.0])),
        40,
    ),
    "alike": (Setting((Look("laplace", 2.0, [4, 4, 1]),), np.array([0.5, 0.5, 2.0])), 50),
}
#: Of arrays of every count.
ARRAYS = {
    "lattices": Setting((Look("laplace", 30.0, [900, 700, 1100, 800]),), np.ones(4)),
    "a prior that ties counts": Setting((Look("laplace", 15.0, [113, 2, 73]),), np.full(3, 216.0)),
    "few in the others": Setting((Look("gaussian", 9.0, [700, 3, -8]),), np.array([1.0, 0.2, 2.0])),
    "many": Setting((Look("laplace", 4.0, np.arange(30) % 7 * 5 - 3),), np.full(30, 0.7)),
}


@cache
def listed(name):
    return EveryCount(*LISTED[name])


def by_tilts(monkeypatch):
    """Have nothing served by sums over q."""

    def refused(*_):
        raise TooWideError

    monkeypatch.setattr(counts_given_noise, "CountsGivenQ", refused)


@pytest.mark.parametrize(("name", "way"), some_of(product(LISTED, ["sums over q", "tilts"]), 2))
def test_both_ways_are_the_definition(name, way, monkeypatch):
    setting, _ = LISTED[name]
    if way == "tilts":
        by_tilts(monkeypatch)
    found = posterior(setting)
    assert (found._private is None) == (way == "tilts")
    right = listed(name)
    assert max(errors(found, right, range(3)).values()) < ERROR
    if way == "sums over q":
        found = errors(found, right, range(3))
        exact = [value for kind, value in found.items() if "count" in kind or "total" in kind]
        assert max(exact) < 1e-6


@pytest.mark.parametrize("name", some_of(ARRAYS, 2))
def test_counts_of_some_hundreds_are_those_of_arrays_of_every_count(name):
    found = posterior(ARRAYS[name])
    assert found._private is not None
    worst = errors(found, Dense(ARRAYS[name], 6000), range(3))
    assert max(worst.values()) < ERROR / 2


def test_a_prior_that_is_a_tenth_off_is_seen():
    """The negative control."""
    setting, right = LISTED["equal"][0], listed("equal")
    wrong = posterior(Setting(setting.looks, 1.1 * setting.prior))
    assert errors(wrong, right)["mean"] > 10 * ERROR


def test_counts_that_are_spread_over_too_many_numbers_have_tilts(monkeypatch):
    drawn, prior = [3000, -500, 4000], [1.0, 0.5, 2.0]
    assert given_noise(drawn, prior, DiscreteLaplace(800.0))._private is None
    near = given_noise([30, -5, 40], prior, DiscreteLaplace(8.0))
    assert near._private is not None
    monkeypatch.setattr(counts_given_q, "_LONGEST", 100)
    assert given_noise([30, -5, 40], prior, DiscreteLaplace(8.0))._private is None


def wide(number):
    """Many categories whose noise is wider than their counts."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(20 * number, rng.dirichlet(np.ones(number)))
    drawn = counts + np.rint(rng.laplace(0, 50, number)).astype(np.int64)
    return given_noise(drawn, np.ones(number), DiscreteLaplace(50.0))


def test_many_categories_under_wide_noise_need_no_tilts():
    assert wide(1000)._private is not None


@pytest.mark.slow
def test_many_categories_under_wide_noise_are_what_they_are_by_tilts(monkeypatch):
    found = wide(1000)
    by_tilts(monkeypatch)
    right = wide(1000)
    deviation = right.probabilities.std()
    off = (found.probabilities.mean() - right.probabilities.mean()) / deviation
    assert np.max(np.abs(off)) < ERROR
    assert found.probabilities.std() == pytest.approx(deviation, rel=ERROR)
    ends = zip(found.probabilities.interval(0.95), right.probabilities.interval(0.95), strict=True)
    assert max(np.max(np.abs(own - other) / deviation) for own, other in ends) < 2 * ERROR
    off = found.records.mean() - right.records.mean()
    assert np.abs(off[0]) < ERROR * right.records.std()[0]


def test_sums_with_other_means_than_their_counts_are_not_used(monkeypatch):
    """Powers that leave the floating-point numbers would move them by deviations."""
    drawn, prior, noise = [5559, 917, 1469, 370, 556], [55.5] * 5, DiscreteLaplace(214.156)
    found = given_noise(drawn, prior, noise)
    assert found._private is not None
    monkeypatch.setattr(counts_given_q, "_DIGITS", 1e9)
    with np.errstate(all="ignore"):
        right = given_noise(drawn, prior, noise)
    assert right._private is None
    deviation = right.probabilities.std()
    off = (found.probabilities.mean() - right.probabilities.mean()) / deviation
    assert np.max(np.abs(off)) < ERROR
    assert found.probabilities.std() == pytest.approx(deviation, rel=ERROR)
    assert found.records.mean() == pytest.approx(right.records.mean(), rel=1e-5)


@pytest.mark.parametrize("prior", [[1.0, 1.0, 1.0, 1.0], [0.1, 3.0, 3.0, 0.02]])
def test_draws_are_of_the_joint_law_of_the_counts(prior):
    """Those of every count and of their sum, whose factor ties them together: by the largest
    deviation of 4000 draws from the cumulative probabilities.
    """
    found = given_noise([12, 12, 3, -4], prior, DiscreteLaplace(6.0))
    assert found._private is not None
    drawn = found.sample(4000, np.random.default_rng(1))
    laws = [found.counts.chosen(np.array([i])) for i in range(4)]
    columns = [*zip(drawn.T, laws, strict=True), (drawn.sum(axis=1), found.records)]
    most = stats.kstwo.isf(FALSE_ALARM / len(columns), len(drawn))
    for own, law in columns:
        at = np.arange(own.max() + 1)
        empirical = np.searchsorted(np.sort(own), at, side="right") / own.size
        assert np.max(np.abs(empirical - law.cdf(at[:, None])[:, 0])) < most
        # Draws that are two records higher are noticed.
        moved = np.searchsorted(np.sort(own + 2), at, side="right") / own.size
        assert np.max(np.abs(moved - law.cdf(at[:, None])[:, 0])) > most


def test_masses_on_a_lattice_keep_their_moments_up_to_the_third():
    law = np.random.default_rng(0).random(37)
    places, spread = np.arange(37), _spread(law, 8)
    points = 8 * (np.arange(spread.size) - 1)
    for power in range(4):
        assert spread @ points.astype(float) ** power == pytest.approx(law @ places**power)
    assert spread @ points.astype(float) ** 4 != pytest.approx(law @ places**4)
