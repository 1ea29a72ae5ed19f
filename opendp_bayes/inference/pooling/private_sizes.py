r"""Groups whose numbers of records are private, given κ and m: the true counts are summed out.

For a group of n records,

    n! Γ(κ) / Γ(n + κ) = (n + κ) ∫ q^n (1 - q)^(κ - 1) dq,

so that given q the counts are independent, but for a factor that is a sum of the counts and κ: it
makes a mixture of laws of independent counts. All values of n are equally probable before, or n is
geometric, which is a factor for each record. Counts that are alike are computed once.
"""

import math
from typing import Any

import numpy as np
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import alike, log_rising_factorial, picked
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts, nodes_of
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Counts further than this from what was drawn, `exp(-DEPTH)` of the noise's largest mass, are
#: left out.
DEPTH = 14.0
#: Values of q, over how many deviations of what is known of it, and of the noise of a group.
_POINTS, _DEVIATIONS, _OF_NOISE = 18, 6.0, 6.0
#: Numbers that one array holds; and less than the logarithm of anything that matters, of which
#: exponentials are quick.
_BLOCK, _NOTHING = 1 << 18, -87.0


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


class PrivateSizes:
    """Groups of private numbers of records, as they were drawn, every count with noise.

    A cell is a count of one category of groups of one class, which have about as many records.

    Parameters
    ----------
    noisy : DrawnCounts
        What was drawn of the counts, shape `(G, k)`.
    mean_size : float, optional
        Of the geometric law of the number of records of a group.
    """

    def __init__(self, noisy: DrawnCounts, mean_size: float = math.inf) -> None:
        (groups, k), std = noisy.drawn.shape, typical_std(noisy.noise)
        total, half = noisy.drawn.sum(axis=1), std / 2
        # Classes are that long, or a square root of their records.
        root = np.sqrt(np.maximum(total, half**2))
        first, self._of_group = alike(np.floor(np.minimum(total / half, 2 * root - half)))
        #: About how many records each class has, how unsure that is, and how far its logarithm may
        #: be from that.
        self._middle = np.maximum(total[first], std + 1.0)
        self._unsure, away = std / self._middle, _OF_NOISE * np.sqrt(k) * std + root[first]
        ends = np.maximum(total[first] - away, 0.02), np.maximum(total[first] + away, 0) + 3
        self._ends = np.log(np.array(ends) / self._middle)
        cells = np.repeat(self._of_group, k), np.tile(np.arange(k), groups), noisy.drawn.ravel()
        first, cell = alike(*cells)
        self._cells = cell.reshape(groups, k)
        self._class, category, drawn = (column[first] for column in cells)
        # What is summed lies far apart, and caches hold it.
        self._nodes, self._begin, self._number = nodes_of(drawn, noisy.noise, DEPTH)
        self._nodes_of_cells = np.ascontiguousarray(self._nodes.T)  # where one is drawn, together
        self._log_mass = np.log(np.maximum(self._number, 1e-300)) - special.gammaln(self._nodes + 1)
        self._log_mass += noisy.noise.log_mass(drawn - self._nodes)
        self._log_mass -= self._nodes * np.log1p(1 / mean_size)
        self._risings = Risings(self._nodes, category)

    def log_p(self, a: Floats) -> float:
        """Log-probability of what was drawn, for κ m of shape `(k,)`."""
        return float(special.logsumexp(self._laws(a)[2], axis=0).sum())

    def counts(self, a: Floats, number: int, rng: np.random.Generator) -> Integers:
        """So many draws of the counts for κ m, shape `(number, G, k)`."""
        log_weights, log_q, log_mass = self._laws(a)
        group = np.repeat(np.arange(len(self._cells))[:, None], number, axis=1)
        row = picked(special.softmax(log_mass, axis=0).T, group, rng.random(group.shape))
        counts: Any = np.empty((number, *self._cells.shape), dtype=np.int32)
        size, log_weights = counts.size * len(self._nodes), np.ascontiguousarray(log_weights.T)
        for some in np.array_split(np.arange(len(row)), size // _BLOCK + 1):
            cell, q = np.broadcast_arrays(self._cells[some].T[..., None], row[some])
            nodes = self._nodes_of_cells[cell]
            log_p = log_q[q, self._class[cell], None] * nodes
            log_p += log_weights[cell]
            log_p -= log_p.max(axis=-1, keepdims=True)
            masses = np.exp(log_p.astype(np.float32))
            means = np.einsum("...m,...m->...", masses, nodes) / masses.sum(axis=-1)
            terms = np.concatenate([means, np.full((1, *q.shape[1:]), a.sum())])
            is_factor = np.arange(a.size)[:, None, None] == _drawn(terms.T, rng).T
            masses[is_factor] *= nodes[is_factor]
            node = _drawn(masses, rng)
            beyond = rng.random(q.shape) * self._number[node, cell]
            counts[:, some] = (self._begin[node, cell] + beyond).T
        return counts

    def _laws(self, a: Floats) -> tuple[Floats, Floats, Floats]:
        """A mixture over q for κ m of shape `(k,)`: the logarithms of the weights of counts, shape
        `(m, cells)`; the values of ln q of each class, `(q, classes)`; and logarithms of their
        shares for each group, whose sum is the probability of what was drawn, `(q, G)`.
        """
        kappa = float(a.sum())
        of_q = 1 / (kappa + 1) + 1 / (self._middle + 1)  # variance of its logit where n is known
        wide = np.minimum(np.sqrt(of_q + self._unsure**2), 1.0)
        first, last = self._ends + _DEVIATIONS * np.array([[-1], [1]]) * np.sqrt(of_q)
        steps = np.linspace(np.arcsinh(first / wide), np.arcsinh(last / wide), _POINTS)
        log_odds = np.log(self._middle / (kappa + 1)) + wide * np.sinh(steps)
        log_rest = -np.logaddexp(0, log_odds)
        log_q = log_odds + log_rest
        apart = (step := steps[1] - steps[0]) * np.cosh(steps) * wide
        log_mass = log_q + kappa * log_rest + np.log(apart)
        # The last stands for all from there to 1, with the correction of Euler and Maclaurin.
        to_end = 0.5 + (kappa * apart[-1] - step) / 12
        log_mass[-1] = kappa * log_rest[-1] + np.log(to_end * apart[-1] + 1 / kappa)
        log_q[-1] *= kappa / (kappa + 1)
        log_weights = self._log_mass + self._risings.of(a)
        log_sums, means = np.empty((2, _POINTS, len(self._class)))
        # About the middle, half as many digits are enough, and twice as quick.
        middle, least = log_q[_POINTS // 2], self._nodes[0]
        log_p = log_weights + middle[self._class] * self._nodes
        about = (log_p - (tops := log_p.max(axis=0))).astype(np.float32)
        away = (self._nodes - least).astype(np.float32)
        for row, steps in enumerate((log_q - middle)[:, self._class]):
            p = steps.astype(np.float32) * away
            p += about
            p -= (more := p.max(axis=0))
            np.exp(np.maximum(p, _NOTHING, out=p), out=p)
            log_sums[row] = tops + more + steps * least + np.log(whole := p.sum(axis=0))
            means[row] = least + np.einsum("ij,ij->j", p, away) / whole
        log_mass = log_mass[:, self._of_group] + log_sums[:, self._cells].sum(axis=-1)
        return log_weights, log_q, log_mass + np.log(means[:, self._cells].sum(axis=-1) + kappa)


def _drawn(masses: Floats, rng: np.random.Generator) -> Integers:
    """A place of the last axis for all others, drawn in proportion to the masses."""
    up_to = np.cumsum(masses, axis=-1)
    level = rng.random(up_to.shape[:-1]) * up_to[..., -1]
    return np.asarray((up_to <= level[..., None]).sum(axis=-1))
