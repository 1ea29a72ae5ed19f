"""Mixtures of Betas against scipy: one component, several, and grouped ones."""

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.beta_mixture import BetaMixture


def single(a, b):
    return BetaMixture(np.array([a]), np.array([b]), np.ones(1))


SHAPES = [(1.0, 1.0), (0.5, 0.5), (3.0, 8.0), (0.05, 5.0), (400.0, 2.0), (3e5, 7e5)]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_one_component_is_scipys_beta(a, b):
    mixture, oracle = single(a, b), stats.beta(a, b)
    probabilities = np.array([0.001, 0.025, 0.3, 0.5, 0.9, 0.975, 0.9999])
    values = oracle.ppf(probabilities)
    assert mixture.mean() == pytest.approx(oracle.mean(), rel=1e-12)
    assert mixture.variance() == pytest.approx(oracle.var(), rel=1e-9)
    assert mixture.cdf(values) == pytest.approx(oracle.cdf(values), abs=1e-13)
    assert mixture.pdf(values) == pytest.approx(oracle.pdf(values), rel=1e-8)
    assert oracle.cdf(mixture.quantile(probabilities)) == pytest.approx(probabilities, abs=1e-11)


def test_several_components_add_up_by_their_weights():
    a, b, weights = (
        np.array([0.3, 40.0, 5.0]),
        np.array([2.0, 60.0, 0.2]),
        np.array([0.5, 0.2, 0.3]),
    )
    mixture = BetaMixture(a, b, weights)
    values = np.linspace(0, 1, 11).reshape(11, 1)
    assert mixture.cdf(values) == pytest.approx((stats.beta(a, b).cdf(values) @ weights)[:, None])
    assert mixture.pdf(values[1:-1]) == pytest.approx(
        (stats.beta(a, b).pdf(values[1:-1]) @ weights)[:, None]
    )
    sampled = stats.beta(a[:, None], b[:, None]).ppf((np.arange(20_000) + 0.5) / 20_000)
    mean = weights @ sampled.mean(axis=1)
    assert mixture.mean() == pytest.approx(mean, abs=1e-4)
    assert mixture.variance() == pytest.approx(
        weights @ ((sampled - mean) ** 2).mean(axis=1), abs=1e-4
    )
    assert mixture.cdf(mixture.quantile([0.1, 0.5, 0.7])) == pytest.approx(
        [0.1, 0.5, 0.7], abs=1e-11
    )


def test_values_beyond_the_range_and_probabilities_at_its_ends():
    mixture = single(2.0, 3.0)
    assert mixture.cdf([-1.0, 0.0, 1.0, 2.0]).tolist() == [0, 0, 1, 1]
    assert mixture.pdf([-1.0, 0.0, 1.0, 2.0]).tolist() == [0, 0, 0, 0]
    assert mixture.quantile([0.0, 1.0]).tolist() == [0, 1]
    assert single(0.5, 0.5).pdf([0.0, 1.0]).tolist() == [np.inf, np.inf]


@pytest.mark.parametrize(("a", "b"), SHAPES[2:])
def test_the_shortest_interval_is_scipys_best(a, b):
    lower, upper = single(a, b).shortest_interval(0.9)
    left = np.linspace(0, 0.1, 20_001)
    shortest = np.min(np.diff(stats.beta(a, b).ppf([left, left + 0.9]), axis=0))
    assert stats.beta(a, b).cdf(upper) - stats.beta(a, b).cdf(lower) == pytest.approx(0.9, abs=1e-9)
    assert upper - lower == pytest.approx(shortest, rel=1e-3)


def test_grouping_keeps_mean_and_variance_and_leaves_single_components_alone():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.1, 50, 60), rng.uniform(0.1, 50, 60)
    weights = rng.dirichlet(np.ones(60))
    whole = BetaMixture(a, b, weights)
    grouped = BetaMixture.grouped(a, b, weights, np.arange(60) // 7)
    assert grouped.a.size == 9
    assert grouped.mean() == pytest.approx(whole.mean(), rel=1e-12)
    assert grouped.variance() == pytest.approx(whole.variance(), rel=1e-12)
    alone = BetaMixture.grouped(a, b, weights, np.arange(60))
    assert alone.a == pytest.approx(a, rel=1e-9)
    assert alone.b == pytest.approx(b, rel=1e-9)
    spread = BetaMixture.grouped(a, b, weights, np.arange(60), 1e-3)
    assert spread.variance() == pytest.approx(whole.variance() + 1e-3, rel=1e-9)


def test_negligible_components_are_left_out():
    assert (
        BetaMixture.grouped(np.ones(2), np.ones(2), np.array([1.0, 1e-20]), np.arange(2)).a.size
        == 1
    )


def test_a_quantile_below_every_float_is_next_to_zero():
    assert 0 <= single(1e-3, 5.0).quantile(0.001) < 1e-300
