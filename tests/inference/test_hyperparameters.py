"""Laws of κ and m: their priors, and what draws of them are proposed from."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from opendp_bayes.inference.pooling.pooled_draws import Priors, Proposals, concentrations
from tests.helpers import oracles

BETA = np.array([0.7, 2.0, 1.3])
KAPPA = stats.gamma(2, scale=5)
LIMIT = stats.norm.isf(oracles.FALSE_ALARM / 2)


def test_the_density_of_coordinates_is_that_of_the_priors():
    """With its volume: the mass of a part of all m is that under the Dirichlet distribution."""

    def mass(beta, below):
        priors = Priors(KAPPA, beta)

        def density(z):
            log_m = np.array([special.log_expit(z), special.log_expit(-z)])
            return np.exp(priors.log_density(np.array(np.log(5.0)), log_m))

        low, every = (integrate.quad(density, -30, end)[0] for end in (below, 30))
        return low / every

    beta = np.array([0.8, 2.5])
    wanted = stats.beta(*beta).cdf(0.3)
    assert mass(beta, np.log(0.3 / 0.7)) == pytest.approx(wanted, abs=1e-6)
    assert abs(mass(beta + 1, np.log(0.3 / 0.7)) - wanted) > 0.01  # another prior is noticed

    def of_kappa(v):
        return np.exp(Priors(KAPPA, BETA).log_density(v, np.zeros(3)))

    assert integrate.quad(of_kappa, -20, np.log(8.0))[0] == pytest.approx(KAPPA.cdf(8.0))


def test_concentrations_neither_underflow_nor_leave_their_prior():
    for log_kappa, bound in ((-900.0, 1e-300), (900.0, 1e120)):
        found = concentrations(np.array(log_kappa), np.zeros(1))
        assert found == pytest.approx(bound)
    priors = Priors(stats.uniform(1, 4), BETA)
    low, high = priors.ends()
    assert 0 < low < 0.01 < 1.6 < high < np.log(5)
    assert np.isfinite(priors.log_density(np.array(1.0), np.zeros(3)))
    assert priors.log_density(np.array(2.0), np.zeros(3)) == -np.inf


def laws(shapes, modes=0.0, shares=(0.1, 0.2, 0.3, 0.4)):
    """In four intervals."""
    shape = 4, np.size(shapes)
    both = (np.broadcast_to(np.asarray(of, dtype=float), shape) for of in (modes, shapes))
    return Proposals(np.linspace(0, 2, 5), np.array(shares), *both)


def test_proposals_with_modes_at_the_shapes_are_dirichlet():
    beta = np.array([0.5, 2.0, 40.0])
    some = laws(beta, np.log(beta))
    log_kappa, log_m = some.draw(20_000, np.random.default_rng(0))
    wanted = stats.dirichlet(beta)
    off = (np.exp(log_m).mean(axis=0) - wanted.mean()) / np.sqrt(wanted.var() / 20_000)
    assert np.abs(off).max() < LIMIT
    assert np.histogram(log_kappa, some.edges)[0] == pytest.approx(20_000 * some.shares, abs=2)
    density = np.exp(log_m[:9] @ beta)
    found = np.exp(some.log_density(np.ones(9), log_m[:9]))
    assert found / density == pytest.approx(found[0] / density[0])


def test_draws_have_the_density_that_is_said():
    """So the weights of draws of one law, for another, are 1 on average."""
    first, second = laws([2.0, 3.0, 9.0]), laws([3.0, 4.0, 8.0], [0.3, 0.0, -0.2], (0.25,) * 4)
    drawn = first.draw(40_000, np.random.default_rng(0))

    def off(other):
        ratio = np.exp(other.log_density(*drawn) - first.log_density(*drawn))
        return abs(ratio.mean() - 1) / ratio.std() * np.sqrt(len(ratio))

    assert off(second) < LIMIT
    # Negative control: a law that is thought to be wider.
    wide = laws([1.5, 2.0, 4.0], [0.3, 0.0, -0.2], (0.25,) * 4)
    ratio = np.exp(wide.log_density(*drawn) - first.log_density(*drawn)) * 0.5
    assert abs(ratio.mean() - 1) / ratio.std() * np.sqrt(len(ratio)) > LIMIT


def test_proposals_are_fitted_to_weighted_draws():
    """Of a law elsewhere, and half as wide."""
    first, wanted = laws([20.0, 30.0]), laws([80.0, 120.0], [0.2, -0.2], (0.4, 0.3, 0.2, 0.1))
    drawn = first.draw(20_000, np.random.default_rng(0))
    weights = special.softmax(wanted.log_density(*drawn) - first.log_density(*drawn))
    found = first.refitted(*drawn, np.full(20_000, 1 / 20_000), weights)
    drawn = found.draw(20_000, np.random.default_rng(1))
    weights = special.softmax(wanted.log_density(*drawn) - found.log_density(*drawn))
    assert 1 / (weights**2).sum() > 0.8 * 20_000
