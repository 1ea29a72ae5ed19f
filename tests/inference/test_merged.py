"""Merged categories, some categories among themselves, counts and their sum: against brute force,
for every way of finding a posterior.
"""

import numpy as np
import pytest
from scipy import special

import opendp_bayes as ob
from tests.helpers import brute_force, oracles
from tests.helpers.by_chains import by_chains

#: Most results here are of the same few releases.
pytestmark = pytest.mark.usefixtures("computed_once")

VALUES = np.array([0.02, 0.1, 0.3, 0.5, 0.8, 0.97])
PRIOR = (0.5, 1.0, 0.3, 2.0)
#: What counts in cells and components in groups may change a probability by.
ERROR = 1e-3
#: Standard errors that an estimate from chains may be off; further with probability 6e-7.
STANDARD_ERRORS = 5.0


RELEASES = {
    "engine": (ob.LaplaceParameters(2.0), (3, 4, 0, 2), 9),
    "engine, private": (ob.LaplaceParameters(0.7, total="private"), (3, 4, -1, 2), None),
    "K-norm": (ob.KNormParameters(1.5), (5, 4, -2, 2), 9),
    "listed": (ob.mechanisms.HellingerExponential(0.3), (3, 4, 0, 2), 9),
    "coins": (ob.mechanisms.PermuteAndFlip(0.3), (3, 4, 0, 2), 9),
}


def weighted(made):
    sets, weights = brute_force.data_sets(made, 13 if made.size is None else None)
    return sets, weights / weights.sum()


def cdf(values, a, b, weights):
    return special.betainc(a, b, np.asarray(values)[:, None]) @ weights


@pytest.fixture(params=RELEASES, ids=str)
def made(request, release):
    return release(*RELEASES[request.param], PRIOR)


def test_merged_categories_and_those_of_merged(made):
    sets, weights = weighted(made)
    found = made.posterior.merged({"x": ["d", "a"]})
    assert found.categories == ("x", "b", "c")
    assert found.prior == pytest.approx((2.5, 1.0, 0.3))
    together, sizes = sets[:, 0] + sets[:, 3], sets.sum(axis=1)
    a, b = 2.5 + together, 1.3 + sizes - together
    assert found.cdf(VALUES)[:, 0] == pytest.approx(cdf(VALUES, a, b, weights), abs=ERROR)
    assert found.mean()[0] == pytest.approx(weights @ (a / (a + b)), rel=1e-4)
    assert found["x"].mean() == found.mean()[0]
    assert found.mean()[1:] == pytest.approx(made.posterior.mean()[1:3])
    right = np.bincount(together, weights, minlength=12)[:12]
    assert found.counts.pmf(np.arange(12))[:, 0] == pytest.approx(right, abs=1e-5)
    sets, weights = weighted(made)
    found = made.posterior.merged({"x": ["a", "d"]}).merged({"y": ["b", "x"]})
    assert found.categories == ("y", "c")
    assert found["c"].mean() == pytest.approx(made.posterior["c"].mean(), rel=1e-4)
    some = made.posterior.merged({"x": ["d", "a"]}).given(["c", "x"])
    a, b = 0.3 + sets[:, 2], 2.5 + sets[:, 0] + sets[:, 3]
    assert some["c"].cdf(VALUES) == pytest.approx(cdf(VALUES, a, b, weights), abs=ERROR)


def test_some_categories_among_themselves(made):
    sets, weights = weighted(made)
    found = made.posterior.given(["d", "a", "c"])
    assert found.categories == ("d", "a", "c")
    assert found.prior == (2.0, 0.5, 0.3)
    a, b = 2.0 + sets[:, 3], 0.8 + sets[:, 0] + sets[:, 2]
    assert found.cdf(VALUES)[:, 0] == pytest.approx(cdf(VALUES, a, b, weights), abs=ERROR)
    assert found.std()[0] == pytest.approx(
        np.sqrt(
            weights @ ((a / (a + b)) ** 2 + a * b / (a + b) ** 2 / (a + b + 1))
            - (weights @ (a / (a + b))) ** 2
        ),
        rel=1e-3,
    )
    number = sets[:, [0, 2, 3]].sum(axis=1)
    right = np.bincount(number, weights, minlength=12)[:12]
    assert found.records.pmf(np.arange(12)) == pytest.approx(right, abs=1e-4)


def test_counts_and_the_number_of_records(made):
    sets, weights = weighted(made)
    counts, size = made.posterior.counts, made.posterior.records
    mean = weights @ sets
    std = np.sqrt(weights @ (sets - mean) ** 2)
    assert counts.mean() == pytest.approx(mean, rel=1e-4)
    assert counts.std() == pytest.approx(std, rel=1e-4)
    assert counts["b"].mean() == pytest.approx(mean[1], rel=1e-4)
    own = np.bincount(sets[:, 1], weights, minlength=60)
    assert counts["b"].pmf(np.arange(60)) == pytest.approx(own, abs=1e-5)
    assert counts["b"].pmf(1.5) == counts["b"].pmf(-1) == 0
    lower, upper = counts["b"].interval(0.8)
    assert np.cumsum(own)[upper] >= 0.9 - 1e-6 > np.cumsum(own)[upper - 1]
    assert [int(end[1]) for end in counts.interval(0.8)] == [lower, upper]
    sizes = np.bincount(sets.sum(axis=1), weights, minlength=60)
    assert size.pmf(np.arange(60)) == pytest.approx(sizes, abs=1e-5)
    assert size.cdf(4) == pytest.approx(sizes[:5].sum(), abs=1e-5)
    if made.size is not None:
        assert (size.mean(), size.std(), size.interval()) == (made.size, 0, (made.size, made.size))


