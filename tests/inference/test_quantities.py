"""Differences, cumulative probabilities and functions of a posterior, and comparisons of two:
against brute force over data sets."""

import numpy as np
import pytest
from scipy import special

import opendp_bayes as ob
from opendp_bayes.mechanisms import HellingerExponential
from opendp_bayes_research.error_law import ErrorLaw
from tests.helpers import brute_force
from tests.helpers.shortened import interpolate_less

#: Most results here are of the same few releases.
pytestmark = pytest.mark.usefixtures("computed_once")

PRIOR = (0.7, 1.5, 2.0)
#: Of what is computed: what counts in cells and components in groups may change.
ERROR = 1e-3
#: Standard errors that an estimate from draws may be off; further with probability 6e-7.
STANDARD_ERRORS = 5.0


@pytest.fixture(params=["engine", "listed"])
def made(request, release):
    mechanism = (
        ob.LaplaceParameters(1.5) if request.param == "engine" else HellingerExponential(0.3)
    )
    return release(mechanism, (3, 8, 5), 16, PRIOR)


@pytest.fixture
def mixture(made):
    """Concentrations given every data set, and the weights."""
    sets, weights = brute_force.data_sets(made)
    return np.array(PRIOR) + sets, weights


def test_a_difference(made, mixture):
    a, weights = mixture
    total = a.sum(axis=1)
    found = made.posterior.difference("b", "c")
    shares = a / total[:, None]
    mean = weights @ (shares[:, 1] - shares[:, 2])
    second = (a[:, 1] * (a[:, 1] + 1) + a[:, 2] * (a[:, 2] + 1) - 2 * a[:, 1] * a[:, 2]) / (
        total * (total + 1)
    )
    std = np.sqrt(weights @ second - mean**2)
    assert found.mean() == pytest.approx(mean, abs=STANDARD_ERRORS * found.standard_error)
    assert found.std() == pytest.approx(std, rel=STANDARD_ERRORS / np.sqrt(2 * found.draws))
    assert found.standard_error == pytest.approx(std / np.sqrt(found.draws), rel=0.02)
    larger = weights @ (1 - special.betainc(a[:, 1], a[:, 2], 0.5))
    value, error = found.probability()
    assert value == pytest.approx(larger, abs=STANDARD_ERRORS * error)
    by_draws = found.probability(0.1)
    drawn = found.sample(40_000, random_state=9)
    assert by_draws.value == pytest.approx(
        (drawn > 0.1).mean(), abs=STANDARD_ERRORS * 1.5 * by_draws.standard_error
    )
    lower, upper = found.interval(0.9)
    assert ((drawn >= lower) & (drawn <= upper)).mean() == pytest.approx(0.9, abs=0.015)
    assert drawn.mean() == pytest.approx(mean, abs=STANDARD_ERRORS * found.std() / 200)


def test_a_ratio_is_a_function(made, mixture):
    a, weights = mixture
    found = made.posterior.quantity(lambda p: p["a"] / p["c"], "a / c")
    for value in (0.05, 0.4, 2.0):
        above = weights @ (1 - special.betainc(a[:, 0], a[:, 2], value / (1 + value)))
        share, error = found.probability(value)
        assert share == pytest.approx(above, abs=STANDARD_ERRORS * error)
    lower, upper = found.interval(0.8)
    assert found.probability(lower).value == pytest.approx(0.9, abs=1e-3)
    assert found.probability(upper).value == pytest.approx(0.1, abs=1e-3)
    drawn = found.sample(20_000, random_state=0)
    assert (drawn > 0.4).mean() == pytest.approx(found.probability(0.4).value, abs=0.02)
    assert found.probability(-1.0).value == 1
    without = made.posterior.quantity(lambda p: np.where(p["a"] > 0.1, 1.0, np.inf))
    assert (without.mean(), without.std(), without.median()) == (np.inf, np.inf, 1.0)
    assert without.row()[1:3] == ("none", "none")


