"""Quantiles of ordered categories: against brute force over data sets, against draws, and by
simulation from the model.
"""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

import opendp_bayes as ob
from opendp_bayes.inference.answers.ordered import quantiles_of
from tests.helpers import brute_force
from tests.helpers.releases import guarantee
from tests.helpers.sweeps import some_of

#: Most results here are of the same few releases.
pytestmark = pytest.mark.usefixtures("computed_once")

PRIOR = (0.7, 1.5, 2.0, 0.4)
LEVELS = (0.05, 0.3, 0.5, 0.9)
#: A statistic of a simulation is off by so many standard errors with probability 6e-7.
STANDARD_ERRORS = 5.0
#: Of a probability that 10 000 draws say.
ERROR = STANDARD_ERRORS * 0.5 / 100
LARGEST = 14

RELEASES = {
    "engine": (ob.LaplaceParameters(1.5), (3, 4, 2, 3), 12),
    "Gaussian": (ob.GaussianParameters(2.0), (3, -1, 6, 2), 11),
    "listed": (ob.mechanisms.HellingerExponential(0.3), (3, 4, 2, 3), 12),
    "private": (ob.LaplaceParameters(0.5, total="private"), (3, 0, 2, 1), None),
}


@pytest.fixture(params=RELEASES)
def made(request, release):
    mechanism, drawn, size = RELEASES[request.param]
    return release(mechanism, drawn, size, PRIOR)


def at_most(release, level):
    """The probability that the quantile is in one of the first categories, for each but the
    last, by its definition.
    """
    sets, weights = brute_force.data_sets(release, LARGEST)
    a = np.array(release.prior) + sets
    upto, whole = np.cumsum(a, axis=1)[:, :-1], a.sum(axis=1, keepdims=True)
    return weights @ (1 - special.betainc(upto, whole - upto, level))


@pytest.mark.parametrize("level", some_of(LEVELS, 1))
def test_of_every_data_set(made, level):
    found = made.posterior.quantile(level)
    assert np.cumsum(found.probabilities)[:-1] == pytest.approx(at_most(made, level), abs=ERROR)
    assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    assert (found.probabilities >= 0).all()
    assert found.category == made.categories[found.probabilities.argmax()]


def test_another_order_and_the_value_within_a_bin(made):
    """The order is that of the categories, not of labels or of counts. The records of a bin are
    spread evenly, so that the distribution function is linear there.
    """
    order = (2, 0, 3, 1)
    turned = made.posterior.merged(
        {made.categories[place]: [made.categories[place]] for place in order}
    )
    sets, weights = brute_force.data_sets(made, LARGEST)
    a = (np.array(PRIOR) + sets)[:, order]
    upto = np.cumsum(a, axis=1)[:, :-1]
    expected = weights @ (1 - special.betainc(upto, a.sum(axis=1, keepdims=True) - upto, 0.4))
    found = turned.quantile(0.4).probabilities
    assert np.cumsum(found)[:-1] == pytest.approx(expected, abs=ERROR)
    edges = [10.0, 12.0, 20.0, 21.0, 40.0]
    found = made.posterior.quantile(0.6, edges=edges).value
    sets, weights = brute_force.data_sets(made, LARGEST)
    rng = np.random.default_rng(5)
    chosen = np.array(PRIOR) + sets[rng.choice(len(sets), 20_000, p=weights)]
    gammas = rng.standard_gamma(chosen)
    upto = np.pad(np.cumsum(gammas / gammas.sum(axis=1, keepdims=True), axis=1), ((0, 0), (1, 0)))
    expected = np.array([np.interp(0.6, row, edges) for row in upto])
    error = STANDARD_ERRORS * expected.std() / np.sqrt(6000)
    assert found.mean() == pytest.approx(expected.mean(), abs=error)
    assert stats.ks_2samp(found.sample(10_000, 7), expected).pvalue > 6e-7
    lower, upper = found.interval(0.9)
    inside = ((expected >= lower) & (expected <= upper)).mean()
    assert inside == pytest.approx(0.9, abs=STANDARD_ERRORS * np.sqrt(2 * 0.09 / 10_000))


def test_of_many_categories_and_of_certain_places(release):
    rng = np.random.default_rng(3)
    drawn = tuple((rng.poisson(20, 150) + rng.integers(-2, 3, 150)).tolist())
    labels = tuple(range(150))
    whole = ob.Release(
        drawn, labels, (0.5,) * 150, ob.LaplaceParameters(1.0, total="private"), guarantee(None)
    ).posterior
    found = whole.quantiles([0.1, 0.5, 0.97])
    upto = whole._engine.cumulative(np.arange(1, 150))
    for level, quantile in found.items():
        expected = 1 - upto.cdf(level)
        assert np.cumsum(quantile.probabilities)[:-1] == pytest.approx(expected, abs=ERROR)
    for k, place in itertools.chain(((100, at) for at in range(100)), ((2, 0), (2, 1), (17, 16))):
        (one,) = quantiles_of(tuple(range(k)), [0.5], None, np.eye(k)[[place] * 3], None).values()
        assert one.probabilities.tolist() == np.eye(k)[place].tolist()
        assert one.interval(0.95) == (place, place)
    even = quantiles_of(tuple(range(1000)), [0.5], None, np.eye(1000), None)[0.5]
    assert even.probabilities == pytest.approx(np.full(1000, 1e-3), abs=1e-12)
    assert even.interval(0.905) == (47, 952)


