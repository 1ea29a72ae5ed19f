"""Pooled groups: their draws against sums over all counts, and calibrated by simulation."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import special, stats

import opendp_bayes as ob
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling import pooled_draws as module
from opendp_bayes.inference.pooling.pooled_groups import PooledGroups
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.results.release import GroupedRelease
from tests.helpers import oracles
from tests.helpers.pooled_ranks import KAPPA, check_200_uniform, check_uniform, ranks, truth
from tests.helpers.releases import guarantee
from tests.helpers.shortened import shorten
from tests.helpers.sweeps import slow

DRAWN = ((4, 0), (1, 6), (-1, 3))


def grouped(drawn, scale=1.0):
    labels = tuple("abcdefgh"[: len(drawn[0])])
    mechanism = ob.LaplaceParameters(scale, total="private")
    groups = tuple(range(len(drawn)))
    prior = (1.0,) * len(labels)
    return GroupedRelease(groups, drawn, labels, prior, mechanism, guarantee(None))


def exact(drawn, scale, kappa_prior, largest=26, points=30):
    """Expected ln κ, m and probabilities of the first category of each group, and their standard
    deviations, by sums over all counts of two categories and integrals over κ and m.
    """
    kappas = kappa_prior.ppf((np.arange(points) + 0.5) / points)
    shares = (np.arange(points) + 0.5) / points
    kappa, share = (grid.ravel() for grid in np.meshgrid(kappas, shares))
    x, y = (grid.ravel() for grid in np.meshgrid(np.arange(largest), np.arange(largest)))
    n, a, b = x + y, kappa * share, kappa * (1 - share)
    counts = special.betaln(a[:, None] + x, b[:, None] + y) - special.betaln(a, b)[:, None]
    counts += special.gammaln(n + 1) - special.gammaln(x + 1) - special.gammaln(y + 1)
    log_evidence, means = np.zeros(kappa.size), []
    for first, second in drawn:
        noise = -(np.abs(first - x) + np.abs(second - y)) / scale
        log_evidence += special.logsumexp(counts + noise, axis=1)
        given = special.softmax(counts + noise, axis=1)
        means.append((given * (a[:, None] + x) / (kappa[:, None] + n)).sum(axis=1))
    weights = special.softmax(log_evidence)
    values = np.stack([np.log(kappa), share, *means])
    mean = values @ weights
    return mean, np.sqrt((values - mean[:, None]) ** 2 @ weights)


def found_by(pooled):
    kappa = np.log(pooled.kappa)
    return np.array([kappa.mean(), pooled.m[:, 0].mean(), *(p.mean()[0] for p in pooled.values())])


@pytest.mark.parametrize("ess", [100, pytest.param(4000, marks=pytest.mark.slow)])
def test_agrees_with_sums_over_all_counts(ess):
    pooled = grouped(DRAWN).pooled(kappa_prior=KAPPA, ess=ess)
    mean, std = exact(DRAWN, 1.0, KAPPA)
    error = std / np.sqrt(pooled.diagnostics.ess.min())
    off = np.abs(found_by(pooled) - mean) / error
    limit = stats.norm.isf(oracles.FALSE_ALARM / 2)
    assert off.max() < limit
    # Negative control: another prior of κ, and other noise, are noticed.
    wrong = exact(DRAWN, 1.0, stats.gamma(3, scale=4)), exact(DRAWN, 2.5, KAPPA)
    assert min(np.max(np.abs(found_by(pooled) - other[0]) / error) for other in wrong) > limit


def simulated(seed, size=None, scale=1.5, groups=6, assumed=1.0):
    """Ranks of ln κ, m and the probabilities of one group, of data from the model: Laplace noise,
    or a public number of all records and Gaussian noise.
    """
    rng = np.random.default_rng(seed)
    kappa, m, theta = truth(groups, 3, rng)
    if size is None:
        law, sizes = DiscreteLaplace, rng.integers(0, 120, groups)
    else:
        law, sizes = DiscreteGaussian, rng.multinomial(size, rng.dirichlet(np.ones(groups)))
    counts = np.array([rng.multinomial(n, t) for n, t in zip(sizes, theta, strict=True)])
    noisy = DrawnCounts.of(counts + law(scale).simulate(counts.shape, rng), law(scale * assumed))
    mean_size = math.inf if size is None else size / groups
    data = PooledGroups(tuple(range(groups)), tuple("abc"), noisy, mean_size=mean_size)
    return ranks(data, kappa, m, theta, rng)


@pytest.mark.parametrize("known", [{}, {"size": 300, "scale": 3.0}], ids=["private", "public"])
def test_ranks_of_five_truths_look_uniform(monkeypatch, known):
    """What the slow test does of 200, with fewer draws."""
    check_uniform(monkeypatch, partial(simulated, **known), 5, draws=40)


@pytest.mark.slow
@pytest.mark.parametrize("known", [{}, {"size": 300, "scale": 3.0}], ids=["private", "public"])
def test_ranks_of_the_truth_are_uniform(monkeypatch, known):
    """Simulation-based calibration, of κ, every entry of m and the probabilities of a group."""
    # Negative control: noise thought to be much smaller is taken for differences between groups.
    other = {"groups": 30, "scale": 10.0, "assumed": 0.1} | ({"size": 900} if known else {})
    check_200_uniform(monkeypatch, partial(simulated, **known), partial(simulated, **other))


@pytest.mark.parametrize(
    ("m_prior", "kappa_prior"),
    [(0.01, stats.loguniform(1e-30, 1e-10)), pytest.param(1e-3, None, marks=pytest.mark.slow)],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_groups_of_one_category_each(monkeypatch, m_prior, kappa_prior):
    """Entries of κ m too small for a float: what was not drawn in a group is not in it."""
    shorten(monkeypatch)
    drawn = ((40, 0, 1), (1, 60, 2), (-1, 30, 0), (900, 1, 0))
    pooled = grouped(drawn).pooled(m_prior=m_prior, kappa_prior=kappa_prior, ess=1)
    for group, category in enumerate((0, 1, 1, 0)):
        assert pooled[group].mean()[category] > 0.9
        assert pooled[group].interval().lower[category] > 0.8


def test_a_seed_decides_and_texts_say_what_it_is(monkeypatch):
    shorten(monkeypatch)
    release = grouped(DRAWN)
    pooled = release.pooled(ess=10)
    assert np.allclose(pooled.m.sum(axis=1), 1)
    assert repr(pooled[0]).startswith("NoiseAwarePosterior({'a': ")
    assert " effective draws)" in repr(pooled[0])
    assert repr(pooled).startswith("Pooled(3 groups, kappa=")
    assert f" {pooled.diagnostics.draws} " in repr(pooled.diagnostics)
    again = release.pooled(ess=10)
    assert np.array_equal(again.kappa, pooled.kappa)


def test_refuses_what_is_no_prior_and_what_fills_the_memory():
    release = grouped(DRAWN)
    for prior in (3.0, stats.norm(0, 1), stats.poisson(3)):
        with pytest.raises(ValueError, match="frozen continuous distribution"):
            release.pooled(kappa_prior=prior)
    with pytest.raises(ValueError, match=r"^m_prior=\[1.0, -1.0\]: .*greater"):
        release.pooled(m_prior=[1.0, -1.0])
    with pytest.raises(ValueError, match=r"^ess=0: .*between 1 and .* draws"):
        release.pooled(ess=0)
    with pytest.raises(ValueError, match=r"^size=0: .*between 1 and .* draws"):
        release[0].posterior.sample(0)
    release = grouped(DRAWN)
    with pytest.raises(ValueError, match=r"^ess=20834000: .*draws of 6 counts.* 2 GB; .*20833333"):
        release.pooled(ess=20_834_000)


def test_refuses_where_draws_are_worth_few(monkeypatch):
    monkeypatch.setattr(module, "_ROUND", 16)
    monkeypatch.setattr(module, "_MOST", 0.01)
    with pytest.raises(ValueError, match=r"of kappa and m .* of each group"):
        grouped(DRAWN, scale=20.0).pooled()


def test_gives_up_where_no_number_of_draws_would_do(monkeypatch):
    """Where m is on a sphere that no proposal follows."""
    monkeypatch.setattr(module, "_FEWEST", 50)

    class Round:
        def log_p(self, a):
            return -1e6 * (np.sum(np.log(a[:-1] / a[-1]) ** 2) - 4) ** 2

        def counts(self, a, number, rng):
            return np.zeros((number, 1, a.size), dtype=np.int32)

    target, shares = module.Target(Round(), KAPPA, np.ones(12)), np.full(12, 1 / 12)
    *_, worth = module.draws_of(target, shares, 50, np.random.default_rng(0))
    assert worth < 50


@pytest.mark.parametrize(
    ("drawn", "log_kappa", "mean"),
    [
        (((3000, 1000), (3, 2), (1500, 500)), (4.27, 1.83), 0.713),
        *slow(
            [
                (((0, 0), (3, 2), (300, 100)), (3.02, 1.49), 0.674),
                (((6, 2), (3, 2), (3000, 1000), (7, 3), (2, 0)), (3.74, 1.44), 0.707),
            ]
        ),
    ],
)
def test_a_group_that_is_much_larger_leaves_the_tail_of_kappa(drawn, log_kappa, mean):
    """Figures of a sum over kappa and m, without noise. The group alone decides m, so that the
    slopes of the groups vanish together where the weight is largest.
    """
    found = grouped(drawn, scale=0.05).pooled(ess=1000, random_state=0)
    logs = np.log(found.kappa)
    assert logs.mean() == pytest.approx(log_kappa[0], abs=0.2)
    assert logs.std() == pytest.approx(log_kappa[1], abs=0.2)
    assert found[drawn.index((3, 2))].mean()[0] == pytest.approx(mean, abs=0.01)
