"""The Markov chains: every kernel against brute force or the exact posterior, broken kernels as
negative controls, diagnostics against arviz.
"""

import warnings

import numpy as np
import pytest

from opendp_bayes import LaplaceParameters
from opendp_bayes.inference.likelihood.of_counts import Tabulated, likelihood_of
from opendp_bayes.inference.sampling import markov_chain
from opendp_bayes.inference.sampling.markov_chain import (
    Chains,
    by_metropolis,
    r_hat_and_ess,
    run,
)
from opendp_bayes.mechanisms.setting import Setting
from tests.helpers import brute_force

#: Standard errors, by the effective sample size, that an estimated mean may be off. A correct chain
#: is further off with probability 6e-7 a mean, if the effective sample size is right; that is
#: itself an estimate, so a little more.
STANDARD_ERRORS = 5.0
PRIOR = (1.0, 0.5, 2.0)


def off(chains, made, largest=None):
    """By how many standard errors the mean counts and mean squared counts differ from those of
    brute force; shape `(2, k)`.
    """
    sets, weights = brute_force.data_sets(made, largest)
    rows = chains.chains.reshape(-1, sets.shape[1])
    result = []
    for power in (1, 2):
        expected = weights @ sets**power
        deviation = np.sqrt(weights @ (sets**power - expected) ** 2)
        result.append(
            (np.mean(rows**power, axis=0) - expected) / deviation * np.sqrt(chains.diagnostics.ess)
        )
    return np.array(result)


def test_metropolis_for_a_likelihood_of_its_own(release):
    made = release(LaplaceParameters(2.0), (3, 4, 1), 8, PRIOR)
    noise = likelihood_of(Setting.of(made.mechanism, 8, PRIOR), made.counts)
    chains = by_metropolis(
        Tabulated(noise.drawn, noise.log_likelihood),
        np.array(PRIOR),
        10_000,
        np.random.default_rng(0),
    )
    assert np.abs(off(chains, made)).max() < STANDARD_ERRORS


def test_metropolis_where_most_data_sets_are_impossible():
    released, rng = np.array([30, 5, 1]), np.random.default_rng(0)

    def near(counts):
        return np.where(np.abs(counts - released).max(axis=1) <= 2, 0.0, -np.inf)

    chains = by_metropolis(Tabulated(released, near), np.ones(3), 1000, rng)
    assert np.abs(chains.chains[:, -1] - released).max() <= 2
    with pytest.raises(
        ValueError, match=r"counts=\[30, 5, 1\]: the mechanism's log_likelihood is -inf"
    ):
        by_metropolis(
            Tabulated(released, lambda counts: np.full(len(counts), -np.inf)), np.ones(3), 1000, rng
        )


def test_runs_grow_until_there_are_enough_draws(monkeypatch):
    prior = np.ones(2)

    def kernel(state, rng):
        return np.column_stack([ones := rng.integers(0, 11, size=len(state)), 10 - ones])

    start = np.tile([5, 5], (4, 1))
    chains = run(kernel, start, prior, 2000, np.random.default_rng(0))
    assert chains.diagnostics.ess.min() >= 2000
    monkeypatch.setattr(markov_chain, "_DOUBLINGS", 1)
    assert run(kernel, start, prior, 10**9, np.random.default_rng(0)).chains.shape == (4, 150, 2)


def test_draws_from_chains_are_rows_of_them():
    counts = np.random.default_rng(0).multinomial(20, [0.2, 0.3, 0.5], size=(4, 50))
    chains = Chains(counts, np.ones(3))
    assert {tuple(row) for row in chains.sample(1000, np.random.default_rng(0)).tolist()} <= {
        tuple(row) for row in counts.reshape(-1, 3).tolist()
    }


@pytest.mark.parametrize("kind", ["independent", "correlated", "apart", "heavy tails"])
def test_diagnostics_are_those_of_arviz(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4, 500))
    if kind == "correlated":
        draws = np.cumsum(draws, axis=1) * 0.1 + draws
    elif kind == "apart":
        draws += np.arange(4)[:, None]
    elif kind == "heavy tails":
        draws = rng.standard_cauchy((4, 500)) * np.array([1, 1, 1, 10])[:, None]
    r_hat, ess = r_hat_and_ess(draws)
    assert r_hat == pytest.approx(float(arviz.rhat(draws)), rel=1e-6)
    assert ess == pytest.approx(float(arviz.ess(draws)), rel=0.02)


def test_diagnostics_of_constant_chains():
    assert r_hat_and_ess(np.ones((4, 10))) == (1.0, 40.0)
    apart = r_hat_and_ess(np.repeat(np.arange(4.0)[:, None], 10, axis=1))
    assert apart[0] == np.inf


def test_chains_that_stay_apart_have_not_met_however_they_are_rounded():
    counts = np.random.default_rng(0).integers(40, size=(16, 1))
    assert r_hat_and_ess(np.repeat(counts, 101, axis=1))[0] == np.inf
