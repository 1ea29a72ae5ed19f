"""Mixtures of Betas that probabilities are, given the laws of their counts: Betas that are nearly
the same are put together by their mean and variance.
"""

import numpy as np

from opendp_bayes.inference.laws.beta_mixture import NEGLIGIBLE, BetaMixtures
from opendp_bayes.inference.laws.count_cells import Cells
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.mathematics.validation import Floats, Integers

#: The share of a cell that is longer than its Beta is wide, at most.
_LARGEST_SHARE = 1 / 300
#: Betas are put together that lie within this share of their own deviation, with deviations so near
#: in logarithms of variances, and none wider than this in logits; those of small counts only with
#: others of the same count.
_NEAR, _NEARLY, _WIDEST, _SMALL = 0.7, 0.5, 0.2, 6.0
#: Records left to the others are told apart that differ by this part of the deviation that a
#: probability has in logits without them, by at least so much of what it has by them, and at most
#: by this share; where they are fewer than so many, all are.
_SMOOTHED, _FINEST, _LARGEST_ALIKE, _ALL_APART = 0.6, 0.03, 0.12, 24.0
#: An odd number without a pattern, for keys.
_MIXER = np.int64(-7046029254386353131)


def short_cells(law: CountLaws, alpha: Floats, others: Floats, size: float) -> Cells:
    """Cut cells of the laws until those that are longer than their Betas are wide hold little.

    `alpha` and `others`, shape `(m,)`, are the priors of each law's category and of all other
    categories; `size` is about the number of records.
    """
    cells, shares = law.cells, law.masses.sum(axis=1)
    seen = shares > NEGLIGIBLE
    lengths = _lengths(cells, alpha, others, size)
    pieces = np.ceil(np.minimum(lengths, shares / _LARGEST_SHARE))[seen].astype(np.int64)
    found = cells.where(seen).cut(pieces)
    for edge in (_SMALL, max(size - _SMALL + 1, 0.0)):  # beyond them a long cell is one Beta
        found = found.parted(int(edge), _lengths(found, alpha, others, size) > 1)
    return found


def long_cells(cells: Cells, alpha: Floats, others: Floats, size: float) -> Integers:
    """Number every cell that is longer than its Betas are wide, the others -1; shape `(cells,)`.

    The Betas of such a cell have to become one: apart, they would be steps.
    """
    long = (_lengths(cells, alpha, others, size) > 1) & (cells.first >= _SMALL)
    return np.where(long, np.arange(long.size), -1)


def _lengths(cells: Cells, alpha: Floats, others: Floats, size: float) -> Floats:
    """Lengths of cells, relative to the deviations of their Betas."""
    middle = (cells.first + cells.last) / 2
    a = middle + alpha[cells.category]
    b = np.maximum(size - middle, 0) + others[cells.category]
    return np.asarray(cells.length / np.sqrt(a * b / (a + b)))


class Bins:
    """Bins of the records left to the other categories: small numbers have one each, larger ones
    bins of a share of them and of their prior.

    `others`, shape `(m,)`, are the priors of all categories but each row's. The logit of its
    probability has about the deviation `rest` by what is not known of the others, and `own` without
    that: where this is small, nothing else smooths the bins.
    """

    def __init__(self, others: Floats, own: Floats, rest: Floats, most: Floats) -> None:
        self.others = others
        share = np.clip(_SMOOTHED * own, _FINEST * rest, _LARGEST_ALIKE)
        self._share = np.minimum(share, most)

    def of(self, row: Integers, left: Floats) -> Integers:
        """The bin of so many records beside each row, elementwise."""
        whole = left + self.others[row]
        large = np.log(np.maximum(whole, _ALL_APART) / _ALL_APART) / self._share[row]
        return np.where(whole < _ALL_APART, whole, _ALL_APART + large).astype(np.int64)


def in_bins(bins: Integers, weights: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Weight of each bin, and mean and variance of the values in it.

    Examples
    --------
    >>> found = in_bins(np.array([0, 0, 1]), np.array([1.0, 3.0, 2.0]), np.array([4.0, 8.0, 5.0]))
    >>> [each.tolist() for each in found]
    [[4.0, 2.0], [7.0, 5.0], [3.0, 0.0]]
    """
    whole = np.asarray(np.bincount(bins, weights), dtype=np.float64)
    safe = np.maximum(whole, 1e-300)
    mean = np.bincount(bins, weights * values) / safe
    return whole, mean, np.bincount(bins, weights * (values - mean[bins]) ** 2) / safe


def grouped(
    a: Floats,
    b: Floats,
    weights: Floats,
    counts: Floats,
    left: Floats,
    row: Integers,
    cell: Integers | None = None,
) -> BetaMixtures:
    """Mixtures of the rows, with Betas put together that are nearly the same; all shapes `(c,)`.

    `counts` and `left` are the records in the category and in the others: Betas of few records stay
    apart. Betas of one `cell` are put together; -1 is no cell.
    """
    order = np.argsort(row, kind="stable")
    a, b, weights, row = a[order], b[order], weights[order], row[order]
    counts, left = counts[order], np.maximum(left[order], 0)
    width = np.floor(np.logaddexp(-np.log(a), -np.log(b)) / _NEARLY)
    deviation = np.minimum(np.exp((width + 0.5) * _NEARLY / 2), _WIDEST)
    place = np.floor((np.log(a) - np.log(b)) / (_NEAR * deviation))
    key = np.zeros(a.shape, dtype=np.int64)
    if cell is not None:
        cell = cell[order]
        one = (cell >= 0) & (left >= _SMALL)
        width, place = np.where(one, 0, width), np.where(one, cell, place)
        key = np.where(one, 1, key)
    small = [np.where(x < _SMALL, np.rint(4 * np.maximum(x, 0)), -1) for x in (counts, left)]
    for column in (width, place, *small):  # two of the 2^64 keys hardly ever agree
        key = (key ^ column.astype(np.int64)) * _MIXER
        key ^= key >> 29
    return BetaMixtures.grouped(a, b, weights, key, row)
