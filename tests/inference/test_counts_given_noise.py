"""The posterior of counts with additive noise against a list of all data sets, and references for
more of them; random settings are in `test_envelope.py`.
"""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from opendp_bayes.inference.convolution import counts_given_noise, sums
from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from tests.helpers import envelope, oracles
from tests.helpers.brute_force import EveryCount
from tests.helpers.dense_counts import Dense
from tests.helpers.far_counts import Private, Public
from tests.helpers.given_noise import given_noise, log_evidence
from tests.helpers.noised_counts import Look, Setting, log_rising
from tests.helpers.sweeps import slow, some_of
from tests.helpers.weighed_pairs import OnPanels, panels

#: What errors are mostly below, and what is stated: of means and standard deviations, in units of
#: the latter, and of cumulative probabilities.
ERROR, STATED = 1e-3, 1e-2
#: The law and the scale of noise, what was drawn, the prior, the number of records if public, and
#: the largest number that matters otherwise.
BY_ARRAYS = {
    "one of six has nearly all, though another was drawn higher": (
        *("gaussian", 4290.0, [3000, 9000, -2000, 500, 7000, -6000], [0.3] * 6, 11041, None),
    ),
    "public": (*("gaussian", 317.0, [400, 8100, -200, 40, 300, -100], [0.3] * 6, 8405, None),),
    "unequal and public": (
        *("laplace", 911.0, [12000, 700, 9000, -900, 100], [0.3, 0.5, 2.2, 0.4, 1], 22000, None),
    ),
    "steps too long for few records of the other": (
        *("laplace", 60.0, [155, 35], [0.3, 0.3], None, 1000),
    ),
    "unequal and private": (*("laplace", 60.0, [110, 30, -120], [0.5, 5.6, 0.3], None, 1200),),
    "numbers of records down to none": (
        *("laplace", 45.0, [-12, -17, -26, 56, -57, -8, 34], [1.0] * 7, None, 1000),
    ),
    "lattices": ("laplace", 30.0, [900, 700, 1100, 800], [1.0] * 4, None, 6000),
    "a prior that ties counts": ("laplace", 15.0, [113, 2, 73], [216.0] * 3, None, 6000),
    "few in the others": ("gaussian", 9.0, [700, 3, -8], [1.0, 0.2, 2.0], None, 6000),
    "private, many": ("laplace", 4.0, np.arange(30) % 7 * 5 - 3, [0.7] * 30, None, 6000),
}
#: Where a cumulative probability is off by .003; 1e-2 is stated.
ROUGH = ("steps too long for few records of the other",)
#: Public and private numbers of records; the others take longer.
QUICK_ARRAYS = ("public", "unequal and private", "few in the others")


@pytest.mark.parametrize("name", slow(BY_ARRAYS, but=QUICK_ARRAYS))
def test_counts_are_those_of_arrays_of_every_count(name):
    law, scale, drawn, prior, size, last = BY_ARRAYS[name]
    setting = Setting((Look(law, scale, drawn),), prior, size)
    right, rows = Dense(setting, last), range(min(setting.k, 7))
    allowed = STATED / 2 if name in ROUGH else ERROR
    assert max(envelope.errors(envelope.posterior(setting), right, rows).values()) <= allowed
    wrong = envelope.posterior(rescaled(setting))
    assert max(envelope.errors(wrong, right, [0]).values()) > allowed


@pytest.mark.parametrize(
    ("look", "prior", "most"),
    [
        (Look("laplace", 1.5, [3, 0, -2]), [1e-3] * 3, 44),
        (Look("laplace", 2.0, [4, 4, 1]), [0.5, 0.5, 2.0], 50),
    ],
    ids=["sparse", "two alike"],
)
def test_of_a_private_number_the_posterior_is_the_definition(look, prior, most):
    setting = Setting((look,), prior)
    found = envelope.errors(envelope.posterior(setting), EveryCount(setting, most), range(3))
    assert max(found.values()) <= ERROR


