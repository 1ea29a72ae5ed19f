"""Normalisers of exponential weights, and power sums of the coins of permute-and-flip.

For two categories they are sums over cells of data sets, interpolated in log odds. For three or
more they are computed at every data set, or where there are many at some of them, with a spline in
between.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from opendp_bayes.accounting.exponential.enumeration import gap_tables
from opendp_bayes.inference.laws.count_cells import graded_edges
from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.simplex import candidate_sums, candidates
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


#: Data sets of which every one has its functions computed, and of more, how many have.
_ALL, _SPREAD_NODES = 4000, 1500
#: The most probable data sets, whose functions are computed as well.
_PROBABLE = 1500
#: Logarithms of widths that deviate by less are the same.
_SAME = 1e-6
#: Data sets out of which these are chosen.
_POOL = 20_000


@lru_cache(maxsize=8)
def coin_tables(law: Flips, size: int, prior: tuple[float, ...]) -> Floats:
    """Logarithms of the power sums of coins at every data set, in lexicographic order."""
    return _tabulated(size, np.array(prior), partial(_log_sums, law.scale))


def coin_sums_at(rows: Integers, law: Flips, size: int, prior: tuple[float, ...]) -> Floats:
    """Logarithms of the power sums of coins at some data sets, none interpolated."""
    return _values_at(rows, size, np.array(prior), partial(_log_sums, law.scale))


def _log_sums(scale: float, row: int, distances: Floats) -> Floats:
    exponents = distances / scale
    exponents[row] = np.inf
    sums = []
    for power in POWERS:  # ascending: coins that one has made too small stay so
        exponents = exponents[exponents < -NO_COINS / power]
        sums.append(np.exp(-power * exponents).sum())
    return np.log(np.maximum(sums, math.exp(NO_COINS)))


@lru_cache(maxsize=8)
def tables(law: ExponentialWeights, size: int, prior: tuple[float, ...]) -> Floats:
    """`ln w` and `ln Z` of every data set, in lexicographic order, shape `(data sets, 2)`."""
    alpha = np.array(prior)
    log_widths = np.log(law.widths.widths_at(candidates(size, alpha.size), alpha))
    normalisers = _tabulated(size, alpha, partial(_log_normaliser, log_widths), log_widths)
    return np.column_stack([log_widths, normalisers])


def normalisers_at(
    rows: Integers, law: ExponentialWeights, size: int, prior: tuple[float, ...]
) -> Floats:
    """`ln w` and `ln Z` of some data sets, not interpolated."""
    log_widths = tables(law, size, prior)[:, 0]
    normalisers = _values_at(rows, size, np.array(prior), partial(_log_normaliser, log_widths))
    return np.column_stack([log_widths[rows], normalisers])


def _log_normaliser(log_widths: Floats, row: int, distances: Floats) -> float:
    return float(logsumexp(-distances * np.exp(-log_widths[row])))


def most_probable(log_weights: Floats) -> Integers:
    """The places of listed data sets, of weights of shape `(data sets,)`, whose functions are
    computed although they are interpolated; none where all are computed.
    """
    if log_weights.size <= _ALL:
        return np.empty(0, dtype=np.int64)
    return np.argsort(-log_weights)[:_PROBABLE]


def _values_at(
    rows: Integers, size: int, prior: Floats, function: Callable[[int, Floats], ArrayLike]
) -> Floats:
    """Functions of the place of a data set and of the distances of all candidates from it, at some
    data sets; shape `(rows, ...)`.
    """
    gaps = gap_tables(size, tuple(prior.tolist()))
    sums = (
        candidate_sums([gap[count] for gap, count in zip(gaps, row, strict=True)])
        for row in candidates(size, prior.size)[rows]
    )
    return np.array(
        [
            function(row, distance_from_divergence(sums_of_row))
            for row, sums_of_row in zip(rows.tolist(), sums, strict=True)
        ]
    )


def _tabulated(
    size: int,
    prior: Floats,
    function: Callable[[int, Floats], ArrayLike],
    log_widths: Floats | None = None,
) -> Floats:
    """Functions as in `_values_at`, at every data set, in lexicographic order; shape
    `(data sets, ...)`.

    They are computed for all if there are at most `_ALL`, otherwise for `_SPREAD_NODES` of them,
    with a thin-plate spline in between. It is a spline in the counts and, if they vary, in
    `log_widths`, shape `(data sets,)`: the functions are smooth in the widths, which need not be
    smooth in the counts.
    """
    data = candidates(size, prior.size)
    # Spreads small counts out, where the functions bend.
    coordinates: Floats = np.asarray(data + 0.5, dtype=np.float64) ** 0.25
    nodes = np.arange(len(data)) if len(data) <= _ALL else _far_apart(coordinates)
    values = _values_at(nodes, size, prior, function)
    if nodes.size == len(data):
        return values
    if log_widths is not None and log_widths[nodes].std() > _SAME:
        coordinates = np.column_stack([coordinates, log_widths])
    coordinates = coordinates / coordinates[nodes].std(axis=0)
    spline = scipy.interpolate.RBFInterpolator(
        coordinates[nodes], values, kernel="thin_plate_spline"
    )
    return spline(coordinates)


def _far_apart(coordinates: Floats) -> Integers:
    """Indices of `_SPREAD_NODES` points: the extreme ones, then always the one furthest from all
    before, among as many as `_POOL`.
    """
    pool = np.unique(np.linspace(0, len(coordinates) - 1, _POOL).astype(np.int64))
    pool = np.union1d(pool, coordinates.argmax(axis=0))
    chosen = np.searchsorted(pool, coordinates.argmax(axis=0)).tolist()
    nearest = np.min(
        [((coordinates[pool] - coordinates[pool[c]]) ** 2).sum(axis=1) for c in chosen], axis=0
    )
    while len(chosen) < _SPREAD_NODES:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(
            nearest, ((coordinates[pool] - coordinates[pool[chosen[-1]]]) ** 2).sum(axis=1)
        )
    return np.sort(pool[chosen])
