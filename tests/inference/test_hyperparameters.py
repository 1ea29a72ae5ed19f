"""Steps of κ and m."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.pooling.hyperparameters import Concentration, Priors, Steps
from tests.helpers import oracles

BETA, CHAINS = np.array([0.7, 2.0, 1.3]), 4000
KAPPA = stats.gamma(2, scale=5)


def drawn(priors, rng):
    log_kappa = np.log(KAPPA.rvs(CHAINS, random_state=rng))
    log_m = np.log(rng.dirichlet(BETA, CHAINS))
    return Concentration(priors, log_kappa, log_m, priors.log_of(log_kappa))


@pytest.mark.parametrize("kind", [0, 1, 3])
def test_metropolis_steps_leave_the_prior_as_it_is(kind):
    """So the volumes are right, those of ln κ, the log-odds and the ratios, and so are steps that
    go on as they went.
    """

    def worst(assumed, kappa, turning=True):
        rng = np.random.default_rng(kind)
        alike = drawn(Priors(kappa, assumed), rng)
        steps = Steps(BETA.size, CHAINS, rng)
        for _ in range(20):
            before = steps._ways.copy()
            other = alike.moved(kind, steps.proposed(kind))
            accepted = steps.accepted(kind, other.log_prior - alike.log_prior, adapt=True)
            steps._ways = steps._ways if turning else before
            alike = alike.where(accepted, other)
        m = alike.a / alike.a.sum(axis=1, keepdims=True)
        of_m = [
            stats.kstest(m[:, i], stats.beta(b, BETA.sum() - b).cdf).pvalue
            for i, b in enumerate(BETA)
        ]
        return min(stats.kstest(alike.a.sum(axis=1), KAPPA.cdf).pvalue, *of_m)

    assert worst(BETA, KAPPA) > oracles.FALSE_ALARM
    # Negative controls: other priors, and steps that never turn around.
    assert worst(BETA + 1, stats.gamma(4, scale=5)) < oracles.FALSE_ALARM
    assert worst(BETA, KAPPA, turning=False) < oracles.FALSE_ALARM


def test_steps_go_on_until_one_is_refused():
    steps = Steps(2, 3, np.random.default_rng(1))
    first = np.sign(steps.proposed(1))
    refused = np.array([0.0, -np.inf, np.nan])
    assert steps.accepted(1, refused, adapt=False).tolist() == [True, False, False]
    assert np.array_equal(np.sign(steps.proposed(1)), first * [1, -1, -1])
    assert {*np.sign(Steps(2, 40, np.random.default_rng(0)).proposed(2)).tolist()} == {-1.0, 1.0}


def test_steps_adapt_to_how_many_are_accepted():
    """Wider where most are, shorter where few are, and as they were once draws are kept."""
    for log_ratio, wider in ((0.0, True), (-9.0, False)):
        steps = Steps(2, 4, np.random.default_rng(0))
        for _ in range(20):
            steps.accepted(0, np.full(4, log_ratio), adapt=True)
        adapted = steps._widths.copy()
        assert (adapted[0] > 2 * adapted[1], 2 * adapted[0] < adapted[1]) == (wider, not wider)
        steps.accepted(0, np.zeros(4), adapt=False)
        assert np.array_equal(steps._widths, adapted)


def test_a_step_moves_what_it_says():
    alike = drawn(Priors(KAPPA, BETA), np.random.default_rng(0))
    step = np.linspace(-800, 3, CHAINS)
    of_kappa = alike.moved(0, step)
    assert np.array_equal(of_kappa.log_m, alike.log_m)
    assert np.array_equal(of_kappa.log_kappa, alike.log_kappa + step)
    of_m = alike.moved(2, step)
    m = np.exp(of_m.log_m)
    assert np.array_equal(of_m.log_kappa, alike.log_kappa)
    assert m.sum(axis=1) == pytest.approx(1)
    log_odds = of_m.log_m[:, 1] - np.log(m[:, 0] + m[:, 2])
    was = np.exp(alike.log_m)
    assert log_odds == pytest.approx(step + np.log(was[:, 1] / (was[:, 0] + was[:, 2])))
    ratio, of_old = (of.log_m[:, 0] - of.log_m[:, 2] for of in (of_m, alike))
    assert ratio == pytest.approx(of_old)


def test_concentrations_neither_underflow_nor_overflow():
    alike = drawn(Priors(KAPPA, BETA), np.random.default_rng(0))
    for step, bound in ((-800.0, 1e-300), (800.0, 1e300)):
        moved = alike.moved(0, np.full(CHAINS, step))
        assert moved.a == pytest.approx(bound)


def test_outside_of_the_prior_is_impossible():
    priors = Priors(stats.uniform(1, 4), BETA)
    alike = priors.start(np.ones(3), 4)
    assert np.all(np.isfinite(alike.log_prior))
    assert np.all(alike.moved(0, np.full(4, 3.0)).log_prior == -np.inf)
