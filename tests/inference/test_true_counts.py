"""The exact posteriors against brute force over every data set, and their shortcuts against the same without shortcuts."""

import brute_force
import numpy as np
import oracles
import pytest
from scipy import stats

from opendp_bayes import HellingerExponential, KNormParameters, LaplaceParameters, SmoothHellingerExponential, noise_aware_posterior
from opendp_bayes.inference import true_counts
from opendp_bayes.inference.likelihood import likelihood_of
from opendp_bayes.inference.true_counts import Convolved, Listed, TwoCategories, log_prior_weight

VALUES = np.linspace(0.01, 0.99, 41)
PRIORS = {2: [(1.0, 1.0), (0.1, 3.0)], 3: [(1.0, 1.0, 1.0), (1.0, 0.5, 20.0)]}
NOISE = [
    LaplaceParameters(2.0),
    LaplaceParameters(0.3),
    LaplaceParameters(30.0, "floored"),
    LaplaceParameters(2.0, "floored", "bounded"),
    LaplaceParameters(2.0, "discrete", "bounded"),
    KNormParameters(1.5),
]
EXPONENTIAL = [
    HellingerExponential(0.3),
    HellingerExponential(1.0, "local"),
    SmoothHellingerExponential(2.0),
    SmoothHellingerExponential(1.0, gamma=0.1),
    SmoothHellingerExponential(1.0, beta=0.1),
]
#: What cells of counts instead of every count may change a posterior probability by.
CELLS = 1e-3


def error(made, largest=None):
    return np.abs(made.posterior.cdf(VALUES) - brute_force.cdf(made, VALUES, largest)).max()


@pytest.mark.parametrize("mechanism", NOISE, ids=repr)
@pytest.mark.parametrize("counts", [(5, 7), (0, 12), (12, 0), (1, 0)], ids=repr)
def test_two_categories_with_noise_on_the_counts(mechanism, counts, release):
    for prior in PRIORS[2]:
        assert error(release(mechanism, counts, sum(counts), prior)) < 1e-10


@pytest.mark.parametrize("mechanism", EXPONENTIAL, ids=repr)
@pytest.mark.parametrize("counts", [(5, 7), (0, 12)], ids=repr)
def test_two_categories_with_an_exponential_mechanism(mechanism, counts, release):
    for prior in PRIORS[2]:
        assert error(release(mechanism, counts, 12, prior)) < 1e-10  # every data set is a node of the interpolation


@pytest.mark.parametrize("mechanism", NOISE, ids=repr)
@pytest.mark.parametrize("counts", [(3, 4, 1), (2, 2, 4)], ids=repr)
def test_three_categories_with_noise_on_the_counts(mechanism, counts, release):
    if mechanism.scale > 10:
        counts = tuple(np.minimum(counts, 8))
    for prior in PRIORS[3]:
        made = release(mechanism, counts, 8, prior)
        assert made.posterior.diagnostics is None
        assert error(made) < 1e-10


@pytest.mark.parametrize("counts", [(0, 8, 8), (8, 8, 8), (0, 0, 0), (0, 0, 8)], ids=repr)
@pytest.mark.parametrize("mechanism", NOISE[3:5], ids=repr)
def test_counts_that_were_clamped_and_do_not_sum_to_the_size(mechanism, counts, release):
    assert error(release(mechanism, counts, 8, (1.0, 0.5, 2.0))) < 1e-10


@pytest.mark.parametrize("mechanism", EXPONENTIAL, ids=repr)
def test_three_categories_with_an_exponential_mechanism(mechanism, release):
    for counts in [(3, 4, 5), (0, 0, 12)]:
        for prior in PRIORS[3]:
            assert error(release(mechanism, counts, 12, prior)) < 1e-10


@pytest.mark.parametrize("noise", ["discrete", "floored"])
@pytest.mark.parametrize(
    ("counts", "prior"), [((4, 6), (1.0, 1.0)), ((0, 3), (0.1, 3.0)), ((0, 0), (1.0, 1.0)), ((2, 0, 3), (1.0, 0.5, 2.0))], ids=repr
)
def test_a_private_number_of_records(noise, counts, prior, release):
    made = release(LaplaceParameters(0.8, noise, "private"), counts, None, prior)
    largest = 40 if len(counts) == 2 else 26
    assert error(made, largest) < 2e-3  # numbers of other records within 5 % share a component
    assert made.posterior.mean() == pytest.approx(brute_force.mean(made, largest), rel=1e-6)


