"""Turn a law into the pairs of distributions that stand for all neighbours: one handler for each
family of laws.

Work is the number of probabilities to compare. Where it exceeds what the caller allows, or nothing
is known, there are no pairs, and only a proven bound is to be had.
"""

from functools import lru_cache, singledispatch
from typing import Any

import numpy as np

from opendp_bayes.accounting.exponential import enumeration, two_categories
from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.accounting.noise import (
    LaplaceNoise,
    NoisePairs,
    knorm_error,
    knorm_step,
    laplace_error,
    laplace_shift,
)
from opendp_bayes.mechanisms.exponential.permute_and_flip import LAW_ERROR
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from opendp_bayes.mechanisms.laws import AdditiveNoise, ExponentialWeights, Flips, SimplexNoise
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.setting import Setting

#: Pairs as bad as any: for two data sets at the distance in question, these or the reverse of one
#: of these bound their divergence. `log_error` bounds the difference between a log-probability and
#: that of the sampler; `method` is "windowed" where far outcomes were lumped together, or "exact".
Pairs = NoisePairs | enumeration.EnumeratedPairs | two_categories.TwoCategoryPairs
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


def work_of(size: int | None, prior: tuple[float, ...], distance: int = 1) -> int:
    """Count the probabilities that have to be compared for an exponential mechanism."""
    if size is None:
        return 0
    if len(prior) == 2:
        return two_categories.work(size, (prior[0], prior[1]))
    return enumeration.work(size, prior, distance)


@lru_cache(maxsize=256)
def pairs_of(
    setting: Setting, distance: Distance, largest_work: int
) -> Pairs | GaussianPair | None:
    """The pairs to examine for data sets at exactly this distance, or None where only the proven
    bound is to be had. Laplace noise is worst where all records are in one count.
    """
    return _pairs(setting.law, setting, distance, largest_work) if setting.is_accounted else None


def all_pairs(setting: Setting, distance: Distance) -> list[Pairs | GaussianPair] | None:
    """The pairs for every distance up to `distance`, or None if they cannot all be examined."""
    distance = distance.within(setting.size)
    first = pairs_of(setting, distance, FEASIBLE_WORK) if distance.records else None
    if first is None:
        return None
    if isinstance(first, WORST_OF_NOISE):
        return [first]  # the largest distance is the worst
    if distance.records > largest_group(setting):
        return None
    distances = map(Distance.of, range(1, distance.records + 1))
    pairs_by_distance = [pairs_of(setting, nearer, FEASIBLE_WORK) for nearer in distances]
    return [pairs for pairs in pairs_by_distance if pairs is not None]


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
    law: Any, setting: Setting, distance: Distance, largest_work: int
) -> Pairs | GaussianPair | None:
    return None


@_pairs.register
def _(
    law: AdditiveNoise, setting: Setting, distance: Distance, largest_work: int
) -> Pairs | GaussianPair | None:
    noise, moved = law.noise, law.moved(setting.size)
    if isinstance(noise, DiscreteGaussian):
        return GaussianPair.worst(noise.scale, distance, moved)
    records = distance.records
    if not isinstance(noise, LaplaceNoise) or (records + 2) ** moved > _MOST_OUTCOMES:
        return None
    error = moved * laplace_error(records, noise.scale)
    return NoisePairs(laplace_shift(records, noise), error, copies=moved)


@_pairs.register
def _(law: SimplexNoise, setting: Setting, distance: Distance, largest_work: int) -> Pairs | None:
    k = len(setting.prior)
    if distance.records > 1:
        return None
    return NoisePairs(knorm_step(k, law.scale), knorm_error(k, law.scale))


@_pairs.register
def _(law: Flips, setting: Setting, distance: Distance, largest_work: int) -> Pairs | None:
    size, prior, records = setting.size, setting.prior, distance.records
    if size is None or enumeration.work(size, prior, records) > largest_work:
        return None
    error = LAW_ERROR + 2.0**-50 / law.scale
    return enumeration.EnumeratedPairs(law, size, prior, records, error)


@_pairs.register
def _(
    law: ExponentialWeights, setting: Setting, distance: Distance, largest_work: int
) -> Pairs | None:
    size, prior, records = setting.size, setting.prior, distance.records
    if size is None or work_of(size, prior, records) > largest_work:
        return None
    error = law.widths.log_error(size, setting.prior_array)
    if len(prior) > 2:
        return enumeration.EnumeratedPairs(law, size, prior, records, error)
    two = (prior[0], prior[1])
    widths = law.widths.widths(size, setting.prior_array)
    # Tabulated distances have a larger error than the sampler's, and sums over a window that of so
    # many roundings.
    tabulated = 2 * float(np.max(1 / widths)) * 2 * two_categories.TABLE_ERROR
    tabulated += 2.0**-51 * (size + 2)
    return two_categories.TwoCategoryPairs(
        size, two, widths, records, error + tabulated, symmetric=prior[0] == prior[1]
    )
