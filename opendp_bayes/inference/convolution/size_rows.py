"""A few numbers of records that stand for the law of a private one."""

import numpy as np

from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.mathematics.validation import Floats

#: More numbers than this are put together.
_MOST = 640
#: What is put together is within so much of the probability, of standard deviations, and of the
#: logarithm to base 2; numbers below `_SMALL` are kept apart.
_SHARE, _STEP, _FACTOR, _SMALL = 1 / 32, 0.3, 0.5, 64


def rows_of(law: CountLaws) -> tuple[Floats, Floats]:
    """Whole numbers, ascending, and their probabilities: the nodes of the law, so that sums over
    them are its own, or where these are many, numbers with the mean and about the variance of
    several.
    """
    used = law.cells.used
    sizes, weights = law.cells.nodes[used], law.masses[used]
    if sizes.size <= _MOST:
        return sizes, weights
    below = np.cumsum(weights) - weights / 2
    step = max(_STEP * float(law.std()[0]), 1.0)
    columns = below / _SHARE, sizes / step, np.log2(sizes + 1) / _FACTOR, np.minimum(sizes, _SMALL)
    bins = np.floor(np.stack(columns))
    first = np.flatnonzero(np.any(np.diff(bins, axis=1, prepend=-1) != 0, axis=0))
    place = np.repeat(np.arange(first.size), np.diff(np.append(first, sizes.size)))
    share = np.add.reduceat(weights, first)
    mean = np.add.reduceat(weights * sizes, first) / share
    spread = np.sqrt(np.add.reduceat(weights * (sizes - mean[place]) ** 2, first) / share)
    ends = np.concatenate([mean - spread, mean + spread])
    over = ends - np.floor(ends)  # shared by the two whole numbers beside it
    numbers, at = np.unique(np.append(np.floor(ends), np.ceil(ends)), return_inverse=True)
    shares = np.bincount(at, np.tile(share / 2, 4) * np.append(1 - over, over))
    return numbers[shares > 0], shares[shares > 0].astype(np.float64)
