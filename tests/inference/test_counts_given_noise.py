"""The posterior of counts with additive noise against ball arithmetic, a list of all data sets, and
references for more of them.
"""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from opendp_bayes.inference.convolution import sums
from tests.helpers import envelope, oracles
from tests.helpers.brute_force import EveryCount
from tests.helpers.dense_counts import Dense
from tests.helpers.evidence import log_evidence
from tests.helpers.far_counts import Private, Public
from tests.helpers.given_noise import given_noise
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace
from tests.helpers.noised_counts import Look, Setting
from tests.helpers.reference import Exact
from tests.helpers.settings import (
    deviations,
    exact,
    is_within_bounds,
    posterior,
    private_setting,
    setting,
    wide_deviations,
)
from tests.helpers.sweeps import some_of

#: What is stated: means and standard deviations in units of the latter, cumulative probabilities.
ERROR = 1e-3


@pytest.mark.parametrize("seed", some_of(range(40), 4))
def test_random_settings_with_a_public_number_of_records(seed):
    made = setting(np.random.default_rng([0, seed]), most=60)
    found = deviations(posterior(made), exact(made))
    assert max(found.values()) <= ERROR, (found, made)


@pytest.mark.parametrize("seed", some_of(range(40), 3))
def test_random_settings_with_a_private_number_of_records(seed):
    rng, made = np.random.default_rng([1, seed]), None
    while made is None or made["largest"] > 150 or (seed in (20, 23) and made["scale"] < 0.4):
        made = private_setting(rng, most=30)  # quick for the reference, and no prior far from it
    found = deviations(posterior(made), exact(made))
    assert max(found.values()) <= 3 * ERROR, (found, made)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed != 6)) for seed in range(12)]
)
def test_random_settings_of_two_categories_and_up_to_1e9_records(seed):
    rng, made = np.random.default_rng([2, seed]), None
    while made is None or not is_within_bounds(made):
        made = setting(rng, most=10**9, k=2, least=1000)
        made["noised"][:] = True
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = wide_deviations(made)
    # At corners sums do not agree to what is stated, and say so.
    assert told or max(found.values()) <= ERROR, (found, made)


@pytest.mark.parametrize("law", some_of(["laplace", "floored", "gaussian"], 1))
def test_an_informed_prior_against_the_draw(law):
    """A posterior that is far narrower than any cell which is placed by the draw."""
    made = {"law": law, "scale": 43.0, "drawn": np.array([79, 10**9 - 79]), "size": 10**9}
    made |= {"prior": np.array([9582.0, 2347.0]), "noised": np.array([True, True])}
    found = wide_deviations(made)
    assert max(found.values()) <= ERROR, found


def test_a_prior_of_the_number_of_records_whose_quantiles_scipy_finds_only_in_part():
    records_prior = stats.logser(0.999)
    with pytest.raises(RuntimeError):
        records_prior.ppf(0.898125)
    found = given_noise((3, 2), (1, 1), DiscreteLaplace(2.0), records_prior=records_prior)
    shown = found.counts.mean().sum()
    assert shown == pytest.approx(found.records.mean()[0], rel=1e-3)
    flat = given_noise((3, 2), (1, 1), DiscreteLaplace(2.0))
    assert shown < flat.records.mean()[0]


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed != 5)) for seed in range(6)]
)
def test_long_steps_beside_a_peak_at_zero(seed):
    """Sums are wide beside a peak at 0, so that the same steps do not suit all of them."""
    rng = np.random.default_rng([3, seed])
    k, size = int(rng.integers(3, 6)), int(rng.integers(8000, 14_000))
    scale = float(np.exp(rng.uniform(np.log(size / 2), np.log(10 * size))))
    counts = rng.dirichlet(np.full(k, 0.5)) * size + rng.normal(0, scale / 2, k)
    made = {"law": "laplace", "scale": scale, "drawn": np.rint(counts).astype(np.int64)}
    made |= {"prior": np.full(k, 10.0 ** rng.uniform(-0.5, 0)), "size": size}
    made |= {"noised": np.ones(k, dtype=bool)}
    found = posterior(made)
    assert max(deviations(found, exact(made)).values()) <= ERROR


