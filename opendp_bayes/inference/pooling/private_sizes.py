r"""Groups whose numbers of records are private, given κ and m: the true counts are summed out.

For a group of n records, all values of n being equally probable,

    n! Γ(κ) / Γ(n + κ) = (κ - 1) ∫ q^n (1 - q)^(κ - 2) dq,

so that given q the counts are independent. Where κ is small it is

    (n + κ) (n + κ + 1) / κ ∫ q^n (1 - q)^κ dq,

whose factor has terms that are products of counts of at most two categories, which makes it a
mixture of laws of independent counts. Counts that are alike are computed once.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial, one_of, picked
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Counts further than this from what was drawn, `exp(-DEPTH)` of the noise's largest mass, are
#: left out.
DEPTH = 14.0
#: Values of q, over how many deviations of what is known of it, and of the noise of a group.
_POINTS, _DEVIATIONS, _OF_NOISE = 20, 6.0, 6.0
#: The κ from which on no factor is needed.
_LARGE = 3.0
#: Counts are as far apart as this part of the noise's scale, and of their distance from what was
#: drawn, or as this part of the square root of the count, where that is less.
_OF_SCALE, _OF_DISTANCE, _OF_ROOT = 0.8, 0.5, 1.5
#: Numbers that one array holds.
_BLOCK = 1 << 21


def nodes_of(
    noisy: DrawnCounts, start: Integers, most: float = np.inf
) -> tuple[Floats, Integers, Integers, Floats]:
    """Counts, shape `(..., m)`, at most `most`, of what was drawn with possible counts to begin
    with, both of shape `(...)`; the first and last of the integers that each stands for, and the
    logarithm of their number. Two stand for each interval, with its mean and variance.
    """
    reach, drawn = noisy.noise.reach(DEPTH), np.where(noisy.noised, noisy.drawn, start)
    away, small = [0], [0]
    while away[-1] < reach:
        step = _OF_SCALE * noisy.noise.scale + _OF_DISTANCE * away[-1]
        away.append(away[-1] + max(1, int(step)))
    of_sum = _DEVIATIONS * typical_std(noisy.noise) * np.sqrt(drawn.size)
    wide = np.where(noisy.noised, 1, math.ceil(max(1.0, of_sum / reach)))
    low = np.maximum(np.minimum(drawn, start) - reach * wide, 0)
    end = np.minimum(np.maximum(drawn, start) + reach * wide, most).astype(np.int64) + 1
    while small[-1] < end.max():
        small.append(small[-1] + max(1, int(_OF_ROOT * math.sqrt(small[-1]))))
    # What was drawn stands for itself alone.
    about = wide[..., None] * np.concatenate([np.negative(away), away])
    about += drawn[..., None] + np.repeat([0, 1], len(away))
    every = np.broadcast_to(small, (*drawn.shape, len(small)))
    edges = np.clip(np.concatenate([about, every], axis=-1), low[..., None], end[..., None])
    edges = np.sort(edges, axis=-1)
    again = np.diff(edges, axis=-1, append=-1) == 0
    edges = np.sort(np.where(again, end[..., None], edges), axis=-1)
    edges = edges[..., : edges.shape[-1] - again.sum(axis=-1).min()]
    first, last = edges[..., :-1], edges[..., 1:] - 1
    size, middle = last - first + 1, np.maximum(first + last, 0) // 2
    away = np.sqrt(np.maximum(size**2 - 1, 0) / 12)
    nodes = np.maximum(first + last, 0) / 2 + np.stack([-away, away])
    first, last = np.stack([first, middle + 1]), np.stack([middle, last])
    number = np.where(size > 1, size / 2, np.stack([size, 0 * size]))
    with np.errstate(divide="ignore"):
        found: Any = nodes, first, last, np.log(number)
    nodes, first, last, log_number = (
        np.moveaxis(one, 0, -1).reshape(*drawn.shape, -1) for one in found
    )
    return nodes, first, last, log_number


def alike(*columns: Any) -> tuple[Integers, Integers]:
    """The first of all rows that are alike, and which of these each row is."""
    rows = np.column_stack(columns)
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


class Risings:
    """`ln Γ(x + a) / Γ(a)` of counts x, shape `(..., m)`, for any a."""

    def __init__(self, nodes: Integers | Floats) -> None:
        values, places = np.unique(nodes, return_inverse=True)
        self._values: Any = values
        self._places = places.reshape(nodes.shape)

    def of(self, a: Floats, categories: Integers) -> Floats:
        """The logarithms for a of each category, shape `(k,)`, and the categories of the rows."""
        found = log_rising_factorial(a[:, None], self._values)
        return found[categories[..., None], self._places]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Mixture over q of the laws of groups' counts, for one κ m.

    Attributes
    ----------
    log_weights : ndarray
        Of the nodes of the cells' counts, shape `(cells, m)`, for q = 1.
    log_q : ndarray
        The values of ln q, and of any tilt, of each class, shape `(classes, q)`.
    log_mass : ndarray
        Logarithms of their shares, whose sum is the probability of what was drawn, for groups that
        differ, shape `(groups, q)`.
    cumulants : ndarray
        The first four of counts given q without the factor, `(4, cells, q)`.
    """

    kappa: float
    log_weights: Floats
    log_q: Floats
    log_mass: Floats
    cumulants: Floats


