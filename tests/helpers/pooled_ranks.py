"""The calibration of pooled groups by simulation: ranks of the truth among draws."""

import numpy as np
from scipy import stats

from opendp_bayes.inference.pooling import pooled_draws as module
from opendp_bayes.results.pooled_release import Pooled
from tests.helpers import oracles
from tests.helpers.releases import guarantee

KAPPA = stats.gamma(3, scale=2)


def truth(groups, k, rng):
    """κ, m and the probabilities of the groups, from the model."""
    kappa, m = KAPPA.rvs(random_state=rng), rng.dirichlet(np.full(k, 2.0))
    return kappa, m, rng.dirichlet(np.maximum(kappa * m, 1e-3), groups)


def ranks(data, kappa, m, theta, rng):
    """Of ln κ, m and the probabilities of the first group."""
    draws = data.draws(np.full(m.size, 2.0), KAPPA, 1, rng)
    pooled = Pooled(data, guarantee(None), *draws)
    found = [np.mean(pooled.kappa < kappa), *(pooled.m < m).mean(axis=0)]
    return [*found, *np.diagonal(pooled[0].cdf(theta[0]))]


def check_uniform(monkeypatch, simulated, number, draws):
    """The ranks of all in so many simulations."""
    monkeypatch.setattr(module, "_ROUND", draws)
    for column in np.array([simulated(seed) for seed in range(number)]).T:
        assert stats.kstest(column, "uniform").pvalue > oracles.FALSE_ALARM / 7


def check_200_uniform(monkeypatch, simulated, wrong):
    """And κ of 25 `wrong` ones is not."""
    check_uniform(monkeypatch, simulated, 200, draws=160)
    of_kappa = [wrong(seed)[0] for seed in range(25)]
    assert stats.kstest(of_kappa, "uniform").pvalue < oracles.FALSE_ALARM
