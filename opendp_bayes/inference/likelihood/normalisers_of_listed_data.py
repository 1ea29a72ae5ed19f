"""Normalisers of exponential weights and power sums of coins, for three or more categories.

They are computed at every data set, or where there are many at some of them, with a spline in
between.
"""

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from opendp_bayes.inference.likelihood.normalisers_of_two_categories import NO_COINS, POWERS
from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.simplex import candidate_sums, candidates
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.laws import ExponentialWeights, Flips

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
    split = np.arange(size + 1)
    gaps = [
        gap_above(a + np.minimum.outer(split, split), np.abs(np.subtract.outer(split, split)) / 2)
        for a in prior
    ]
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