def test_two_looks_and_sums_that_hardly_any_tilt_can_move():
    """Noise of so small a scale that every tilt has the same sum."""
    looks = Look("laplace", 150.0, [90, 700, -40]), Look("laplace", 90.0, [30, 560, 20])
    setting = Setting(looks, [0.3, 0.4, 0.5], 640)
    found = envelope.posterior(setting)
    assert max(envelope.errors(found, Dense(setting), range(3)).values()) <= ERROR
    wrong = Dense(replace(setting, looks=looks[:1]))
    assert max(envelope.errors(found, wrong, range(3)).values()) > ERROR
    found = given_noise([-36_000_000, 160_000_000], [1, 1], DiscreteLaplace(192.0), size=70_000_000)
    # Both weights fall by `exp(-1 / 192)` for each record of the first count.
    assert found.counts.mean()[0] == pytest.approx(1 / np.expm1(2 / 192), rel=1e-3)
    assert found.counts.mean().sum() == pytest.approx(70_000_000)
    found = given_noise([114, 0, 0], [1, 1, 1], DiscreteGaussian(0.056))
    # The prior of the only data set; the noise is certain.
    expected = -np.log(special.comb(116, 2, exact=True))
    assert log_evidence(found) == pytest.approx(expected, abs=1e-6)