def test_the_wrong_scale_is_noticed(release):
    """Negative control: the same comparison sees a scale that is 30 % off."""
    for counts, size, largest in [((5, 7), 12, None), ((3, 4, 1), 8, None)]:
        right = release(LaplaceParameters(2.0), counts, size)
        wrong = release(LaplaceParameters(2.6), counts, size)
        assert np.abs(wrong.posterior.cdf(VALUES)[:, 0] - brute_force.cdf(right, VALUES, largest)[:, 0]).max() > 1e-3
    right, wrong = (release(LaplaceParameters(scale, total="private"), (4, 6), None) for scale in (0.8, 1.04))
    assert np.abs(wrong.posterior.cdf(VALUES)[:, 0] - brute_force.cdf(right, VALUES, 40)[:, 0]).max() > 1e-2


def test_a_prior_on_the_number_of_records(release):
    made = release(LaplaceParameters(3.0, total="private"), (8, 4), None)
    sets, weights = brute_force.data_sets(made, 60)
    size_prior = stats.poisson(6)
    weights = weights * size_prior.pmf(sets.sum(axis=1))
    a = 1.0 + sets
    expected = (weights / weights.sum()) @ (a / a.sum(axis=1, keepdims=True))
    assert noise_aware_posterior(made, size_prior=size_prior).mean() == pytest.approx(expected, rel=1e-5)
    assert np.abs(made.posterior.mean() - expected).max() > 1e-3  # the prior matters here


def test_numbers_of_records_many_scales_above_the_release(release):
    """Where the prior on their number expects them there, in spite of a release of (0, 1)."""
    made = release(LaplaceParameters(0.5, total="private"), (0, 1), None)
    size_prior = stats.nbinom(400, 0.95)
    sets, weights = brute_force.data_sets(made, 50)
    weights = weights * size_prior.pmf(sets.sum(axis=1))
    a = 1.0 + sets
    expected = (weights / weights.sum()) @ (a / a.sum(axis=1, keepdims=True))
    posterior = noise_aware_posterior(made, size_prior=size_prior)
    assert posterior.mean() == pytest.approx(expected, rel=1e-4)
    sizes = posterior._true_counts.sample(4000, np.random.default_rng(0)).sum(axis=1)
    mean = weights @ sets.sum(axis=1) / weights.sum()
    assert sizes.mean() == pytest.approx(mean, abs=5 * sizes.std() / np.sqrt(4000))


@pytest.mark.parametrize(
    "mechanism",
    [LaplaceParameters(3.0), LaplaceParameters(500.0), LaplaceParameters(1e5), SmoothHellingerExponential(40.0), HellingerExponential(0.67)],
    ids=repr,
)
@pytest.mark.parametrize("first", [0, 25, 9000, 20_000])
def test_cells_of_counts_instead_of_every_count(mechanism, first, monkeypatch):
    size, prior = 30_000, np.array([1.0, 2.0])
    likelihood = likelihood_of(mechanism, np.array([first, size - first]), prior, size)
    listed = TwoCategories(likelihood.log_likelihood, first, prior, size).marginal(0)
    monkeypatch.setattr(true_counts, "_LARGEST_LISTED_SIZE", 0)
    cells = TwoCategories(likelihood.log_likelihood, first, prior, size).marginal(0)
    values = listed.quantile(np.linspace(0.01, 0.99, 21))
    assert np.abs(cells.cdf(values) - listed.cdf(values)).max() < CELLS
    assert cells.mean() == pytest.approx(listed.mean(), rel=1e-3)


