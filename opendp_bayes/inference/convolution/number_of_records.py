"""The number of records: public, or private with its prior, each times `n! / Γ(n + A)`, as a weight
of the sum of the counts.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from opendp_bayes.inference.convolution.tilted_counts import NoisedCategories
from opendp_bayes.inference.laws.count_cells import NOTHING
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.mathematics.validation import Floats, Integers

#: Noise costs at least `exp(-_UNLIKELY)` beyond the largest number of records that is considered.
_UNLIKELY = 60.0
#: The most records of a private number, above which its weights have too few digits.
_LARGEST = 10**15
#: The most records by which a prior may lie above what the noised counts reach: noise that is
#: exponential there leaves as many counts to look at.
_MOST_ABOVE = 1 << 15
#: Quantiles of a prior of the number of records between which it is smooth.
_LEVELS = np.linspace(0.01, 0.99, 33)

#: Logarithms of the weights of numbers of records, real ones too, elementwise.
LogWeight = Callable[[Floats], Floats]


@dataclass(frozen=True, eq=False)
class OfPrior:
    """The probability of each number, where its prior is not None, over the number of data sets,
    of categories whose prior has this concentration; a `LogWeight`.
    """

    concentration: float
    records_prior: Any = None

    def __call__(self, sizes: Floats) -> Floats:
        log_prior = 0.0 if self.records_prior is None else _log_prior(self.records_prior, sizes)
        return np.asarray(log_prior - log_rising(sizes, self.concentration))


@dataclass(frozen=True, eq=False)
class Total:
    """The number of records, from `lowest` to `highest`, with a weight of each.

    `log_weight` takes real numbers in this range; `seeds` are numbers between which it has no
    narrow peak. Where `lowest` is `highest` the number is public.
    """

    lowest: int
    highest: int
    log_weight: LogWeight
    seeds: Integers

    @property
    def is_point(self) -> bool:
        """True if there is only one possible number."""
        return self.lowest == self.highest


def public(size: int, prior_total: float) -> Total:
    """A public number of records."""
    return Total(size, size, OfPrior(prior_total), np.array([size]))


def private(categories: NoisedCategories, records_prior: Any) -> Total:
    """A private number with a prior, a frozen discrete distribution of scipy or None for every
    number being equally probable.

    Raises
    ------
    ValueError
        Where nothing bounds the number, or only beyond 1e15, and for a prior with gaps, or far
        above what was drawn.
    """
    log_weight = OfPrior(float(categories.prior.sum()), records_prior)
    highest = max(_highest(categories, records_prior), 0)
    lowest, seeds = 0, [_graded(0, highest)]
    if records_prior is not None:
        lowest = int(min(max(records_prior.support()[0], 0), highest))
        quantiles = _quantiles(records_prior)
        seeds += [_graded(lowest, highest), np.clip(quantiles, lowest, highest).astype(np.int64)]
        seeds += [highest - seed + lowest for seed in seeds[1:2]]
    numbers = np.unique(np.clip(np.concatenate(seeds), lowest, highest))
    near = np.unique(np.clip(np.concatenate([numbers, numbers + 1]), lowest, highest))
    positive = near[log_weight(near.astype(np.float64)) > NOTHING / 2]
    if not positive.size:
        raise ValueError("records_prior: gives no number of records a probability above 0.")
    lowest, highest = int(positive[0]), int(positive[-1])
    if positive.size < np.sum((near >= lowest) & (near <= highest)):
        raise ValueError(
            "records_prior: has gaps, numbers of probability 0 between others; give a distribution"
            " whose probabilities are positive between the ends of its support."
        )
    numbers = np.unique(np.clip(numbers, lowest, highest))
    return Total(lowest, highest, log_weight, numbers)


def _log_prior(records_prior: Any, sizes: Floats) -> Floats:
    """Log-probabilities of real numbers, straight from one whole number to the next."""
    below = np.floor(sizes)
    share = sizes - below
    with np.errstate(all="ignore"):  # where a probability is 0
        ends = [np.nan_to_num(records_prior.logpmf(s), nan=NOTHING) for s in (below, below + 1)]
    left, right = (np.maximum(end, NOTHING) for end in ends)
    return np.where(share > 0, (1 - share) * left + share * right, left)


def _quantiles(records_prior: Any) -> list[float]:
    """Those that scipy finds: its search fails at some levels of some laws."""
    quantiles = []
    for level in _LEVELS:
        with suppress(RuntimeError):
            quantiles.append(float(records_prior.ppf(level)))
    return quantiles


def _highest(categories: NoisedCategories, records_prior: Any) -> int:
    """A number of records beyond which there is nothing.

    From the median m of its prior on, each record more, but for those that the noised counts ask
    for, makes the noise larger by one: the weight falls from `m + 2 sum(drawn)` on.
    """
    highest = math.inf
    for look in categories.looks:
        if look.is_complete:
            records_drawn = float(np.maximum(look.drawn, 0).sum(dtype=np.float64))
            highest = min(
                highest, 2 * records_drawn + look.drawn.size * look.noise.reach(_UNLIKELY)
            )
    if records_prior is not None:
        least = float(records_prior.ppf(1e-4))
        if least > highest + _MOST_ABOVE:
            raise ValueError(
                f"records_prior: has at least {least:.0f} records, but for a probability of 1e-4,"
                f" and what was drawn is of at most about {highest:.0f}; must be at most"
                f" {_MOST_ABOVE} more. Give a prior that is nearer, or none."
            )
        if math.isinf(highest):
            highest = float(records_prior.isf(1e-16))
        highest = min(highest + float(records_prior.ppf(0.5)), float(records_prior.support()[1]))
    if not highest <= _LARGEST:
        raise ValueError(
            "records_prior: the private number of records is not known to be below 1e15 from the "
            "noised counts; give a frozen discrete distribution with a bounded support."
        )
    return math.ceil(highest)


def _graded(lowest: int, highest: int) -> Integers:
    """Numbers from `lowest` on whose distances from it double."""
    reach = max(highest - lowest, 0)
    away = 2.0 ** np.arange(0, math.log2(reach + 2) + 1)
    return lowest + np.unique(np.append(np.minimum(away.astype(np.int64), reach), 0))
