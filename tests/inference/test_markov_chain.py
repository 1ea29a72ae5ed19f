"""Draws of Markov chains: rows of them, and diagnostics against arviz."""

import warnings

import numpy as np
import pytest

from opendp_bayes.inference.sampling.markov_chain import Chains, r_hat_and_ess, run_until


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
    # Another column beside it changes nothing, nor do equal draws.
    beside = np.stack([draws, rng.integers(5, size=draws.shape)], axis=-1)
    r_hat, ess = r_hat_and_ess(beside)
    for at, column in enumerate(np.moveaxis(beside, -1, 0)):
        assert r_hat[at] == pytest.approx(float(arviz.rhat(column)), rel=1e-6)
        assert ess[at] == pytest.approx(float(arviz.ess(column)), rel=0.02)


def test_diagnostics_of_constant_chains_and_of_those_that_stay_apart():
    apart = np.repeat(np.arange(4.0)[:, None], 10, axis=1)
    r_hat, ess = r_hat_and_ess(np.stack([np.ones((4, 10)), apart], axis=-1))
    assert r_hat.tolist() == [1.0, np.inf]
    assert ess[0] == 40.0
    counts = np.random.default_rng(0).integers(40, size=(16, 1))
    assert r_hat_and_ess(np.repeat(counts, 101, axis=1)[..., None])[0] == [np.inf]


def runs(settles, **options):
    """What is looked at of chains that count their sweeps, until so many sweeps were made."""
    at, looks = [0], []

    def sweep(times):
        at[0] += times
        return at[0]

    def look(drawn, sweeps):
        looks.append((drawn.copy(), sweeps))
        return sweeps, sweeps >= settles

    assert run_until(sweep, look, **options) == at[0] == looks[-1][1]
    return looks


def test_runs_double_until_they_settle_and_keep_every_other_draw():
    found = runs(30, length=10, doublings=5, most=100)
    assert found == [(list(range(1, n + 1)), n) for n in (10, 20, 40)]
    assert [sweeps for _, sweeps in runs(10**6, length=10, doublings=2, most=100)] == [10, 20, 40]
    found = runs(160, length=10, doublings=4, most=20)
    assert [drawn for drawn, _ in found[2:4]] == [list(range(2, 41, 2)), list(range(4, 81, 4))]
    assert max(len(drawn) for drawn, _ in found) == 20
    apart = runs(160, length=20, doublings=3, most=10, apart=2)
    assert [drawn for drawn, _ in apart][1:] == [list(range(n, 10 * n + 1, n)) for n in (4, 8, 16)]