def test_of_one_variable_of_a_joint_table():
    cells = tuple(itertools.product(("n", "s"), ("low", "middle", "high")))
    table = ob.Release(
        (4, 2, 1, 1, 2, 3),
        cells,
        (0.5,) * 6,
        ob.LaplaceParameters(1.0),
        guarantee(13),
        ("region", "income"),
    ).posterior
    sets, weights = brute_force.data_sets(table.releases[0])
    a = 0.5 + sets
    of_all = (a[:, :3] + a[:, 3:], table.marginal("income"))
    of_south = (a[:, 3:], table.conditional("income", region="s"))
    for each, posterior in (of_all, of_south):
        upto = np.cumsum(each, axis=1)[:, :-1]
        rest = each.sum(axis=1, keepdims=True) - upto
        expected = weights @ (1 - special.betainc(upto, rest, 0.5))
        found = posterior.quantile(0.5).probabilities
        assert np.cumsum(found)[:-1] == pytest.approx(expected, abs=ERROR)
    with pytest.raises(ValueError, match=r"axes=\['region', 'income'\]: .*a joint table"):
        table.quantile(0.5)


def test_refusals(made):
    posterior = made.posterior
    for level in (0.0, 1.0, -0.5):
        with pytest.raises(ValueError, match="between 0 and 1"):
            posterior.quantile(level)
    with pytest.raises(ValueError, match=r"level=50: .*0\.5 for the median"):
        posterior.quantile(50)
    with pytest.raises(TypeError, match=r"level='0\.5': must be a number"):
        posterior.quantile("0.5")
    with pytest.raises(ValueError, match="must hold every level once"):
        posterior.quantiles([0.5, 0.5])
    for levels in ("0.5", 0.5, []):
        with pytest.raises(TypeError, match="a list of numbers"):
            posterior.quantiles(levels)
    for edges in ([0, 1, 2, 3], [0, 1, 1, 2, 3], [0, 1, 2, 3, np.inf], [[0, 1, 2, 3, 4]]):
        with pytest.raises(ValueError, match="5 finite numbers in rising"):
            posterior.quantile(0.5, edges=edges)
    with pytest.raises(ValueError, match=r"edges=None: .*ends of the bins"):
        _ = posterior.quantile(0.5).value
    with pytest.raises(ValueError, match="level=2"):
        posterior.quantile(0.5).interval(2)


def warnings_of(posterior, level=0.5):
    """What is said of a quantile, which is a warning, too."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        quantiles = posterior.quantiles([level])
    assert [str(warning.message) for warning in said] == [quantiles.warning][: bool(said)]
    return quantiles.warning


@pytest.fixture
def trend():
    """Bins of a law that falls along them, hardly noised."""
    expected = 60 - 1.4 * np.arange(40)
    return ob.noisy_counts(
        expected.round().tolist(), range(40), mechanism="laplace_parameters", scale=0.5
    )


def test_a_learned_prior_that_knows_no_order_is_warned_of_and_misses_the_truth(trend):
    """The remedy that is said is carried out."""
    truth = np.searchsorted(np.cumsum(trend.noisy_counts) / sum(trend.noisy_counts), 0.5)
    unordered = ob.noise_aware_posterior(trend, prior="learned")
    assert "learned without their order" in warnings_of(unordered)
    assert "learned without their order" in warnings_of(unordered.given(range(39)))
    assert "learned without their order" in warnings_of(
        unordered.merged({100: range(20), 101: range(20, 40)})
    )
    edges = np.arange(41)
    ordered = ob.noise_aware_posterior(trend, prior="learned", ordered=["bin"])
    assert warnings_of(ordered) == warnings_of(ordered.given(range(39))) == ""
    with pytest.warns(UserWarning, match="learned without their order"):
        off = unordered.quantile(0.5, edges=edges).value
    near = ordered.quantile(0.5, edges=edges).value
    assert abs(near.mean() - truth) < abs(off.mean() - truth)


def test_of_a_table_the_order_of_each_variable_counts():
    rows = {"age": range(12), "vote": ["yes", "no"]}
    table = ob.noisy_counts(
        np.multiply.outer(60 - 4 * np.arange(12), [2, 1]),
        rows,
        mechanism="laplace_parameters",
        scale=2.0,
        prior="learned",
    )
    table = replace(table, ordered=("age",))
    posterior = table.posterior
    assert warnings_of(posterior.marginal("age")) == ""
    assert warnings_of(posterior.conditional("age", vote="yes")) == ""
    assert "learned without" in warnings_of(posterior.marginal("vote"))
    assert warnings_of(table.by("vote")["yes"].posterior) == ""
    assert "learned without" in warnings_of(table.by("age")[3].posterior)
