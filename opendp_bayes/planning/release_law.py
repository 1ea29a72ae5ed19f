"""The law of a release given the true counts, in floating point: for plans, never for releases.

Outcomes are listed where those that matter can be, otherwise simulated with a fixed seed, so that
the same question has the same answer.
"""

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from opendp_bayes.mathematics.simplex import log_number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mathematics.zero_sum import log_binomials
from opendp_bayes.mechanisms.laws import AdditiveNoise, Flips, SimplexNoise
from opendp_bayes.mechanisms.setting import Setting

#: Outcomes times squared categories up to which candidates are listed.
_LARGEST_LAW = 1 << 22
#: The same for noise, whose outcomes need not have the same total; and where the law is all that is
#: asked for, not one of many in a plan.
_LARGEST_NOISE = 1 << 20
LARGEST_NOISE_ALONE = 1 << 23
#: Noise is listed up to where its mass is below `exp(-_DEPTH)` of the largest; times 18, that is
#: less than 1e-6. A distance grows at most in proportion to the noise.
_DEPTH = 18.0
#: The part of K-norm noise, weighted by its norm, that is left out.
_TAIL = 1e-6
#: Counts simulated: a standard error of about 0.3 % of the error. With more categories a distance
#: varies less.
_SIMULATED = 1 << 17
_FEWEST_DRAWS = 1 << 13
_SEED = 0


@dataclass(frozen=True, eq=False)
class ReleaseLaw:
    """Released counts, shape `(c, k)`, and their probabilities, shape `(c,)`; equal ones if
    `simulated`.
    """

    counts: Integers
    weights: Floats
    simulated: bool = False


def release_law(
    setting: Setting, counts: Integers, *, largest_noise: int | None = None
) -> ReleaseLaw:
    """Return the law of the released counts given the true ones, from the law of the mechanism. A
    mechanism that states no law lists its own outcomes, or draws.

    Parameters
    ----------
    setting : Setting
        The mechanism, for the number of records of `counts`; where it is private, so that a
        projection may not use it, for None.
    counts : ndarray of int
        The true counts, shape `(k,)`.
    largest_noise : int, optional
        Outcomes of additive noise times squared categories up to which they are listed.
    """
    law, mechanism, prior = setting.law, setting.mechanism, setting.prior_array
    if isinstance(law, AdditiveNoise):
        return _of_noise(law, setting, counts, largest_noise or _LARGEST_NOISE)
    if isinstance(law, SimplexNoise):
        return _of_simplex_noise(law, setting, counts)
    log_number = log_number_of_candidates(int(counts.sum()), counts.size)
    if isinstance(law, Flips) or log_number <= math.log(_LARGEST_LAW / counts.size**2):
        with suppress(ValueError):  # it has more outcomes than these, and cannot list them
            return _listed(*mechanism.log_pmf(counts, prior))
    return _simulated(mechanism.sample(counts, prior, _draws(counts.size)))


def _listed(outcomes: Integers, log_p: Floats) -> ReleaseLaw:
    """The law of these outcomes; of very many, draws from it, which take less time than many draws
    of the mechanism.
    """
    weights, k = np.exp(log_p), outcomes.shape[1]
    if len(outcomes) * k**2 <= _LARGEST_LAW:
        return ReleaseLaw(outcomes, weights)
    rng = np.random.default_rng(_SEED)
    return _simulated(outcomes[rng.choice(len(outcomes), _draws(k), p=weights / weights.sum())])


def _of_noise(law: AdditiveNoise, setting: Setting, counts: Integers, largest: int) -> ReleaseLaw:
    # What is moved to an end of a window that is not one of the law's is a negligible part.
    size, windows = int(counts.sum()), law.windows(counts, law.noise.reach(_DEPTH) + 1)
    number = len(windows)
    if math.prod(last - first + 1 for _, first, last in windows) * counts.size**2 > largest:
        noise = law.noise.simulate((_draws(number), number), np.random.default_rng(_SEED))
        draws = law.completed([count for count, _, _ in windows] + noise, size)
        return _simulated(setting.projected(draws))
    draws, log_p = law.listed(windows, size)
    return ReleaseLaw(setting.projected(draws), np.exp(log_p))


def _of_simplex_noise(law: SimplexNoise, setting: Setting, counts: Integers) -> ReleaseLaw:
    k = counts.size
    listed = law.listed(k, math.log(_TAIL) + law.log_normaliser(k), _LARGEST_NOISE // k**2)
    if listed is None:
        return _simulated(setting.projected(counts + _knorm_noise(law.scale, k)))
    noise, weights = listed[0], np.exp(listed[1])
    return ReleaseLaw(setting.projected(counts + noise), weights / weights.sum())


def _knorm_noise(scale: float, k: int) -> Integers:
    """K-norm noise, shape `(draws, k)`, made as `mechanisms.knorm_parameters.knorm_noise` says;
    uniform sums are a Polya urn's.
    """
    generator, draws = np.random.default_rng(_SEED), _draws(k)
    binomial = softmax(2 * np.array(log_binomials(k - 1)) - np.arange(k) / scale)
    total = generator.choice(k, draws, p=binomial) + generator.negative_binomial(
        2 * k - 1, -math.expm1(-1 / scale), draws
    )
    up, down = (
        generator.multinomial(total, generator.dirichlet(np.ones(k), draws)) for _ in range(2)
    )
    return up - down


def _simulated(counts: Integers) -> ReleaseLaw:
    return ReleaseLaw(counts, np.full(len(counts), 1 / len(counts)), simulated=True)


def _draws(k: int) -> int:
    return max(_SIMULATED // k, _FEWEST_DRAWS)
