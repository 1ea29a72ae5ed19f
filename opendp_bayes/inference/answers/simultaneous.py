"""Intervals that hold for all categories at once."""

import numpy as np

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.mathematics.validation import Floats

#: Of many categories, levels are looked for where all together miss at most so many times as often.
_WIDER = 8
#: A step is lengthened where the last one shrank it by less than this, and if it is of more misses
#: than that.
_HARDLY, _FEW = 0.8, 64


def pointwise_level(marginals: BetaMixtures, draws: Floats, level: float) -> float:
    """The level at which equal-tailed intervals hold for all categories at once with probability
    `level`, by draws of shape `(draws, k)`: the first from `level` on.

    At level c, each interval misses with probability `1 - c`, so that the mean number of misses is
    `k (1 - c)`. That one misses at all is less probable by the mean number of misses beyond the
    first of a draw, which is all that draws are needed for. So the level wanted is
    `1 - (1 - level + beyond(c) / draws) / k`, which rises with c. Where it is above c, so is the
    level looked for, and not below the one wanted. Draws that miss once or not at all have no
    misses beyond the first at any level above.
    """
    number, k = draws.shape
    highest, few = 1 - (1 - level) / k, _FEW / draws.size
    tried, safe, step, stride = max(1 - _WIDER * (1 - level) / k, level), level, np.inf, 2
    while True:
        lower, upper = marginals.interval(tried)
        missed = (draws < lower) | (draws > upper)
        misses = missed.sum(axis=1)
        wanted = float(1 - (1 - level + np.maximum(misses - 1, 0).sum() / number) / k)
        if wanted > tried:
            again = misses > 1
            left = np.flatnonzero(missed[again].any(axis=0))
            draws, marginals = draws[again][:, left], marginals.chosen(left)
            before, step, safe = step, wanted - tried, wanted
            stride = 2 * stride if step > max(_HARDLY * before, few) else 1
            tried = safe if stride == 1 else min(safe + (stride - 1) * step, highest)
        elif stride == 1:
            return max(safe, wanted)
        else:  # further than to the level looked for
            tried, stride = safe, 1
