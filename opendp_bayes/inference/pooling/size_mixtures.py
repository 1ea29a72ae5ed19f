r"""Probabilities of what was drawn of pooled groups, given κ and m, where their numbers of records
are private: the true counts are summed out.

For a group of n records, all values of n being equally probable,

    n! Γ(κ) / Γ(n + κ) = (n + κ) (n + κ + 1) / κ ∫ q^n (1 - q)^κ dq,

so that given q the counts are independent but for a factor. Its terms are products of counts of at
most two categories, which makes it a mixture of laws of independent counts.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import one_of
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.pooling.counted_cells import CountedCells
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Values of q, over how many deviations of what is known of it, and of the noise of a group.
_POINTS, _DEVIATIONS, _OF_NOISE = 24, 6.0, 6.0
#: Numbers that are looked at together, at most.
_BLOCK = 1 << 16


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
    means, variances : ndarray
        Of counts given q without the factor, `(G, k, q)`.
    sizes, spreads : ndarray
        Means and variances of the groups' numbers of records given q, `(G, q)`.
    """

    log_weights: Floats
    log_q: Floats
    log_mass: Floats
    means: Floats
    variances: Floats
    sizes: Floats
    spreads: Floats
    kappa: float

    def of_groups(self) -> tuple[Floats, Floats, Floats]:
        """Log-probabilities of what was drawn of every group, means and variances of their numbers
        of records; shape `(G,)` each.
        """
        found = special.logsumexp(self.log_mass, axis=1)
        share = np.exp(self.log_mass - found[:, None])
        mean = (share * self.sizes).sum(axis=1)
        variance = (share * (self.spreads + self.sizes**2)).sum(axis=1) - mean**2
        return found, mean, variance


