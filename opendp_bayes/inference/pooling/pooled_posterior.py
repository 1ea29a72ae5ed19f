"""The posteriors of groups that borrow strength from each other."""

import numpy as np

from opendp_bayes.inference.engines import Listed, mixtures_of_draws
from opendp_bayes.inference.sampling.importance import WeightDiagnostics
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.validation import Floats, Integers

#: Components of the mixture that a probability is, where those of all groups are wanted.
_COMPONENTS = 32
#: Numbers that one array holds.
_BLOCK = 1 << 21


class Concentrations(Listed):
    """Concentrations of Dirichlet distributions, shape `(draws, k)`: κ m and the true counts, which
    `counted` has alone.

    They stand for the counts and the prior of other posteriors, and their own prior is 0.
    """

    @classmethod
    def of(cls, a: Floats, counts: Integers, diagnostics: WeightDiagnostics) -> "Concentrations":
        """Add κ m and the true counts of a group, both of shape `(draws, k)`."""
        concentrations = cls(a + counts, counted=Listed(counts))
        concentrations.diagnostics = diagnostics
        return concentrations


def estimates_of_groups(a: Floats, counts: Integers, level: float) -> Floats:
    """Means, deviations, and ends of the intervals of probability `level`, of the probabilities of
    all groups, from κ m and counts of shapes `(draws, k)` and `(draws, G, k)`; shape `(4, G k)`.
    """
    blocks, k = [], a.shape[1]
    for groups in np.array_split(np.arange(counts.shape[1]), counts.size // _BLOCK + 1):
        alpha = np.moveaxis(a[:, None] + counts[:, groups], (1, 2), (0, 1))
        beta = np.moveaxis(all_but_one(np.moveaxis(alpha, 1, 0)), 0, 1)
        alpha, beta = (x[:, : k if k > 2 else 1].reshape(-1, len(a)) for x in (alpha, beta))
        laws = mixtures_of_draws(alpha, beta, _COMPONENTS)
        mean, deviation, (lower, upper) = laws.mean(), laws.std(), laws.interval(level)
        estimates = np.array([mean, deviation, lower, upper])
        if k == 2:
            mirrored = 1 - mean, deviation, 1 - upper, 1 - lower
            estimates = np.stack([estimates, mirrored], axis=2).reshape(4, -1)
        blocks.append(estimates)
    return np.concatenate(blocks, axis=1)