def longest_step(found):
    """Of the laws of all sums but one count."""
    known = found._numbers
    return sums.Sums(known, found._times).beside(*known.counts.ends)[0].step.max()


def wide(k, size, scale, law):
    """A draw from the model, with a public number of records."""
    rng = np.random.default_rng(k)
    counts = rng.multinomial(size, rng.dirichlet(np.ones(k)))
    drawn = counts + envelope.NOISE[law](scale).simulate((k,), rng)
    return Setting((Look(law, scale, drawn),), np.ones(k), size)


def rescaled(setting):
    """The same draw, with noise whose scale is a tenth larger."""
    (look,) = setting.looks
    return replace(setting, looks=(replace(look, scale=1.1 * look.scale),))


MANY = {
    "dense": (100, 5000, 10.0, True, lambda setting: Dense(setting, direct=False)),
    "private": (100, 5000, 10.0, False, Private),
    "dense and private": (20, 500, 8.0, False, lambda setting: Dense(setting, 1500)),
    "many records": (20, 10**6, 500.0, True, Public),
}
#: Both laws; the other references take four times as long.
QUICK = {("dense", "laplace"), ("many records", "gaussian")}


@pytest.mark.parametrize(
    ("name", "law"),
    [
        pytest.param(*one, marks=() if one in QUICK else pytest.mark.slow)
        for one in itertools.product(MANY, ["laplace", "gaussian"])
    ],
)
def test_many_categories(name, law):
    k, size, scale, public, way = MANY[name]
    setting = wide(k, size, scale, law)
    setting = setting if public else replace(setting, size=None)
    found, right = envelope.posterior(setting), way(setting)
    errors = envelope.errors(found, right)
    assert errors["cdf"] <= ERROR
    assert max(errors.values()) <= ERROR
    assert max(envelope.errors(envelope.posterior(rescaled(setting)), right).values()) > 10 * ERROR


@pytest.mark.parametrize("unnoised", [0.06, 0.3, 0.8])
@pytest.mark.parametrize("scale", [0.7, 2.0, 20.0])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_a_count_without_noise_is_what_the_others_leave(k, scale, unnoised):
    """Far from 0 and with a prior of 1 noise is all that is not known of it."""
    size, noise = int(2000 * k * max(scale, 1)), np.random.default_rng(k).integers(-9, 9, k - 1)
    rest = size * (1 - unnoised) * np.arange(1, k) * 2 / (k * (k - 1))
    drawn = rest.astype(int) + noise
    drawn = np.append(drawn, size - drawn.sum())
    made = {"law": "laplace", "scale": scale, "drawn": drawn, "prior": np.ones(k), "size": size}
    law = posterior(made | {"noised": np.arange(k) < k - 1}).counts
    std = np.sqrt(k - 1) * np.exp(-0.5 / scale) / -np.expm1(-1 / scale) * np.sqrt(2)
    assert law.mean()[-1] == pytest.approx(drawn[-1], abs=ERROR * std)
    assert law.std()[-1] == pytest.approx(std, rel=ERROR)


def test_the_comparison_sees_a_scale_that_is_a_tenth_off():
    """Negative control."""
    made = {"law": "laplace", "scale": 3.0, "drawn": np.array([5, 9, 2]), "prior": np.ones(3)}
    made |= {"size": 16, "noised": np.ones(3, dtype=bool)}
    assert max(deviations(posterior(made), exact(made)).values()) <= ERROR
    wrong = posterior(made | {"scale": 3.3})
    assert max(deviations(wrong, exact(made)).values()) > 10 * ERROR


def test_a_sparse_prior_with_wide_noise():
    """An atom at 0 beside a hump far away."""
    prior, noise = (0.001,) * 3, DiscreteLaplace(6000.0)
    found = given_noise((40_000, 400_000, 560_000), prior, noise, size=10**6)
    assert np.sqrt(found.probabilities.variance()[0]) == pytest.approx(0.01001, abs=2e-5)
    assert found.counts.pmf([[0]])[0, 0] == pytest.approx(0.047, abs=1e-3)
    assert found.counts.mean().sum() == pytest.approx(10**6, abs=5)
    # Of a tenth of the prior, the odds of no record are ten times as large.
    rare = given_noise((40_000, 400_000, 560_000), (1e-4,) * 3, noise, size=10**6)
    odds = [own / (1 - own) for own in (x.counts.pmf([[0]])[0, 0] for x in (found, rare))]
    assert odds[1] == pytest.approx(10 * odds[0], rel=0.02)


