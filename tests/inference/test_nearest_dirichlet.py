"""The Dirichlet distribution nearest to a posterior."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes import KNormParameters
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures, nearest_dirichlet


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