def test_two_categories_under_narrow_laplace_noise_have_a_tilt_at_their_sum():
    """Under tilts far from it the sum varies ten times as much, and steps would be as long as the
    kink of the noise is wide: categories would not agree, which warns.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = given_noise([569, 209], np.ones(2), DiscreteLaplace(2.0))
        assert found.probabilities.mean()[0] == pytest.approx(0.731, abs=1e-3)
    means = found._numbers.moments.mean @ found._times
    assert np.abs(means - 778).min() < 4


@pytest.mark.parametrize("law", some_of(["laplace", "floored", "gaussian"], 1))
def test_an_informed_prior_against_the_draw(law):
    """A posterior that is far narrower than any cell which is placed by the draw."""
    setting = Setting((Look(law, 43.0, [79, 10**9 - 79]),), [9582.0, 2347.0], 10**9)
    places = [0, 79, 80, 10**9]
    for _ in range(4):  # about the mode
        points, logs = panels(0, 10**9, places)
        logs += setting.log_weight(0, points) + setting.log_weight(1, 10**9 - points)
        places.append(points[np.argmax(logs)])
    right = OnPanels(setting.prior, 10**9, points, logs)
    found = envelope.deviations(envelope.posterior(setting), right, [0])
    assert max(found.values()) <= ERROR, found


@pytest.mark.parametrize("prior", [1e-6, 0.3, 1.0, 1e8])
@pytest.mark.parametrize("excess", [0, 1, -2])
@pytest.mark.parametrize("k", [4, 5])
def test_next_to_no_noise_leaves_the_fewest_moves(k, excess, prior):
    """All ways to spread the records that the draw has too many or too few are as probable."""
    size, prior = 10**9 if excess == 0 else 10**8, prior * np.arange(1.0, k + 1)
    drawn = np.array([7, 40, 10**6, 3 * 10**7, 0][:k])
    drawn[1] += size + excess - drawn.sum()
    counts = drawn - np.sign(excess) * np.array(oracles.data_sets(abs(excess), k))
    counts = counts[counts.min(axis=1) >= 0]
    logs = sum(log_rising(own, alpha) for own, alpha in zip(counts.T, prior, strict=True))
    found = given_noise(drawn, prior, DiscreteLaplace(2.0**-40), size=size)
    right = OnPanels(prior, size, counts[:, 0].astype(float), logs)
    off = envelope.deviations(found, right, [0])
    assert max(off.values()) <= 10 * ERROR, off


def test_priors_of_the_number_of_records():
    records_prior = stats.logser(0.999)
    with pytest.raises(RuntimeError):
        records_prior.ppf(0.898125)
    found = given_noise((3, 2), (1, 1), DiscreteLaplace(2.0), records_prior=records_prior)
    shown = found.counts.mean().sum()
    assert shown == pytest.approx(found.records.mean()[0], rel=1e-3)
    flat = given_noise((3, 2), (1, 1), DiscreteLaplace(2.0))
    assert shown < flat.records.mean()[0]

    def std(records_prior):
        found = given_noise((30, 12), (1, 1), DiscreteLaplace(10.0), records_prior=records_prior)
        return float(np.sqrt(found.probabilities.variance()[0])), found

    assert std(stats.poisson(2000))[0] == pytest.approx(0.283, abs=5e-4)
    value, found = std(stats.randint(700, 800))
    assert np.isfinite(value)
    assert 700 <= found.records.quantile(1e-9)[0] <= found.records.quantile(1 - 1e-9)[0] < 800


@pytest.mark.parametrize("seed", slow(range(6), but=(5,)))
def test_long_steps_beside_a_peak_at_zero(seed):
    """Sums are wide beside a peak at 0, so that the same steps do not suit all of them."""
    rng = np.random.default_rng([3, seed])
    k, size = int(rng.integers(3, 6)), int(rng.integers(8000, 14_000))
    scale = float(np.exp(rng.uniform(np.log(size / 2), np.log(10 * size))))
    counts = rng.dirichlet(np.full(k, 0.5)) * size + rng.normal(0, scale / 2, k)
    look = Look("laplace", scale, np.rint(counts).astype(np.int64))
    setting = Setting((look,), np.full(k, 10.0 ** rng.uniform(-0.5, 0)), size)
    found = envelope.errors(envelope.posterior(setting), Dense(setting), range(k))
    assert max(found.values()) <= ERROR


def longest_step(found):
    """Of the laws of all sums but one count."""
    known = found._numbers
    return sums.Sums(known, found._times).beside(*known.counts.ends).step.max()


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
    ("name", "law"), slow(itertools.product(MANY, ["laplace", "gaussian"]), but=QUICK)
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
    size, off = int(2000 * k * max(scale, 1)), np.random.default_rng(k).integers(-9, 9, k - 1)
    rest = size * (1 - unnoised) * np.arange(1, k) * 2 / (k * (k - 1))
    drawn = rest.astype(int) + off
    drawn = np.append(drawn, size - drawn.sum())
    noise, noised = DiscreteLaplace(scale), np.arange(k) < k - 1
    law = given_noise(drawn, np.ones(k), noise, noised, size=size).counts
    std = np.sqrt(k - 1) * np.exp(-0.5 / scale) / -np.expm1(-1 / scale) * np.sqrt(2)
    assert law.mean()[-1] == pytest.approx(drawn[-1], abs=ERROR * std)
    assert law.std()[-1] == pytest.approx(std, rel=ERROR)


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


def test_a_posterior_says_once_that_sums_do_not_agree(monkeypatch):
    monkeypatch.setattr(counts_given_noise, "_DISAGREE", -1.0)
    found = envelope.posterior(Setting((Look("laplace", 2.0, [4, 4, 1]),), [1.0] * 3))
    with pytest.warns(UserWarning, match="sums that should agree") as caught:
        _ = found.probabilities, found.counts, found.together([[0, 1]]), found.together([[1, 2]])
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("size", "scale"),
    [
        (400_000, 300.0),
        *slow([(None, 2.0), (400_000, 2.0), (None, 300.0), (400_000, 2e4), (None, 2e4)]),
    ],
)
@pytest.mark.filterwarnings("ignore:the posterior given noise on the counts may be less exact")
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
        of_each, allowed = found.counts.mean()[group].sum(), STATED * law.std()[0]
        assert law.mean()[0] == pytest.approx(of_each, rel=1e-4, abs=allowed)
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


def test_some_given_the_others_and_draws_follow_the_posterior():
    """The counts of some are what they are among all."""
    noise, drawn, prior = DiscreteLaplace(4.0), (20, 5, 0, 31), (1.0, 0.3, 0.01, 2.0)
    found = given_noise(drawn, prior, noise, records_prior=stats.poisson(70))
    some = found.given([0, 1, 2])
    at = np.arange(45)[:, None]
    assert some.counts.cdf(at) == pytest.approx(found.counts.cdf(at)[:, :3], abs=ERROR)
    merged = found.together([[0, 1, 2]])[0][0]
    assert some.records.cdf(at * 2)[:, 0] == pytest.approx(merged.cdf(at * 2)[:, 0], abs=ERROR)
    setting = Setting((Look("laplace", 2.0, [1, 2, 3]),), [1.0, 0.5, 2.0], 6)
    every = EveryCount(setting)
    table = dict(zip(map(tuple, every.sets.tolist()), every.weights, strict=True))
    rng = np.random.default_rng(0)
    found = envelope.posterior(setting).sample(20_000, rng)
    assert not oracles.rejects(map(tuple, found.tolist()), table)
    wrong = envelope.posterior(replace(setting, looks=(Look("laplace", 2.6, [1, 2, 3]),)))
    wrong = wrong.sample(20_000, rng)
    assert oracles.rejects(map(tuple, wrong.tolist()), table)


def test_alike_categories_are_alike_and_no_records_leave_the_prior():
    rng = np.random.default_rng(0)
    drawn = np.tile(rng.integers(0, 60, 50), 4)
    found = given_noise(drawn, np.full(200, 0.5), DiscreteLaplace(3.0), size=6000)
    mean = found.counts.mean()
    assert mean.sum() == pytest.approx(6000, abs=ERROR * found.counts.std().sum())
    assert np.array_equal(mean[:50], mean[150:])
    assert found.probabilities.mean() == pytest.approx((mean + 0.5) / 6100, rel=1e-6)
    found = given_noise((3, -4, 8), (1.0, 2.0, 3.0), DiscreteLaplace(1.0), size=0)
    assert found.probabilities.mean() == pytest.approx([1 / 6, 1 / 3, 1 / 2])
    assert found.counts.mean().tolist() == [0, 0, 0]
    assert found.sample(5, np.random.default_rng(0)).tolist() == [[0, 0, 0]] * 5


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


def test_groups_of_wide_counts_whose_transforms_are_nothing_at_most_waves():
    """Counts whose law is wide beside a step have transforms of 0, also several of a group."""
    drawn = 1000 * np.array([9, 121, 269, 58, 66, 52, 122, 132, 70, 1, 70, 31])
    looks = [DrawnCounts.of(drawn, DiscreteGaussian(9.0))]
    counts = CountsGivenNoise.of(looks, np.full(12, 3.0))
    for group in ([0, 1], list(range(10)), list(range(11))):
        (law, mixture), *_ = counts.together([group])
        assert law.mean()[0] == pytest.approx(counts.counts.mean()[group].sum(), abs=0.1)
        assert mixture.mean()[0] == pytest.approx(
            counts.probabilities.mean()[group].sum(), abs=1e-6
        )


@pytest.mark.parametrize("times", [[1, 1], [1, 1, 1], [3, 1, 2], [4], [1000, 1, 900]])
def test_what_is_beside_a_sum_is_the_product_of_all_others(times, monkeypatch):
    """Of single counts, and of groups of a few and of nearly all, of whose transforms the product
    may be less than any float.
    """
    times = np.array(times)
    rng = np.random.default_rng(0)
    waves = rng.uniform(0.1, 0.99, (times.size, 2, 4)) * np.exp(1j * rng.uniform(0, 6, (2, 4)))
    groups = np.stack([times - (times == times.max()), (times + 1) // 2, np.minimum(times, 1)], 1)
    step = object.__new__(sums._OfOneStep)
    step.times = times
    both = waves, sums._product(waves, times)
    monkeypatch.setattr(step, "_waves", lambda some: both, raising=False)
    single = np.eye(times.size, dtype=np.int64)
    for within, found in ((groups, step._others(..., groups)), (single, step._others(..., None))):
        right = [
            np.prod([wave**n for wave, n in zip(waves, rest, strict=True)], axis=0)
            for rest in (times[:, None] - within).T.tolist()
        ]
        assert found == pytest.approx(np.array(right), rel=1e-11, abs=1e-200)
