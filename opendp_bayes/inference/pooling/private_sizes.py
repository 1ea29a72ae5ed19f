r"""Groups whose numbers of records are private, given κ and m: the true counts are summed out.

For a group of n records, all values of n being equally probable,

    n! Γ(κ) / Γ(n + κ) = (n + κ) (n + κ + 1) / κ ∫ q^n (1 - q)^κ dq,

so that given q the counts are independent but for a factor. Its terms are products of counts of at
most two categories, which makes it a mixture of laws of independent counts.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising_factorial, one_of
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Counts further than this from what was drawn, `exp(-DEPTH)` of the noise's largest mass, are
#: left out.
DEPTH = 14.0
#: Values of q, over how many deviations of what is known of it, and of the noise of a group.
_POINTS, _DEVIATIONS, _OF_NOISE = 20, 6.0, 6.0
#: Counts are as far apart as this part of the noise's scale, and of their distance from what was
#: drawn, or as this part of the square root of the count, where that is less.
_OF_SCALE, _OF_DISTANCE, _OF_ROOT = 0.25, 0.15, 0.6


def nodes_of(noisy: DrawnCounts, start: Integers) -> tuple[Floats, Integers, Integers]:
    """Counts in order, shape `(..., m)`, of what was drawn with possible counts to begin with, both
    of shape `(...)`; and the first and last of the integers in whose middle each is, if any.
    """
    reach, drawn = noisy.noise.reach(DEPTH), np.where(noisy.noised, noisy.drawn, start)
    away, small = [0], [0]
    while away[-1] < reach:
        step = _OF_SCALE * noisy.noise.scale + _OF_DISTANCE * away[-1]
        away.append(away[-1] + max(1, int(step)))
    of_sum = _DEVIATIONS * typical_std(noisy.noise) * np.sqrt(drawn.size)
    wide = np.where(noisy.noised, 1, math.ceil(max(1.0, of_sum / reach)))
    low = np.maximum(np.minimum(drawn, start) - reach * wide, 0)
    end = np.maximum(drawn, start) + reach * wide + 1
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
    return np.maximum(first + last, 0) / 2, first, last


class Risings:
    """`ln Γ(x + a) / Γ(a)` of counts x, shape `(G, k, m)`, for any a, shape `(k,)`."""

    def __init__(self, nodes: Integers | Floats) -> None:
        values, places = np.unique(nodes, return_inverse=True)
        self._values: Any = values
        self._places = places.reshape(nodes.shape)
        self._categories = np.arange(nodes.shape[1])[:, None]

    def of(self, a: Floats) -> Floats:
        """The logarithms, shape `(G, k, m)`."""
        return log_rising_factorial(a[:, None], self._values)[self._categories, self._places]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Mixture over q of the laws of groups' counts, for one κ m.

    Attributes
    ----------
    log_weights : ndarray
        Of the nodes of the counts, shape `(G, k, m)`, for q = 1.
    log_q : ndarray
        The values of ln q, and of any tilt, shape `(G, q)`.
    log_mass : ndarray
        Logarithms of their shares, whose sum is the probability of what was drawn.
    cumulants : ndarray
        The first four of counts given q without the factor, `(4, G, k, q)`.
    """

    kappa: float
    log_weights: Floats
    log_q: Floats
    log_mass: Floats
    cumulants: Floats

    @property
    def terms(self) -> Floats:
        """Log-probabilities of what was drawn of every group."""
        return np.asarray(special.logsumexp(self.log_mass, axis=1))

    @property
    def all_records(self) -> tuple[float, float]:
        """Mean and variance of the number of records of all groups."""
        mean, variance, skew, tails = self.cumulants.sum(axis=2)
        square, cube = mean**2 + variance, mean**3 + 3 * mean * variance + skew
        fourth = mean**4 + 6 * mean**2 * variance + 4 * mean * skew + 3 * variance**2 + tails
        slope, least = 2 * self.kappa + 1, self.kappa * (self.kappa + 1)
        share = special.softmax(self.log_mass, axis=1) / (square + slope * mean + least)
        first = (share * (cube + slope * square + least * mean)).sum(axis=1)
        second = (share * (fourth + slope * cube + least * square)).sum(axis=1)
        return float(first.sum()), float(np.maximum(second - first**2, 0).sum())


