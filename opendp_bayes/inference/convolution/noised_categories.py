"""Weights of the true counts, one category at a time: `Γ(x + α) / x!` of the Dirichlet-multinomial
law, times the noise of every look.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise

#: One record that does not fit costs `exp(-_STEEPEST)` where the noise is so small that it costs
#: less: what the prior can gain by it is at most about `exp(60)`, so that neither ever happens.
_STEEPEST = 256.0


@dataclass(frozen=True, eq=False)
class NoisedCategories:
    """Looks at the counts of k categories, and the prior of these, shape `(k,)`.

    The weight of a count x is `Γ(x + prior) / x!` times `f(drawn - x)` for each look at which it
    was noised, f the law of the noise.
    """

    looks: tuple[DrawnCounts, ...]
    prior: Floats

    @property
    def columns(self) -> list[NDArray[Any]]:
        """Arrays of shape `(k,)`: categories for which all of them agree are alike."""
        columns_of_looks = [column for look in self.looks for column in (look.drawn, look.noised)]
        return [*columns_of_looks, self.prior]

    @property
    def kinks(self) -> list[Integers]:
        """Counts at which a logarithm of noise is not smooth, arrays of shape `(k,)`."""
        return [kink for look in self.looks for kink in look.kinks]

    @property
    def bend(self) -> float:
        """A scale s such that the second derivative of the logarithm of all noise, but for kinks,
        is about `-1 / s^2`.
        """
        smooth = [look.noise.scale for look in self.looks if not look.noise.kinks]
        scales = np.array(smooth or [look.noise.scale for look in self.looks])
        return float(1 / np.sqrt(np.sum(1 / scales**2)))

    @property
    def k(self) -> int:
        """Number of categories."""
        return int(self.prior.size)

    @cached_property
    def used(self) -> list[tuple[float, DrawnCounts]]:
        """Looks, each with the share of its logarithm that is used."""
        return [(hardness(look.noise), look) for look in self.looks]

    def log_weight(self, category: Integers, counts: Floats | Integers, anchor: Integers) -> Floats:
        """The logarithm of the weight of each count of each category over that of the anchor, of
        shape `(k,)`.
        """
        start = anchor[category]
        # All at once: a call for few counts takes about as long as one for hundreds.
        both = np.append(counts, anchor), np.append(self.prior[category], self.prior)
        prior, at_anchor = np.split(log_rising(*both), [-anchor.size])
        return self._log_ratio(category, start, counts - start) + (prior - at_anchor[category])

    def log_step(self, category: Integers, counts: Integers) -> Floats:
        """The logarithm of the ratio of the weights of `counts + 1` and `counts`."""
        prior = np.log1p((self.prior[category] - 1) / (counts + 1.0))
        return self._log_ratio(category, counts, 1.0) + prior

    def chosen(self, rows: Integers) -> "NoisedCategories":
        """Those of some categories."""
        return NoisedCategories(tuple(look.chosen(rows) for look in self.looks), self.prior[rows])

    def _log_ratio(self, category: Integers, start: Integers, step: ArrayLike) -> Floats:
        """The logarithm of the ratio of the noise's probabilities at `start + step` and `start`."""
        ratios = [share * look.log_ratio(start, step, category) for share, look in self.used]
        return np.asarray(sum(ratios))


def hardness(noise: IntegerNoise) -> float:
    """The share of a noise's logarithm that is used: 1 but for minute scales."""
    cost = -float(noise.log_ratio(0, 1))
    return 1.0 if cost <= _STEEPEST else _STEEPEST / cost
