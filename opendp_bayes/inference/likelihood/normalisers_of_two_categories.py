"""Normalisers of exponential weights and power sums of the coins of permute-and-flip, for two
categories: sums over cells of data sets, interpolated in log odds.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from scipy.special import logsumexp

from opendp_bayes.inference.laws.count_cells import graded_edges
from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.laws import ExponentialWeights, Flips


def _logarithm_by_powers() -> tuple[Floats, Floats]:
    """Powers m and weights w such that `-ln(1 - u) = sum_m w_m u^m`, to 1e-5 for u up to 0.999.

    The first eight terms of the series are taken one by one. The others are an integral over m from
    8.5 on with the first correction of the midpoint rule, in the logarithm of m by Gauss-Legendre.
    """
    series, (points, weights) = np.arange(1.0, 10.0), np.polynomial.legendre.leggauss(20)
    begin, end = math.log(8.5), math.log(1e5)
    coefficients = 1 / series
    coefficients[7:] = (1 - 1 / 24) / 8, 1 / 24 / 9
    powers = np.append(series, np.exp(begin + (end - begin) * (points + 1) / 2))
    return powers, np.append(coefficients, (end - begin) / 2 * weights)


#: Powers of the coins of permute-and-flip that are summed, and the weights of the sums.
POWERS, POWER_WEIGHTS = _logarithm_by_powers()
#: The logarithm of a sum of them that counts as 0.
NO_COINS = -40.0
#: Data sets at which the functions are computed at first, and the most; of coins.
_NODES, _MOST_NODES, _COIN_NODES = 32, 2000, 200
#: The errors of an interpolated `ln Z` that are accepted, and of `ln w` in widths: exponents are up
#: to `1 / w`, so that a narrow width must be known the better, within bounds.
_ERROR, _ERROR_IN_WIDTHS, _LEAST, _MOST = 1e-5, 1e-4, 1e-7, 1e-5


def _akima(points: Floats, values: Floats) -> Any:
    return scipy.interpolate.Akima1DInterpolator(points, values)


@lru_cache(maxsize=64)
def curves(law: ExponentialWeights, size: int, prior: tuple[float, ...]) -> Any:
    """`ln w` and `ln Z` for two categories, as a function of `position`; shape `(..., 2)`.

    Nodes are evenly spaced in that coordinate. A smooth sensitivity has kinks, and the normaliser
    bends where the width does, so an interval is halved where a curve misses its middle.
    """
    alpha = np.array(prior)

    def both_at(counts: Integers) -> Floats:
        widths = law.widths.widths_at(np.column_stack([counts, size - counts]), alpha)
        sums = []
        for count, width in zip(counts.tolist(), widths.tolist(), strict=True):
            _, lengths, distances = _cells_around(count, size, alpha)
            sums.append(float(logsumexp(-distances / width, b=lengths)))
        return np.column_stack([np.log(widths), sums])

    nodes = _counts_at(np.linspace(-math.log(size + 1), math.log(size + 1), _NODES), size)
    values = both_at(nodes)
    unsure = nodes  # beginnings of intervals not yet known to be good
    while unsure.size and nodes.size < _MOST_NODES:
        points = position(np.append(nodes, size), size)
        begin = np.searchsorted(nodes, unsure)
        middles = np.setdiff1d(_counts_at((points[begin] + points[begin + 1]) / 2, size), nodes)
        if not middles.size:
            break
        there = both_at(middles)
        missed = np.abs(_akima(points[:-1], values)(position(middles, size)) - there)
        of_widths = np.clip(_ERROR_IN_WIDTHS * np.exp(there[:, 0]), _LEAST, _MOST)
        bad = middles[(missed[:, 0] > of_widths) | (missed[:, 1] > _ERROR)]
        unsure = np.union1d(nodes[np.searchsorted(nodes, bad) - 1], bad)
        nodes, values = np.append(nodes, middles), np.vstack([values, there])
        order = np.argsort(nodes)
        nodes, values = nodes[order], values[order]
    return _akima(position(nodes, size), values)


@lru_cache(maxsize=64)
def coin_curves(law: Flips, size: int, prior: tuple[float, ...]) -> Any:
    """`ln S_m` of the coins of all candidates but x, for two categories, as a function of
    `position`; shape `(..., len(POWERS))`.
    """
    nodes = _counts_at(np.linspace(-math.log(size + 1), math.log(size + 1), _COIN_NODES), size)
    values = []
    for count in nodes.tolist():
        centres, lengths, distances = _cells_around(count, size, np.array(prior))
        others = np.where(centres == count, 0, lengths)
        values.append(
            logsumexp(-np.multiply.outer(POWERS, distances) / law.scale, b=others, axis=1)
        )
    return _akima(position(nodes, size), np.maximum(values, NO_COINS))


def _cells_around(count: int, size: int, prior: Floats) -> tuple[Integers, Integers, Floats]:
    """All counts of the first of two categories in cells: their middles, their lengths, and the
    Hellinger distances of these from `count`.
    """
    edges = graded_edges(size, around=[count])
    lengths = np.diff(edges)
    centres = edges[:-1] + (lengths - 1) // 2
    sets, here = np.column_stack([centres, size - centres]), np.array([count, size - count])
    return centres, lengths, distances(sets, here, prior)


def _counts_at(position: Floats, size: int) -> Integers:
    """The whole numbers nearest to the counts at the positions, without repetition."""
    odds = np.exp(position)
    return np.unique(np.rint((size * odds + odds - 1) / (1 + odds))).astype(np.int64)


def position(count: Integers, size: int) -> Floats:
    """The coordinate in which the width and the normaliser are smooth: log odds."""
    return np.log((count + 1.0) / (size - count + 1.0))


def distances(counts: Integers, other: Integers, prior: Floats) -> Floats:
    """Hellinger distances of the posteriors of counts, shape `(..., k)`, from that of others."""
    gaps = gap_above(prior + np.minimum(counts, other), np.abs(counts - other) / 2)
    return distance_from_divergence(gaps.sum(axis=-1))
