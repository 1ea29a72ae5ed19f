"""Importance sampling and the interpolated normaliser: against brute force over all data sets, with
broken versions as negative controls.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from opendp_bayes import noise_aware_posterior
from opendp_bayes.inference import ways
from opendp_bayes.inference.likelihood.of_counts import likelihood_of
from opendp_bayes.inference.sampling import importance, interpolated_normaliser as normaliser
from opendp_bayes.inference.sampling.interpolated_normaliser import LogNormaliser, by_interpolation
from opendp_bayes.mathematics.simplex import candidates, ranks
from opendp_bayes.mechanisms import HellingerExponential, SmoothHellingerExponential
from opendp_bayes.mechanisms.exponential.posterior_exponential import candidate_distances
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers import brute_force
from tests.helpers.sweeps import some_of

#: Standard errors, by the effective sample size, that an estimated mean may be off. Correct weights
#: are further off with probability 6e-7 a mean, if the effective sample size is right; that is
#: itself an estimate, so a little more.
STANDARD_ERRORS = 5.0
PRIOR = (1.0, 0.5, 2.0)
EXPONENTIAL = [
    (HellingerExponential(0.4), (5, 9, 4)),
    (HellingerExponential(1.0, "local"), (0, 4, 14)),
    (SmoothHellingerExponential(1.0), (18, 0, 0)),
    (SmoothHellingerExponential(0.3, gamma=0.2), (6, 7, 5)),
    (SmoothHellingerExponential(0.5, beta=0.3), (2, 8, 8)),
]
VARIED = some_of(EXPONENTIAL, 1)


def off(weighted, made):
    """By how many standard errors the mean counts and mean squared counts differ from those of
    brute force; shape `(2, k)`.
    """
    sets, weights = brute_force.data_sets(made)
    result = []
    for power in (1, 2):
        expected = weights @ sets**power
        deviation = np.sqrt(weights @ (sets**power - expected) ** 2)
        result.append(
            (weighted.weights @ weighted.rows**power - expected)
            / deviation
            * np.sqrt(weighted.diagnostics.ess)
        )
    return np.array(result)


def exponential(release, mechanism, counts):
    made = release(mechanism, counts, sum(counts), PRIOR)
    return made, likelihood_of(Setting.of(mechanism, made.size, PRIOR), counts)


def drawn(made, log_likelihood, ess=4000):
    released, prior = np.array(made.counts), np.array(made.prior)
    laws = importance.Proposals(released[None], prior, made.mechanism.width(released, prior))
    return importance.by_importance(log_likelihood, laws, ess, np.random.default_rng(0))


@pytest.mark.parametrize(("mechanism", "counts"), VARIED, ids=repr)
def test_importance_sampling_with_the_exact_and_the_interpolated_normaliser(
    mechanism, counts, release
):
    made, likelihood = exponential(release, mechanism, counts)
    exact = drawn(made, likelihood.log_likelihood)
    assert exact.diagnostics.ess.min() >= 4000
    between = by_interpolation(likelihood, np.array(PRIOR), 1500, np.random.default_rng(0))
    assert between.diagnostics.log_error < 0.1
    assert np.abs([off(exact, made), off(between, made)]).max() < STANDARD_ERRORS


def test_wrong_weights_and_normalisers_that_are_left_out_are_noticed(release, monkeypatch):
    """Negative control: the normalisers differ between data sets. Negative control: normalisers
    of the laws that are off by a factor of 16; they are estimated to 2 %.
    """
    made, likelihood = exponential(release, *EXPONENTIAL[4])
    sets = candidates(18, 3)
    log_widths = np.log(made.mechanism.widths_at(sets, np.array(PRIOR)))
    table = likelihood.given(sets, log_widths, np.zeros((len(sets), 1)))
    weighted = drawn(made, lambda counts: table[ranks(counts, 18)])
    assert np.abs(off(weighted, made)).max() > 2 * STANDARD_ERRORS
    made, likelihood = exponential(release, *EXPONENTIAL[3])
    exact = importance.Proposals.log_densities
    monkeypatch.setattr(
        importance.Proposals,
        "log_densities",
        lambda self, counts: exact(self, counts) + np.log(16) * (np.arange(len(self)) > 1),
    )
    weighted = drawn(made, likelihood.log_likelihood, 20_000)
    assert np.abs(off(weighted, made)).max() > STANDARD_ERRORS


def test_the_densities_of_the_laws():
    """They sum to 1 over all data sets, within the error of the estimated normalisers, and the
    draws have them.
    """
    laws = importance.Proposals(np.array([[3, 5, 4], [0, 2, 10]]), np.array(PRIOR), 0.3)
    sets = candidates(12, 3)
    densities = np.exp(laws.log_densities(sets))
    assert densities[:, 0].sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(densities.sum(axis=0), 1, atol=0.1)
    numbers = np.full(len(laws), 20_000)
    drawn = laws.draw(numbers, np.random.default_rng(0)).reshape(len(laws), 20_000, 3)
    for rows, density in zip(drawn, densities.T, strict=True):
        expected = density / density.sum() * 20_000
        seen = np.bincount(ranks(rows, 12), minlength=len(sets))
        often = expected >= 5
        assert (
            stats.chisquare(
                seen[often], expected[often] / expected[often].sum() * seen[often].sum()
            ).pvalue
            > 1e-6
        )
        assert seen[~often].sum() <= 5 * (expected[~often].sum() + 5)


def test_a_peak_far_narrower_than_the_prior_is_found(release):
    """Of 2 003 001 data sets, those with most of the probability are within some ten records of the
    release.
    """
    made = release(SmoothHellingerExponential(0.5), (1128, 550, 322), 2000)
    posterior = noise_aware_posterior(made, ess=400)
    assert isinstance(posterior._engine, importance.Weighted)
    assert posterior.diagnostics.ess.min() >= 400
    assert posterior.mean() == pytest.approx(np.array([1128, 550, 322]) / 2000, abs=0.02)
    assert repr(posterior).endswith(" effective draws)")


def test_draws_end_where_there_is_no_getting_enough(monkeypatch, release):
    monkeypatch.setattr(importance, "_MOST_DRAWS", 5000)
    made, likelihood = exponential(release, *EXPONENTIAL[0])
    weighted = drawn(made, likelihood.log_likelihood, 10**9)
    assert 5000 <= weighted.diagnostics.draws < 5100
    assert weighted.diagnostics.ess.max() < 5100


@pytest.mark.parametrize(("mechanism", "counts"), VARIED, ids=repr)
def test_the_normaliser_at_data_sets_it_was_not_estimated_at(mechanism, counts):
    """Against sums over all 1891 candidates at sixty data sets, most of them less probable than
    those from the prior. A constant has no effect.
    """
    prior, size = np.array(PRIOR), 60
    interpolated = normaliser.over_prior(mechanism, size, PRIOR)
    sets = candidates(size, 3)
    drawn = np.random.default_rng(1).choice(len(sets), 60)
    truth = np.array(
        [
            logsumexp(-candidate_distances(row, prior) / mechanism.width(row, prior))
            for row in sets[drawn]
        ]
    )
    error = interpolated(sets[drawn], np.log(mechanism.widths_at(sets[drawn], prior))) - truth
    assert np.std(error) < 0.1


@pytest.mark.parametrize(
    "prior", [(1e-4,) * 3, pytest.param((0.1, 0.1, 1e4), marks=pytest.mark.slow)], ids=repr
)
def test_a_prior_that_is_nearly_certain_of_the_data(prior, monkeypatch, release):
    """What it draws are the same few data sets, which leave an interpolation undetermined."""
    monkeypatch.setattr(ways, "LARGEST_COMPARED", 0)
    made = release(SmoothHellingerExponential(0.5), (5, 9, 4), 18, prior)
    weighted = noise_aware_posterior(made)._engine
    assert isinstance(weighted, importance.Weighted)
    assert np.abs(off(weighted, made)).max() < STANDARD_ERRORS


def test_the_error_is_measured_and_mended(monkeypatch):
    """Without the closed form, estimates in a corner of the simplex say little about the rest of
    it.
    """
    mechanism, prior, rng = SmoothHellingerExponential(0.5), np.ones(3), np.random.default_rng(0)
    corner = np.unique(rng.multinomial(2000, [0.998, 0.001, 0.001], size=100), axis=0)
    middle, more = (rng.multinomial(2000, rng.dirichlet([5, 5, 5], size)) for size in (100, 20))

    def tested(normaliser, counts):
        return normaliser.tested(importance.Weighted(counts, np.zeros(len(counts)), prior), rng)

    assert tested(LogNormaliser(mechanism, prior, corner), middle)[0] < 0.1
    monkeypatch.setattr(
        LogNormaliser,
        "_closed_form",
        lambda self, counts, log_widths: 50 * (counts[:, 0] / 2000) ** 2,
    )
    error, refined = tested(LogNormaliser(mechanism, prior, corner), middle)
    assert error > 0.3
    assert tested(refined, more)[0] < error / 3


def test_few_data_sets_are_tested_with_the_next_most_probable_ones():
    """An error of 0 from a single draw says nothing."""
    mechanism, prior, rng = SmoothHellingerExponential(0.5), np.ones(3), np.random.default_rng(0)
    counts = np.unique(rng.multinomial(2000, [0.2, 0.3, 0.5], size=60), axis=0)
    log_weights = np.append(0.0, np.full(len(counts) - 1, -60.0))
    first = LogNormaliser(mechanism, prior, counts[30:])
    error, refined = first.tested(importance.Weighted(counts, log_weights, prior), rng)
    tested = refined._counts[len(first._counts) :].tolist()
    assert len(tested) >= 10
    assert tested.count(counts[0].tolist()) == 1
    assert error > 0


@pytest.mark.parametrize(
    ("errors", "accepted"),
    [([0.9, 0.1], 0.1), ([0.05, 0.3, 0.2, 0.07], 0.07), ([0.9, 0.8, 0.7, 0.6, 0.5, 0.4], 0.4)],
)
def test_estimates_are_added_until_the_error_is_at_most_a_tenth(
    errors, accepted, monkeypatch, release
):
    """Or four times. What is said is of the last draws, and not of those that estimates were added
    at.
    """
    _, likelihood = exponential(release, *EXPONENTIAL[0])
    left = list(errors)

    def tested(self, found, rng):
        return left.pop(0), self

    monkeypatch.setattr(LogNormaliser, "tested", tested)
    rng = np.random.default_rng(0)
    weighted = by_interpolation(likelihood, np.array(PRIOR), 500, rng)
    assert left == []
    assert weighted.diagnostics.log_error == accepted