def test_cumulative_probabilities(made, mixture):
    a, weights = mixture
    found = made.posterior.cumulative()
    assert list(found) == ["a", "b"]
    assert len(found) == 2
    for last, label in enumerate(found):
        inside = a[:, : last + 1].sum(axis=1)
        rest = a[:, last + 1 :].sum(axis=1)
        assert found[label].mean() == pytest.approx(weights @ (inside / (inside + rest)), rel=1e-4)
        for value in (0.2, 0.5, 0.8):
            above = weights @ special.betainc(rest, inside, 1 - value)
            assert found[label].probability(value).value == pytest.approx(above, abs=ERROR)
    assert found["a"].std() == pytest.approx(made.posterior["a"].std(), rel=ERROR)
    assert found["a"].interval() == pytest.approx(made.posterior["a"].interval(), rel=1e-6)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda p: p.quantity(lambda theta: theta["a"][0]), r"shape \(\) for 5 draws"),
        (lambda p: p.quantity(lambda theta: theta["a"] + 1j), "must be numbers"),
        (lambda p: p.quantity(lambda theta: theta["a"], of="draws"), "of='draws': must be one of"),
        (lambda p: p.quantity(lambda theta: theta["a"] * np.nan), "nan for 5 of 5 draws"),
    ],
)
def test_a_wrong_function_fails_before_the_draws(ask, message, made, monkeypatch):
    monkeypatch.setattr(ob.NoiseAwarePosterior, "sample", lambda *arguments: pytest.fail("drawn"))
    with pytest.raises(ValueError, match=message):
        ask(made.posterior)
    with pytest.raises(KeyError, match=r"'z': .*the categories are 'a',"):
        made.posterior.quantity(lambda theta: theta["z"])


def test_one_category_beside_itself_is_refused(made):
    with pytest.raises(ValueError, match=r"first, second=\['b', 'b'\]: .*category once"):
        made.posterior.difference("b", "b")


def test_diagnostics_at_a_prompt(release, monkeypatch):
    interpolate_less(monkeypatch)
    one = release(HellingerExponential(0.02), (300, 200, 200), 700, PRIOR)
    big = ob.noise_aware_posterior(one, ess=100)
    assert repr(big.diagnostics).startswith("weighted draws  effective")
    assert big.diagnostics.categories == ("a", "b", "c")


@pytest.mark.filterwarnings("error")
def test_of_nan_every_probability_is_nan(made):
    """As of SciPy's distributions, also beside numbers, whose probabilities stay."""
    posterior = made.posterior
    alone = [
        *(posterior["a"], posterior.difference("a", "b")),
        *(posterior.cumulative()["a"], posterior.counts["a"]),
        posterior.quantity(lambda p: p["a"] - p["b"]),
    ]
    alone += [posterior.compare(posterior.releases[0].posterior)["a"]]
    together = [posterior, posterior.counts]
    laws = [law.cdf for law in (*alone, *together)]
    laws += [posterior.pdf, posterior.counts["a"].pmf, posterior.counts.pmf]
    for law in laws:
        found = law([0.25, np.nan])
        assert np.isnan(found[1]).all()
        assert np.array_equal(found[0], law(0.25))
        assert np.isfinite(found[0]).all()
        assert np.isnan(law(np.nan)).all()
    errors = ErrorLaw(np.array([0.1, 0.3]), np.array([0.5, 0.5]), simulated=False)
    assert np.array_equal(errors.cdf([0.2, np.nan]), [0.5, np.nan], equal_nan=True)


def test_what_has_no_deviation_no_order_or_is_no_function(made) -> None:
    with pytest.raises(ValueError, match="draws=1: must be at least 2"):
        made.posterior.quantity(lambda p: p["a"], draws=1)
    assert np.isfinite(made.posterior.quantity(lambda p: p["a"], draws=2).std())
    share = made.posterior["a"]
    assert share.probability(above=0.0).value == 1
    assert share.probability() == share.probability(above=0.5) != share.probability(above=0.0)
    guarantee = ob.PrivacyGuarantee(10, 1, ob.PrivacyLoss(0.1, 0.005, 0.2), "MaxDivergence")
    cells = (("a", 1), ("a", 2))
    table = ob.Release((4, 6), cells, (1.0,) * 2, ob.LaplaceParameters(10.0), guarantee, ("x", "y"))
    with pytest.raises(TypeError, match="function=3: must be a function"):
        table.posterior.quantity(3)
    with pytest.raises(ValueError, match=r"axes=.*: .*joint table have no order"):
        table.posterior.cumulative()


