"""A private number of records, against every data set, arrays of every count and finer parts."""

import warnings
from functools import cache

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution import numbers_and_tilts
from opendp_bayes.inference.laws import mixtures_of_counts
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
#: Noise that is wide beside the counts: the number of records is uncertain by a factor.
WIDE = {
    "one category dominates": ([217, -537, -597], [0.7, 2.0, 50.0], 350.0),
    "a large prior": ([18, -187, -67, -22], [2.0, 49.0, 75.0, 7.0], 58.0),
    "many": (np.arange(14) * 30 - 200, np.geomspace(0.7, 70, 14), 190.0),
}


@cache
def listed(name):
    return EveryCount(*LISTED[name])


@pytest.mark.parametrize("name", some_of(LISTED, 2))
def test_the_posterior_is_the_definition(name):
    found = errors(posterior(LISTED[name][0]), listed(name), range(3))
    assert max(found.values()) < ERROR
    exact = [value for kind, value in found.items() if "count" in kind or "total" in kind]
    assert max(exact) < ERROR / 5


@pytest.mark.parametrize("name", some_of(ARRAYS, 2))
def test_counts_of_some_hundreds_are_those_of_arrays_of_every_count(name):
    worst = errors(posterior(ARRAYS[name]), Dense(ARRAYS[name], 6000), range(3))
    assert max(worst.values()) < ERROR


def test_a_prior_that_is_a_tenth_off_is_seen():
    """The negative control."""
    setting, right = LISTED["equal"][0], listed("equal")
    wrong = posterior(Setting(setting.looks, 1.1 * setting.prior))
    assert errors(wrong, right)["mean"] > 10 * ERROR


@pytest.mark.parametrize("name", some_of(WIDE, 2))
def test_ends_under_wide_noise_are_those_of_many_more_parts(name, monkeypatch):
    drawn, prior, scale = WIDE[name]
    made = given_noise(drawn, prior, DiscreteLaplace(scale))
    found = made.probabilities
    with monkeypatch.context() as patched:
        patched.setattr(numbers_and_tilts, "_SKEWED", 0.03)
        patched.setattr(numbers_and_tilts, "_NEAREST", 0.03)
        patched.setattr(numbers_and_tilts, "_RARE", 1.0)
        patched.setattr(mixtures_of_counts, "_WIDTH", 0.2)
        finer = given_noise(drawn, prior, DiscreteLaplace(scale))
        right = finer.probabilities
    off = (found.mean() - right.mean()) / right.std()
    assert np.max(np.abs(off)) < ERROR
    for own, other in zip(found.interval(0.95), right.interval(0.95), strict=True):
        assert np.max(np.abs(own - other) / right.std()) < 10 * ERROR
    assert made._numbers.centres.size < finer._numbers.centres.size / 2


@pytest.mark.parametrize("prior", [[1.0, 1.0, 1.0, 1.0], [0.1, 3.0, 3.0, 0.02]])
def test_draws_are_of_the_joint_law_of_the_counts(prior):
    """Those of every count and of their sum, whose factor ties them together: by the largest
    deviation of 4000 draws from the cumulative probabilities.
    """
    found = given_noise([12, 12, 3, -4], prior, DiscreteLaplace(6.0))
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


def test_two_categories_under_narrow_laplace_noise_have_a_tilt_at_their_sum():
    """Under tilts far from it the sum varies ten times as much, and steps would be as long as the
    kink of the noise is wide: categories would not agree, which warns.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = given_noise([569, 209], np.ones(2), DiscreteLaplace(2.0))
        assert found.probabilities.mean()[0] == pytest.approx(0.731, abs=1e-3)
    means = found._numbers.moments.mean @ found._times
    assert np.abs(means - 778).min() < 4
