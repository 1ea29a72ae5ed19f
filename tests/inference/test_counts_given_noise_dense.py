"""The engine for counts on a tree against a convolution of every whole number: priors below 1
beside noise as wide as the counts, and numbers of records that are hardly known.
"""

import numpy as np
import pytest
from scipy import special

from tests.helpers.brute_force import EveryCount
from tests.helpers.dense_counts import Dense
from tests.helpers.envelope import errors, posterior
from tests.helpers.evidence import log_evidence
from tests.helpers.given_noise import given_noise
from tests.helpers.noise_laws import DiscreteGaussian, DiscreteLaplace
from tests.helpers.noised_counts import Look, Setting

ERROR = 1e-3

#: law, scale, drawn, prior, number of records if public, largest number looked at
SETTINGS = {
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
}


#: Public and private numbers of records; the others take longer.
QUICK = ("public", "unequal and private")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SETTINGS],
)
def test_settings_that_need_short_steps_near_none(name):
    law, scale, drawn, prior, size, last = SETTINGS[name]
    setting = Setting((Look(law, scale, drawn),), prior, size)
    right, every = Dense(setting, last), range(setting.k)
    assert max(errors(posterior(setting), right, every).values()) <= ERROR
    wrong = posterior(Setting((Look(law, 1.1 * scale, drawn),), prior, size))
    assert max(errors(wrong, right, [0]).values()) > ERROR


def test_two_looks_of_different_scales_with_a_prior_below_one():
    looks = Look("laplace", 150.0, [90, 700, -40]), Look("laplace", 90.0, [30, 560, 20])
    setting = Setting(looks, [0.3, 0.4, 0.5], 640)
    found = posterior(setting)
    assert max(errors(found, Dense(setting), range(3)).values()) <= ERROR
    wrong = Dense(Setting(looks[:1], setting.prior, 640))
    assert max(errors(found, wrong, range(3)).values()) > ERROR


def test_two_counts_of_very_different_widths_among_many_records():
    found = given_noise([-36_000_000, 160_000_000], [1, 1], DiscreteLaplace(192.0), size=70_000_000)
    # Both weights fall by `exp(-1 / 192)` for each record of the first count.
    assert found.counts.mean()[0] == pytest.approx(1 / np.expm1(2 / 192), rel=1e-3)
    assert found.counts.mean().sum() == pytest.approx(70_000_000)


def test_a_sum_that_no_tilt_can_move_has_its_whole_weight():
    """Noise of so small a scale that every tilt has the same sum."""
    found = given_noise([114, 0, 0], [1, 1, 1], DiscreteGaussian(0.056))
    # The prior of the only data set; the noise is certain.
    expected = -np.log(special.comb(116, 2, exact=True))
    assert log_evidence(found) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("public", [True, False])
def test_groups_inside_groups_inside_groups(public):
    look = Look("laplace", 0.8, [4, 1, 0, 6, -2])
    setting = Setting((look,), [1.0, 0.3, 2.0, 0.5, 1.0], 12 if public else None)
    every, found = EveryCount(setting, 24), posterior(setting)
    rows, weight, n = every.sets, every.weights, every.sets.sum(axis=1)
    groups = [[0, 1], [0, 1, 3], [0, 1, 2, 3], [2, 4]]
    for group, (law, theta) in zip(groups, found.together(groups), strict=True):
        count, alpha = rows[:, group].sum(axis=1), setting.prior[group].sum()
        others = setting.prior.sum() - alpha + n - count
        mean = weight @ count
        std = np.sqrt(weight @ (count - mean) ** 2)
        assert law.mean()[0] == pytest.approx(mean, abs=ERROR * std)
        assert law.std()[0] == pytest.approx(std, rel=ERROR)
        for value in (0.2, 0.5, 0.8):
            below = weight @ special.betainc(alpha + count, others, value)
            assert theta.cdf(value)[0] == pytest.approx(below, abs=ERROR)
        wrong = weight @ rows[:, group[:1]].sum(axis=1)
        assert law.mean()[0] != pytest.approx(wrong, abs=ERROR * std)
