"""All neighbours among listed data sets."""

from itertools import permutations

import numpy as np

from opendp_bayes.mathematics.simplex import ranks
from opendp_bayes.mathematics.validation import Integers


def neighbours(sets: Integers) -> tuple[Integers, Integers]:
    """Every ordered pair of data sets that differ by one record changed, as indices into `sets`,
    which are all `candidates`: those of the first and of the second of each pair.

    Examples
    --------
    >>> from opendp_bayes.mathematics.simplex import candidates
    >>> [array.tolist() for array in neighbours(candidates(2, 2))]
    [[1, 2, 0, 1], [0, 1, 1, 2]]
    """
    size, k = int(sets[0].sum()), sets.shape[1]
    first, second = [], []
    for leaves, joins in permutations(range(k), 2):
        row = np.flatnonzero(sets[:, leaves])
        moved = sets[row]
        moved[:, leaves] -= 1
        moved[:, joins] += 1
        first.append(row)
        second.append(ranks(moved, size))
    return np.concatenate(first), np.concatenate(second)
