"""A warning where a fixed prior decides how many records there are, and none where it fits."""

import warnings

import numpy as np
import pytest
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace, FlooredLaplace
from tests.helpers.releases import guarantee

LAPLACE, GAUSSIAN = ob.LaplaceParameters(3.0, total="private"), ob.GaussianParameters(3.0)
NOISE = {LAPLACE: DiscreteLaplace(3.0), GAUSSIAN: DiscreteGaussian(3.0)}


def released(drawn, mechanism, size=None, prior=1.0, columns=None):
    """A release of one column, or of a table with so many columns."""
    k = len(drawn)
    cells = tuple((i // columns, i % columns) for i in range(k)) if columns else tuple(range(k))
    axes = ("row", "column") if columns else ()
    return ob.Release(tuple(map(int, drawn)), cells, (prior,) * k, mechanism, guarantee(size), axes)


def warned(release, **options):
    posterior = ob.noise_aware_posterior(release, **options)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        posterior.mean()
    return [str(each.message) for each in found]


def sparse(k=1000, records=10_000, mechanism=LAPLACE, **options):
    """A table of which most cells are empty."""
    rng, shares = np.random.default_rng(1), np.arange(1, k + 1) ** -1.5
    counts = rng.multinomial(records, shares / shares.sum())
    drawn = counts + NOISE[mechanism].simulate(counts.shape, rng)
    return released(drawn, mechanism, **options)


@pytest.mark.parametrize("number", [2, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("mechanism", "k", "columns", "size", "prior", "records"),
    [
        (LAPLACE, 3, None, None, 1.0, 40),
        (GAUSSIAN, 3, None, None, 0.1, 5),
        (LAPLACE, 10, 5, None, 1.0, 300),
        (GAUSSIAN, 10, 5, 300, 1.0, 300),
        (LAPLACE, 100, 10, None, 0.5, 5000),
        (GAUSSIAN, 100, 10, 5000, 0.5, 5000),
    ],
)
def test_data_of_the_prior_give_no_warning(mechanism, k, columns, size, prior, records, number):
    """The difference has at most the variance of the noise where the prior holds; a false
    alarm in all 60 has a probability of about 1e-2 at most, and seeds make them repeatable.
    """
    rng = np.random.default_rng(7)
    for _ in range(number):
        counts = rng.multinomial(records, rng.dirichlet(np.full(k, prior)))
        drawn = counts + NOISE[mechanism].simulate(counts.shape, rng)
        assert warned(released(drawn, mechanism, size, prior, columns)) == []


def test_what_is_a_conflict_and_what_is_none():
    """Records of one row alone, of which the prior gives the other rows some."""
    (message,) = warned(sparse())
    assert ob.noise_aware_posterior(sparse()) is not None  # no law is asked, and nothing said
    assert "the posterior's number of records is 12" in message
    assert "prior='learned'" in message
    counts = np.zeros((5, 200), dtype=np.int64)
    counts[1] = 5
    drawn = counts + DiscreteGaussian(3.0).simulate(counts.shape, np.random.default_rng(3))
    (message,) = warned(released(drawn.ravel(), GAUSSIAN, 1000, columns=200))
    assert "number of records with row=1 is" in message
    assert warned(released(drawn.ravel(), GAUSSIAN, 1000)) == []  # no margins
    posterior = ob.noise_aware_posterior(sparse(k=400, columns=20))
    posterior.merged({"few": [(0, 0), (0, 1)]}).mean()
    posterior.marginal("row").mean()
    assert warned(sparse(k=400), records_prior=stats.poisson(10_000)) == []
    assert warned(released([-14, -12, -16], GAUSSIAN)) == []
    rng, mechanism = np.random.default_rng(2), ob.LaplaceParameters(1.0, "floored")
    counts = rng.multinomial(4000, rng.dirichlet(np.ones(400)))
    drawn = counts + FlooredLaplace(1.0).simulate(counts.shape, rng)
    drawn[-1] = 4000 - drawn[:-1].sum()
    assert warned(released(drawn, mechanism, 4000, columns=200)) == []
