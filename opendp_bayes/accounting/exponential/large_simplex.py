r"""The exponential mechanisms on three and more categories where all pairs over all candidates are
too many to compare at once: the normaliser of every data set first, then the pairs whose bound is
not below the worst one found.

With `E(r) = H(x, r) / w(x) - H(x', r) / w(x')` the log-ratio of a pair is `ln Z(x') / Z(x) - E(r)`.
Normalisers are needed of one data set an orbit only, and `E` is bounded without looking at any
candidate (`docs/research/proofs.md`, "Exact accounting"), so that few pairs are left to look at.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from opendp_bayes.accounting.divergences import WorstPair
from opendp_bayes.accounting.exponential.enumeration import (
    arranged,
    arranged_sets,
    divergences_of,
    pairs_of_orbits,
)
from opendp_bayes.mathematics.exponential.hellinger import (
    distance_from_divergence,
    gap_above,
)
from opendp_bayes.mathematics.simplex import candidates, ranks
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.laws import ExponentialWeights

#: Distances that are in memory at once.
_ENTRIES = 1 << 21
#: Pairs compared between two looks at the bounds of the rest.
_PAIRS = 16
#: Pairs that are named, and the part of the records in which these differ at least.
_NAMED, _APART = 12, 1 / 30
#: Bhattacharyya divergence from which `1 - exp(-D)` keeps the digits that expm1 would.
_NEAR = 0.5
#: Of the bounds, which are computed in floating point, and of sums over all candidates.
_SLACK = 2.0**-40
SUM_ERROR = 2.0**-44


class Worst(NamedTuple):
    """The largest range of log-ratios over all neighbours; and the pair with the largest
    |log-ratio|, then the worst of those whose data sets lie apart from it and each other.
    """

    spread: float
    pairs: tuple[WorstPair, ...]


@dataclass(frozen=True, eq=False)
class _Orbits:
    """One pair of neighbours of each orbit: data sets of shape `(pairs, k)`, the places of their
    arrangements among `sets`, and their distance.
    """

    sets: Integers
    first: Integers
    second: Integers
    one: Integers
    other: Integers
    distance: Floats


def worst_pair(law: ExponentialWeights, size: int, prior: tuple[float, ...]) -> Worst:
    """The worst over all neighbours of `size` records, k >= 2."""
    orbits = _orbits(size, prior)
    alpha = np.array(prior)
    rates = 1 / law.widths.widths(size, alpha)[ranks(orbits.sets, size)]
    log_total = _log_normalisers(orbits.sets, rates, size, prior)
    above, below = _bounds(orbits.distance, rates[orbits.one], rates[orbits.other])
    shift = log_total[orbits.other] - log_total[orbits.one]
    of_epsilon = np.maximum(below + shift, above - shift)
    epsilon = spread = 0.0
    seen: dict[int, tuple[float, float]] = {}
    losses: dict[int, float] = {}
    for bound in (of_epsilon, above + below):
        order = np.argsort(-bound)
        for start in range(0, order.size, _PAIRS):
            limit = epsilon if bound is of_epsilon else spread
            if bound[order[start]] * (1 + _SLACK) < limit:
                break
            for pair in order[start : start + _PAIRS].tolist():
                if pair not in seen:
                    seen[pair] = _extremes(orbits, pair, rates, size, prior)
                smallest, largest = seen[pair]
                losses[pair] = float(max(largest - shift[pair], shift[pair] - smallest))
                epsilon, spread = max(epsilon, losses[pair]), max(spread, largest - smallest)
    named: list[int] = []
    for pair in sorted(losses, key=losses.__getitem__, reverse=True):
        apart = np.abs(orbits.first[named] - orbits.first[pair]).max(axis=1, initial=0)
        if (apart > _APART * size).all():
            named.append(pair)
        if len(named) == _NAMED:
            break
    pairs = (
        WorstPair(tuple(orbits.first[i].tolist()), tuple(orbits.second[i].tolist()), losses[i])
        for i in named
    )
    return Worst(spread, tuple(pairs))


def loss_of_pairs(
    law: ExponentialWeights,
    size: int,
    prior: tuple[float, ...],
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> float:
    """The largest |log-ratio| of these pairs alone, computed: a lower bound on that of all."""
    every = np.array(pairs).reshape(-1, len(prior))
    sets, place = np.unique(every, axis=0, return_inverse=True)
    first, second = place.reshape(-1, 2).T
    rates = 1 / law.widths.widths_at(sets, np.array(prior))
    exponents = _distances(sets, size, prior) * rates[:, None]
    log_total = np.log(np.exp(-exponents).sum(axis=1, keepdims=True))
    ratios = exponents[second] - exponents[first] + log_total[second] - log_total[first]
    return float(np.abs(ratios).max())


def _bounds(distance: Floats, rate: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Bounds on the supremum over r of `E` and of `-E`.

    Of the two data sets let a have the larger rate. Then `rate_a H_a - rate_b H_b = c H_a + rate_b
    (H_a - H_b)` with `c = rate_a - rate_b >= 0`, `H_a <= 1` and `|H_a - H_b| <= d`. Where `H_a` is
    large its change is less: `dH / dt = sqrt(2 - H^2) / 2` along an angle t, so that `H_a - H_b <=
    t sqrt(2 - (H_a - d)^2) / 2` with the angle t between the two.
    """
    c, small = np.abs(rate - other), np.minimum(rate, other)
    plain = small * distance
    half_angle = small * np.arcsin(np.minimum(distance / math.sqrt(2), 1.0))
    # The largest of c h + half_angle sqrt(2 - h^2) over h in [0, 1].
    peak = math.sqrt(2) * np.hypot(c, half_angle)
    inside = np.where(c <= half_angle, peak, c + half_angle)
    larger = np.minimum(plain + c, c * distance + inside)
    first = rate >= other
    return np.where(first, larger, plain), np.where(first, plain, larger)


