"""Turn a law into the pairs of distributions that stand for all neighbours: one handler for each
family of laws.

Work is the number of probabilities to compare. Where it exceeds what the caller allows, or nothing
is known, there are no pairs, and only a proven bound is to be had.
"""

from functools import lru_cache, singledispatch
from typing import Any

import numpy as np

from opendp_bayes.accounting.divergences import Pairs
from opendp_bayes.accounting.exponential import enumeration, two_categories
from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.accounting.noise import (
    LaplaceNoise,
    NoisePairs,
    knorm_error,
    knorm_step,
    knorm_steps,
    laplace_error,
    laplace_shift,
)
from opendp_bayes.mechanisms.exponential.permute_and_flip import LAW_ERROR
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from opendp_bayes.mechanisms.laws import AdditiveNoise, ExponentialWeights, Flips, SimplexNoise
from opendp_bayes.mechanisms.setting import Setting

#: Probabilities to compare, above which constructors and the calibration use the proven bound: a
#: second or two.
FEASIBLE_WORK = 20_000_000
#: Groups of records are examined as long as the work for all of them is below this, and there are
#: at most so many records in them.
_GROUP_WORK, LARGEST_GROUP = 5_000_000, 8
#: One pair that stands for all neighbours.
WORST_OF_NOISE = (NoisePairs, GaussianPair)
#: Of Laplace noise, the most outcomes of all counts that move, each of which has about as many as
#: there are records.
_MOST_OUTCOMES = 1 << 17
#: Of K-norm noise, the most records whose moves are followed one after the other, and the largest
#: loss of one.
_LARGEST_STEPS = 64
_LARGEST_LOSS = 40.0
#: Bound on the error of logarithms of fractions of up to 2^16 bits.
_OF_LOGARITHMS = 2.0**-36


def work_of(size: int | None, prior: tuple[float, ...], distance: int = 1) -> int:
    """Count the probabilities that have to be compared for an exponential mechanism."""
    if size is None:
        return 0
    if len(prior) == 2:
        return two_categories.work(size, (prior[0], prior[1]))
    return enumeration.work(size, prior, distance)


@lru_cache(maxsize=256)
def pairs_of(setting: Setting, distance: int, largest_work: int) -> Pairs | GaussianPair | None:
    """The pairs to examine for data sets at exactly this distance, or None where only the proven
    bound is to be had.
    """
    return _pairs(setting.law, setting, distance, largest_work) if setting.is_accounted else None


def all_pairs(setting: Setting, d_in: int) -> list[Pairs | GaussianPair] | None:
    """The pairs for every distance up to `d_in`, or None if they cannot all be examined."""
    if setting.size is not None:
        d_in = min(d_in, setting.size)
    first = pairs_of(setting, d_in, FEASIBLE_WORK)
    if first is None or d_in == 0:
        return None
    if isinstance(first, WORST_OF_NOISE):
        return [first]  # the largest distance is the worst
    if d_in > largest_group(setting):
        return None
    found = [pairs_of(setting, distance, FEASIBLE_WORK) for distance in range(1, d_in + 1)]
    return [pairs for pairs in found if pairs is not None]


def largest_group(setting: Setting) -> int:
    """The largest distance for which all pairs are examined, from 1 to `LARGEST_GROUP`."""
    size, prior = setting.size, setting.prior
    group, total = 1, work_of(size, prior)
    while (
        group < LARGEST_GROUP and (total := total + work_of(size, prior, group + 1)) <= _GROUP_WORK
    ):
        group += 1
    return group


@singledispatch
def _pairs(
    law: Any, setting: Setting, distance: int, largest_work: int
) -> Pairs | GaussianPair | None:
    return None


@_pairs.register
def _(
    law: AdditiveNoise, setting: Setting, distance: int, largest_work: int
) -> Pairs | GaussianPair | None:
    noise, moved = law.noise, law.moved(setting.size)
    if isinstance(noise, DiscreteGaussian):
        return GaussianPair(noise.scale, distance, moved)
    if not isinstance(noise, LaplaceNoise) or (distance + 2) ** moved > _MOST_OUTCOMES:
        return None
    error = moved * laplace_error(distance, noise.scale)
    return NoisePairs(laplace_shift(distance, noise), error, copies=moved)


@_pairs.register
def _(law: SimplexNoise, setting: Setting, distance: int, largest_work: int) -> Pairs | None:
    k = len(setting.prior)
    if distance == 1:
        return NoisePairs(knorm_step(k, law.scale), knorm_error(k, law.scale))
    if distance > _LARGEST_STEPS or 1 / law.scale > _LARGEST_LOSS:
        return None
    steps = knorm_steps(k, law.scale, distance)
    return NoisePairs(steps, _OF_LOGARITHMS)


@_pairs.register
def _(law: Flips, setting: Setting, distance: int, largest_work: int) -> Pairs | None:
    size, prior = setting.size, setting.prior
    if size is None or enumeration.work(size, prior, distance) > largest_work:
        return None
    error = LAW_ERROR + 2.0**-50 / law.scale
    return enumeration.EnumeratedPairs(law, size, prior, distance, error)


@_pairs.register
def _(law: ExponentialWeights, setting: Setting, distance: int, largest_work: int) -> Pairs | None:
    size, prior = setting.size, setting.prior
    if size is None or work_of(size, prior, distance) > largest_work:
        return None
    error = law.widths.log_error(size, setting.prior_array)
    if len(prior) > 2:
        return enumeration.EnumeratedPairs(law, size, prior, distance, error)
    two = (prior[0], prior[1])
    widths = law.widths.widths(size, setting.prior_array)
    # Tabulated distances have a larger error than the sampler's, and sums over a window that of so
    # many roundings.
    tabulated = 2 * float(np.max(1 / widths)) * 2 * two_categories.TABLE_ERROR
    tabulated += 2.0**-51 * (size + 2)
    return two_categories.TwoCategoryPairs(
        size, two, widths, distance, error + tabulated, symmetric=prior[0] == prior[1]
    )
