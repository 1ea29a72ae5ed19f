r"""Groups whose numbers of records are private, given κ and m: the true counts are summed out.

For a group of n records, all values of n being equally probable,

    n! Γ(κ) / Γ(n + κ) = (κ - 1) ∫ q^n (1 - q)^(κ - 2) dq,

so that given q the counts are independent. Where κ is small it is

    (n + κ) (n + κ + 1) / κ ∫ q^n (1 - q)^κ dq,

whose factor has terms that are products of counts of at most two categories, which makes it a
mixture of laws of independent counts. Counts that are alike are computed once.
"""

import math
import operator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import (
    alike,
    log_rising_factorial,
    one_of,
    picked,
)
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
#: Numbers that one array holds, and that are remembered of mixtures.
_BLOCK, _REMEMBERED = 1 << 18, 1 << 24


def nodes_of(
    noisy: DrawnCounts, start: Integers, most: float = np.inf
) -> tuple[Floats, Floats, Floats]:
    """Counts, shape `(m, c)`, at most `most`, of what was drawn with possible counts to begin with,
    both of shape `(c,)`. Each stands for the integers below real numbers that follow one, for as
    many as the last array says: two for an interval, with its mean and variance.
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
    about = np.concatenate([np.negative(away), away])[:, None] * wide + drawn
    about += np.repeat([0, 1], len(away))[:, None]
    every = np.concatenate([about, np.tile(small, (drawn.size, 1)).T])
    edges = np.sort(np.clip(every, low, end), axis=0)
    edges[1:][np.diff(edges, axis=0) == 0] = end.max()
    edges = np.minimum(np.sort(edges, axis=0), end)
    edges = edges[: (edges < end).sum(axis=0).max() + 1]
    first, size = edges[:-1], np.diff(edges, axis=0)
    middle, away = first + (size - 1) / 2, np.sqrt(np.maximum(size**2 - 1, 0) / 12)
    half = np.where(size > 1, size / 2, size)
    begin = np.concatenate([first, first + half])
    nodes, number = (
        np.concatenate(of) for of in ([middle - away, middle + away], [half, size - half])
    )
    return nodes, begin, number


class Risings:
    """`ln Γ(x + a) / Γ(a)` of counts x, with whose shape that of their categories broadcasts, for
    any a.
    """

    def __init__(self, nodes: Integers | Floats, categories: Integers) -> None:
        values, places = np.unique(nodes, return_inverse=True)
        self._values: Any = values
        self._places = categories, places.reshape(nodes.shape)

    def of(self, a: Floats) -> Floats:
        """The logarithms for a of each category, shape `(k,)`."""
        return log_rising_factorial(a[:, None], self._values)[self._places]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Mixture over q of the laws of groups' counts, for one κ m, `a`.

    Attributes
    ----------
    log_q : ndarray
        The values of ln q, and of any tilt, of each class, shape `(q, classes)`.
    log_mass : ndarray
        Logarithms of their shares, whose sum is the probability of what was drawn, for groups that
        differ, shape `(q, groups)`.
    moments : list
        Of the number of records given q, each of shape `(q, groups)` with the factor of small κ.
    """

    a: Floats
    log_q: Floats
    log_mass: Floats
    moments: list[Any]


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
        variances = std**2 * np.where(noisy.noised, 1, start.size).sum(axis=1)
        half = std / 2  # classes are this long, or a square root of their records
        root = np.sqrt(np.maximum(known, half**2))
        first, of_group = alike(np.floor(np.minimum(known / half, 2 * root - half)), variances)
        #: About how many records each class has, how unsure that is, and how far its logarithm may
        #: be from that.
        self._middle = np.maximum(known[first], std + 1.0)
        self._unsure, away = std / self._middle, _OF_NOISE * np.sqrt(variances[first]) + root[first]
        ends = np.maximum(known[first] - away, 0.02), np.maximum(known[first] + away, 0) + 3
        self._ends = np.log(np.array(ends) / self._middle)
        of_counts, category = np.repeat(of_group, k), np.tile(np.arange(k), groups)
        parts = noisy.drawn.ravel(), start.ravel(), noisy.noised.ravel()
        first, cell = alike(of_counts, category, *parts)
        self._class = of_counts[first]
        noisy = noisy.chosen(np.unravel_index(first, start.shape))
        self.nodes, self._begin, self._number = nodes_of(noisy, parts[1][first], most)
        with np.errstate(divide="ignore"):
            self.log_mass = np.log(self._number) - special.gammaln(self.nodes + 1.0)
        self.log_mass += noisy.log_mass(self.nodes)
        self._risings = Risings(self.nodes, category[first])
        self._away = (self.nodes - self.nodes[0]).astype(np.float32)
        self.cells = cell.reshape(groups, k)
        first, self._group = alike(self.cells)
        self._places, self._of_group = self.cells[first], of_group[first]
        self._times = np.bincount(self._group)
        #: How many mixtures may be remembered.
        self.remembered = max(_REMEMBERED // (4 * _POINTS * len(first)), 1)
        self._laws = lru_cache(self.remembered)(lambda a: self.mixture(np.frombuffer(a)))

    def log_p(self, a: Floats) -> float:
        """Log-probability of what was drawn, for κ m of shape `(k,)`."""
        return self.log_sum(self._laws(a.tobytes()))

    def log_sum(self, mixture: Mixture) -> float:
        """Log-probability of what was drawn, under a mixture."""
        return float(special.logsumexp(mixture.log_mass, axis=0) @ self._times)

    def counts(self, a: Floats, number: int, rng: np.random.Generator) -> tuple[Integers, float]:
        """So many draws of the counts for κ m, shape `(number, G, k)`, and the logarithm of their
        weight beside those of other κ m.
        """
        return self.drawn(self._laws(a.tobytes()), number, rng), 0.0

    def mixture(self, a: Floats, tilt: float = 0.0, moments: int = 0) -> Mixture:
        """Mix for κ m of shape `(k,)`, with so many moments of the numbers of records; with a
        `tilt`, counts weigh `exp(tilt x)` times as much.
        """
        small = (kappa := float(a.sum())) < _LARGE
        power = kappa + 1 if small else kappa - 1
        of_q = 1 / power + 1 / (self._middle + 1)  # the variance of its logit where n is known
        wide = np.minimum(np.sqrt(of_q + self._unsure**2), 1.0)
        first, last = self._ends + _DEVIATIONS * np.array([[-1], [1]]) * np.sqrt(of_q)
        steps = np.linspace(np.arcsinh(first / wide), np.arcsinh(last / wide), _POINTS)
        log_odds = np.log(self._middle / power) + wide * np.sinh(steps)
        log_rest = -np.logaddexp(0, log_odds)
        log_q = log_odds + log_rest
        log_mass = log_q + power * log_rest + np.log((steps[1] - steps[0]) * np.cosh(steps) * wide)
        orders = moments + 2 * small
        given = self._given(self.log_mass + self._risings.of(a), log_q + tilt, orders)
        log_sums, *cumulants = given[..., self._places].sum(axis=-1)
        of_n: list[Any] = [np.ones(())]
        for j in range(orders):
            of_n.append(sum(math.comb(j, i) * cumulants[i] * of_n[j - i] for i in range(j + 1)))
        if small:  # by the factor larger numbers are more probable
            factor = kappa * (kappa + 1), 2 * kappa + 1, 1.0
            of_n = [sum(map(operator.mul, factor, of_n[j:])) for j in range(moments + 1)]
        log_mass = log_mass[:, self._of_group] + log_sums + np.log(of_n[0])
        log_mass += np.log(1 / kappa if small else power)
        return Mixture(a, log_q + tilt, log_mass, of_n)

    def _given(self, log_weights: Floats, log_q: Floats, orders: int) -> Floats:
        """Logarithms of the sums over counts given q, and so many of their cumulants, shape
        `(1 + orders, q, cells)`.
        """
        steps, log_p, tops = self._about_middle(log_weights, log_q)
        away, moments = steps[:, self._class], np.empty((1 + orders, len(log_q), tops.size))
        log_sums = tops + away * self.nodes[0]
        for at, step in enumerate(away.astype(np.float32)):  # what one takes, caches hold
            p = step * self._away + log_p
            p -= (top := p.max(axis=0))
            log_sums[at] += top
            moments[0, at] = np.exp(p, out=p).sum(axis=0)
            for j in range(1, orders + 1):
                p *= self._away
                moments[j, at] = p.sum(axis=0)
        log_sums += np.log(moments[0])
        moments /= moments[0]
        found = [log_sums]
        for j in range(1, orders + 1):
            less = (math.comb(j - 1, i - 1) * found[i] * moments[j - i] for i in range(1, j))
            found.append(np.maximum(moments[j] - sum(less), 0 if j == 2 else -np.inf))
        if orders:
            found[1] = found[1] + self.nodes[0]
        return np.array(found)

    def _about_middle(self, log_weights: Floats, log_q: Floats) -> tuple[Floats, Any, Floats]:
        """Logarithms of each class's q over the middle one, shape `(q, classes)`; those of the
        weights of nodes under that one, over the largest of each cell, shape `(m, cells)`, in half
        as many digits, which are enough and faster; and these largest.
        """
        middle = log_q[_POINTS // 2]
        log_p = log_weights + middle[self._class] * self.nodes
        tops = log_p.max(axis=0)
        return log_q - middle, (log_p - tops).astype(np.float32), tops

    def all_records(self, mixture: Mixture) -> tuple[float, float]:
        """Mean and variance of the number of records of all groups, by two moments given q."""
        share = special.softmax(mixture.log_mass, axis=0) / mixture.moments[0]
        first, second = ((share * of_n).sum(axis=0) for of_n in mixture.moments[1:])
        return float(first @ self._times), float(np.maximum(second - first**2, 0) @ self._times)

    def drawn(self, mixture: Mixture, number: int, rng: np.random.Generator) -> Integers:
        """So many draws of the counts from a mixture, shape `(number, G, k)`."""
        shares = special.softmax(mixture.log_mass, axis=0)
        group = np.repeat(self._group[:, None], number, axis=1)
        at = picked(shares.T, group, rng.random(group.shape))
        counts: Any = np.empty((number, *self.cells.shape), dtype=np.int32)
        kappa, log_weights = float(mixture.a.sum()), self.log_mass + self._risings.of(mixture.a)
        steps, log_p, _ = self._about_middle(log_weights, mixture.log_q)
        # The nodes of a count lie together.
        ratios, laws, away = (
            np.ascontiguousarray(values, dtype=np.float32)
            for values in (steps, log_p.T, self._away.T)
        )
        for some in np.array_split(np.arange(len(at)), counts.size * len(self.nodes) // _BLOCK + 1):
            cell, q = np.broadcast_arrays(self.cells[some].T[..., None], at[some])
            p = ratios[q, self._class[cell], None] * away[cell]
            p += laws[cell]
            p -= p.max(axis=-1, keepdims=True)
            np.exp(p, out=p)
            if kappa < _LARGE:
                nodes = self.nodes.T[cell]
                p = p * nodes ** _powers_of_factor(kappa, nodes, p, rng)[..., None]
            up_to = np.cumsum(p, axis=-1)
            level = rng.random(up_to.shape[:-1]) * up_to[..., -1]
            node = (up_to <= level[..., None]).sum(axis=-1)
            first, length = self._begin[node, cell], self._number[node, cell]
            counts[:, some] = (first + rng.random(cell.shape) * length).T
        return counts


def _powers_of_factor(kappa: float, nodes: Floats, p: Floats, rng: np.random.Generator) -> Integers:
    """Draw a term of `(n + κ) (n + κ + 1)` in proportion to its mean, and count how often each
    count is a factor of it; given nodes and their probabilities, shape `(k, ..., m)`, of counts of
    shape `(k, ...)`.
    """
    whole = p.sum(axis=-1, dtype=np.float64)
    means = (p * nodes).sum(axis=-1) / whole
    variances = (p * (nodes - means[..., None]) ** 2).sum(axis=-1) / whole
    several = np.concatenate([np.full((1, *means.shape[1:]), kappa), means])
    terms = several[:, None] * several
    every = np.arange(1, len(several))
    terms[every, every] += variances
    terms[0] += several  # the second factor is larger by one
    with np.errstate(divide="ignore"):
        pair = one_of(np.log(terms).reshape(-1, *means.shape[1:]).T, rng).T
    first, second = np.divmod(pair, len(several))
    every = every.reshape(-1, *(1,) * pair.ndim)
    return (first == every).astype(np.int64) + (second == every)
