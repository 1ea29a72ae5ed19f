"""Normalisers of exponential weights: sums over all candidates. For two categories these are in
cells, and the sums of all data sets are interpolated between some; for three or more the sums of
all data sets are computed.
"""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
import scipy

from opendp_bayes.accounting.exponential.enumeration import gap_tables
from opendp_bayes.inference.laws.count_cells import graded_edges
from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.simplex import candidates, ranks
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.laws import Widths

#: Data sets of two categories at which the functions are computed at first, and the most.
_NODES, _MOST_NODES = 32, 2000
#: The errors of an interpolated `ln Z` that are accepted, and of `ln w` in widths: exponents are up
#: to `1 / w`, so that a narrow width must be known the better, within bounds.
_ERROR, _ERROR_IN_WIDTHS, _LEAST, _MOST = 1e-5, 1e-4, 1e-7, 1e-5


@lru_cache(maxsize=64)
def normalisers(
    widths: Widths, powers: int, size: int, prior: tuple[float, ...]
) -> Callable[[Integers], Floats]:
    """`ln w(x)` and `ln sum over r of exp(-H(x, r) / w(x))^m`, m up to `powers`, as a function of
    data sets, shape `(c, k)`; shape `(c, 1 + powers)`.
    """
    alpha = np.array(prior)
    computed = partial(_computed, widths, powers, alpha)
    if alpha.size == 2:
        curve = _curve(computed, size)
        return lambda counts: np.asarray(curve(_position(counts[:, 0], size)))
    table = computed(candidates(size, alpha.size))
    return lambda counts: table[ranks(counts, size)]


def _computed(widths: Widths, powers: int, prior: Floats, counts: Integers) -> Floats:
    """The functions of `normalisers` without interpolation."""
    width, exponents = widths.widths_at(counts, prior), np.arange(1, powers + 1)
    sums = [
        np.exp(-np.multiply.outer(exponents, away / own)) @ numbers
        for own, (numbers, away) in zip(width, _candidates_from(counts, prior), strict=True)
    ]
    return np.log(np.column_stack([width, sums]))


def _candidates_from(counts: Integers, prior: Floats) -> Iterator[tuple[Integers, Floats]]:
    """The Hellinger distances of all candidates from each data set, shape `(c, k)`, and how many
    there are of each: cells for two categories.
    """
    size = int(counts[0].sum())
    if prior.size == 2:
        for row in counts:
            edges = graded_edges(size, around=[int(row[0])])
            lengths = np.diff(edges)
            first = edges[:-1] + (lengths - 1) // 2
            yield lengths, distances(np.column_stack([first, size - first]), row, prior)
        return
    sets, gaps = candidates(size, prior.size), gap_tables(size, tuple(prior.tolist()))
    single, columns = np.ones(len(sets), dtype=np.int64), np.ascontiguousarray(sets.T)
    for row in counts:
        parts = (gap[count][column] for gap, count, column in zip(gaps, row, columns, strict=True))
        yield single, distance_from_divergence(sum(parts))


def _curve(computed: Callable[[Integers], Floats], size: int) -> Any:
    """Functions of data sets of two categories, as a function of `_position`.

    Nodes are evenly spaced in that coordinate. A smooth sensitivity has kinks, and the normaliser
    bends where the width does, so an interval is halved where a curve misses its middle.
    """

    def at(first: Integers) -> Floats:
        return computed(np.column_stack([first, size - first]))

    nodes = _counts_at(np.linspace(-math.log(size + 1), math.log(size + 1), _NODES), size)
    values = at(nodes)
    unsure = nodes  # beginnings of intervals not yet known to be good
    while unsure.size and nodes.size < _MOST_NODES:
        points = _position(np.append(nodes, size), size)
        begin = np.searchsorted(nodes, unsure)
        middles = np.setdiff1d(_counts_at((points[begin] + points[begin + 1]) / 2, size), nodes)
        if not middles.size:
            break
        there = at(middles)
        missed = np.abs(
            scipy.interpolate.Akima1DInterpolator(points[:-1], values)(_position(middles, size))
            - there
        )
        of_widths = np.clip(_ERROR_IN_WIDTHS * np.exp(there[:, 0]), _LEAST, _MOST)
        bad = middles[(missed[:, 0] > of_widths) | (missed[:, 1:] > _ERROR).any(axis=1)]
        unsure = np.union1d(nodes[np.searchsorted(nodes, bad) - 1], bad)
        nodes, order = np.unique(np.append(nodes, middles), return_index=True)
        values = np.vstack([values, there])[order]
    return scipy.interpolate.Akima1DInterpolator(_position(nodes, size), values)


def _counts_at(position: Floats, size: int) -> Integers:
    """The whole numbers nearest to the counts at the positions, without repetition."""
    odds = np.exp(position)
    return np.unique(np.rint((size * odds + odds - 1) / (1 + odds))).astype(np.int64)


def _position(count: Integers, size: int) -> Floats:
    """The coordinate in which the width and the normaliser are smooth: log odds."""
    return np.log((count + 1.0) / (size - count + 1.0))


def distances(counts: Integers, other: Integers, prior: Floats) -> Floats:
    """Hellinger distances of the posteriors of counts, shape `(..., k)`, from that of others."""
    gaps = gap_above(prior + np.minimum(counts, other), np.abs(counts - other) / 2)
    return distance_from_divergence(gaps.sum(axis=-1))