@pytest.mark.parametrize(
    "prior", some_of([[1.0, 1.0], [0.3, 2.0, 30.0], [0.02, 1.0, 1.0, 200.0]], 1), ids=repr
)
def test_noise_that_tells_nothing_leaves_the_prior(prior):
    """Laws that are much wider than the Betas of their counts have no steps."""
    size, levels, alpha = 20_000, np.linspace(0.002, 0.998, 333), np.array(prior)
    drawn = [size, *(0 for _ in prior[1:])]
    found = given_noise(drawn, prior, DiscreteGaussian(1e6), size=size).probabilities
    at = stats.beta.ppf(levels[:, None], alpha, alpha.sum() - alpha)
    off = np.abs(found.cdf(at) - levels[:, None])
    assert off[(at > 1e-12) & (at < 1 - 1e-12)].max() <= ERROR
    assert found.mean() == pytest.approx(alpha / alpha.sum(), rel=3e-4)


def test_a_prior_of_the_number_of_records_against_the_draw():
    def std(records_prior):
        found = given_noise((30, 12), (1, 1), DiscreteLaplace(10.0), records_prior=records_prior)
        return float(np.sqrt(found.probabilities.variance()[0])), found

    assert std(stats.poisson(2000))[0] == pytest.approx(0.283, abs=5e-4)
    value, found = std(stats.randint(700, 800))
    assert np.isfinite(value)
    assert 700 <= found.records.quantile(1e-9)[0] <= found.records.quantile(1 - 1e-9)[0] < 800


@pytest.mark.parametrize(("law", "scale"), [("laplace", 1.7), ("floored", 2.0), ("gaussian", 2.0)])
def test_merged_categories_and_some_given_the_others(law, scale):
    size = 9
    setting = Setting((Look(law, scale, [4, -1, 3, 2]),), [0.5, 1.0, 0.02, 3.0], size)
    every, found = EveryCount(setting), envelope.posterior(setting)
    sets, weights = every.sets, every.weights
    together = sets[:, [0, 2]].sum(axis=1)
    counts, theta = found.together([[0, 2]])[0]
    right = np.bincount(together, weights, minlength=size + 1)
    assert counts.pmf(np.arange(size + 1)[:, None])[:, 0] == pytest.approx(right, abs=1e-6)
    a, b = 0.52 + together, 4.0 + size - together
    at = np.array([[0.05], [0.3], [0.6], [0.9]])
    assert theta.cdf(at)[:, 0] == pytest.approx(special.betainc(a, b, at) @ weights, abs=ERROR)
    some = found.given([0, 2])
    own = np.bincount(sets[:, 0], weights, minlength=size + 1)
    assert some.counts.pmf(np.arange(size + 1)[:, None])[:, 0] == pytest.approx(own, abs=1e-6)
    a, b = 0.5 + sets[:, 0], 0.02 + sets[:, 2]
    right_cdf = special.betainc(a, b, at) @ weights
    assert some.probabilities.cdf(at)[:, 0] == pytest.approx(right_cdf, abs=ERROR)


@pytest.mark.parametrize(
    ("size", "scale"),
    [
        (400_000, 300.0),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in [(None, 2.0), (400_000, 2.0), (None, 300.0), (400_000, 2e4), (None, 2e4)]
        ),
    ],
)
def test_groups_that_are_asked_for_together_are_those_of_each_alone(scale, size):
    rng, prior = np.random.default_rng(5), np.full(60, 0.3)
    counts = rng.multinomial(400_000, rng.dirichlet(prior))
    drawn = counts + np.rint(rng.laplace(0, scale, 60)).astype(np.int64)
    found = given_noise(drawn, prior, DiscreteLaplace(scale), size=size)
    groups = [list(range(9)), list(range(9, 40)), [40, 41], [41, 42]]
    for group, (law, theta) in zip(groups, found.together(groups), strict=True):
        ((own_law, own_theta),) = found.together([group])
        assert law.mean() == pytest.approx(own_law.mean(), abs=ERROR * own_law.std()[0])
        assert law.std() == pytest.approx(own_law.std(), rel=ERROR)
        assert law.mean()[0] == pytest.approx(found.counts.mean()[group].sum(), rel=1e-4)
        assert theta.variance() == pytest.approx(own_theta.variance(), rel=2 * ERROR)
        at = own_theta.quantile([[0.01], [0.3], [0.5], [0.9]])
        assert theta.cdf(at) == pytest.approx(own_theta.cdf(at), abs=ERROR)


