"""Mixtures of Betas against scipy: one component, several, and grouped ones, of which what is left
out holds neither weight nor variance.
"""

import tracemalloc

import numpy as np
import pytest
from scipy import special, stats

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures, varied


def single(a, b):
    return BetaMixtures.single(np.array([a]), np.array([b]), np.ones(1))


SHAPES = [(1.0, 1.0), (0.5, 0.5), (3.0, 8.0), (0.05, 5.0), (400.0, 2.0), (3e5, 7e5)]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_one_component_is_scipys_beta_and_made_of_its_mean_and_variance(a, b):
    mixture, oracle = single(a, b), stats.beta(a, b)
    probabilities = np.array([0.001, 0.025, 0.3, 0.5, 0.9, 0.975, 0.9999])[:, None]
    values = oracle.ppf(probabilities)
    assert mixture.mean() == pytest.approx(oracle.mean(), rel=1e-12)
    assert mixture.variance() == pytest.approx(oracle.var(), rel=1e-9)
    assert mixture.cdf(values) == pytest.approx(oracle.cdf(values), abs=1e-13)
    assert mixture.pdf(values) == pytest.approx(oracle.pdf(values), rel=1e-8)
    assert oracle.cdf(mixture.quantile(probabilities)) == pytest.approx(probabilities, abs=1e-11)
    mean, variance = np.array([a / (a + b)]), np.array([stats.beta(a, b).var()])
    found = BetaMixtures.parameters(mean, 1 - mean, variance)
    assert found[0] == pytest.approx(a, rel=1e-7)
    assert found[1] == pytest.approx(b, rel=1e-7)


def test_values_beyond_the_range_and_intervals_that_are_never_reversed():
    mixture = single(2.0, 3.0)
    values, ends = np.array([[-1.0], [0.0], [1.0], [2.0]]), np.array([[0.0], [1.0]])
    assert mixture.cdf(values).ravel().tolist() == [0, 0, 1, 1]
    assert mixture.pdf(values).ravel().tolist() == [0, 0, 0, 0]
    assert mixture.quantile(ends).ravel().tolist() == [0, 1]
    assert single(0.5, 0.5).pdf(ends).ravel().tolist() == [np.inf, np.inf]
    for a, b in [(1e9, 3.0), (3.0, 1e12), (1e-6, 1e-6), (1e12, 1e12), (0.5, 1e-9)]:
        lower, upper = single(a, b).shortest_interval(0.5)
        assert lower <= upper


@pytest.mark.parametrize(("a", "b"), SHAPES[2:])
def test_the_shortest_interval_is_scipys_best(a, b):
    lower, upper = single(a, b).shortest_interval(0.9)
    left = np.linspace(0, 0.1, 20_001)
    shortest = np.min(np.diff(stats.beta(a, b).ppf([left, left + 0.9]), axis=0))
    (held,) = stats.beta(a, b).cdf(upper) - stats.beta(a, b).cdf(lower)
    assert held == pytest.approx(0.9, abs=1e-9)
    assert upper - lower == pytest.approx(shortest, rel=1e-3)