@lru_cache(maxsize=2)
def _orbits(size: int, prior: tuple[float, ...]) -> _Orbits:
    sets = arranged_sets(size, prior)
    one, second = pairs_of_orbits(sets, size, prior, 1)
    first = sets[one]
    other = np.searchsorted(ranks(sets, size), ranks(arranged(second, prior), size))
    lower = np.array(prior) + np.minimum(first, second)
    gaps = gap_above(lower, np.abs(first - second) / 2).sum(axis=1)
    return _Orbits(sets, first, second, one, other, distance_from_divergence(gaps))


def _log_normalisers(sets: Integers, rates: Floats, size: int, prior: tuple[float, ...]) -> Floats:
    """`ln sum over r of exp(-rate H(x, r))` of every row of `sets`."""
    support = candidates(size, len(prior))
    rows = max(1, _ENTRIES // len(support))
    found = []
    for start in range(0, len(sets), rows):
        weights = _distances(sets[start : start + rows], size, prior)
        weights *= -rates[start : start + rows, None]
        found.append(np.log(np.exp(weights, out=weights).sum(axis=1)))
    return np.concatenate(found)


def _extremes(
    orbits: _Orbits, pair: int, rates: Floats, size: int, prior: tuple[float, ...]
) -> tuple[float, float]:
    """The smallest and the largest `E` of a pair."""
    both = np.stack([orbits.first[pair], orbits.second[pair]])
    distance = _distances(both, size, prior)
    difference = rates[orbits.one[pair]] * distance[0] - rates[orbits.other[pair]] * distance[1]
    return float(difference.min()), float(difference.max())


def _distances(sets: Integers, size: int, prior: tuple[float, ...]) -> Floats:
    """Hellinger distances between the data sets and every candidate, shape `(sets, candidates)`."""
    divergence = divergences_of(sets, size, prior)
    near = divergence < _NEAR
    small = distance_from_divergence(divergence[near])
    distance = np.exp(np.negative(divergence, out=divergence), out=divergence)
    np.subtract(1, distance, out=distance)
    np.sqrt(distance, out=distance)
    distance[near] = small
    return distance