def test_comparisons_of_two_posteriors_and_of_events(release):
    """Beside sums over pairs of data sets; of an event the mean is its probability."""
    noise = ob.LaplaceParameters(1.5)
    one, other = (release(noise, drawn, 16, PRIOR) for drawn in ((3, 8, 5), (9, 2, 5)))
    found = one.posterior.compare(other.posterior)
    assert list(found) == ["a", "b", "c"]
    mean, variance = one.posterior.mean() - other.posterior.mean(), 0.0
    for of in (one, other):
        sets, weights = brute_force.data_sets(of)
        a = np.array(PRIOR) + sets
        share = a / a.sum(axis=1, keepdims=True)
        mean_of = weights @ share
        within = share * (1 - share) / (a.sum(axis=1, keepdims=True) + 1)
        variance = variance + weights @ (within + (share - mean_of) ** 2)
    for place, quantity in enumerate(found.values()):
        error = quantity.standard_error
        assert error == pytest.approx(np.sqrt(variance[place] / 40_000), rel=0.05)
        assert quantity.mean() == pytest.approx(mean[place], abs=STANDARD_ERRORS * error)
        assert quantity.std() == pytest.approx(np.sqrt(variance[place]), rel=0.03)
        drawn = one.posterior.sample(40_000, 1) - other.posterior.sample(40_000, 2)
        larger, error = quantity.probability()
        share = (drawn[:, place] > 0).mean()
        assert larger == pytest.approx(share, abs=1.5 * STANDARD_ERRORS * error)
    assert found["a"].mean() < -0.2 < 0.2 < found["b"].mean()  # not the other way round
    ahead = one.posterior.quantity(lambda p: p["b"] > p["c"])
    sure = one.posterior.difference("b", "c").probability()
    error = STANDARD_ERRORS * 1.5 * ahead.standard_error
    assert ahead.mean() == pytest.approx(sure.value, abs=error)


@pytest.fixture
def union(release):
    rows = [((6, 3, 4, 2), 15), ((5, 5, 1, 4), 15)]
    noise = ob.KNormParameters(1.0)
    made = [release(noise, drawn, size, (2.5, 3.0, 4.0, 2.0)) for drawn, size in rows]
    return ob.combine(made)


def test_the_errors_of_draws_are_what_they_are(release, union, monkeypatch):
    """Over 60 other lists of draws a mean spreads as its standard error says, within a factor of
    1.5 (chi-squared: false alarm below 1e-4); that of single Dirichlets, which are averaged,
    spreads less.
    """
    from opendp_bayes.inference.engines import IndependentDraws

    truth = union._engine
    means, errors = [], []
    for seed in range(60):
        drawn = IndependentDraws(
            truth.sample(400, np.random.default_rng(seed)), prior=np.array(union.prior)
        )
        one = union._made(drawn, union.categories)
        found = one.merged({"ab": ["a", "b"]})["ab"]
        means.append(found.mean())
        errors.append(found.standard_error)
    assert 0.2 * np.mean(errors) < np.std(means) < 1.5 * np.mean(errors)


def test_markov_chains_and_weighted_draws_tell_their_size(release, monkeypatch):
    interpolate_less(monkeypatch)
    big = release(HellingerExponential(0.02), (300, 200, 200), 700, (0.7, 1.5, 2.0)).posterior
    ess = big.diagnostics.ess.min()
    for found in (big.cumulative()["a"], big.difference("a", "b")):
        assert found.draws <= ess + 1e-9
        assert found.standard_error >= found.std() / np.sqrt(ess) * (1 - 1e-9)
        assert found.probability().standard_error > 0
