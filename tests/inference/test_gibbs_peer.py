"""A peer for the posterior of one group: the Gibbs sampler of Bernstein and Sheldon (2018, 2019),
written from their papers. It moves the true counts, under the normal law of large counts, and
writes Laplace noise as normal noise whose variance is exponential.
"""

import numpy as np
import pytest
from scipy import stats

import opendp_bayes as ob
from tests.helpers import oracles
from tests.helpers.releases import guarantee

SCALE, RECORDS, DRAWN = 40.0, 1500, (790, 455, 320)
PRIOR = np.array([1.0, 2.0, 0.5])


def gibbs(drawn, prior, size, scale, rng, rows, sweeps):
    """Means of the probabilities and of their squares over the last three quarters of each chain,
    two arrays of shape `(rows, k)`.
    """
    k = prior.size
    counts = np.tile(np.maximum(drawn, 1.0), (rows, 1))
    counts *= size / counts.sum(axis=1, keepdims=True)
    variance = np.full((rows, k), 2 * scale**2)
    means, squares = np.zeros((rows, k)), np.zeros((rows, k))
    for sweep in range(sweeps):
        gammas = rng.gamma(prior + np.maximum(counts, 0))
        theta = gammas / gammas.sum(axis=1, keepdims=True)
        # Counts are normal around n θ, what was drawn is normal around them.
        spread = size * (theta[:, :, None] * np.eye(k) - theta[:, :, None] * theta[:, None, :])
        gain = spread @ np.linalg.inv(spread + variance[:, :, None] * np.eye(k))
        of_counts = spread - gain @ spread
        values, vectors = np.linalg.eigh((of_counts + of_counts.transpose(0, 2, 1)) / 2)
        roots = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
        expected = size * theta + (gain @ (drawn - size * theta)[:, :, None])[:, :, 0]
        counts = expected + (roots @ rng.normal(size=(rows, k, 1)))[:, :, 0]
        off = np.maximum(np.abs(drawn - counts), 1e-9)
        variance = 1 / rng.wald(1 / (scale * off), 1 / scale**2)
        if sweep >= sweeps // 4:
            means += theta
            squares += theta**2
    kept = sweeps - sweeps // 4
    return means / kept, squares / kept


def standard_scores(posterior, means, squares):
    """By how many of their standard errors the chains' means and second moments are off."""
    moments = posterior.mean(), posterior.std() ** 2 + posterior.mean() ** 2
    return np.array(
        [
            (of.mean(axis=0) - wanted) / (of.std(axis=0, ddof=1) / np.sqrt(len(of)))
            for of, wanted in zip((means, squares), moments, strict=True)
        ]
    )


@pytest.mark.parametrize(
    ("rows", "sweeps"), [(300, 300), pytest.param(600, 600, marks=pytest.mark.slow)]
)
def test_agrees_with_the_sampler_of_bernstein_and_sheldon(rows, sweeps):
    noise = ob.LaplaceParameters(SCALE, total="private")  # on every count, as in their papers
    release = ob.Release(DRAWN, ("a", "b", "c"), tuple(PRIOR), noise, guarantee(RECORDS))
    rng = np.random.default_rng(0)
    found = gibbs(np.array(DRAWN), PRIOR, RECORDS, SCALE, rng, rows, sweeps)
    limit = stats.norm.isf(oracles.FALSE_ALARM / 2 / 6)
    assert np.abs(standard_scores(release.posterior, *found)).max() < limit
    # Negative control: noise of another scale
    wrong = gibbs(np.array(DRAWN), PRIOR, RECORDS, 2 * SCALE, rng, rows, sweeps)
    assert np.abs(standard_scores(release.posterior, *wrong)).max() > limit
