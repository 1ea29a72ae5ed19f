"""What the user of a posterior sees: shapes, agreement between its answers, seeds, errors."""

import copy
import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.inference import engines
from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet
from tests.helpers.by_chains import by_chains
from tests.helpers.releases import guarantee
from tests.helpers.sweeps import some_of

#: Standard errors that an estimate from draws may be off; further with probability 6e-7.
STANDARD_ERRORS = 5.0


@pytest.fixture
def three(release):
    return release(ob.LaplaceParameters(8.0), (60, 30, 10), 100).posterior


@pytest.fixture(scope="module")
def chained():
    labels, prior, mechanism = ("a", "b", "c"), (1.0,) * 3, ob.KNormParameters(100.0)
    return by_chains(ob.Release((600, 390, 10), labels, prior, mechanism, guarantee(1000)))


@pytest.mark.parametrize(
    ("counts", "alpha"),
    some_of(product([(0, 50), (0, 50, 0), (48, 1, 1)], [0.003, 0.02]), 1),
    ids=repr,
)
def test_intervals_of_sparse_priors_hold_what_they_say(alpha, counts, release):
    """Where many draws round to 0 and to 1: more than they say, where these are at an end."""
    posterior = release(ob.LaplaceParameters(3.0), counts, 50, (alpha,) * len(counts)).posterior
    draws = posterior.sample(40_000, random_state=1)
    for level in (0.8, 0.95):
        least = level - STANDARD_ERRORS * np.sqrt(2 * level * (1 - level) / 40_000)
        for kind in ("eti", "hdi", "simultaneous"):
            lower, upper = posterior.interval(level, kind)
            assert np.all(lower <= upper)
            inside = (draws >= lower) & (draws <= upper)
            shares = [inside.all(axis=1).mean()] if kind == "simultaneous" else inside.mean(axis=0)
            assert np.min(shares) > least
            assert np.max(shares) < 1


@pytest.fixture
def unequal(release):
    """A posterior in which the prior weighs as much as the twelve records."""
    return release(ob.LaplaceParameters(2.0), (3, 4, 5), 12, (0.3, 4.0, 9.0)).posterior


def test_comparing_releases_of_different_priors(unequal, release):
    """Against a double integral, which for the draws of either one with a prior of ones is off."""
    other = release(ob.LaplaceParameters(2.0), (4, 4, 4), 12, (5.0, 0.5, 2.0)).posterior
    comparison = unequal.compare(other)
    values = np.linspace(0, 1, 8001)
    middle = (values[1:] + values[:-1]) / 2
    larger = np.sum(np.diff(unequal.cdf(values), axis=0) * other.cdf(middle), axis=0)
    reverse = other.compare(unequal)
    mean = unequal.mean() - other.mean()
    for place, (label, one) in enumerate(comparison.items()):
        share, error = one.probability()
        assert share == pytest.approx(larger[place], abs=STANDARD_ERRORS * error + 1e-3)
        share = 1 - reverse[label].probability().value
        assert share == pytest.approx(larger[place], abs=STANDARD_ERRORS * error + 1e-3)
        error = STANDARD_ERRORS * one.standard_error
        assert one.mean() == pytest.approx(mean[place], abs=error)
        lower, upper = one.interval(0.999)
        assert lower < one.mean() < upper


@pytest.mark.parametrize(
    "answer",
    [
        lambda posterior: posterior.sample(500),
        lambda posterior: posterior.predictive(9, size=500),
        lambda posterior: posterior.quantity(lambda p: p["a"] > 0.5).mean(),
        lambda posterior: posterior.interval(0.9, "simultaneous"),
    ],
    ids=["sample", "predictive", "quantity", "simultaneous interval"],
)
def test_every_draw_has_the_prior_plus_counts_of_the_size(answer, unequal, monkeypatch):
    """What ranks are taken of, for simultaneous intervals, depends so little on the prior that
    no number of draws would show it.
    """
    seen = []

    def spy(concentration, rng):
        seen.append(concentration)
        return dirichlet(concentration, rng)

    monkeypatch.setattr(engines, "dirichlet", spy)
    answer(unequal)
    counts = np.concatenate(seen) - np.array(unequal.releases[0].prior)
    assert np.abs(counts - np.rint(counts)).max() < 1e-9
    assert np.all(np.rint(counts) >= 0)
    assert set(np.rint(counts).sum(axis=1)) == {12}


