"""The exact posteriors against brute force over every data set, and their shortcuts against the
same without shortcuts.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

import opendp_bayes as ob
from opendp_bayes.inference.engines import Listed, TwoCategories
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.of_counts import likelihood_of
from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.surveys.survey_tables.table_posterior import TableDraws
from tests.helpers import brute_force, oracles
from tests.helpers.envelope import deviations
from tests.helpers.sweeps import slow, some_of
from tests.helpers.weighed_pairs import OnPanels

VALUES = np.linspace(0.01, 0.99, 41)
PRIORS = {2: [(1.0, 1.0), (0.3, 3.0)], 3: [(1.0, 1.0, 1.0), (1.0, 0.5, 20.0)]}
NOISE = [
    ob.LaplaceParameters(2.0),
    ob.LaplaceParameters(0.3),
    ob.LaplaceParameters(30.0, "floored"),
    ob.LaplaceParameters(2.0, "floored", "bounded"),
    ob.LaplaceParameters(2.0, "discrete", "bounded"),
    ob.KNormParameters(1.5),
]


LEVELS = np.array([0.001, 0.025, 0.3, 0.5, 0.8, 0.975, 0.999])
#: What cells of counts instead of every count may change a posterior probability by.
CELLS = 1e-3


def error(made, largest=None):
    return np.abs(made.posterior.cdf(VALUES) - brute_force.cdf(made, VALUES, largest)).max()


@pytest.mark.parametrize("mechanism", NOISE, ids=repr)
@pytest.mark.parametrize("counts", [(5, 7), (0, 12), (12, 0), (1, 0)], ids=repr)
def test_two_categories_with_noise_on_the_counts(mechanism, counts, release):
    for prior in PRIORS[2]:
        assert error(release(mechanism, counts, sum(counts), prior)) < 1e-10


@pytest.mark.parametrize("mechanism", NOISE, ids=repr)
@pytest.mark.parametrize("counts", [(3, 4, 1), (2, 2, 4)], ids=repr)
def test_three_categories_with_noise_on_the_counts(mechanism, counts, release):
    if mechanism.scale > 10:
        counts = tuple(np.minimum(counts, 8))
    for prior in PRIORS[3]:
        made = release(mechanism, counts, 8, prior)
        assert made.posterior.diagnostics is None
        assert error(made) < 1e-10


@pytest.mark.parametrize("counts", [(0, 8, 8), (8, 8, 8), (0, 0, 0), (0, 0, 8)], ids=repr)
@pytest.mark.parametrize("mechanism", NOISE[3:5], ids=repr)
def test_counts_that_were_clamped_and_do_not_sum_to_the_size(mechanism, counts, release):
    assert error(release(mechanism, counts, 8, (1.0, 0.5, 2.0))) < 1e-10


@pytest.mark.parametrize(
    "mechanism",
    [
        *(ob.LaplaceParameters(0.8, noise, "private") for noise in ("discrete", "floored")),
        ob.GaussianParameters(0.9, "private"),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    ("counts", "prior"),
    [
        ((4, 6), (1.0, 1.0)),
        ((0, 3), (0.1, 3.0)),
        ((0, 0), (1.0, 1.0)),
        ((2, 0, 3), (1.0, 0.5, 2.0)),
    ],
    ids=repr,
)
def test_a_private_number_of_records(mechanism, counts, prior, release):
    made = release(mechanism, counts, None, prior)
    largest = 40 if len(counts) == 2 else 26
    assert error(made, largest) < 2e-3  # numbers of other records within 5 % share a component
    assert made.posterior.mean() == pytest.approx(brute_force.mean(made, largest), rel=1e-6)


def test_public_numbers_beside_wrong_scales_and_strong_priors(release):
    """The projection does not use the number of records; the posterior does. The window of a
    convolution is where the probability is, not where the release is. Negative control: the
    same comparison sees a scale that is 30 % off.
    """
    made, kept = (
        release(ob.GaussianParameters(2.0, total), (9, 4, -3), 12) for total in ("private", None)
    )
    assert (made.counts, kept.counts) == ((9, 4, 0), (8, 4, 0))
    assert made.posterior.mean() == pytest.approx(kept.posterior.mean(), abs=1e-9)
    assert error(kept) < CELLS
    made = release(
        ob.LaplaceParameters(1.0, "discrete", "bounded"), (12, 0, 0), 12, (1e4, 1e4, 1e4)
    )
    assert error(made) < 1e-8
    for counts, size, largest in [((5, 7), 12, None), ((3, 4, 1), 8, None)]:
        right = release(ob.LaplaceParameters(2.0), counts, size)
        wrong = release(ob.LaplaceParameters(2.6), counts, size)
        assert (
            np.abs(
                wrong.posterior.cdf(VALUES)[:, 0] - brute_force.cdf(right, VALUES, largest)[:, 0]
            ).max()
            > 1e-3
        )
    right, wrong = (
        release(ob.LaplaceParameters(scale, total="private"), (4, 6), None) for scale in (0.8, 1.04)
    )
    assert (
        np.abs(wrong.posterior.cdf(VALUES)[:, 0] - brute_force.cdf(right, VALUES, 40)[:, 0]).max()
        > 1e-2
    )


def test_numbers_of_records_many_scales_above_the_release(release):
    """Where the prior on their number expects them there, in spite of a release of (0, 1)."""
    made = release(ob.LaplaceParameters(0.5, total="private"), (0, 1), None)
    records_prior = stats.nbinom(400, 0.95)
    sets, weights = brute_force.data_sets(made, 50)
    weights = weights * records_prior.pmf(sets.sum(axis=1))
    a = 1.0 + sets
    expected = (weights / weights.sum()) @ (a / a.sum(axis=1, keepdims=True))
    posterior = ob.noise_aware_posterior(made, records_prior=records_prior)
    assert posterior.mean() == pytest.approx(expected, rel=1e-4)
    sizes = posterior._engine.sample(4000, np.random.default_rng(0)).sum(axis=1)
    mean = weights @ sets.sum(axis=1) / weights.sum()
    assert sizes.mean() == pytest.approx(mean, abs=5 * sizes.std() / np.sqrt(4000))


@pytest.mark.parametrize(
    ("prior", "scale"),
    some_of([((1e-3, 1.0, 1e3, 30.0), 4.0), ((1e-2, 1e2, 1e4, 1.0), 0.5)], 1),
    ids=repr,
)
def test_listed_data_sets_under_very_unequal_priors(prior, scale, release):
    alpha, released = np.array(prior), np.array([0, 0, 15, 1])
    sets, mechanism = candidates(16, 4), HellingerExponential(scale, "local")
    distances = np.stack(
        [ob.mechanisms.hellinger_distance(alpha + sets, alpha + row) for row in sets]
    )
    widths = np.array(
        [mechanism.scale * ob.mechanisms.local_sensitivity(row, alpha) for row in sets]
    )
    own = distances[(sets == released).all(axis=1)][0]
    exact = -own / widths - special.logsumexp(-distances / widths[:, None], axis=1)
    ours = likelihood_of(Setting.of(mechanism, 16, alpha), released).log_likelihood(sets)
    assert ours == pytest.approx(exact, abs=1e-9)
    right = Listed(sets, exact + log_rising(sets, alpha).sum(axis=1), alpha).probabilities
    posterior = release(mechanism, released.tolist(), 16, prior).posterior
    assert posterior.mean() == pytest.approx(right.mean(), rel=1e-9)


def every_count(likelihood, prior, size):
    """The marginal of the first of two categories, by the weight of every count."""
    first = np.arange(size + 1.0)
    logs = likelihood.log_likelihood(np.column_stack([first, size - first]).astype(np.int64))
    logs = logs + log_rising(first, prior[0]) + log_rising(size - first, prior[1])
    return OnPanels(prior, size, first, logs)


def two_categories(rng):
    """A mechanism that weighs or flips, a prior, and a release near it or far from it."""
    size = int(np.exp(rng.uniform(np.log(200), np.log(3e5))))
    prior = [
        np.ones(2),
        10.0 ** rng.uniform(-6, 8, 2),
        10.0 ** rng.uniform(-2, 3, 2),
        np.full(2, 10.0 ** rng.uniform(-3, 7)),
    ][rng.integers(4)]
    expected = int(size * rng.beta(*np.maximum(prior, 1e-3)))
    first = [rng.integers(size + 1), 0, expected, size - int(size ** rng.random())]
    scale = float(10.0 ** rng.uniform(-3, 0))
    mechanism = [
        HellingerExponential(scale),
        HellingerExponential(10 * scale, "local"),
        SmoothHellingerExponential(40 * scale, gamma=float(10.0 ** rng.uniform(-2, 0))),
        PermuteAndFlip(scale),
    ][rng.integers(4)]
    return mechanism, prior, int(first[rng.integers(4)]), size


def deviation_of(mechanism, prior, first, size):
    likelihood = likelihood_of(Setting.of(mechanism, size, prior), [first, size - first])
    found = TwoCategories(likelihood.log_likelihood, [first], prior, size)
    off = deviations(found, every_count(likelihood, prior, size), [0])
    # The deviation of a count that is next to surely one number is its tail's: 1e-2 is stated.
    return max({**off, "count std": off["count std"] / 10}.values())


@pytest.mark.parametrize("seed", some_of(range(25), 4))
def test_cells_of_counts_of_two_categories_are_as_good_as_every_count(seed):
    made = two_categories(np.random.default_rng([7, seed]))
    assert deviation_of(*made) < CELLS, made


@pytest.mark.parametrize(
    ("mechanism", "prior", "first", "size"),
    [
        (HellingerExponential(0.0036), (30_521.0, 2302.5), 0, 59_550),
        (SmoothHellingerExponential(0.19, gamma=0.36), (14_626.0, 14_626.0), 95_893, 97_799),
        *slow(
            [
                (HellingerExponential(0.05, "global"), (23.7, 0.65), 574_621, 574_672),
                (PermuteAndFlip(0.4), (986_000.0, 986_000.0), 58_482, 75_360),
            ]
        ),
    ],
    ids=repr,
)
def test_informed_priors_against_the_release(mechanism, prior, first, size):
    """Peaks that are narrower than any cell which is placed by the release alone."""
    assert deviation_of(mechanism, np.array(prior), first, size) < CELLS


@pytest.mark.parametrize("size", [5000, 10**6, 10**9])
def test_a_flat_likelihood_leaves_the_prior(size):
    levels = np.linspace(0.001, 0.999, 500)
    for prior in ((1.0, 1.0), (0.3, 2.0), (30.0, 4.0)):
        found = TwoCategories(lambda counts: np.zeros(len(counts)), [7], np.array(prior), size)
        cdf = found.probabilities.cdf(stats.beta.ppf(levels, *prior)[:, None])[:, 0]
        assert cdf == pytest.approx(levels, abs=CELLS)


def test_another_release_is_noticed():
    """Negative control."""
    likelihood = likelihood_of(Setting.of(HellingerExponential(0.05), 1000, np.ones(2)), [300, 700])
    other = likelihood_of(Setting.of(HellingerExponential(0.05), 1000, np.ones(2)), [310, 690])
    found = TwoCategories(likelihood.log_likelihood, [300], np.ones(2), 1000)
    right, wrong = (every_count(one, np.ones(2), 1000) for one in (likelihood, other))
    assert max(deviations(found, right, [0]).values()) < CELLS
    assert max(deviations(found, wrong, [0]).values()) > 10 * CELLS


@pytest.mark.parametrize(
    ("mechanism", "counts", "largest"),
    [
        (ob.LaplaceParameters(2.0), (1, 2, 3), None),
        (ob.LaplaceParameters(2.0, "floored", "bounded"), (1, 2, 3), None),
        (ob.KNormParameters(1.0), (1, 2, 3), None),
        (ob.LaplaceParameters(0.5, total="private"), (1, 2), 30),
    ],
    ids=repr,
)
def test_draws_of_the_counts_follow_their_posterior(mechanism, counts, largest, release):
    size, prior = sum(counts) if largest is None else None, (1.0, 0.5, 2.0)[: len(counts)]
    made = release(mechanism, counts, size, prior)
    sets, weights = brute_force.data_sets(made, largest)
    law = dict(zip(map(tuple, sets.tolist()), weights, strict=True))
    wrong = release(replace(mechanism, scale=mechanism.scale * 1.3), counts, size, prior)
    for of, is_rejected in ((made, False), (wrong, True)):
        drawn = of.posterior._engine.sample(20_000, np.random.default_rng(0))
        assert oracles.rejects(map(tuple, drawn.tolist()), law) == is_rejected


def test_draws_from_cells_and_of_shares_are_spread_over_them():
    """Of a category that is next to empty: half of the draws are below 1e-15."""
    size, prior = 5000, np.ones(2)
    cells = TwoCategories(lambda counts: np.zeros(len(counts)), [100], prior, size)
    assert cells.counts.cells.first.size < size / 2
    drawn = cells.sample(40_000, np.random.default_rng(0))
    assert np.all(drawn.sum(axis=1) == size)
    assert not oracles.rejects(
        (drawn[:, 0] // 50).tolist(),
        {cell: (50 if cell < 100 else 1) / 5001 for cell in range(101)},
    )
    small = np.sort(np.random.default_rng(4).beta(0.02, 3.0, 4000))
    found = TableDraws(np.stack([small, 1 - small], axis=-1)[None]).probabilities
    for share in (0.1, 0.3, 0.5):
        quantile = float(np.quantile(small, share))
        # Within a component of 1/64, which its neighbours overlap by half.
        assert found.cdf(quantile)[0] == pytest.approx(share, abs=1 / 64)
    assert found.mean()[0] == pytest.approx(small.mean(), rel=1e-6)


def test_listed_marginals() -> None:
    sets = np.array(oracles.data_sets(4, 3))
    weights = np.random.default_rng(0).dirichlet(np.ones(len(sets)))
    prior = np.array([0.5, 1.0, 2.0])
    marginal = Listed(sets, np.log(weights), prior).probabilities[1]
    expected = weights @ stats.beta.cdf(
        VALUES, (1.0 + sets[:, 1])[:, None], (2.5 + 4 - sets[:, 1])[:, None]
    )
    assert marginal.cdf(VALUES[:, None])[:, 0] == pytest.approx(expected, abs=1e-12)
