"""Mixtures of Betas that probabilities are, given the laws of their counts: Betas that are nearly
the same are put together by their mean and variance.
"""

import numpy as np

from opendp_bayes.inference.laws.beta_mixture import NEGLIGIBLE, BetaMixtures
from opendp_bayes.inference.laws.count_cells import Cells
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers

#: The share of a cell that is longer than its Beta is wide, at most.
_LARGEST_SHARE = 1 / 300
#: Betas are put together that lie within this share of their own deviation, with deviations so near
#: in logarithms of variances, and none wider than this in logits; those of small counts only with
#: others of the same count.
_NEAR, _NEARLY, _WIDEST, _SMALL = 0.7, 0.5, 0.2, 6.0
#: Bins of counts are as wide as this part of the deviation of their Betas, or of the counts.
_WIDTH, _PART = 0.5, 0.5
#: An odd number without a pattern, for keys.
_MIXER = np.int64(-7046029254386353131)


def short_cells(law: CountLaws, alpha: Floats, others: Floats, size: float) -> Cells:
    """Cut cells of the laws until those that are longer than their Betas are wide hold little.

    `alpha` and `others`, shape `(m,)`, are the priors of each law's category and of all other
    categories; `size` is about the number of records.
    """
    cells, shares = law.cells, law.masses.sum(axis=1)
    row, middle = cells.category, (cells.first + cells.last) / 2
    left = np.minimum(np.maximum(size - middle, 0.0), np.maximum(size - law.mean(), 0.0)[row])
    slope = 1 / (alpha[row] + middle) + 1 / (others[row] + left)
    # Relative to the deviations of their Betas.
    lengths = cells.length * np.sqrt(slope)
    seen = shares > NEGLIGIBLE
    pieces = np.ceil(np.minimum(lengths, shares / _LARGEST_SHARE))[seen].astype(np.int64)
    return cells.where(seen).cut(pieces)


def binned(
    law: CountLaws, alpha: Floats, others: Floats, size: float, given: Floats
) -> tuple[Integers, Floats, Floats]:
    """Real counts that stand for those in bins, two for each, with its mean and variance: the law
    of each, its probability and the count.

    Bins are short beside their Betas, and beside the deviations of the counts given the number of
    records, `given`, shape `(m,)`.
    """
    cells = law.cells
    row, middle = cells.category, (cells.first + cells.last) / 2
    # In deviations of Betas, at least, whatever the number of records.
    place = 2 * np.sqrt(alpha[row] + middle)
    place -= 2 * np.sqrt(others[row] + np.maximum(size - middle, 0.0))
    place += middle / np.sqrt(others + np.maximum(size - law.mean(), 0.0))[row]
    new = np.diff(row, prepend=-1) != 0
    bins = np.floor(place / _WIDTH + middle / (_PART * np.maximum(given[row], 0.1)))
    parts = Segments.of(np.cumsum(new | (np.diff(bins, prepend=-1) != 0)))
    mass = parts.sums(law.masses.sum(axis=1))
    mean = parts.sums((law.masses * cells.nodes).sum(axis=1)) / np.maximum(mass, 1e-300)
    off = law.masses * (cells.nodes - mean[parts.owner, None]) ** 2
    away = np.sqrt(parts.sums(off.sum(axis=1)) / np.maximum(mass, 1e-300))
    several = np.flatnonzero(away > 0)
    every = np.append(np.arange(mass.size), several)  # the second number of a bin comes at the end
    mass[several] /= 2
    mean[several] -= away[several]
    x = np.append(mean, mean[several] + 2 * away[several])
    return row[parts.start[:-1]][every], mass[every], np.maximum(x, 0.0)


def grouped(
    a: Floats, b: Floats, weights: Floats, counts: Floats, left: Floats, row: Integers
) -> BetaMixtures:
    """Mixtures of the rows, with Betas put together that are nearly the same; all shapes `(c,)`.

    `counts` and `left` are the records in the category and in the others: Betas of few records stay
    apart.
    """
    order = np.argsort(row, kind="stable")
    a, b, weights, row = a[order], b[order], weights[order], row[order]
    counts, left = counts[order], np.maximum(left[order], 0)
    width = np.floor(np.logaddexp(-np.log(a), -np.log(b)) / _NEARLY)
    deviation = np.minimum(np.exp((width + 0.5) * _NEARLY / 2), _WIDEST)
    place = np.floor((np.log(a) - np.log(b)) / (_NEAR * deviation))
    key = np.zeros(a.shape, dtype=np.int64)
    small = [np.where(x < _SMALL, np.rint(4 * np.maximum(x, 0)), -1) for x in (counts, left)]
    for column in (width, place, *small):  # two of the 2^64 keys hardly ever agree
        key = (key ^ column.astype(np.int64)) * _MIXER
        key ^= key >> 29
    return BetaMixtures.grouped(a, b, weights, key, row)
