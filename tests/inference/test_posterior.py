"""What the user of a posterior sees: shapes, agreement between its answers, seeds, errors."""

import builtins
import copy
import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

import opendp_bayes as ob
from opendp_bayes.inference import engines
from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet
from tests.helpers.by_chains import by_chains
from tests.helpers.optional import arviz_or_skip
from tests.helpers.releases import guarantee
from tests.helpers.sweeps import some_of

#: Standard errors that an estimate from draws may be off; further with probability 6e-7.
STANDARD_ERRORS = 5.0


@pytest.fixture
def three(release):
    return release(ob.LaplaceParameters(8.0), (60, 30, 10), 100).posterior


@pytest.fixture(scope="module")
def chained():
    labels, prior, mechanism = ("a", "b", "c"), (1.0,) * 3, ob.KNormParameters(100.0)
    return by_chains(ob.Release((600, 390, 10), labels, prior, mechanism, guarantee(1000)))


@pytest.mark.parametrize(
    ("counts", "alpha"),
    some_of(product([(0, 50), (0, 50, 0), (48, 1, 1)], [0.003, 0.02]), 1),
    ids=repr,
)
def test_intervals_of_sparse_priors_hold_what_they_say(alpha, counts, release):
    """Where many draws round to 0 and to 1: more than they say, where these are at an end."""
    posterior = release(ob.LaplaceParameters(3.0), counts, 50, (alpha,) * len(counts)).posterior
    draws = posterior.sample(40_000, random_state=1)
    for level in (0.8, 0.95):
        least = level - STANDARD_ERRORS * np.sqrt(2 * level * (1 - level) / 40_000)
        for kind in ("eti", "hdi", "simultaneous"):
            lower, upper = posterior.interval(level, kind)
            assert np.all(lower <= upper)
            inside = (draws >= lower) & (draws <= upper)
            shares = [inside.all(axis=1).mean()] if kind == "simultaneous" else inside.mean(axis=0)
            assert np.min(shares) > least
            assert np.max(shares) < 1


@pytest.fixture
def unequal(release):
    """A posterior in which the prior weighs as much as the twelve records."""
    return release(ob.LaplaceParameters(2.0), (3, 4, 5), 12, (0.3, 4.0, 9.0)).posterior


def test_comparing_releases_of_different_priors(unequal, release):
    """Against a double integral, which for the draws of either one with a prior of ones is off."""
    other = release(ob.LaplaceParameters(2.0), (4, 4, 4), 12, (5.0, 0.5, 2.0)).posterior
    comparison = unequal.compare(other)
    values = np.linspace(0, 1, 8001)
    middle = (values[1:] + values[:-1]) / 2
    larger = np.sum(np.diff(unequal.cdf(values), axis=0) * other.cdf(middle), axis=0)
    reverse = other.compare(unequal)
    mean = unequal.mean() - other.mean()
    for place, (label, one) in enumerate(comparison.items()):
        share, error = one.probability()
        assert share == pytest.approx(larger[place], abs=STANDARD_ERRORS * error + 1e-3)
        share = 1 - reverse[label].probability().value
        assert share == pytest.approx(larger[place], abs=STANDARD_ERRORS * error + 1e-3)
        error = STANDARD_ERRORS * one.standard_error
        assert one.mean() == pytest.approx(mean[place], abs=error)
        lower, upper = one.interval(0.999)
        assert lower < one.mean() < upper


@pytest.mark.parametrize(
    "answer",
    [
        lambda posterior: posterior.sample(500),
        lambda posterior: posterior.predictive(9, size=500),
        lambda posterior: posterior.quantity(lambda p: p["a"] > 0.5).mean(),
        lambda posterior: posterior.interval(0.9, "simultaneous"),
        lambda posterior: (arviz_or_skip(), posterior.to_arviz(draws=125)),
    ],
    ids=["sample", "predictive", "quantity", "simultaneous interval", "arviz"],
)
def test_every_draw_has_the_prior_plus_counts_of_the_size(answer, unequal, monkeypatch):
    """What ranks are taken of, for simultaneous intervals, depends so little on the prior that
    no number of draws would show it.
    """
    seen = []

    def spy(concentration, rng):
        seen.append(concentration)
        return dirichlet(concentration, rng)

    monkeypatch.setattr(engines, "dirichlet", spy)
    answer(unequal)
    counts = np.concatenate(seen) - np.array(unequal.releases[0].prior)
    assert np.abs(counts - np.rint(counts)).max() < 1e-9
    assert np.all(np.rint(counts) >= 0)
    assert set(np.rint(counts).sum(axis=1)) == {12}


def test_arviz_gets_the_draws(three, chained):
    arviz_or_skip()
    tree = three.to_arviz(draws=500)
    assert list(tree.children) == ["posterior"]
    theta = tree.posterior["theta"]
    assert theta.dims == ("chain", "draw", "category")
    assert theta.shape == (4, 500, 3)
    assert theta.coords["category"].values.tolist() == ["a", "b", "c"]
    assert theta.mean(("chain", "draw")).values == pytest.approx(three.mean(), abs=0.02)
    assert chained.to_arviz().posterior["theta"].shape == (
        chained.diagnostics.chains,
        chained.diagnostics.draws,
        3,
    )