def test_grouping_keeps_moments_and_quantiles_at_both_ends_are_alike():
    """What is near 1 has the digits of what is near 0."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.1, 50, 60), rng.uniform(0.1, 50, 60)
    weights = rng.dirichlet(np.ones(60))
    whole = BetaMixtures.single(a, b, weights)
    grouped = BetaMixtures.grouped(a, b, weights, np.arange(60) // 7)
    assert grouped.a.size == 9
    assert grouped.mean() == pytest.approx(whole.mean(), rel=1e-12)
    assert grouped.variance() == pytest.approx(whole.variance(), rel=1e-12)
    alone = BetaMixtures.grouped(a, b, weights, np.arange(60))
    assert alone.a == pytest.approx(a, rel=1e-9)
    assert alone.b == pytest.approx(b, rel=1e-9)
    a, b, groups = np.array([1.0, 5.0, 7.0]), np.array([2.0, 5.0, 3.0]), np.arange(3)
    found = BetaMixtures.grouped(a, b, np.array([0.5, 1e-18, 0.5]), groups)
    assert found.a.tolist() == [1.0, 7.0]
    assert found.weights.sum() == pytest.approx(1)
    assert 0 <= single(1e-3, 5.0).quantile(0.001) < 1e-300
    mixtures = BetaMixtures(np.array([0.02, 3.0]), np.array([3.0, 0.02]), np.ones(2), np.arange(3))
    levels = np.array([0.4, 0.9, 0.99])[:, None]
    values, rest = mixtures.two_sided_quantile(levels)
    mirrored, mirrored_rest = mixtures.two_sided_quantile(1 - levels)
    assert values[:, 0] == pytest.approx(mirrored_rest[:, 1], rel=1e-9)
    assert rest[:, 0] == pytest.approx(mirrored[:, 1], rel=1e-9)
    assert 0 < rest[0, 1] < 1e-10  # while the value is 1


@pytest.mark.parametrize("a", [1e-6, 0.005, 0.03, 0.2])
@pytest.mark.parametrize("mirrored", [False, True])
def test_intervals_hold_their_own_draws_next_to_0_and_1(a, mirrored):
    """At 20 000 draws the share has a standard deviation of 0.003; false alarms: 1 in 10 000."""
    shapes = (0.4, a) if mirrored else (a, 0.4)
    rng = np.random.default_rng(1)
    log_gamma = np.log(rng.standard_gamma(np.array(shapes) + 1, (20_000, 2)))
    log_gamma -= rng.standard_exponential((20_000, 2)) / np.array(shapes)
    draws = special.softmax(log_gamma, axis=1)[:, 0]
    for kind in ("interval", "shortest_interval"):
        lower, upper = getattr(single(*shapes), kind)(0.8)
        assert 0 <= lower <= upper <= 1
        assert np.mean((draws >= lower) & (draws <= upper)) > 0.8 - 4 * 0.003


@pytest.mark.parametrize(
    ("a", "b", "weights"),
    [
        ([11871.4, 5.76], [149039.8, 15.79], [0.99, 0.01]),
        ([3645.9, 296.8], [4877.5, 5597.8], [0.908, 0.092]),
        ([68504.6, 35.8], [30574.4, 372.9], [0.973, 0.027]),
    ],
)
def test_quantiles_of_narrow_components_beside_wide_ones(a, b, weights):
    """Where the probability hardly rises from one component to the next, a step by its derivatives
    goes beyond all that there is.
    """
    mixture = BetaMixtures.single(*map(np.array, (a, b, weights)))
    for level in (0.001, 0.025, 0.1, 0.5, 0.9, 0.975, 0.999):
        value = float(mixture.quantile(level)[0])
        assert np.dot(weights, special.betainc(a, b, value)) == pytest.approx(level, abs=1e-9)


def mixtures_of(rng: np.random.Generator, m: int, components: int) -> BetaMixtures:
    """Narrow and wide ones, at 0 and 1 too."""
    a, b = 10.0 ** rng.uniform(-4, 6, (2, m * components))
    weights = rng.dirichlet(np.ones(components), m).ravel()
    return BetaMixtures(a, b, weights, np.arange(m + 1) * components)


def test_tails_that_are_not_looked_at_hold_nothing():
    mixtures = mixtures_of(np.random.default_rng(0), 40, 25)
    places = [*np.linspace(0, 1, 301), *special.expit(np.linspace(-40, 36, 301)), np.nan]
    values = np.array(places)[:, None]
    every = special.betainc(mixtures.a, mixtures.b, values) * mixtures.weights
    expected = every.reshape(-1, 40, 25).sum(axis=2)
    assert mixtures.cdf(values) == pytest.approx(expected, abs=1e-14, rel=0, nan_ok=True)


def test_many_values_of_many_probabilities_take_little_memory_or_are_refused():
    mixtures = mixtures_of(np.random.default_rng(1), 576, 20)
    tracemalloc.start()
    try:
        assert mixtures.cdf(np.linspace(0, 1, 576)[:, None]).shape == (576, 576)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    message = "values: 6000 of each of 576 probabilities, .* must be at most 5825 at once"
    for law in (mixtures.cdf, mixtures.pdf):
        with pytest.raises(ValueError, match=message):
            law(np.linspace(0, 1, 6000)[:, None])


@pytest.mark.parametrize(("a", "b"), [(30.0, 80.0), (2.0, 60.0), (500.0, 20.0)])
@pytest.mark.parametrize("rest", [0.05, 0.1, 0.12])
def test_a_beta_whose_second_parameter_varies(a, b, rest):
    """Against means over it, of which the deviation is such a share."""
    steps = stats.norm.ppf((np.arange(400) + 0.5) / 400)
    whole = a + b * (1 + rest * steps)
    mean = np.mean(a / whole)
    square = np.mean(a * (a + 1) / whole / (whole + 1))
    known = (b * rest) ** 2 * np.var(steps)
    found = varied(np.array([a]), np.array([b]), np.array([known]))
    law = stats.beta(found[0][0], found[1][0])
    assert law.mean() == pytest.approx(mean, abs=2e-3 * law.std())
    assert law.var() == pytest.approx(square - mean**2, rel=0.02)
    # Without the variances, as a control, the deviation is another.
    assert stats.beta(a, b).var() < 0.97 * law.var() or a < 100
