"""What was drawn of pooled groups given κ and m, by mixtures over q, against sums over all counts;
and counts drawn given all of these.
"""

from itertools import product

import numpy as np
import pytest
from scipy import special, stats

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial
from opendp_bayes.inference.likelihood import drawn_counts
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling import private_sizes as module
from opendp_bayes.inference.pooling.public_sizes import PublicSizes
from opendp_bayes.mathematics.zero_sum import nearest_counts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from tests.helpers import oracles
from tests.helpers.sweeps import some_of

DRAWN = np.array([[3, 0], [-1, 4]])
NUMBER = 500  # of draws
LIMIT = stats.norm.isf(oracles.FALSE_ALARM / 2)
CONCENTRATIONS = (
    *([1.0, 1.0], [0.01, 0.03], [0.1, 0.3], [30.0, 8.0], [3000.0, 900.0]),
    *([1e-7, 1e-6], [1e-25, 2e-25]),
)


def log_terms(noise, drawn, a, most, mean_size=np.inf):
    """`ln P(drawn, x)` of one group for all counts of up to `most`, with the factor of n."""
    x = np.arange(most + 1)
    with_noise = [
        noise.log_mass(r - x) + special.gammaln(x + b) - special.gammaln(b) - special.gammaln(x + 1)
        for r, b in zip(drawn, a, strict=True)
    ]
    n, kappa = x[:, None] + x, sum(a)
    of_sizes = special.gammaln(n + 1) + special.gammaln(kappa) - special.gammaln(n + kappa)
    return with_noise[0][:, None] + with_noise[1] + of_sizes - n * np.log1p(1 / mean_size)


@pytest.mark.parametrize("mean_size", [np.inf, 3.0])
@pytest.mark.parametrize(
    ("noise", "most"),
    [
        (DiscreteLaplace(1.0), 60),
        (DiscreteGaussian(2.0), 60),
        (DiscreteLaplace(12.0), 500),
        (DiscreteGaussian(12.0), 300),
    ],
    ids=["Laplace", "Gaussian", "wide Laplace", "wide Gaussian"],
)
def test_probabilities_are_those_of_sums_over_all_counts(noise, most, mean_size):
    """Of concentrations from 1e-25 to 3900."""
    noisy = DrawnCounts.of(DRAWN, noise)
    groups = [module.PrivateSizes(noisy.chosen([at]), mean_size) for at in range(2)]
    for a in CONCENTRATIONS:
        found = [one.log_p(np.array(a)) for one in groups]
        every = [log_terms(noise, drawn, a, most, mean_size) for drawn in DRAWN]
        assert found == pytest.approx([special.logsumexp(each) for each in every], abs=1e-3)
        both = module.PrivateSizes(noisy.chosen([0, 1, 1]), mean_size).log_p(np.array(a))
        assert both == pytest.approx(found[0] + 2 * found[1])


def test_places_that_stand_for_several_counts_answer_as_all_counts_do(monkeypatch):
    """Of 40 groups whose counts are hidden by the noise; as far as κ and m matter."""
    noise, rng = DiscreteLaplace(25.0), np.random.default_rng(0)
    drawn = rng.poisson(6.0, (40, 3)) + noise.simulate((40, 3), rng)

    def log_p():
        mixtures = module.PrivateSizes(DrawnCounts.of(drawn, noise))
        found = [mixtures.log_p(np.full(3, a)) for a in (0.5, 4.0, 60.0)]
        return np.diff(found), len(mixtures._nodes)

    some, few = log_p()
    monkeypatch.setattr(drawn_counts, "_OF_SCALE", 0.03)
    monkeypatch.setattr(drawn_counts, "_OF_DISTANCE", 0.0)
    every, many = log_p()
    assert 3 * few < many
    assert some == pytest.approx(every, abs=0.01)
    # Negative control: small counts that are as far apart as large ones are noticed.
    monkeypatch.setattr(drawn_counts, "_OF_SCALE", 0.8)
    monkeypatch.setattr(drawn_counts, "_OF_DISTANCE", 0.5)
    monkeypatch.setattr(drawn_counts, "_OF_ROOT", 6.0)
    assert np.abs(log_p()[0] - every).max() > 0.2