class SizeMixtures:
    """Groups of private numbers of records, as they were drawn.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn of the counts, shape `(G, k)`.
    start : ndarray of int
        Possible counts.
    """

    def __init__(self, noisy: DrawnCounts, start: Integers) -> None:
        self.cells = CountedCells.of(noisy, start)
        away = self.cells.nodes - self.cells.nodes[..., :1]
        self._away = away.astype(np.float32)
        self._powers = np.stack([away**power for power in range(5)], axis=-1).astype(np.float32)
        known = np.where(noisy.noised, noisy.drawn, start).sum(axis=1)
        spans = (self.cells.last.max(axis=-1) - self.cells.first.min(axis=-1)) / 2
        spread = _OF_NOISE * typical_std(noisy.noise) * np.sqrt(noisy.noised.sum(axis=1))
        spread = spread + np.where(noisy.noised, 0, spans).sum(axis=1)
        ends = np.stack([known - spread, known + spread + 3], axis=1)
        #: Between which logarithms of about its number of records each group is looked at.
        self._ends = np.log(np.maximum(ends, [0.02, 3.0]))
        self._middle = np.maximum(known, spread / _OF_NOISE + 1.0)

    def terms(self, a: Floats) -> Floats:
        """Log-probabilities of what was drawn of every group for κ m of shape `(k,)`."""
        return self.mixture(a).of_groups()[0]

    def counts(self, a: Floats, rng: np.random.Generator) -> tuple[Integers, Floats]:
        """Counts drawn for several κ m, shape `(draws, k)`, and the logarithms of their weights,
        which are all the same.
        """
        different, place = np.unique(a, axis=0, return_inverse=True)
        found = np.empty((len(a), *self.cells.nodes.shape[:2]), dtype=np.int64)
        for at, each in enumerate(different):
            mixture = self.mixture(each)
            for draw in np.flatnonzero(place == at):
                found[draw] = self.drawn(mixture, rng)
        return found, np.zeros(len(a))

    def mixture(self, a: Floats, tilt: float = 0.0) -> Mixture:
        """Mix for κ m of shape `(k,)`; with a `tilt`, counts weigh `exp(tilt x)` times as much."""
        kappa = float(a.sum())
        log_weights = self.cells.log_weights(a)
        margin = _DEVIATIONS * np.sqrt(1 / (kappa + 1) + 1 / (self._middle + 1))
        low, high = self._ends[:, 0] - margin, self._ends[:, 1] + margin
        log_odds = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, _POINTS)
        step = np.log((high - low) / (_POINTS - 1))[:, None]
        log_odds = log_odds - np.log(kappa + 1)
        log_rest = -np.logaddexp(0, log_odds)
        log_q = log_odds + log_rest
        log_sums, *cumulants = self._given(log_weights, log_q + tilt)
        log_factor, sizes, spreads = _with_factor([each.sum(axis=1) for each in cumulants], kappa)
        log_mass = log_q + (kappa + 1) * log_rest + step + log_sums.sum(axis=1) + log_factor
        means, variances = cumulants[:2]
        return Mixture(log_weights, log_q + tilt, log_mass, means, variances, sizes, spreads, kappa)

    def _given(self, log_weights: Floats, log_q: Floats) -> Floats:
        """Logarithms of the sums over counts, and four cumulants, given q; `(5, G, k, q)`."""
        groups, k, nodes = log_weights.shape
        found = np.empty((5, groups, k, _POINTS))
        block = max(1, _BLOCK // (k * nodes * _POINTS))
        middle = log_q[:, _POINTS // 2, None]
        log_p = log_weights + middle[:, None] * self.cells.nodes
        tops = log_p.max(axis=-1, keepdims=True)
        turned = (log_q - middle).astype(np.float32)
        for at in range(0, groups, block):
            some = slice(at, at + block)
            p = turned[some, None, :, None] * self._away[some, :, None]
            p += (log_p[some] - tops[some]).astype(np.float32)[:, :, None]
            top = p.max(axis=-1, keepdims=True)
            p -= top
            np.exp(p, out=p)
            sums = p @ self._powers[some]
            moments = np.moveaxis(sums, -1, 0).astype(np.float64)
            first, second, third, fourth = moments[1:] / moments[0]
            square = first**2
            variance = np.maximum(second - square, 0)
            skew = third - first * (3 * second - 2 * square)
            tails = fourth - 4 * first * third + 3 * square * (2 * second - square)
            lowest = self.cells.nodes[some, :, :1]
            of_first = turned[some, None] * lowest + tops[some]
            found[0, some] = np.log(moments[0]) + top[..., 0] + of_first
            found[1:, some] = first + lowest, variance, skew, tails - 3 * variance**2
        return found

    def drawn(self, mixture: Mixture, rng: np.random.Generator) -> Integers:
        """Counts drawn from a mixture, shape `(G, k)`."""
        at, groups = one_of(mixture.log_mass, rng), np.arange(len(mixture.log_mass))
        given = mixture.means[groups, :, at], mixture.variances[groups, :, at]
        powers = powers_of_factor(mixture.kappa, *given, rng)
        log_p = tilted(mixture.log_weights, self.cells.nodes, mixture.log_q[groups, at], powers)
        return self.cells.integers(one_of(log_p, rng), rng)


def powers_of_factor(
    kappa: float | Floats, means: Floats, variances: Floats, rng: np.random.Generator
) -> Integers:
    """Draw a term of `(n + κ) (n + κ + 1)` in proportion to its mean, given means and variances of
    the counts, shape `(rows, k)`, and count how often each of these is a factor of it.
    """
    rows, k = means.shape
    several = np.concatenate([np.broadcast_to(kappa, rows)[:, None], means], axis=1)
    terms = several[:, :, None] * several[:, None, :]
    every = np.arange(1, k + 1)
    terms[:, every, every] += variances
    terms[:, 0] += several  # the second factor is larger by one
    with np.errstate(divide="ignore"):
        pair = one_of(np.log(terms).reshape(rows, -1), rng)
    first, second = np.divmod(pair, k + 1)
    return (first[:, None] == every).astype(np.int64) + (second[:, None] == every)


def tilted(log_weights: Floats, nodes: Integers, log_q: Floats, powers: Integers) -> Floats:
    """Logarithms of the laws of counts given ln q of every row, shape `(rows,)`, times powers of
    the counts, `(rows, k)`; up to a factor, shape `(rows, k, m)`.
    """
    with np.errstate(divide="ignore"):
        log_x = np.where(nodes > 0, np.log(nodes), -np.inf)
    of_powers = np.where(powers[..., None] > 0, powers[..., None] * np.maximum(log_x, -1e300), 0.0)
    return np.asarray(log_weights + log_q[:, None, None] * nodes + of_powers)


def _with_factor(cumulants: list[Floats], kappa: float) -> tuple[Floats, Floats, Floats]:
    """Logarithm of the mean of `(n + κ) (n + κ + 1) / κ`, and mean and variance of n where it is
    the more probable by that, from four cumulants of n without it.
    """
    mean, variance, skew, tails = cumulants
    square, second, constant = mean**2 + variance, 2 * kappa + 1, kappa * (kappa + 1)
    cube = mean**3 + 3 * mean * variance + skew
    fourth = mean**4 + 6 * mean**2 * variance + 4 * mean * skew + 3 * variance**2 + tails
    whole = square + second * mean + constant
    size = (cube + second * square + constant * mean) / whole
    spread = (fourth + second * cube + constant * square) / whole - size**2
    log_factor = np.log(kappa + 1 + (2 + 1 / kappa) * mean + square / kappa)
    return log_factor, size, np.maximum(spread, 0)