@pytest.mark.parametrize("size", [40_000, pytest.param(None, marks=pytest.mark.slow)])
def test_steps_as_long_as_a_smooth_sum_allows_change_nothing(size, monkeypatch):
    """Neither categories nor groups, of many categories and of two."""
    rng, prior = np.random.default_rng(6), np.full(90, 0.5)
    counts = rng.multinomial(40_000, rng.dirichlet(np.full(90, 2.0)))
    law, groups = DiscreteLaplace(30.0), [list(range(60)), [61, 62]]
    drawn = counts + np.rint(rng.laplace(0, law.scale, 90)).astype(np.int64)
    found = given_noise(drawn, prior, law, size=size)
    assert longest_step(found) > 1
    shown = [found.probabilities, *(theta for _, theta in found.together(groups))]
    monkeypatch.setattr(sums, "_STEP", 1e-9)
    fine = given_noise(drawn, prior, law, size=size)
    assert longest_step(fine) == 1
    right = [fine.probabilities, *(theta for _, theta in fine.together(groups))]
    for own, wanted in zip(shown, right, strict=True):
        deviation = np.sqrt(wanted.variance())
        assert np.abs((own.mean() - wanted.mean()) / deviation).max() <= 1e-4
        assert np.sqrt(own.variance()) == pytest.approx(deviation, rel=3e-4)
        at = wanted.quantile([[0.001], [0.3], [0.975]])
        assert own.cdf(at) == pytest.approx(wanted.cdf(at), abs=3e-4)


def test_a_narrow_group_among_wide_categories(monkeypatch):
    """Two counts with a sparse prior among many that are wide."""
    prior, drawn = np.array([1e-3] * 3 + [1.0] * 20), np.array([0, 900, 40] + [1000] * 20)
    found = given_noise(drawn, prior, DiscreteLaplace(60.0), size=20_940)
    assert longest_step(found) > 1
    together = found.together([[0, 2]])[0][0]
    monkeypatch.setattr(sums, "_STEP", 1e-9)
    fine = given_noise(drawn, prior, DiscreteLaplace(60.0), size=20_940)
    assert longest_step(fine) == 1
    at = np.array([[0], [1], [5], [60], [200]])
    assert together.cdf(at) == pytest.approx(fine.together([[0, 2]])[0][0].cdf(at), abs=ERROR)


def test_some_given_the_others_with_a_private_number_of_records():
    """The counts of some are what they are among all."""
    noise, drawn, prior = DiscreteLaplace(4.0), (20, 5, 0, 31), (1.0, 0.3, 0.01, 2.0)
    found = given_noise(drawn, prior, noise, records_prior=stats.poisson(70))
    some = found.given([0, 1, 2])
    at = np.arange(45)[:, None]
    assert some.counts.cdf(at) == pytest.approx(found.counts.cdf(at)[:, :3], abs=ERROR)
    merged = found.together([[0, 1, 2]])[0][0]
    assert some.records.cdf(at * 2)[:, 0] == pytest.approx(merged.cdf(at * 2)[:, 0], abs=ERROR)


@pytest.mark.parametrize("records_prior", [None, stats.poisson(14)], ids=["public", "private"])
def test_log_evidence(records_prior):
    drawn, prior, law = (5, 9, -2), (0.5, 1.0, 2.0), DiscreteLaplace(1.5)
    constant = 3 * float(law.log_mass(0))
    if records_prior is None:
        found = given_noise(drawn, prior, law, size=12)
        right = Exact("laplace", 1.5, drawn, prior, size=12)
    else:
        found = given_noise(drawn, prior, law, records_prior=records_prior)
        right = Exact("laplace", 1.5, drawn, prior, sizes=records_prior.logpmf(np.arange(80)))
    expected = float(right.evidence.log().mid()) + constant
    assert log_evidence(found) == pytest.approx(expected, abs=1e-4)