@pytest.mark.parametrize(
    ("axes", "cells", "is_whole"),
    [
        (("region", "vote", "seen"), list(product("NS", "abc", (True, False))), True),
        (("region", "vote"), [("N", "a"), ("N", "b"), ("S", "a")], False),  # one cannot occur
        (("region", "vote"), [("N", "a"), ("S", "a"), ("N", "b"), ("S", "b")], False),
        *((("vote", word), list(product("NS", "ab")), False) for word in ("chain", "draw")),
    ],
)
def test_arviz_gets_the_variables_of_a_whole_joint_table(axes, cells, is_whole):
    arviz_or_skip()
    drawn, prior = tuple(range(1, len(cells) + 1)), (1.0,) * len(cells)
    shared = tuple(cells), prior, ob.LaplaceParameters(2.0), guarantee(sum(drawn)), axes
    table = ob.Release(drawn, *shared).posterior
    theta = table.to_arviz(draws=50).posterior["theta"]
    if not is_whole:
        assert theta.dims == ("chain", "draw", "category")
        assert theta.shape == (4, 50, len(cells))
        return
    assert theta.dims == ("chain", "draw", *axes)
    means = theta.mean(("chain", "draw"))
    for cell, mean in zip(cells, table.mean(), strict=True):
        labels = dict(zip(axes, map(str, cell), strict=True))
        assert float(means.sel(labels)) == pytest.approx(mean, abs=0.02)


def test_without_arviz_the_error_says_what_to_install(three, monkeypatch):
    real = builtins.__import__
    monkeypatch.delitem(sys.modules, "arviz_base", raising=False)

    def without(name, *args, **kwargs):
        if name == "arviz_base":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        ImportError, match=r"arviz-base.* pip install 'opendp-bayes\[arviz\]', or .* sample\(\)"
    ):
        three.to_arviz()


def test_neither_arviz_nor_opendp_is_loaded_for_a_posterior():
    code = (
        "import opendp_bayes as ob, sys\nrelease = ob.Release((3, 5), ('a', 'b'), (1.0, 1.0),"
        " ob.LaplaceParameters(2.0), ob.PrivacyGuarantee(8, 1, ob.PrivacyLoss(0.5, 0.125, 1.0),"
        " ''))\nrelease.posterior.interval()\nprint(sorted({name.split('.')[0] for name in"
        " sys.modules} & {'arviz_base', 'opendp', 'polars'}))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_other_errors(three, release):
    with pytest.raises(ValueError, match=r"kind='shortest': .* 'eti', .* 'simultaneous'"):
        three.interval(0.9, "shortest")
    with pytest.raises(ValueError, match=r"size=0: must be between 1"):
        three.sample(0)
    with pytest.raises(ValueError, match=r"size=0: must be between 1"):
        three.predictive(5, size=0)
    with pytest.raises(ValueError, match=r"other: has the categories \('a', 'b'\)"):
        three.compare(release(ob.LaplaceParameters(1.0), (1, 2), 3).posterior)
    with pytest.raises(TypeError, match=r"releases=.*: must be a list"):
        type(three)(three.releases[0], three._engine)
    with pytest.raises(TypeError, match="other: must be a posterior"):
        three.compare(release(ob.LaplaceParameters(1.0), (1, 2), 3))
    with pytest.raises(ValueError, match=r"records_prior=.*: must be None, .* 3, is public"):
        ob.noise_aware_posterior(
            release(ob.LaplaceParameters(1.0), (1, 2), 3), records_prior=stats.poisson(3)
        )
    with pytest.raises(ValueError, match=r"records_prior=3: .* distribution with .* logpmf"):
        ob.noise_aware_posterior(
            release(ob.LaplaceParameters(1.0, total="private"), (1, 2), None), records_prior=3
        )
    with pytest.raises(ValueError, match="ess=0: must be between 1"):
        ob.noise_aware_posterior(release(ob.LaplaceParameters(1.0), (1, 2), 3), ess=0)


def test_intervals_are_by_label_and_generators_draw(release, three):
    """Whole numbers are labels, not places. What `random_state` of scipy takes: a seed repeats,
    a generator goes on.
    """
    made = replace(release(ob.LaplaceParameters(3.0), (12, 30, 58), 100), categories=(2, 0, 1))
    answers = made.posterior, made.posterior.counts
    for interval in (answer.interval(0.9) for answer in answers):
        lower, upper = interval
        assert (interval.lower is lower, interval.upper is upper) == (True, True)
        assert [interval[label] for label in (2, 0, 1)] == list(zip(lower, upper, strict=True))
        assert np.array_equal(np.array(interval), [lower, upper])
        again = copy.copy(interval)
        assert again[0] == interval[0] != interval[1]
        with pytest.raises(KeyError, match="3: is not a category"):
            interval[3]
    assert [made[label] for label in (2, 0, 1)] == list(made.counts)
    with pytest.raises(KeyError, match="'0': is not a category"):
        made["0"]
    rng = np.random.default_rng(5)
    for answer in (three, three.counts, three["a"], three.compare(three)["a"]):
        first, second = answer.sample(4, rng), answer.sample(4, rng)
        assert not np.array_equal(first, second)
        assert np.array_equal(answer.sample(4, 5), answer.sample(4, np.random.default_rng(5)))
        assert len(answer.sample()) == 1