def test_draws_of_merged_counts(made):
    sets, weights = weighted(made)
    found = made.posterior.merged({"x": ["d", "a"]})
    law = {}
    for row, weight in zip(sets.tolist(), weights, strict=True):
        key = row[0] + row[3], row[1], row[2]
        law[key] = law.get(key, 0.0) + weight
    drawn = found.counts.sample(20_000, random_state=3)
    assert not oracles.rejects(map(tuple, drawn.tolist()), law)
    other = made.posterior.merged({"x": ["d", "b"]}).counts.sample(20_000, random_state=3)
    assert oracles.rejects(map(tuple, other.tolist()), law)
    theta = found.sample(20_000, random_state=4)
    assert theta.mean(axis=0) == pytest.approx(found.mean(), abs=5 * 0.3 / np.sqrt(20_000))


def test_by_chains(release):
    exact = release(ob.KNormParameters(2.0), (3, 4, 0, 2), 9, PRIOR)
    posterior = by_chains(exact)
    answers = []
    for of in (
        lambda p: p.merged({"x": ["d", "a"]}),
        lambda p: p.given(["d", "a", "c"]),
        lambda p: p,
    ):
        found, right = of(posterior), of(exact.posterior)
        error = STANDARD_ERRORS / np.sqrt(found.diagnostics.ess.min())
        assert np.abs(found.mean() - right.mean()).max() < error * right.std().max()
        assert np.abs(found.counts.mean() - right.counts.mean()).max() < error * 2
        assert found.diagnostics.ess.size == len(found.categories)
        answers.append(found)
    assert [found._engine.chains.shape[0] for found in answers] == [64] * 3


def test_two_categories_and_what_posteriors_say_of_themselves(release):
    posterior = release(ob.mechanisms.HellingerExponential(0.3), (3, 6), 9, (0.5, 2.0)).posterior
    turned = posterior.given(["b", "a"])
    assert turned.categories == ("b", "a")
    assert turned.mean() == pytest.approx(posterior.mean()[::-1])
    assert posterior.given(["a", "b"]).mean() == pytest.approx(posterior.mean())
    renamed = posterior.merged({"y": ["b"]})
    assert renamed.categories == ("y", "a")
    assert renamed["y"].std() == posterior["b"].std()
    assert posterior.counts.mean().sum() == pytest.approx(9)
    assert posterior.counts.sample(6, random_state=0).sum(axis=1).tolist() == [9] * 6
    assert posterior.records.sample(3).tolist() == [9] * 3
    posterior = release(ob.LaplaceParameters(2.0), (30, 60), 90).posterior
    assert repr(posterior["a"]).splitlines()[1].startswith("a         0.3")
    assert repr(posterior.records) == "NumberPosterior('records': 90 ± 0)"
    assert repr(posterior.counts).startswith("CountsPosterior({'a': 30.")
    assert repr(posterior.counts["b"]).startswith("NumberPosterior('b': 6")


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda p: p["z"], KeyError, r"'z': .*the categories are 'a', 'b'"),
        (lambda p: p.counts["z"], KeyError, "is not a category"),
        (lambda p: p.given(["a", "z"]), ValueError, r"categories=\['a', 'z'\]: 'z': is not"),
        (lambda p: p.given(["a", "a"]), ValueError, "must name every category once"),
        (lambda p: p.given(["a"]), ValueError, r"categories=\['a'\]: .*at least 2"),
        (lambda p: p.given("ab"), TypeError, "categories='ab': must be a list"),
        (lambda p: p.merged({"x": "ab"}), TypeError, "groups='ab': must be a list"),
        (lambda p: p.merged(["a", "b"]), TypeError, "a mapping from labels"),
        (lambda p: p.merged({"x": [], "y": ["a"]}), ValueError, "every group must have"),
        (lambda p: p.merged({"x": ["a", "b"], "y": ["b"]}), ValueError, "none may be in two"),
        (
            lambda p: p.merged({"x": ["a", "b", "c"]}),
            ValueError,
            r"categories=\['x'\]: .*at least 2",
        ),
        (lambda p: p.merged({"c": ["a", "b"]}), ValueError, "name it otherwise"),
        (lambda p: p.counts.interval(2), ValueError, "level=2"),
    ],
)
def test_labels_and_groups_are_checked(ask, error, message, release):
    posterior = release(ob.LaplaceParameters(2.0), (3, 4, 2), 9).posterior
    with pytest.raises(error, match=message):
        ask(posterior)


def test_labels_that_are_equal_to_python(release):
    """True == 1 for Python, not for a label."""
    posterior = release(ob.LaplaceParameters(2.0), (3, 4, 2), 9).posterior
    posterior.categories = (True, 1, 0)
    assert posterior[1].mean() == posterior.mean()[1]
    assert posterior[True].mean() == posterior.mean()[0]