class PrivateSizes:
    """Groups of private numbers of records, as they were drawn.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn of the counts, shape `(G, k)`.
    start : ndarray of int
        Possible counts.
    """

    def __init__(self, noisy: DrawnCounts, start: Integers) -> None:
        self.noisy = noisy
        self.nodes, self._first, self._last = nodes_of(noisy, start)
        with np.errstate(divide="ignore"):
            self.log_mass = np.log(self._last - self._first + 1) - special.gammaln(self.nodes + 1.0)
        self.log_mass += noisy.log_mass(self.nodes, (..., None))
        self._risings = Risings(self.nodes)
        away = self.nodes - self.nodes[..., :1]
        self._powers = np.stack([away**power for power in range(5)], axis=-1).astype(np.float32)
        known = np.where(noisy.noised, noisy.drawn, start).sum(axis=1)
        free = np.where(noisy.noised, 0, np.ptp(self.nodes, axis=-1) / 2).sum(axis=1)
        spread = typical_std(noisy.noise) * np.sqrt(noisy.noised.sum(axis=1)) + free / _OF_NOISE
        away = _OF_NOISE * spread
        #: Between which logarithms of about its number of records each group is looked at.
        self._ends = np.log(np.maximum(np.stack([known - away, known + away + 3]).T, [0.02, 3.0]))
        self._middle = np.maximum(known, spread + 1.0)

    def terms(self, a: Floats) -> Floats:
        """Log-probabilities of what was drawn of every group for κ m of shape `(k,)`."""
        return self.mixture(a).terms

    def counts(self, a: Floats, number: int, rng: np.random.Generator) -> tuple[Integers, float]:
        """So many draws of the counts for one κ m, shape `(number, G, k)`, and the logarithm of
        their weight beside those of other κ m.
        """
        return self.drawn(self.mixture(a), number, rng), 0.0

    def mixture(self, a: Floats, tilt: float = 0.0) -> Mixture:
        """Mix for κ m of shape `(k,)`; with a `tilt`, counts weigh `exp(tilt x)` times as much."""
        kappa, log_weights = float(a.sum()), self.log_mass + self._risings.of(a)
        margin = _DEVIATIONS * np.sqrt(1 / (kappa + 1) + 1 / (self._middle + 1))
        low, high = self._ends[:, 0] - margin, self._ends[:, 1] + margin
        log_odds = np.linspace(low, high, _POINTS, axis=1) - np.log(kappa + 1)
        log_rest = -np.logaddexp(0, log_odds)
        log_q = log_odds + log_rest
        log_sums, cumulants = self._given(log_weights, log_q + tilt)
        rising = cumulants[0].sum(axis=1) + kappa
        factor = (rising * (rising + 1) + cumulants[1].sum(axis=1)) / kappa
        log_mass = log_q + (kappa + 1) * log_rest + log_sums.sum(axis=1) + np.log(factor)
        log_mass += np.log((high - low) / (_POINTS - 1))[:, None]
        return Mixture(kappa, log_weights, log_q + tilt, log_mass, cumulants)

    def _given(self, log_weights: Floats, log_q: Floats) -> tuple[Floats, Floats]:
        """Logarithms of the sums over counts given q, `(G, k, q)`, and four cumulants of these."""
        middle = log_q[:, _POINTS // 2, None, None]
        log_p = log_weights + middle * self.nodes
        tops = log_p.max(axis=-1, keepdims=True)
        turned = (log_q[:, None] - middle)[..., None].astype(np.float32)
        p = turned * self._powers[:, :, None, :, 1]
        p += (log_p - tops).astype(np.float32)[:, :, None]
        top = p.max(axis=-1, keepdims=True)
        p -= top
        moments = np.moveaxis((np.exp(p, out=p) @ self._powers).astype(np.float64), -1, 0)
        first, second, third, fourth = moments[1:] / moments[0]
        variance = np.maximum(second - first**2, 0)
        skew = third - first * (3 * second - 2 * first**2)
        tails = fourth - 4 * first * third + 3 * first**2 * (2 * second - first**2)
        log_sums = np.log(moments[0]) + top[..., 0] + tops
        log_sums += (log_q[:, None] - middle) * self.nodes[..., :1]
        first = first + self.nodes[..., :1]
        return log_sums, np.stack([first, variance, skew, tails - 3 * variance**2])

    def drawn(self, mixture: Mixture, number: int, rng: np.random.Generator) -> Integers:
        """So many draws of the counts from a mixture, shape `(number, G, k)`."""
        groups = np.arange(len(mixture.log_mass))
        at = one_of(np.broadcast_to(mixture.log_mass, (number, *mixture.log_mass.shape)), rng)
        means, variances = (of[groups, :, at] for of in mixture.cumulants[:2])
        powers = _powers_of_factor(mixture.kappa, means, variances, rng)[..., None]
        log_x = np.log(np.maximum(self.nodes, 1e-300))
        log_p = mixture.log_weights + mixture.log_q[groups, at][..., None, None] * self.nodes
        place = one_of(log_p + powers * log_x, rng)[..., None]
        first, last = (
            np.take_along_axis(np.broadcast_to(ends, log_p.shape), place, axis=-1)[..., 0]
            for ends in (self._first, self._last)
        )
        return rng.integers(first, last + 1)


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