def test_draws_follow_the_posterior():
    setting = Setting((Look("laplace", 2.0, [1, 2, 3]),), [1.0, 0.5, 2.0], 6)
    every = EveryCount(setting)
    table = dict(zip(map(tuple, every.sets.tolist()), every.weights, strict=True))
    rng = np.random.default_rng(0)
    found = envelope.posterior(setting).sample(20_000, rng)
    assert not oracles.rejects(map(tuple, found.tolist()), table)
    wrong = envelope.posterior(replace(setting, looks=(Look("laplace", 2.6, [1, 2, 3]),)))
    wrong = wrong.sample(20_000, rng)
    assert oracles.rejects(map(tuple, wrong.tolist()), table)


def test_alike_categories_are_alike_and_wide_tables_add_up():
    rng = np.random.default_rng(0)
    drawn = np.tile(rng.integers(0, 60, 50), 4)
    found = given_noise(drawn, np.full(200, 0.5), DiscreteLaplace(3.0), size=6000)
    mean = found.counts.mean()
    assert mean.sum() == pytest.approx(6000, abs=ERROR * found.counts.std().sum())
    assert np.array_equal(mean[:50], mean[150:])
    assert found.probabilities.mean() == pytest.approx((mean + 0.5) / 6100, rel=1e-6)


def test_no_records_leave_the_prior():
    found = given_noise((3, -4, 8), (1.0, 2.0, 3.0), DiscreteLaplace(1.0), size=0)
    assert found.probabilities.mean() == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    assert found.counts.mean().tolist() == [0, 0, 0]
    assert found.sample(5, np.random.default_rng(0)).tolist() == [[0, 0, 0]] * 5


@pytest.mark.slow
@pytest.mark.parametrize("block", range(50))
def test_many_random_settings(block):
    """At least 5000 in all: public, private, and two categories with up to 1e9 records."""
    inexact, refused = [], []
    for seed in range(100):
        rng, kind = np.random.default_rng([10, block, seed]), seed % 4
        if kind == 3:
            made = setting(rng, most=10**9, k=2, least=1000)
            made["noised"][:] = True
            if not is_within_bounds(made):
                continue
            found = wide_deviations(made)
        else:
            made = private_setting(rng, most=100) if kind == 2 else None
            made = setting(rng, most=300) if made is None else made
            if not is_within_bounds(made):
                continue
            try:
                found = deviations(posterior(made), exact(made))
            except ValueError as error:  # a prior of the number against what was drawn
                refused.append(str(error))
                continue
        if not max(found.values()) <= ERROR:
            inexact.append((max(found.values()), found, made))
    assert len(refused) <= 3
    assert all("are not compatible" in said or "uncertain" in said for said in refused)
    assert len(inexact) <= 3, inexact
    assert all(worst <= 15 * ERROR for worst, *_ in inexact), inexact


def test_a_group_is_the_same_sum_in_every_part():
    """Of the numbers of records, each with a tilt of its own."""
    rng = np.random.default_rng(1)
    noise, k = DiscreteLaplace(2.0), 40
    drawn = rng.multinomial(60, rng.dirichlet(np.ones(k))) + noise.simulate((k,), rng)
    counts = given_noise(drawn, np.ones(k), noise)
    assert counts._numbers.moments.tilts.size > 2
    groups = [range(end) for end in (3, 7, 21, 38)]
    expected = [counts.counts.mean()[list(group)].sum() for group in groups]
    together = [law.mean()[0] for law, _ in counts.together(groups)]
    np.testing.assert_allclose(together, expected, rtol=2e-3)
    ends = [0, 3, 7, 21, 38, k]
    parts = [range(first, last) for first, last in itertools.pairwise(ends)]
    drawn_sums = counts.sample_sums(parts, 4000, rng).mean(axis=0)
    one_by_one = [counts.counts.mean()[list(part)].sum() for part in parts]
    np.testing.assert_allclose(drawn_sums, one_by_one, atol=1.0)  # 4 standard errors