def of_all_counts(noise, drawn, size, a):
    """`ln P(drawn)` of a group of so many records, and the expected counts, by listing them all."""
    x = np.array(oracles.data_sets(size, len(a)))
    log_p = (special.gammaln(x + a) - special.gammaln(a) - special.gammaln(x + 1)).sum(axis=1)
    log_p += special.gammaln(size + 1) - log_rising_factorial(a.sum(), np.array(size))
    log_p += noise.log_mass(drawn - x).sum(axis=1)
    return special.logsumexp(log_p), special.softmax(log_p) @ x


SIZES = np.array([0, 1, 2, 3, 5, 13, 30])


@pytest.mark.parametrize(
    ("law", "scale", "k"),
    some_of(product([DiscreteLaplace, DiscreteGaussian], [1.0, 8.0, 40.0], [2, 3, 4]), 3),
)
def test_small_groups_of_public_sizes_have_no_more_records_than_they_have(law, scale, k):
    """Beside a giant one; noise as of K-norm mechanisms is Laplace noise of each count here."""
    noise, rng = law(scale), np.random.default_rng([k, int(scale)])
    sizes = np.append(SIZES, 1000)
    counts = np.array([rng.multinomial(size, rng.dirichlet(np.ones(k))) for size in sizes])
    drawn = counts + noise.simulate(counts.shape, rng)
    start = np.array([*map(nearest_counts, np.maximum(drawn, 0), sizes)])
    evidence = PublicSizes(DrawnCounts.of(drawn, noise), start)
    each = [
        PublicSizes(DrawnCounts.of(drawn[[at]], noise), start[[at]]) for at in range(len(drawn))
    ]
    for kappa in (1e-6, 0.25, 5.0, 400.0, 1e5):
        a = kappa * rng.dirichlet(np.arange(1, k + 1))
        wanted = [
            of_all_counts(noise, *group, a)[0] - special.gammaln(group[1] + 1.0)
            for group in zip(drawn[:-1], SIZES, strict=True)
        ]
        assert [one.log_p(a) for one in each[:-1]] == pytest.approx(wanted, abs=1e-7)
        assert evidence.log_p(a) == pytest.approx(sum(wanted) + each[-1].log_p(a), abs=1e-6)
    counts = evidence.counts(np.arange(1.0, k + 1), 300, rng)
    assert (counts.sum(axis=2) == sizes).all()
    expected = of_all_counts(noise, drawn[5], 13, np.arange(1.0, k + 1))[1]
    assert np.abs(counts[:, 5].mean(axis=0) - expected).max() < LIMIT * 13 / 2 / np.sqrt(300)


def frequencies(rows, sets, wanted):
    """Shares of the sets among rows, and standard errors of those that are wanted."""
    found = (rows[:, None] == sets).all(axis=2).mean(axis=0)
    return found, np.sqrt(np.maximum(found * (1 - found), wanted) / len(rows))


@pytest.mark.parametrize("a", [[0.7, 2.0], [0.01, 0.03], [30.0, 50.0]])
def test_counts_are_drawn_from_their_law(a):
    noise, a = DiscreteLaplace(1.0), np.array(a)
    mixtures = module.PrivateSizes(DrawnCounts.of(DRAWN, noise))
    counts = mixtures.counts(a, 4000, np.random.default_rng(0))
    sets = np.array([(x, y) for x in range(5) for y in range(6)])
    for group, drawn in enumerate(DRAWN):
        wanted = special.softmax(log_terms(noise, drawn, a, 60))[sets[:, 0], sets[:, 1]]
        found, error = frequencies(counts[:, group], sets, wanted)
        assert np.max(np.abs(found - wanted) / error) < LIMIT + 1
        # Negative control: another concentration.
        other = special.softmax(log_terms(noise, drawn, a[::-1] * 9, 60))[sets[:, 0], sets[:, 1]]
        assert np.max(np.abs(found - other) / error) > LIMIT + 1


def test_counts_of_many_groups_have_the_right_sum():
    """What is off by a part of a record in each count is seen in all of them: the probability of
    what was drawn falls as fast as the number of records says where larger ones weigh less.
    """
    noise, a, rng = DiscreteLaplace(4.0), np.array([3.0, 5.0, 9.0]), np.random.default_rng(0)
    drawn = rng.poisson(200.0, (60, 3)) + noise.simulate((60, 3), rng)
    rate = 1e-5
    every, fewer = (
        module.PrivateSizes(DrawnCounts.of(drawn, noise), 1 / np.expm1(each))
        for each in (rate, 2 * rate)
    )
    mean = (every.log_p(a) - fewer.log_p(a)) / rate
    sums = every.counts(a, 1000, rng).sum(axis=(1, 2))
    # Negative control: a tenth of a record.
    off = sums.mean() - mean
    assert abs(off) < LIMIT * sums.std() / np.sqrt(1000) < off + 0.1 * drawn.size


