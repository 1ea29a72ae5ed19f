"""The smallest expected Hellinger error that any ε-private mechanism can have, and how close a
mechanism comes to it (`docs/research/optimality.md`).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from opendp_bayes.extend import candidates, number_of_candidates
from opendp_bayes.mathematics.log_space import log_sum_exp
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    as_choice,
    as_positive,
    as_prior,
    as_size,
)
from opendp_bayes.mechanisms import Mechanism, hellinger_distance
from opendp_bayes_research.auditing.stated_law import at_outcomes
from opendp_bayes_research.linear_program import Program, distances

#: Data sets up to which the linear program is solved: up to some seconds.
LARGEST_PROGRAM = 80


@dataclass(frozen=True)
class Standing:
    """Comparison of a mechanism with the least error.

    Attributes
    ----------
    error : float
        Its expected Hellinger error, averaged as the least error is.
    remapped : float
        The same after the best remapping of its releases, which is post-processing.
    worst_case : float
        The largest expected error of any data set, without a remapping.
    ratio, remapped_ratio : float
        `error` and `remapped` over the least error.
    """

    error: float
    remapped: float
    worst_case: float
    ratio: float
    remapped_ratio: float


@dataclass(frozen=True)
class LeastError:
    """The smallest expected Hellinger error of any ε-private mechanism that releases posteriors of
    `size` records; made by `least_error`.

    Attributes
    ----------
    value : float
        The average error of a mechanism that was found, which is ε-private.
    certified : float
        A lower bound on the average error of every ε-private mechanism.
    worst_case, certified_worst_case : float
        The same for the largest error of any data set.
    size, prior, epsilon, average : int, tuple[float, ...], float, str
        What was asked.
    """

    size: int
    prior: tuple[float, ...]
    epsilon: float
    average: str
    value: float
    certified: float
    worst_case: float
    certified_worst_case: float

    def standing(self, mechanism: Mechanism) -> Standing:
        """Compare a mechanism, at the scale that it has, with the least error.

        Its releases must be listed by its `log_pmf`, which raises `ValueError` where they cannot
        be. Nothing checks that it is ε-private. Releases with another sum than `size`, which some
        mechanisms have, are no posteriors of `size` records until they are remapped.
        """
        prior = np.array(self.prior)
        sets = candidates(self.size, prior.size)
        distance = distances(sets, prior)
        laws = [mechanism.log_pmf(counts, prior) for counts in sets]
        outcomes = np.unique(np.concatenate([listed for listed, _ in laws]), axis=0)
        law = np.exp([at_outcomes(outcomes, *stated) for stated in laws])
        weights = _weights(sets, prior, self.average)
        hellinger = hellinger_distance(prior + outcomes[None], (prior + sets)[:, None])
        errors = (law * hellinger).sum(axis=1)
        error = float(weights @ errors)
        # For every release, the posterior of smallest expected error among those of `size` records.
        remapped = float(((weights[:, None] * law).T @ distance).min(axis=1).sum())
        return Standing(
            error=error,
            remapped=remapped,
            worst_case=float(errors.max()),
            ratio=error / self.value,
            remapped_ratio=remapped / self.value,
        )


def least_error(
    size: int, prior: ArrayLike, epsilon: float, average: Literal["uniform", "prior"] = "uniform"
) -> LeastError:
    """The smallest expected Hellinger error of any ε-private mechanism that releases posteriors of
    `size` records, change-one neighbours.

    Source: `docs/research/optimality.md`.

    Parameters
    ----------
    size : int
        The public number of records; together with k such that there are at most 80 data sets.
    prior : array_like
        The prior concentration, shape `(k,)`.
    epsilon : float
        The loss for one record changed.
    average : {"uniform", "prior"}, default "uniform"
        Over the data sets, `"uniform"`, each counting the same, or `"prior"`, as often as the prior
        expects it.

    Raises
    ------
    ValueError
        For more data sets, or for arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters
    >>> from opendp_bayes_research import least_error
    >>> least = least_error(size=20, prior=[1.0, 1.0], epsilon=1.0)
    >>> round(least.value, 4), least.value - least.certified < 1e-9
    (0.1477, True)
    >>> round(least.standing(LaplaceParameters(scale=1.0)).remapped_ratio, 6)
    1.0
    """
    size, concentration = as_size(size), as_prior(prior)
    epsilon = as_positive(epsilon, "epsilon")
    as_choice(average, "average", ("uniform", "prior"))
    number = number_of_candidates(size, concentration.size)
    if number > LARGEST_PROGRAM:
        raise ValueError(
            f"size={size}, {concentration.size} categories: there are {number} data sets; the"
            f" linear program takes at most {LARGEST_PROGRAM}. Use fewer records or categories."
        )
    sets = candidates(size, concentration.size)
    program = Program.of(sets, concentration, epsilon)
    value, certified = program.smallest(_weights(sets, concentration, average))
    worst, certified_worst = program.smallest()
    return LeastError(
        size,
        tuple(concentration.tolist()),
        epsilon,
        average,
        value,
        certified,
        worst,
        certified_worst,
    )


def _weights(sets: Integers, prior: Floats, average: str) -> Floats:
    """Weights of the data sets in an average, shape `(c,)`; they sum to 1 or a rounding less."""
    if average == "uniform":
        weights = np.full(len(sets), 1 / len(sets))
    else:
        log_weights = (gammaln(prior + sets) - gammaln(sets + 1.0)).sum(axis=1)
        weights = np.exp(log_weights - log_sum_exp(log_weights, axis=0))
    return np.asarray(weights * (1 - 2.0**-45))