class PrivateSizes:
    """Groups of private numbers of records, as they were drawn.

    A cell is a count of one category of groups of one class, which have about as many records.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn of the counts, shape `(G, k)`.
    start : ndarray of int
        Possible counts.
    most : float, optional
        The most records of a count.
    """

    def __init__(self, noisy: DrawnCounts, start: Integers, most: float = np.inf) -> None:
        self.noisy, (groups, k), std = noisy, start.shape, typical_std(noisy.noise)
        known = np.where(noisy.noised, noisy.drawn, start).sum(axis=1)
        spread = std * np.sqrt(noisy.noised.sum(axis=1))
        spread += np.where(noisy.noised, 0, std * np.sqrt(start.size)).sum(axis=1)
        sizes = [float(known.min())]
        while sizes[-1] <= known.max():
            sizes.append(sizes[-1] + max(std / 2, math.sqrt(max(sizes[-1], 0))))
        size = np.searchsorted(sizes, known, side="right") - 1
        first, of_group = alike(size, spread)
        away, low, high = (
            _OF_NOISE * spread[first],
            *(np.array(sizes)[size[first] + i] for i in (0, 1)),
        )
        #: About how many records each class has, how unsure that is, and how far its logarithm may
        #: be from that.
        self._middle = np.maximum(low, std + 1.0)
        self._unsure = std / self._middle
        ends = np.maximum(low - away, 0.02), np.maximum(high + away, 0) + 3
        self._ends = np.log(np.array(ends) / self._middle)
        category = np.tile(np.arange(k), groups)
        parts = noisy.drawn.ravel(), start.ravel(), noisy.noised.ravel()
        first, cell = alike(np.repeat(of_group, k), category, *parts)
        self._class, self._category = np.repeat(of_group, k)[first], category[first]
        noisy = noisy.chosen(np.unravel_index(first, start.shape))
        self.nodes, self._first, self._last, log_number = nodes_of(noisy, parts[1][first], most)
        self.log_mass = log_number - special.gammaln(self.nodes + 1.0)
        self.log_mass += noisy.log_mass(self.nodes, (..., None))
        self._risings = Risings(self.nodes)
        away = self.nodes - self.nodes[..., :1]
        self._powers = np.stack([away**power for power in range(5)], axis=-1).astype(np.float32)
        self.cells, self._order = cell.reshape(groups, k), np.argsort(cell)
        first, self._group = alike(self.cells)
        self._places, self._of_group = self.cells[first], of_group[first]
        self._times = np.bincount(self._group)

    def log_p(self, a: Floats) -> float:
        """Log-probability of what was drawn, for κ m of shape `(k,)`."""
        return self.log_sum(self.mixture(a))

    def log_sum(self, mixture: Mixture) -> float:
        """Log-probability of what was drawn, under a mixture."""
        return float(self._times @ special.logsumexp(mixture.log_mass, axis=1))

    def counts(self, a: Floats, number: int, rng: np.random.Generator) -> tuple[Integers, float]:
        """So many draws of the counts for κ m, shape `(number, G, k)`, and the logarithm of their
        weight beside those of other κ m.
        """
        return self.drawn(self.mixture(a), number, rng), 0.0

    def mixture(self, a: Floats, tilt: float = 0.0) -> Mixture:
        """Mix for κ m of shape `(k,)`; with a `tilt`, counts weigh `exp(tilt x)` times as much."""
        log_weights, kappa = self.log_mass + self._risings.of(a, self._category), float(a.sum())
        power = kappa + 1 if kappa < _LARGE else kappa - 1
        of_q = 1 / power + 1 / (self._middle + 1)  # the variance of its logit where n is known
        wide = np.minimum(np.sqrt(of_q + self._unsure**2), 1.0)
        away = self._ends + _DEVIATIONS * np.array([[-1], [1]]) * np.sqrt(of_q)
        first, last = np.arcsinh(away / wide)
        steps = np.linspace(first, last, _POINTS, axis=1)
        log_odds = np.log(self._middle / power)[:, None] + wide[:, None] * np.sinh(steps)
        log_rest = -np.logaddexp(0, log_odds)
        log_q = log_odds + log_rest
        found = np.empty((5, len(self.nodes), _POINTS))
        parts = log_weights.size * _POINTS // _BLOCK + 1
        for cells in np.array_split(np.arange(len(self.nodes)), parts):
            found[:, cells] = self._given(cells, log_weights, log_q + tilt)
        log_sums, cumulants = found[0], found[1:]
        log_mass = log_sums[self._places].sum(axis=1) + (log_q + power * log_rest)[self._of_group]
        between = np.log(np.gradient(steps, axis=1) * np.cosh(steps) * wide[:, None])
        log_mass += between[self._of_group]
        if kappa < _LARGE:
            mean, variance = cumulants[:2, self._places].sum(axis=2)
            log_mass += np.log((mean + kappa) * (mean + kappa + 1) + variance)
        log_mass -= np.log(kappa) if kappa < _LARGE else -np.log(power)
        return Mixture(kappa, log_weights, log_q + tilt, log_mass, cumulants)

    def _given(self, cells: Integers, log_weights: Floats, log_q: Floats) -> list[Floats]:
        """Logarithms of the sums over counts given q, shape `(cells, q)`, and four cumulants."""
        log_q, nodes, powers = log_q[self._class[cells]], self.nodes[cells], self._powers[cells]
        middle = log_q[:, _POINTS // 2, None]
        log_p = log_weights[cells] + middle * nodes
        tops = log_p.max(axis=1, keepdims=True)
        p = (log_q - middle)[..., None].astype(np.float32) * powers[:, None, :, 1]
        p += (log_p - tops).astype(np.float32)[:, None]
        top = p.max(axis=2, keepdims=True)
        p -= top
        moments = np.moveaxis((np.exp(p, out=p) @ powers).astype(np.float64), -1, 0)
        first, second, third, fourth = moments[1:] / moments[0]
        variance = np.maximum(second - first**2, 0)
        skew = third - first * (3 * second - 2 * first**2)
        tails = fourth - 4 * first * third + 3 * first**2 * (2 * second - first**2)
        log_sums = np.log(moments[0]) + top[..., 0] + tops + (log_q - middle) * nodes[:, :1]
        return [log_sums, first + nodes[:, :1], variance, skew, tails - 3 * variance**2]

    def all_records(self, mixture: Mixture) -> tuple[float, float]:
        """Mean and variance of the number of records of all groups."""
        mean, variance, skew, tails = mixture.cumulants[:, self._places].sum(axis=2)
        share, square = special.softmax(mixture.log_mass, axis=1), mean**2 + variance
        if mixture.kappa < _LARGE:  # by the factor larger numbers are more probable
            slope, least = 2 * mixture.kappa + 1, mixture.kappa * (mixture.kappa + 1)
            share /= square + slope * mean + least
            cube = mean**3 + 3 * mean * variance + skew
            fourth = mean**4 + 6 * mean**2 * variance + 4 * mean * skew + 3 * variance**2 + tails
            mean = cube + slope * square + least * mean
            square = fourth + slope * cube + least * square
        first = (share * mean).sum(axis=1)
        second = np.maximum((share * square).sum(axis=1) - first**2, 0)
        return float(self._times @ first), float(self._times @ second)

    def drawn(self, mixture: Mixture, number: int, rng: np.random.Generator) -> Integers:
        """So many draws of the counts from a mixture, shape `(number, G, k)`."""
        shares, powers = special.softmax(mixture.log_mass, axis=1), np.zeros(1, dtype=np.int64)
        group = np.broadcast_to(self._group[:, None], (self._group.size, number))
        at = picked(shares, group, rng.random(group.shape))[:, None]
        if mixture.kappa < _LARGE:
            of_counts = np.moveaxis(mixture.cumulants[:2, self.cells[..., None], at], 2, -1)
            means, variances = of_counts
            powers = _powers_of_factor(mixture.kappa, means, variances, rng)
            powers = np.moveaxis(powers, -1, 1)
        keys = (self.cells[..., None] * _POINTS + at) * 3 + powers
        keys = keys.reshape(-1, number)[self._order].ravel()
        found = np.empty(keys.size, dtype=np.int32)
        for low in range(0, len(self.nodes), step := _BLOCK // self._powers[0].size // _POINTS + 1):
            ends = np.searchsorted(self.cells.ravel()[self._order], [low, low + step]) * number
            some = keys[slice(*ends)] - low * _POINTS * 3
            used = np.zeros(step * _POINTS * 3, dtype=np.bool_)
            used[some] = True
            rows, place = np.flatnonzero(used), np.cumsum(used)[some] - 1
            row, power = np.divmod(rows, 3)
            cell, q = low + row // _POINTS, row % _POINTS
            log_p = self.nodes[cell]
            log_p *= mixture.log_q[self._class[cell], q][:, None]
            log_p += mixture.log_weights[cell]
            if power.any():
                log_p += power[:, None] * np.log(np.maximum(self.nodes[cell], 1e-300))
            log_p -= log_p.max(axis=1, keepdims=True)
            node = picked(np.exp(log_p, out=log_p), place, rng.random(place.size))
            first, last = (end[cell[place], node] for end in (self._first, self._last))
            found[slice(*ends)] = first + rng.random(place.size) * (last - first + 1)
        counts: Any = np.empty((self.cells.size, number), dtype=np.int32)
        counts[self._order] = found.reshape(-1, number)
        return np.moveaxis(counts.reshape(*self.cells.shape, number), -1, 0)


def _powers_of_factor(
    kappa: float, means: Floats, variances: Floats, rng: np.random.Generator
) -> Integers:
    """Draw a term of `(n + κ) (n + κ + 1)` in proportion to its mean, given means and variances of
    the counts, shape `(..., k)`, and count how often each of these is a factor of it.
    """
    several = np.concatenate([np.full((*means.shape[:-1], 1), kappa), means], axis=-1)
    terms = several[..., :, None] * several[..., None, :]
    every = np.arange(1, several.shape[-1])
    terms[..., every, every] += variances
    terms[..., 0, :] += several  # the second factor is larger by one
    with np.errstate(divide="ignore"):
        pair = one_of(np.log(terms).reshape(*means.shape[:-1], -1), rng)
    first, second = np.divmod(pair[..., None], several.shape[-1])
    return (first == every).astype(np.int64) + (second == every)