def test_a_listed_size_is_grouped_without_loss():
    size, prior = 20_000, np.array([0.5, 2.0])
    for mechanism, first in [(LaplaceParameters(300.0), 5000), (LaplaceParameters(20.0), 0)]:
        likelihood = likelihood_of(mechanism, np.array([first, size - first]), prior, size)
        counts = np.column_stack([np.arange(size + 1), size - np.arange(size + 1)])
        log_weights = likelihood.log_likelihood(counts) + stats.betabinom(size, *prior).logpmf(counts[:, 0])
        weights = np.exp(log_weights - log_weights.max())
        seen = weights > 1e-12
        marginal = TwoCategories(likelihood.log_likelihood, first, prior, size).marginal(0)
        values = marginal.quantile([0.001, 0.025, 0.3, 0.5, 0.8, 0.975, 0.999])
        a, b = (prior + counts)[seen].T
        expected = stats.beta.cdf(values[:, None], a, b) @ weights[seen] / weights[seen].sum()
        assert marginal.cdf(values) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("mechanism", [LaplaceParameters(2.0), LaplaceParameters(2.0, "floored", "bounded"), KNormParameters(1.0)], ids=repr)
def test_draws_of_the_counts_follow_their_posterior(mechanism, release):
    made = release(mechanism, (1, 2, 3), 6, (1.0, 0.5, 2.0))
    sets, weights = brute_force.data_sets(made)
    rng = np.random.default_rng(0)
    drawn = made.posterior._true_counts.sample(20_000, rng)
    assert not oracles.rejects(map(tuple, drawn.tolist()), dict(zip(map(tuple, sets.tolist()), weights, strict=True)))
    wrong = release(type(mechanism)(mechanism.scale * 1.3), (1, 2, 3), 6, (1.0, 0.5, 2.0)).posterior._true_counts.sample(20_000, rng)
    assert oracles.rejects(map(tuple, wrong.tolist()), dict(zip(map(tuple, sets.tolist()), weights, strict=True)))


def test_draws_of_the_counts_with_a_private_size(release):
    made = release(LaplaceParameters(0.5, total="private"), (1, 2), None)
    sets, weights = brute_force.data_sets(made, 30)
    drawn = made.posterior._true_counts.sample(20_000, np.random.default_rng(0))
    assert not oracles.rejects(map(tuple, drawn.tolist()), dict(zip(map(tuple, sets.tolist()), weights, strict=True)))


def test_draws_from_cells_are_spread_over_them(monkeypatch):
    monkeypatch.setattr(true_counts, "_LARGEST_LISTED_SIZE", 0)
    size, prior = 5000, np.ones(2)
    cells = TwoCategories(lambda counts: np.zeros(len(counts)), 100, prior, size)
    drawn = cells.sample(40_000, np.random.default_rng(0))
    assert np.all(drawn.sum(axis=1) == size)
    assert not oracles.rejects((drawn[:, 0] // 50).tolist(), {cell: (50 if cell < 100 else 1) / 5001 for cell in range(101)})


def test_a_strong_prior_far_from_the_release(release):
    """The window of a convolution is where the probability is, not where the release is."""
    made = release(LaplaceParameters(1.0, "discrete", "bounded"), (12, 0, 0), 12, (1e4, 1e4, 1e4))
    assert error(made) < 1e-8


def test_a_convolution_that_would_be_too_long_is_refused():
    likelihood = likelihood_of(KNormParameters(1e5), np.array([10**6] * 3), np.ones(3), 3 * 10**6)
    assert Convolved.of(likelihood, np.ones(3), 3 * 10**6, np.zeros_like) is None


def test_the_prior_weight_of_large_counts_keeps_its_digits():
    counts = np.array([10**12, 10**12 + 1, 10**12 + 10**6])
    for alpha in (0.5, 1.0, 3.0):
        weight = log_prior_weight(counts, alpha)
        assert np.diff(weight) == pytest.approx((alpha - 1) * np.diff(np.log(counts)), abs=1e-9)


def test_listed_marginals_are_mixtures_over_the_list():
    sets = np.array(oracles.data_sets(4, 3))
    weights = np.random.default_rng(0).dirichlet(np.ones(len(sets)))
    prior = np.array([0.5, 1.0, 2.0])
    marginal = Listed(sets, np.log(weights), prior).marginal(1)
    expected = weights @ stats.beta.cdf(VALUES, (1.0 + sets[:, 1])[:, None], (2.5 + 4 - sets[:, 1])[:, None])
    assert marginal.cdf(VALUES) == pytest.approx(expected, abs=1e-12)
