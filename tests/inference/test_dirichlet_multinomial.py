"""Dirichlet and Dirichlet-multinomial laws, and a Dirichlet law in place of a posterior."""

import numpy as np
import pytest
from scipy import stats

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
