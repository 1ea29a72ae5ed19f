"""The engine for counts on a tree against a convolution of every whole number: priors below 1
beside noise as wide as the counts, and numbers of records that are hardly known.
"""

import itertools

import numpy as np
import pytest
from scipy import special

from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.convolution.noised_categories import Categories
from tests.helpers.dense_counts import Dense
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace

ERROR = 1e-3
LAWS = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}
LEVELS = np.array([0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])

#: law, scale, drawn, prior, number of records if public, largest number looked at
SETTINGS = {
    "one of six has nearly all, though another was drawn higher": (
        *("gaussian", 4290.0, [3000, 9000, -2000, 500, 7000, -6000], [2e-4] * 6, 11041, None),
    ),
    "sparse and public": (
        *("gaussian", 317.0, [400, 8100, -200, 40, 300, -100], [0.029] * 6, 8405, None),
    ),
    "unequal and public": (
        *("laplace", 911.0, [12000, 700, 9000, -900, 100], [3e-4, 0.5, 2.2, 0.01, 1], 22000, None),
    ),
    "steps too long for few records of the other": (
        *("laplace", 60.0, [155, 35], [0.18, 0.18], None, 1500),
    ),
    "unequal and private": (*("laplace", 60.0, [110, 30, -120], [6e-3, 5.6, 9e-4], None, 2500),),
    "numbers of records down to none": (
        *("laplace", 45.0, [-12, -17, -26, 56, -57, -8, 34], [1.0] * 7, None, 1500),
    ),
}


def errors(found, right, k):
    worst = {"mean": 0.0, "std": 0.0, "cdf": 0.0, "count cdf": 0.0}
    mean, std, theta = found.counts.mean(), found.counts.std(), found.probabilities
    values = theta.quantile(LEVELS[:, None])
    for i in range(k):
        expected, deviation = right.count(i)
        unit = max(deviation, 0.01)
        cumulative = right.cumulative(i)
        at = np.unique(np.append(np.searchsorted(cumulative, LEVELS), [0, 1, 2, 9]))
        law = found.counts.cdf(np.repeat(at[:, None], k, axis=1))[:, i]
        each = {"mean": abs(mean[i] - expected) / unit, "std": abs(std[i] - deviation) / unit}
        each["count cdf"] = np.abs(law - cumulative[at]).max()
        if right.rests:
            inside = (values[:, i] > 1e-300) & (values[:, i] < 1)
            cdf = right.probability(i, values[inside, i])
            each["cdf"] = np.abs(cdf - LEVELS[inside]).max(initial=0.0)
        worst = {name: max(worst[name], each.get(name, 0.0)) for name in worst}
    return worst


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_need_finer_lattices_near_none(name):
    law, scale, drawn, prior, size, last = SETTINGS[name]
    found = CountsGivenNoise(drawn, prior, LAWS[law](scale), size=size)
    tilt = found._tilts[0][0].tilt
    right = Dense(drawn, [scale], law, prior, size=size, last=last, tilt=tilt)
    assert max(errors(found, right, len(prior)).values()) <= ERROR
    wrong = Dense(drawn, [1.1 * scale], law, prior, size=size, last=last, tilt=tilt)
    assert max(errors(found, wrong, len(prior)).values()) > ERROR


def test_two_looks_of_different_scales_with_a_prior_below_one():
    drawn, scales = np.array([[90, 700, -40], [30, 560, 20]]), [150.0, 90.0]
    prior = np.array([0.01, 0.4, 0.02])
    known = np.ones(3, dtype=bool)
    looks = [
        Categories(row, known, prior, DiscreteLaplace(scale))
        for row, scale in zip(drawn, scales, strict=True)
    ]
    found = CountsGivenNoise.of_looks(looks, 640)
    right = Dense(drawn, scales, "laplace", prior, size=640)
    assert max(errors(found, right, 3).values()) <= ERROR
    wrong = Dense(drawn[:1], scales[:1], "laplace", prior, size=640)
    assert max(errors(found, wrong, 3).values()) > ERROR


def test_two_counts_of_very_different_widths_among_many_records():
    found = CountsGivenNoise(
        [-36_000_000, 160_000_000], [1, 1], DiscreteLaplace(192.0), size=70_000_000
    )
    # Both weights fall by `exp(-1 / 192)` for each record of the first count.
    assert found.counts.mean()[0] == pytest.approx(1 / np.expm1(2 / 192), rel=1e-3)
    assert found.counts.mean().sum() == pytest.approx(70_000_000)


def test_a_sum_that_no_tilt_can_move_has_its_whole_weight():
    """Noise of so small a scale that every tilt has the same sum."""
    found = CountsGivenNoise([114, 0, 0], [1, 1, 1], DiscreteGaussian(0.056))
    # The prior of the only data set; the noise is certain.
    expected = -np.log(special.comb(116, 2, exact=True))
    assert found.log_evidence == pytest.approx(expected, abs=1e-6)


def every(n, k):
    """All counts of k categories with this sum."""
    bars = np.array(list(itertools.combinations(range(n + k - 1), k - 1)))
    edges = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), n + k - 1)])
    return np.diff(edges, axis=1) - 1


@pytest.mark.parametrize("public", [True, False])
def test_groups_inside_groups_inside_groups(public):
    drawn, prior, scale = [4, 1, 0, 6, -2], np.array([1.0, 0.3, 2.0, 0.5, 1.0]), 0.8
    sizes = [12] if public else range(25)
    rows = np.concatenate([every(n, 5) for n in sizes])
    n, total = rows.sum(axis=1), prior.sum()
    log_weight = (special.gammaln(rows + prior) - special.gammaln(rows + 1)).sum(axis=1)
    log_weight += special.gammaln(n + 1) - special.gammaln(n + total)
    log_weight -= np.abs(rows - drawn).sum(axis=1) / scale
    weight = special.softmax(log_weight)
    found = CountsGivenNoise(drawn, prior, DiscreteLaplace(scale), size=12 if public else None)
    groups = [[0, 1], [0, 1, 3], [0, 1, 2, 3], [2, 4]]
    for group, (law, theta) in zip(groups, found.together(groups), strict=True):
        count, alpha = rows[:, group].sum(axis=1), prior[group].sum()
        mean = weight @ count
        std = np.sqrt(weight @ (count - mean) ** 2)
        assert law.mean()[0] == pytest.approx(mean, abs=ERROR * std)
        assert law.std()[0] == pytest.approx(std, rel=ERROR)
        for value in (0.2, 0.5, 0.8):
            below = weight @ special.betainc(alpha + count, total - alpha + n - count, value)
            assert theta.cdf(value) == pytest.approx(below, abs=ERROR)
        wrong = weight @ rows[:, group[:1]].sum(axis=1)
        assert law.mean()[0] != pytest.approx(wrong, abs=ERROR * std)
