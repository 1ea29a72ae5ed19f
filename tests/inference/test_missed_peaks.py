"""Weighted draws of posteriors with peaks elsewhere than at the release, which no draw of the prior
sees: climbs find them. What is said of an interpolation is what it is off by.
"""

import numpy as np
import pytest

from opendp_bayes import noise_aware_posterior
from opendp_bayes.inference.engines import Listed
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.of_counts import Weighing, likelihood_of
from opendp_bayes.inference.sampling import interpolated_normaliser as normaliser, markov_chain
from opendp_bayes.inference.sampling.interpolated_normaliser import by_interpolation, climbed
from opendp_bayes.mechanisms import HellingerExponential, SmoothHellingerExponential
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers import calibration, oracles
from tests.helpers.shortened import interpolate_less

SIZE = 60
SETS = np.array(oracles.data_sets(SIZE, 3))
#: Standard errors that a mean may be off.
LARGEST = 5.0
PRIOR = np.array([0.1, 1.0, 1.0])


def near(center, scale):
    def log_likelihood(counts):
        return -(((counts - np.array(center)) / scale) ** 2).sum(axis=1) / 2

    return log_likelihood


def two_peaks(counts):
    """A narrow one near the release, and one of four times its weight elsewhere."""
    first, second = near((50, 5, 5), 1.0)(counts), near((10, 10, 40), 2.0)(counts)
    return np.logaddexp(first, second)


def far_apart(counts):
    """Of 2000 records: some dozens of 2 003 001 data sets have nearly all of the weight."""
    first, second = near((1700, 200, 100), 1.5)(counts), near((300, 200, 1500), 1.5)(counts)
    return np.logaddexp(first, second + np.log(4))


def off(log_likelihood, released, prior, sets, monkeypatch):
    """By how many standard errors the mean counts of weighted draws are off, at most."""

    class Given(Weighing):
        def given(self, counts, log_widths, log_sums):
            return log_likelihood(counts)

    interpolate_less(monkeypatch)
    likelihood = Given(np.array(released), prior, HellingerExponential(0.1))
    drawn = by_interpolation(likelihood, prior, 2000, np.random.default_rng(0))
    log_weights = log_likelihood(sets) + log_rising(sets, prior).sum(axis=1)
    right = Listed(sets, log_weights, prior).counts
    away = np.abs(drawn.weights @ drawn.rows - right.mean()) / right.std()
    return float(np.max(away * np.sqrt(drawn.diagnostics.ess)))


@pytest.mark.parametrize("least", [1.0, 1e-3])
@pytest.mark.parametrize("log_likelihood", [near((50, 5, 5), 3.0), two_peaks])
def test_draws_have_every_peak_and_empty_categories(log_likelihood, least, monkeypatch):
    """Where a prior of 0.001 says that a category is empty, in spite of five records released."""
    assert off(log_likelihood, (50, 5, 5), np.full(3, least), SETS, monkeypatch) < LARGEST


def test_a_peak_that_no_draw_of_the_prior_sees_is_climbed(monkeypatch):
    """Negative control: without a climb all draws are from the peak at the release."""
    reach = np.arange(-20, 21)
    steps = np.stack(np.meshgrid(reach, reach), axis=-1).reshape(-1, 2)
    sets = np.vstack([np.add(peak, steps) for peak in ((1700, 200), (300, 200))])
    sets = np.column_stack([sets, 2000 - sets.sum(axis=1)])
    asked = far_apart, (1700, 200, 100), np.ones(3), sets, monkeypatch
    assert off(*asked) < LARGEST
    monkeypatch.setattr(normaliser, "climbed", lambda log_likelihood, points, prior: points[0])
    assert off(*asked) > 10 * LARGEST


def test_climbs_end_at_the_top():
    prior = np.array([0.01, 1.0, 1.0])
    heights = two_peaks(SETS) + log_rising(SETS, prior).sum(axis=1)
    starts = np.array([[50, 5, 5], [20, 20, 20], [0, 0, 60]])
    assert climbed(two_peaks, starts, prior).tolist() == SETS[np.argmax(heights)].tolist()


@pytest.mark.slow
def test_what_is_said_of_an_interpolation_is_of_the_last_one(release, monkeypatch):
    """After the draws are made of it, and against estimates that it was not made of."""
    made = release(SmoothHellingerExponential(10.0, gamma=0.05), (300, 900, 800), 2000)
    errors, tested = [], normaliser.LogNormaliser.tested

    def kept(self, found, rng):
        error, refined = tested(self, found, rng)
        known = {tuple(row) for row in self._counts.tolist()}
        counts = refined._counts[len(self._counts) :].tolist()
        new = [tuple(row) not in known for row in counts]
        errors.append((error, len(counts), np.mean(new), len(found.rows)))
        return error, refined

    monkeypatch.setattr(normaliser.LogNormaliser, "tested", kept)
    posterior = noise_aware_posterior(made)
    last = errors[-1]
    assert len(errors) >= 2
    assert posterior.diagnostics.log_error == last[0] > 0
    assert last[1] >= 10
    assert last[2] > 0.9
    assert last[3] == posterior.diagnostics.draws
    for each in (posterior.merged({"x": ["a", "b"]}), posterior.given(["a", "c"])):
        assert each.diagnostics.log_error == last[0]


def test_what_is_larger_than_stated_is_warned_about(release, monkeypatch):
    made = release(SmoothHellingerExponential(10.0), (300, 900, 800), 2000)
    noise_aware_posterior(made, ess=100)  # without a warning
    monkeypatch.setattr(markov_chain, "_LARGEST_LOG_ERROR", 1e-6)
    with pytest.warns(UserWarning, match=r"error of the log-likelihood 0\.0"):
        noise_aware_posterior(made, ess=100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_narrow_peak_at_the_release_below_the_top_is_drawn(release, seed):
    """The posterior is highest where the first category is empty, and its peak at the release holds
    much of it all the same; of 8646 data sets, which are listed.
    """
    mechanism = calibration.Cell("EHDS, γ = 1", 3, 130, 0.5).scaled(PRIOR)
    made = release(mechanism, (59, 48, 23), 130, PRIOR.tolist())
    likelihood = likelihood_of(Setting.of(mechanism, 130, PRIOR), made.counts)
    drawn = by_interpolation(likelihood, PRIOR, 500, np.random.default_rng(seed))
    right = made.posterior._engine.counts
    away = np.abs(drawn.weights @ drawn.rows - right.mean()) / right.std()
    assert np.max(away * np.sqrt(drawn.diagnostics.ess)) < LARGEST