@pytest.mark.slow
def test_ranks_of_all_records_are_uniform():
    """Of those of one category too, in 400 simulated data sets of 120 groups, given κ and m."""
    noise, a, ranks = DiscreteLaplace(4.0), np.array([3.0, 5.0, 9.0]), []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        sizes, theta = rng.integers(300, 1500, 120), rng.dirichlet(a, 120)
        counts = np.array([rng.multinomial(n, t) for n, t in zip(sizes, theta, strict=True)])
        drawn = counts + noise.simulate(counts.shape, rng)
        mixtures = module.PrivateSizes(DrawnCounts.of(drawn, noise))
        of_draws, truth = (each.sum(axis=-2) for each in (mixtures.counts(a, 60, rng), counts))
        ranks.append(
            [(of_draws.sum(axis=1) < truth.sum()).mean(), *(of_draws < truth).mean(axis=0)]
        )
    ranks = np.array(ranks)
    assert min(stats.kstest(each, "uniform").pvalue for each in ranks.T) > oracles.FALSE_ALARM
    # Negative control: half of a deviation.
    shifted = stats.norm.cdf(stats.norm.ppf(np.clip(ranks[:, 0], 0.001, 0.999)) - 0.5)
    assert stats.kstest(shifted, "uniform").pvalue < oracles.FALSE_ALARM


def of_public_sizes(is_noised):
    """Evidence, κ m, and all its data sets with their probabilities."""
    noise, a, sizes = DiscreteLaplace(1.5), np.array([0.7, 2.0]), (4, 3)
    noised = np.array([[True, is_noised], [True, True]])
    evidence = PublicSizes(DrawnCounts.of(DRAWN, noise, noised), np.array([[3, 1], [0, 3]]))
    sets = np.array([(x, 4 - x, y, 3 - y) for x, y in product(range(5), range(4))])
    log_p = np.zeros(len(sets))
    for group in range(2):
        x = sets[:, 2 * group : 2 * group + 2]
        log_p += (special.gammaln(x + a) - special.gammaln(x + 1)).sum(axis=1)
        log_p += special.gammaln(sizes[group] + 1) - special.gammaln(sizes[group] + a.sum())
        log_p += np.where(noised[group], noise.log_mass(DRAWN[group] - x), 0).sum(axis=1)
    return evidence, a, sets, special.softmax(log_p)


@pytest.mark.parametrize("is_noised", [True, False])
def test_counts_of_public_sizes_are_those_of_all_data_sets(is_noised):
    """Also where one count has no noise: draws of them, and how probable what was drawn is, as far
    as that depends on κ and m.
    """
    evidence, first, sets, p = of_public_sizes(is_noised)
    rng = np.random.default_rng(1)
    rows = evidence.counts(first, NUMBER, rng).reshape(NUMBER, 4)
    found, error = frequencies(rows, sets, p)
    assert found.sum() == pytest.approx(1)  # all of them have the public sums
    assert np.max(np.abs(found - p) / error) < LIMIT + 1
    # Negative control: for the draws of other concentrations.
    others = evidence.counts(first[::-1] * 9, NUMBER, rng).reshape(NUMBER, 4)
    assert np.max(np.abs(frequencies(others, sets, p)[0] - p) / error) > LIMIT + 1

    def log_weight(b):
        ratio = 2 * (special.gammaln(b.sum()) - special.gammaln(b).sum())
        for x in (sets[:, :2], sets[:, 2:]):
            ratio += special.gammaln(x + b).sum(axis=1) - special.gammaln(x.sum(axis=1) + b.sum())
        return ratio

    for a in ([0.2, 0.3], [5.0, 5.0], [40.0, 160.0]):
        found = evidence.log_p(np.array(a)) - evidence.log_p(first)
        wanted = np.log(p @ np.exp(log_weight(np.array(a)) - log_weight(first)))
        assert found == pytest.approx(wanted, abs=1e-6)
