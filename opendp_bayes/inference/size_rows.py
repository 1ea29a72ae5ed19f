"""A few numbers of records that stand for the law of a private one."""

import numpy as np

from opendp_bayes.inference.count_laws import CountLaws
from opendp_bayes.mathematics.validation import Floats

#: What is put together is within so much of the probability, of standard deviations, and of the
#: logarithm to base 2; numbers below `_SMALL` are kept apart.
_SHARE, _STEP, _FACTOR, _SMALL = 1 / 32, 0.3, 0.5, 64


def rows_of(law: CountLaws) -> tuple[Floats, Floats]:
    """Whole numbers, ascending, and their probabilities: nodes of the law, or two that have the
    mean and the variance of several, about.
    """
    used = law.cells.used
    sizes, weights = law.cells.nodes[used], law.masses[used]
    below = np.cumsum(weights) - weights / 2
    step = max(_STEP * float(law.std()[0]), 1.0)
    columns = below / _SHARE, sizes / step, np.log2(sizes + 1) / _FACTOR, np.minimum(sizes, _SMALL)
    bins = np.floor(np.stack(columns))
    first = np.flatnonzero(np.any(np.diff(bins, axis=1, prepend=-1) != 0, axis=0))
    place = np.repeat(np.arange(first.size), np.diff(np.append(first, sizes.size)))
    share = np.add.reduceat(weights, first)
    mean = np.add.reduceat(weights * sizes, first) / share
    spread = np.sqrt(np.add.reduceat(weights * (sizes - mean[place]) ** 2, first) / share)
    ends = np.rint(np.concatenate([mean - spread, mean + spread]))
    numbers, at = np.unique(ends, return_inverse=True)
    return numbers, np.bincount(at, np.tile(share / 2, 2)).astype(np.float64)
