"""Dirichlet and Dirichlet-multinomial laws, and the Dirichlet law that is nearest to others."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes import KNormParameters
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures, nearest_dirichlet
from opendp_bayes.inference.laws.dirichlet_multinomial import (
    dirichlet,
    dirichlet_multinomial,
    log_dirichlet_multinomial,
)
from opendp_bayes.mathematics.simplex import candidates, ranks


def test_dirichlet_draws_counts_and_their_probabilities():
    rng = np.random.default_rng(0)
    drawn = dirichlet(np.tile([1e-4, 1e-4], (20_000, 1)), rng)
    assert np.all(np.isfinite(drawn))
    assert drawn.sum(axis=1) == pytest.approx(1)
    assert drawn[:, 0].mean() == pytest.approx(0.5, abs=0.02)
    drawn = dirichlet(np.tile([2.0, 0.5, 3.0], (20_000, 1)), rng)
    assert stats.kstest(drawn[:, 1], stats.beta(0.5, 5.0).cdf).pvalue > 1e-6
    prior, sets = np.array([0.3, 1.0, 4.0]), candidates(12, 3)
    probabilities = stats.dirichlet_multinomial.pmf(sets, prior, 12)
    np.testing.assert_allclose(
        np.exp(log_dirichlet_multinomial(sets, prior)), probabilities, rtol=1e-12
    )
    drawn = dirichlet_multinomial(12, prior, 50_000, np.random.default_rng(0))
    assert (
        stats.chisquare(
            np.bincount(ranks(drawn, 12), minlength=len(sets)),
            probabilities / probabilities.sum() * 50_000,
        ).pvalue
        > 1e-6
    )


@pytest.mark.parametrize("concentration", [[0.01, 0.02], [0.3, 2.0, 50.0, 7.0], [1e6, 3e6]])
def test_a_dirichlet_is_nearest_to_itself(concentration):
    a = np.array(concentration)
    alone = BetaMixtures(a, a.sum() - a, np.ones(a.size), np.arange(a.size + 1))
    assert np.allclose(nearest_dirichlet(alone), a, rtol=1e-6)


def test_no_other_dirichlet_is_nearer(release):
    """By the expected log-density of draws, and another way to match is farther."""
    posterior = release(KNormParameters(3.0), (3, 7, 20), 30, (1.0, 0.5, 2.0)).posterior
    draws = posterior.sample(100_000, random_state=0).T

    def divergence(a):
        return -stats.dirichlet(a).logpdf(draws).mean()

    found = posterior.dirichlet()
    others = [found * np.exp(0.05 * move) for move in (*np.eye(3), *-np.eye(3), np.ones(3))]
    mean, variance = posterior.mean(), posterior.std() ** 2
    by_moments = mean * ((mean * (1 - mean)).sum() / variance.sum() - 1)
    assert all(divergence(other) > divergence(found) + 1e-4 for other in [*others, by_moments])
