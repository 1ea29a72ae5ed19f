"""Coordinates of κ and m, and their priors."""

import numpy as np
import pytest
from scipy import integrate, stats

from opendp_bayes.inference.pooling.hyperparameters import Priors, concentrations, log_shares

BETA = np.array([0.7, 2.0, 1.3])
KAPPA = stats.gamma(2, scale=5)


def test_coordinates_are_those_of_kappa_and_m():
    rng = np.random.default_rng(0)
    log_kappa, m = rng.normal(size=50), rng.dirichlet(BETA, 50)
    coordinates = np.column_stack([log_kappa, np.log(m[:, :-1] / m[:, -1:])])
    assert np.exp(log_shares(coordinates[:, 1:])) == pytest.approx(m)
    assert concentrations(coordinates) == pytest.approx(np.exp(log_kappa)[:, None] * m)
    assert Priors(KAPPA, BETA).shares(coordinates) == pytest.approx(m)


def test_the_density_of_coordinates_is_that_of_the_priors():
    """With its volume: the mass of a part of all m is that under the Dirichlet distribution."""

    def mass(beta, below):
        priors = Priors(KAPPA, beta)

        def density(z):
            return np.exp(priors.log_density(np.array([np.log(5.0), z])))

        low, every = (integrate.quad(density, -30, end)[0] for end in (below, 30))
        return low / every

    beta = np.array([0.8, 2.5])
    wanted = stats.beta(*beta).cdf(0.3)
    assert mass(beta, np.log(0.3 / 0.7)) == pytest.approx(wanted, abs=1e-6)
    assert abs(mass(beta + 1, np.log(0.3 / 0.7)) - wanted) > 0.01  # another prior is noticed
    of_kappa = integrate.quad(lambda v: np.exp(Priors(KAPPA, beta).log_of(v)), -20, np.log(8.0))[0]
    assert of_kappa == pytest.approx(KAPPA.cdf(8.0))


def test_concentrations_neither_underflow_nor_overflow():
    for log_kappa, bound in ((-900.0, 1e-300), (900.0, 1e120)):
        assert concentrations(np.array([log_kappa, 0.0])) == pytest.approx(bound)


def test_outside_of_the_prior_is_impossible():
    priors = Priors(stats.uniform(1, 4), BETA)
    low, high = priors.ends()
    assert 0 < low < 0.01 < 1.6 < high < np.log(5)
    assert np.isfinite(priors.log_density(np.array([1.0, 0.0, 0.0])))
    assert priors.log_density(np.array([2.0, 0.0, 0.0])) == -np.inf
