"""Turn a law into the pairs of distributions that stand for all neighbours: one handler for each
family of laws.

Work is the number of probabilities to compare. Where it exceeds what the caller allows, or nothing
is known, there are no pairs, and only a proven bound is to be had.
"""

from functools import lru_cache, singledispatch
from typing import Any, NamedTuple

import numpy as np

from opendp_bayes.accounting import enumeration, two_categories
from opendp_bayes.accounting.divergences import Pairs
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
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from opendp_bayes.mechanisms.laws import AdditiveNoise, ExponentialWeights, Flips, Law, SimplexNoise
from opendp_bayes.mechanisms.permute_and_flip import LAW_ERROR

#: Of Laplace noise, the most records whose profile is computed.
_LARGEST_SHIFT = 256

#: Of K-norm noise, the most records whose moves are followed one after the other, and the largest
#: loss of one.
_LARGEST_STEPS = 64
_LARGEST_LOSS = 40.0
#: Bound on the error of logarithms of fractions of up to 2^16 bits.
_OF_LOGARITHMS = 2.0**-36


class Setting(NamedTuple):
    """The public setting: the number of records (None where private), the prior, and a distance."""

    size: int | None
    prior: tuple[float, ...]
    distance: int = 1

    def work(self) -> int:
        """Probabilities that have to be compared for an exponential mechanism."""
        if self.size is None:
            return 0
        if len(self.prior) == 2:
            return two_categories.work(self.size, (self.prior[0], self.prior[1]))
        return enumeration.work(self.size, self.prior, self.distance)


@lru_cache(maxsize=256)
def pairs_of(law: Law, setting: Setting, largest_work: int) -> Pairs | GaussianPair | None:
    """The pairs to examine for data sets at exactly the distance of the setting, or None."""
    return _pairs(law, setting, largest_work)


@singledispatch
def _pairs(law: Any, setting: Setting, largest_work: int) -> Pairs | GaussianPair | None:
    return None


@_pairs.register
def _(law: AdditiveNoise, setting: Setting, largest_work: int) -> Pairs | GaussianPair | None:
    distance, noise, moved = setting.distance, law.noise, law.moved(setting.size)
    if isinstance(noise, DiscreteGaussian):
        return GaussianPair(noise.scale, distance, moved)
    if not isinstance(noise, LaplaceNoise) or distance > _LARGEST_SHIFT:
        return None
    error = moved * laplace_error(distance, noise.scale)
    return NoisePairs(laplace_shift(distance, noise), error, copies=moved)


@_pairs.register
def _(law: SimplexNoise, setting: Setting, largest_work: int) -> Pairs | None:
    k = len(setting.prior)
    if setting.distance == 1:
        return NoisePairs(knorm_step(k, law.scale), knorm_error(k, law.scale))
    if setting.distance > _LARGEST_STEPS or 1 / law.scale > _LARGEST_LOSS:
        return None
    steps = knorm_steps(k, law.scale, setting.distance)
    return NoisePairs(steps, _OF_LOGARITHMS)


@_pairs.register
def _(law: Flips, setting: Setting, largest_work: int) -> Pairs | None:
    size, prior, distance = setting
    if size is None or enumeration.work(size, prior, distance) > largest_work:
        return None
    error = LAW_ERROR + 2.0**-50 / law.scale
    return enumeration.EnumeratedPairs(law, size, prior, distance, error)


@_pairs.register
def _(law: ExponentialWeights, setting: Setting, largest_work: int) -> Pairs | None:
    size, prior, distance = setting
    if size is None or setting.work() > largest_work:
        return None
    error = law.widths.log_error(size, np.array(prior))
    if len(prior) > 2:
        return enumeration.EnumeratedPairs(law, size, prior, distance, error)
    two = (prior[0], prior[1])
    widths = law.widths.widths(size, np.array(prior))
    # Tabulated distances have a larger error than the sampler's, and sums over a window that of so
    # many roundings.
    tabulated = 2 * float(np.max(1 / widths)) * 2 * two_categories.TABLE_ERROR
    tabulated += 2.0**-51 * (size + 2)
    return two_categories.TwoCategoryPairs(
        size, two, widths, distance, error + tabulated, symmetric=prior[0] == prior[1]
    )
