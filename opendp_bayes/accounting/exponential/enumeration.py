r"""Any number of categories: all pairs of data sets over all candidates, one pair for each orbit of
the permutations that keep the prior.

Exchanging categories of equal prior maps a mechanism on posteriors to itself. So the first data set
of a pair may be taken with its counts descending among them, and the second not before the first in
the lexicographic order of such arrangements. The reversed pair is examined too.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np

from opendp_bayes.accounting.divergences import Block
from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.log_space import log_sum_exp
from opendp_bayes.mathematics.simplex import (
    candidates,
    log_number_of_candidates,
    number_of_candidates,
    ranks,
)
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mathematics.zero_sum import noise_vectors, shell_size
from opendp_bayes.mechanisms.exponential.permute_and_flip import log_permute_and_flip
from opendp_bayes.mechanisms.laws import ExponentialWeights, Flips, Widths

_ENTRIES = 1 << 21  # of one matrix of distances
_CACHED = 8  # such matrices
_MOST_CANDIDATES = 200_000
_BATCH = 1 << 17  # probabilities of one block


@dataclass(frozen=True)
class EnumeratedPairs:
    """Every pair of data sets of `size` records at the given distance, up to the symmetries of the
    prior, under one law.
    """

    law: ExponentialWeights | Flips
    size: int
    prior: tuple[float, ...]
    distance: int
    log_error: float
    method: str = "exact"

    def blocks(self) -> Iterator[Block]:
        for number, (sets, first, second) in enumerate(
            _chunks(self.size, self.prior, self.distance)
        ):
            laws = self._log_laws(number)
            step = max(1, _BATCH // laws.shape[1])
            for start in range(0, first.size, step):
                left, right = first[start : start + step], second[start : start + step]
                yield Block(
                    first=sets[left], second=sets[right], log_p=laws[left].T, log_q=laws[right].T
                )

    def _log_laws(self, number: int) -> Floats:
        """Log-probabilities of the candidates, a row for each data set of a chunk."""
        asked = self.size, self.prior, self.distance, number
        if isinstance(self.law, Flips):
            return _flips(self.law.scale, *asked)
        mechanism: Any = self.law.widths
        # Calibrations ask at many scales.
        widths = mechanism.scale * _widths(replace(mechanism, scale=1.0), *asked)
        log_weights = _distances(*asked) / -widths[:, None]
        log_weights -= log_sum_exp(log_weights, axis=1)[:, None]
        return log_weights


def work(size: int, prior: tuple[float, ...], distance: int) -> int:
    """About the number of probabilities that have to be compared; `_MOST_CANDIDATES` squared where
    there are more candidates than that.
    """
    k = len(prior)
    if log_number_of_candidates(size, k) > math.log(_MOST_CANDIDATES):
        return _MOST_CANDIDATES**2
    return (
        number_of_candidates(size, k)
        * _arrangements(size, prior)
        * (shell_size(distance, k) // 2 + 1)
    )


def _arrangements(size: int, prior: tuple[float, ...]) -> int:
    """Number of data sets whose counts descend among categories of equal prior: it counts
    partitions, by their generating function.
    """
    ways = [1] + [0] * size
    for same in _classes(prior):
        for addend in range(1, len(same) + 1):
            for total in range(addend, size + 1):
                ways[total] += ways[total - addend]
    return ways[size]


def _classes(prior: tuple[float, ...]) -> list[list[int]]:
    """The categories of equal prior."""
    order = sorted(range(len(prior)), key=prior.__getitem__)
    return [list(same) for _, same in groupby(order, key=prior.__getitem__)]


def arranged(counts: Integers, prior: tuple[float, ...]) -> Integers:
    """Counts, shape `(c, k)`, descending among categories of equal prior."""
    result = counts.copy()
    for same in _classes(prior):
        result[:, same] = -np.sort(-counts[:, same], axis=1)
    return result


@lru_cache(maxsize=8)
def _chunks(
    size: int, prior: tuple[float, ...], distance: int
) -> list[tuple[Integers, Integers, Integers]]:
    """Groups of pairs: data sets, shape `(sets, k)`, and indices into them of the first and the
    second of each pair.
    """
    k = len(prior)
    everything = candidates(size, k)
    first = everything[(arranged(everything, prior) == everything).all(axis=1)]  # of each orbit
    rows = max(1, _ENTRIES // (number_of_candidates(size, k) * (shell_size(distance, k) + 1)))
    chunks = []
    for start in range(0, len(first), rows):
        here = first[start : start + rows]
        from_orbit, there = pairs_of_orbits(here, size, prior, distance)
        if from_orbit.size:
            sets, index = np.unique(np.concatenate([here, there]), axis=0, return_inverse=True)
            index = index.ravel()
            chunks.append((sets, index[from_orbit], index[len(here) :]))
    return chunks


def pairs_of_orbits(
    here: Integers, size: int, prior: tuple[float, ...], distance: int
) -> tuple[Integers, Integers]:
    """One pair of each orbit of pairs whose first data set is in `here`, which are arranged: places
    in `here`, and the second data sets.
    """
    steps = noise_vectors(distance, len(prior))
    steps = steps[np.abs(steps).sum(axis=1) == 2 * distance]
    there = (here[:, None] + steps[None]).reshape(-1, len(prior))
    from_orbit = np.repeat(np.arange(len(here)), len(steps))
    valid = (there >= 0).all(axis=1)
    from_orbit, there = from_orbit[valid], there[valid]
    is_first = ranks(arranged(there, prior), size) >= ranks(here, size)[from_orbit]
    return from_orbit[is_first], there[is_first]


@lru_cache(maxsize=_CACHED)
def _flips(scale: float, size: int, prior: tuple[float, ...], distance: int, number: int) -> Floats:
    """Log-probabilities of the candidates under permute-and-flip for the data sets of one chunk,
    shape `(sets, candidates)`.
    """
    distances = _distances(size, prior, distance, number)
    return np.stack([log_permute_and_flip(row / scale) for row in distances])


@lru_cache(maxsize=_CACHED)
def _widths(
    widths: Widths, size: int, prior: tuple[float, ...], distance: int, number: int
) -> Floats:
    """Widths at the data sets of one chunk, shape `(sets,)`."""
    return widths.widths_at(_chunks(size, prior, distance)[number][0], np.array(prior))


@lru_cache(maxsize=_CACHED)
def _distances(size: int, prior: tuple[float, ...], distance: int, number: int) -> Floats:
    """Hellinger distances between the data sets of one chunk and every candidate, shape `(sets,
    candidates)`.
    """
    sets, support = _chunks(size, prior, distance)[number][0], candidates(size, len(prior))
    divergence = np.zeros((len(sets), len(support)))
    for i, table in enumerate(gap_tables(size, prior)):
        divergence += table[sets[:, i]][:, support[:, i]]
    return distance_from_divergence(divergence)


@lru_cache(maxsize=2)
def gap_tables(size: int, prior: tuple[float, ...]) -> list[Floats]:
    """For each category the gap of every two counts, shape `(size + 1, size + 1)`."""
    values = np.arange(size + 1)
    lower, half = np.minimum(values[:, None], values), np.abs(values[:, None] - values) / 2
    tables = {alpha: gap_above(alpha + lower, half) for alpha in set(prior)}
    return [tables[alpha] for alpha in prior]
