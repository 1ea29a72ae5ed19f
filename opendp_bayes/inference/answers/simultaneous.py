"""Intervals that hold for all categories at once."""

import numpy as np

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.mathematics.validation import Floats

#: Draws whose ranks are computed at once.
_BLOCK = 1 << 14
#: Of many categories, levels are looked for where all together miss at most so many times as often.
_WIDER = 8


def pointwise_level(marginals: BetaMixtures, draws: Floats, level: float) -> float:
    """The level at which equal-tailed intervals hold for all categories at once with probability
    `level`, by draws of shape `(draws, k)`.

    At level c, each interval misses with probability `1 - c`, so that the mean number of misses is
    `k (1 - c)`. That one misses at all is less probable by the mean number of misses beyond the
    first of a draw, which is all that draws are needed for.
    """
    k = draws.shape[1]
    near = max(1 - _WIDER * (1 - level) / k, level)
    found = _found(near, marginals, draws, level)
    return _found(level, marginals, draws, level) if found < near else found


def _found(least: float, marginals: BetaMixtures, draws: Floats, level: float) -> float:
    """The level, of draws that miss the intervals of `least`; below that where it is too large."""
    number, k = draws.shape
    lower, upper = marginals.interval(least)
    row, category = np.nonzero((draws < lower) | (draws > upper))
    depth = np.empty(row.size)
    for start in range(0, row.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        depth[part] = _depth(marginals.chosen(category[part]), draws[row[part], category[part]])
    order = np.lexsort((-depth, row))
    again = np.diff(row[order], prepend=-1) == 0
    beyond = np.sort(depth[order][again])
    # Up to the levels at which another miss beyond the first is gone, and up to 1.
    left = np.arange(beyond.size, -1, -1) / number
    ends, wanted = np.append(beyond, 1.0), 1 - (1 - level + left) / k
    if wanted[0] < least:
        return max(float(wanted[0]), level) if least == level else level
    return float(wanted[np.argmax(wanted <= ends)])


def _depth(laws: BetaMixtures, values: Floats) -> Floats:
    """The level of the equal-tailed interval at whose end each value is. A value stands for all
    that is rounded to it, so that an interval which holds some of that holds it.
    """
    below, above = laws.cdf(np.nextafter(values, 2)), laws.cdf(np.nextafter(values, -1))
    return np.clip(np.maximum(1 - 2 * below, 2 * above - 1), 0.0, 1.0)
