"""Turn a law into the pairs of distributions that stand for all neighbours.

Work is the number of probabilities to compare. Where it exceeds what the caller allows, or nothing
is known, there are no pairs, and only a proven bound is to be had.
"""

from functools import lru_cache

import numpy as np

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
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, IntegerNoise
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
        return two_categories.work(size, prior)
    return enumeration.work(size, prior, distance)


@lru_cache(maxsize=256)
def pairs_of(
    setting: Setting, distance: Distance, largest_work: int
) -> Pairs | GaussianPair | None:
    """The pairs to examine for data sets at exactly this distance, or None where only the proven
    bound is to be had. Laplace and K-norm noise are worst where all records are in one count.
    """
    law, k = setting.law, len(setting.prior)
    if law is None or not setting.is_accounted:
        return None
    if isinstance(law, AdditiveNoise):
        return _of_counts(law.noise, law.moved(setting.size), distance)
    if isinstance(law, SimplexNoise):
        if distance.records == 1:
            return NoisePairs(knorm_step(k, law.scale), knorm_error(k, law.scale))
        if distance.records > _LARGEST_STEPS or 1 / law.scale > _LARGEST_LOSS:
            return None
        return NoisePairs(knorm_steps(k, law.scale, distance.records), _OF_LOGARITHMS)
    return _of_candidates(law, setting, distance.records, largest_work)


def all_pairs(setting: Setting, distance: Distance) -> list[Pairs | GaussianPair] | None:
    """The pairs for every distance up to `distance`, or None if they cannot all be examined. Of
    noise those of the largest are the worst.
    """
    distance = distance.within(setting.size)
    if not setting.adds_noise and distance.records > largest_group(setting):
        return None
    nearer = map(Distance.of, range(1, distance.records + 1))
    found = [
        pairs_of(setting, one, FEASIBLE_WORK)
        for one in ([distance] if setting.adds_noise else nearer)
        if one.records
    ]
    pairs = [pairs for pairs in found if pairs is not None]
    return pairs if pairs and len(pairs) == len(found) else None


def largest_group(setting: Setting) -> int:
    """The largest distance for which all pairs are examined, from 1 to `LARGEST_GROUP`."""
    size, prior = setting.size, setting.prior
    group, total = 1, work_of(size, prior)
    while (
        group < LARGEST_GROUP and (total := total + work_of(size, prior, group + 1)) <= _GROUP_WORK
    ):
        group += 1
    return group


def _of_counts(
    noise: IntegerNoise, moved: int, distance: Distance
) -> NoisePairs | GaussianPair | None:
    """The pair of `moved` counts with noise."""
    if isinstance(noise, DiscreteGaussian):
        return GaussianPair.worst(noise.scale, distance, moved)
    records = distance.records
    if not isinstance(noise, LaplaceNoise) or (records + 2) ** moved > _MOST_OUTCOMES:
        return None
    error = moved * laplace_error(records, noise.scale)
    return NoisePairs(laplace_shift(records, noise), error, copies=moved)


def _of_candidates(
    law: ExponentialWeights | Flips, setting: Setting, records: int, largest_work: int
) -> Pairs | None:
    """All pairs of data sets of a mechanism that chooses a candidate."""
    size, prior = setting.size, setting.prior
    work = enumeration.work if isinstance(law, Flips) else work_of
    if size is None or work(size, prior, records) > largest_work:
        return None
    if isinstance(law, Flips):
        error = LAW_ERROR + 2.0**-50 / law.scale
    else:
        error = law.widths.log_error(size, setting.prior_array)
    if len(prior) > 2 or isinstance(law, Flips):
        return enumeration.EnumeratedPairs(law, size, prior, records, error)
    widths = law.widths.widths(size, setting.prior_array)
    # Tabulated distances have a larger error than the sampler's, and sums over a window that of so
    # many roundings.
    tabulated = 2 * float(np.max(1 / widths)) * 2 * two_categories.TABLE_ERROR
    tabulated += 2.0**-51 * (size + 2)
    return two_categories.TwoCategoryPairs(
        size, prior, widths, records, error + tabulated, symmetric=prior[0] == prior[1]
    )
