"""Adaptive cells of whole numbers: halved until the logarithm of a weight is nearly linear in each
of those that matter.
"""

import numpy as np

from opendp_bayes.inference.laws.count_cells import NOTHING, Cells, LogWeight
from opendp_bayes.mathematics.validation import Floats, Integers

#: Cells that together hold less than about `exp(-_DEPTH)` of the weight are left out.
_DEPTH = 42.0
#: How much the logarithm of a weight may change over a cell that matters, and bend in it.
_CHANGE, _BEND = 0.5, 0.01
#: Cells of `exp(-_COARSER)` of it may be twice as coarse.
_COARSER = 24.0


def cells_from(seeds: Floats, low: Floats, high: Floats) -> Cells:
    """Cells of every row from each of its seeds, shape `(rows, m)`, to the next."""
    rows = np.repeat(np.arange(low.size), seeds.shape[1])
    return cells_between(rows, seeds.ravel(), low, high)


def cells_between(row: Integers, first: Floats, low: Floats, high: Floats) -> Cells:
    """Cells of rows that begin at numbers in any order, and at the lowest of each."""
    kept = (first > low[row]) & (first <= high[row])
    row, start = row[kept], np.floor(first[kept]).astype(np.int64)
    row = np.append(row, np.arange(low.size))
    start = np.append(start, np.floor(low).astype(np.int64))
    order = np.lexsort((start, row))
    row, start = row[order], start[order]
    new = (np.diff(row, prepend=-1) != 0) | (np.diff(start, prepend=-1) != 0)
    row, start = row[new], start[new]
    last = np.append(start[1:] - 1, 0)
    final = np.diff(row, append=-1) != 0
    last[final] = np.floor(high[row[final]]).astype(np.int64)
    return Cells(row, start, last)


def refined(
    log_weight: LogWeight, cells: Cells, k: int, depth: float = _DEPTH, coarse: float = 1.0
) -> Cells:
    """The cells halved until the weight is smooth in each, without those that matter nothing; it
    may change and bend more where they are `coarse`.

    No cell may hold a mode of the weight in its inside.
    """
    largest, done = np.full(k, NOTHING), list[Cells]()
    while cells.first.size:
        category, length = cells.category, cells.length
        counts = np.concatenate([cells.first, (cells.first + cells.last) / 2, cells.last])
        left, middle, right = np.split(log_weight(np.tile(category, 3), counts), 3)
        low, high = np.minimum(np.minimum(left, right), middle), np.maximum(left, right)
        log_length = np.log(length)
        np.maximum.at(largest, category, low + log_length)
        deficit = largest[category] - (high + log_length)
        slack = coarse * (1 + np.maximum(deficit, 0) / _COARSER)
        smooth = (np.abs(left - right) <= _CHANGE * slack) & (
            np.abs(left + right - 2 * middle) <= _BEND * slack
        )
        kept, smooth = deficit <= depth, smooth | (length == 1)
        done.append(cells.where(kept & smooth))
        cells = cells.where(kept & ~smooth)
        cells = cells.cut(np.full_like(cells.first, 2))
    whole = Cells.joined(done)
    # Cells from early rounds were kept while better ones were not yet known.
    return whole.where(np.lexsort((whole.first, whole.category)))
