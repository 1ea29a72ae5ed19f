"""Every engine on every setting that it serves, against the definition: a sum over every data set
(`tests/helpers/brute_force.py`), which shares no code with the package. Chains and pooled groups
have such tests of their own.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from scipy import stats

from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.of_counts import likelihood_of
from opendp_bayes.inference.sampling.interpolated_normaliser import by_interpolation
from opendp_bayes.inference.ways import Way
from opendp_bayes.mechanisms import HellingerExponential, PermuteAndFlip, SmoothHellingerExponential
from opendp_bayes.mechanisms.setting import Setting as MechanismSetting
from opendp_bayes.surveys.levels.levels_posterior import LevelCounts
from opendp_bayes.surveys.levels.tree import Look as LookAtLevel, Tree, Weights
from opendp_bayes.surveys.levels.tree_counts import TreeCounts
from tests.helpers import oracles
from tests.helpers.brute_force import EveryCount
from tests.helpers.envelope import NOISE
from tests.helpers.every_data_set import weighed_counts
from tests.helpers.given_noise import log_evidence
from tests.helpers.noised_counts import Look, Setting
from tests.helpers.sweeps import slow, some_of

#: What is stated of means and deviations, in deviations, and of cumulative probabilities.
ERROR = 1e-3
#: Standard errors of draws: larger by chance with the probability of a false alarm.
FAR = stats.norm.isf(oracles.FALSE_ALARM / 2)
#: Of cumulative probabilities of levels, where one Beta stands for each count, with its mean and
#: variance over the numbers of records in its group and in all: most off where these are few.
ONE_BETA = 0.025

LAPLACE, FLOORED = Look("laplace", 1.5, [3, 0, -2]), Look("floored", 0.8, [1, 0, 2])
GAUSSIAN = Look("gaussian", 2.5, [2, 1, 1], [True, False, True])
UNEQUAL, SPARSE = np.array([0.5, 3.0, 20.0]), np.full(3, 0.01)
REGIONS = ([0, 2], [1, 3])
CELLS = Look("gaussian", 1.5, [4, -1, 2, 1])
#: Settings, and the largest number of records that matters where it is private.
SETTINGS = {
    "public": (Setting((LAPLACE,), UNEQUAL, 7), None),
    "public, sparse": (Setting((FLOORED,), SPARSE, 5), None),
    "public, several looks, some not noised": (Setting((GAUSSIAN, FLOORED), UNEQUAL, 9), None),
    "public, two categories": (
        Setting((Look("laplace", 2.0, [5, -1]),), np.array([0.3, 2.0]), 12),
        None,
    ),
    "no records": (Setting((LAPLACE,), UNEQUAL, 0), None),
    "private": (Setting((LAPLACE,), np.ones(3)), 60),
    "private, several looks": (
        Setting((FLOORED, replace(GAUSSIAN, noised=None)), np.full(3, 0.4)),
        40,
    ),
    "geometric prior of the number": (
        Setting((LAPLACE,), np.ones(3), None, stats.geom(0.2, loc=-1)),
        50,
    ),
    "poisson prior of the number": (Setting((FLOORED,), UNEQUAL, None, stats.poisson(9)), 40),
    "public, groups": (Setting((CELLS,), np.full(4, 0.7), 8), None),
    "private, groups": (Setting((CELLS,), np.array([0.2, 0.7, 3.0, 1.0])), 26),
    "public, levels": (
        Setting((CELLS,), np.full(4, 0.7), 8, sums=((REGIONS, Look("laplace", 0.7, [6, 1])),)),
        None,
    ),
    "private, levels": (
        Setting((CELLS,), np.full(4, 0.7), sums=((REGIONS, Look("gaussian", 1.0, [6, 1])),)),
        26,
    ),
}
#: What is asked of so many categories: groups of them, among themselves. A group of a table is some
#: of its cells.
QUESTIONS = {
    2: [[[0], [1]]],
    3: [[[0], [1], [2]], [[1], [0, 2]], [[0], [2]], [[2], [1]]],
    4: [[[0], [1], [2], [3]], REGIONS, [[0], [2]], [[3], [0, 1]]],
}


def looks_of(setting):
    return [DrawnCounts.of(x.drawn, NOISE[x.law](x.scale), x.noised) for x in setting.looks]


def convolution(setting):
    if setting.sums or setting.size == 0:
        return None
    known = {"size": setting.size, "records_prior": setting.records_prior}
    return CountsGivenNoise.of(looks_of(setting), setting.prior, **known)


class Weighed(Way):
    """Also of noise on the counts."""

    _looks = ()


def every_data_set(setting):
    """A list, or a weight for every count of the first of two categories."""
    if setting.sums or setting.size is None:
        return None
    return Weighed(looks_of(setting), setting.prior, setting.size).exact()


def levels(setting):
    """Categories below groups, or below the whole."""
    if setting.records_prior is not None or setting.size == 0:
        return None
    k, groups = setting.k, [group for each, _ in setting.sums for group in each]
    parent = np.full(k + len(groups) + 1, k + len(groups))
    parent[-1], prior = -1, np.append(setting.prior, np.zeros(len(groups) + 1))
    for at, group in enumerate(groups):
        parent[group], prior[k + at] = k + at, setting.prior[group].sum()
    looks = [LookAtLevel(np.arange(k), look) for look in looks_of(setting)]
    for _, look in setting.sums:
        noisy = DrawnCounts.of(look.drawn, NOISE[look.law](look.scale))
        looks.append(LookAtLevel(k + np.arange(len(groups)), noisy))
    weights = Weights(Tree.of(parent), parent, prior, looks, setting.size)
    whole = TreeCounts(weights, 80 if setting.size is None else setting.size)
    numbers = [parent.size - 1], list(range(k, parent.size - 1)), list(range(k))
    every = [np.array(each) for each in numbers if each]
    return LevelCounts(whole, parent, every, np.arange(k))


ENGINES: dict[str, Callable] = {
    each.__name__: each for each in (convolution, every_data_set, levels)
}


@cache
def definition(name, wrong=1.0):
    """With noise of which the scale is wrong by a factor."""
    setting, most = SETTINGS[name]
    looks = tuple(replace(look, scale=wrong * look.scale) for look in setting.looks)
    return EveryCount(replace(setting, looks=looks), most)


def asked(engine, groups):
    """The counts of groups among themselves."""
    inside = [i for group in groups for i in group]
    if len(inside) < engine.prior.size:
        engine = engine.given(inside)
        sizes = iter(range(len(inside)))
        groups = [[next(sizes) for _ in group] for group in groups]
    return engine if all(len(group) == 1 for group in groups) else engine.merged(groups)


def off(engine, right, groups, of_cdf=ERROR):
    """The largest deviation from the definition, over what is allowed: the stated error, and what
    draws behind an answer may be off by.
    """
    found = asked(engine, groups)
    (count, count_std), (mean, std) = right.shares(groups)
    behind = np.sqrt(found.independent)
    few = ERROR + FAR / behind
    own, counts = found.probabilities, found.counted.counts
    values = np.clip(mean + std * np.array([[-1.0], [0.0], [1.5]]), 1e-6, 1 - 1e-6)
    away = [
        np.abs(own.mean() - mean) / std / few,
        np.abs(counts.mean() - count) / np.maximum(count_std, 0.01) / few,
        # The variance of a square is at most about ten times that of a normal law's.
        np.abs(own.std() / std - 1) / (ERROR + 3 * FAR / behind),
        np.abs(own.cdf(values) - right.cdf(groups, values)).ravel() / (of_cdf + FAR / 2 / behind),
    ]
    return float(np.max(np.concatenate(away)))


def off_by_draws(engine, right):
    """That of the means of draws."""
    drawn = engine.counted.sample(2000, np.random.default_rng(0))
    (mean, std), _ = right.shares([[i] for i in range(engine.prior.size)])
    error = np.maximum(std, 1e-6) / np.sqrt(min(2000, engine.independent))
    return float(np.max(np.abs(drawn.mean(axis=0) - mean) / error / FAR))


def off_with_noise(engine, name, wrong=1.0):
    setting, right = SETTINGS[name][0], definition(name, wrong)
    found = ENGINES[engine](setting)
    of_cdf = ONE_BETA if engine == "levels" else ERROR
    worst = [off(found, right, groups, of_cdf) for groups in QUESTIONS[setting.k]]
    worst.append(off_by_draws(found, right))
    if isinstance(found, CountsGivenNoise):
        worst.append(abs(log_evidence(found) - right.log_evidence) / ERROR)
    return max(worst)


def off_with_weights(mechanism, draws, wrong=1.0):
    """Mechanisms that weigh or flip candidates, by lists or by weighted draws."""
    prior, released = np.array([0.7, 2.0, 1.0]), np.array([5, 0, 3])
    size, meant = int(released.sum()), replace(mechanism, scale=wrong * mechanism.scale)
    right = weighed_counts(meant, released, prior)
    likelihood = likelihood_of(MechanismSetting.of(mechanism, size, prior), released)
    if draws:
        found = by_interpolation(likelihood, prior, 1000, np.random.default_rng(0))
    else:
        found = Weighed([likelihood], prior, size).exact()
    return max(off(found, right, groups) for groups in QUESTIONS[3])


CASES: dict[str, Callable[..., float]] = {
    f"{engine}: {name}": partial(off_with_noise, engine, name)
    for name, (setting, _) in SETTINGS.items()
    for engine, made in ENGINES.items()
    if made(setting) is not None
}
CASES |= {
    f"{'weighted draws' if draws else 'every data set'}: {type(one).__name__}": partial(
        off_with_weights, one, draws
    )
    for one in (HellingerExponential(0.1), SmoothHellingerExponential(0.8), PermuteAndFlip(0.1))
    for draws in (False, True)
}
#: Draws take seconds; their tests have cases of their own.
QUICK = {case for case in CASES if not case.startswith("weighted draws")}


@pytest.mark.parametrize("case", slow(CASES, but=QUICK))
def test_every_engine_is_the_definition(case):
    assert CASES[case]() <= 1


@pytest.mark.parametrize("case", some_of([one for one in CASES if "no records" not in one], 4))
def test_noise_of_another_scale_is_not_that_of_the_definition(case):
    """The negative control; of no records noise says nothing."""
    assert CASES[case](wrong=2.0) > 1


def test_every_engine_serves_some_settings_and_most_settings_are_of_several():
    served = [case.split(": ", 1) for case in CASES]
    assert {engine for engine, _ in served} >= set(ENGINES)
    several = [name for name in SETTINGS if [of for _, of in served].count(name) > 1]
    assert len(several) >= len(SETTINGS) - 5