def test_opendp_and_polars_are_not_loaded_for_a_posterior():
    code = (
        "import opendp_bayes as ob, sys\nrelease = ob.Release((3, 5), ('a', 'b'), (1.0, 1.0),"
        " ob.LaplaceParameters(2.0), ob.PrivacyGuarantee(8, 1, ob.PrivacyLoss(0.5, 0.125, 1.0),"
        " ''))\nrelease.posterior.interval()\nprint(sorted({name.split('.')[0] for name in"
        " sys.modules} & {'opendp', 'polars'}))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_other_errors(three, release):
    with pytest.raises(ValueError, match=r"kind='shortest': .* 'eti', .* 'simultaneous'"):
        three.interval(0.9, "shortest")
    with pytest.raises(ValueError, match=r"size=0: must be between 1"):
        three.sample(0)
    with pytest.raises(ValueError, match=r"size=0: must be between 1"):
        three.predictive(5, size=0)
    with pytest.raises(ValueError, match=r"other: has the categories \('a', 'b'\)"):
        three.compare(release(ob.LaplaceParameters(1.0), (1, 2), 3).posterior)
    with pytest.raises(TypeError, match="other: must be a posterior"):
        three.compare(release(ob.LaplaceParameters(1.0), (1, 2), 3))
    with pytest.raises(ValueError, match=r"records_prior=.*: .* or None .*; it is size=3"):
        ob.noise_aware_posterior(
            release(ob.LaplaceParameters(1.0), (1, 2), 3), records_prior=stats.poisson(3)
        )
    with pytest.raises(ValueError, match=r"records_prior=3: .* distribution with .* logpmf"):
        ob.noise_aware_posterior(
            release(ob.LaplaceParameters(1.0, total="private"), (1, 2), None), records_prior=3
        )
    with pytest.raises(ValueError, match="ess=0: must be between 1"):
        ob.noise_aware_posterior(release(ob.LaplaceParameters(1.0), (1, 2), 3), ess=0)


def test_intervals_are_by_label_and_generators_draw(release, three):
    """Whole numbers are labels, not places. What `random_state` of scipy takes: a seed repeats,
    a generator goes on.
    """
    made = replace(release(ob.LaplaceParameters(3.0), (12, 30, 58), 100), categories=(2, 0, 1))
    answers = made.posterior, made.posterior.counts
    for interval in (answer.interval(0.9) for answer in answers):
        lower, upper = interval
        assert (interval.lower is lower, interval.upper is upper) == (True, True)
        assert [interval[label] for label in (2, 0, 1)] == list(zip(lower, upper, strict=True))
        assert np.array_equal(np.array(interval), [lower, upper])
        again = copy.copy(interval)
        assert again[0] == interval[0] != interval[1]
        with pytest.raises(KeyError, match="3: is not a category"):
            interval[3]
    assert [made[label] for label in (2, 0, 1)] == list(made.counts)
    with pytest.raises(KeyError, match="'0': is not a category"):
        made["0"]
    rng = np.random.default_rng(5)
    for answer in (three, three.counts, three["a"], three.compare(three)["a"]):
        first, second = answer.sample(4, rng), answer.sample(4, rng)
        assert not np.array_equal(first, second)
        assert np.array_equal(answer.sample(4, 5), answer.sample(4, np.random.default_rng(5)))
        assert len(answer.sample()) == 1
