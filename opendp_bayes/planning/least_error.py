r"""The smallest expected Hellinger error that any ε-private mechanism can have: a linear program
over all mechanisms, certified by its dual.

A mechanism is a table `P(r | x)` over the data sets x and the releases r of `size` records.
It is ε-private if `exp(-epsilon) P(r | x) <= P(r | y)` for neighbours x, y: linear, as is the
error. Multipliers `v(x, y, r) >= 0` of these constraints prove that no mechanism has an error below

    sum over x of min over r of w(x) H(x, r) + exp(-epsilon) sum_y v(x, y, r) - sum_y v(y, x, r),

whatever they are (`docs/optimality.md`); so a solver need not be trusted.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linprog
from scipy.special import gammaln

from opendp_bayes.mathematics.hellinger import hellinger_distance
from opendp_bayes.mathematics.log_space import log_sum_exp
from opendp_bayes.mathematics.rounding import lower_end, round_down
from opendp_bayes.mathematics.simplex import candidates, number_of_candidates, ranks
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    as_choice,
    as_positive,
    as_prior,
    as_size,
)
from opendp_bayes.mechanisms.protocol import Mechanism

#: Data sets up to which the linear program is solved: up to some seconds.
LARGEST_PROGRAM = 80
_TOLERANCE = 1e-10
#: The program is solved for probabilities and errors times a number, so that the solver's
#: tolerances are smaller parts of them; where that leaves a gap, the next way is tried.
_ATTEMPTS = ((1000.0, "highs-ipm"), (1000.0, "highs-ds"), (1.0, "highs-ds"))
_GAP = 1e-9
#: Relative error of a distance and of a sum of up to 2^10 terms, of the sum of their sizes.
_ROUNDING = 2.0**-40


@dataclass(frozen=True)
class Standing:
    """How a mechanism compares with the least error.

    Attributes
    ----------
    error : its expected Hellinger error, averaged as the least error is.
    remapped : the same after the best remapping of its releases, which is post-processing.
    worst_case : the largest expected error of any data set, without a remapping.
    ratio, remapped_ratio : `error` and `remapped` over the least error.
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
    value : the average error of a mechanism that was found, which is ε-private.
    certified : a lower bound on the average error of every ε-private mechanism.
    worst_case, certified_worst_case : the same for the largest error of any data set.
    size, prior, epsilon, average : what was asked.
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
        """How far a mechanism, at the scale that it has, is from the least error; its releases must
        be listed by its `log_pmf`, which raises `ValueError` where they cannot be. Whether it is
        ε-private is not asked. Releases with another sum than `size`, which some mechanisms have,
        are no posteriors of `size` records until they are remapped.
        """
        prior = np.array(self.prior)
        sets = candidates(self.size, prior.size)
        distance = _distances(sets, prior)
        laws = [mechanism.log_pmf(counts, prior) for counts in sets]
        outcomes, place = np.unique(
            np.concatenate([listed for listed, _ in laws]), axis=0, return_inverse=True
        )
        law = np.zeros((len(sets), len(outcomes)))
        start = 0
        for row, (listed, log_p) in enumerate(laws):
            np.add.at(law[row], place.ravel()[start : start + len(listed)], np.exp(log_p))
            start += len(listed)
        weights = _weights(sets, prior, self.average)
        own = hellinger_distance(prior + outcomes[None], (prior + sets)[:, None])
        errors = (law * own).sum(axis=1)
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
    size: int,
    prior: ArrayLike,
    epsilon: float,
    average: Literal["uniform", "prior"] = "uniform",
) -> LeastError:
    """The smallest expected Hellinger error of any ε-private mechanism that releases posteriors of
    `size` records, change-one neighbours.

    Parameters
    ----------
    size : the public number of records; together with k such that there are at most 80 data sets.
    prior : the prior concentration, shape `(k,)`.
    epsilon : the loss for one record changed.
    average : over the data sets, `"uniform"`, each counting the same, or `"prior"`, as often as the
        prior expects it.

    Raises `ValueError` for more data sets, or for arguments that are not valid.

    Source: `docs/optimality.md`.

    >>> from opendp_bayes import LaplaceParameters, least_error
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
    program = _Program.of(sets, concentration, epsilon)
    value, certified = program.average(_weights(sets, concentration, average))
    worst, certified_worst = program.worst_case()
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


@dataclass(frozen=True, eq=False)
class _Program:
    """`distance` of every data set and release, shape `(c, c)`; neighbours, as indices."""

    distance: Floats
    first: Integers
    second: Integers
    factor: float

    @classmethod
    def of(cls, sets: Integers, prior: Floats, epsilon: float) -> "_Program":
        first, second = _neighbours(sets)
        # Rounded down, so that what is proved holds for the true factor.
        factor = lower_end(math.exp(-epsilon), 2.0**-48)
        return cls(_distances(sets, prior), first, second, factor)

    def average(self, weights: Floats) -> tuple[float, float]:
        """The smallest average error: of a mechanism, and proved."""
        cost = (weights[:, None] * self.distance).ravel()
        value, proved = math.inf, 0.0
        for scale, method in _ATTEMPTS:
            found = self._solve(cost, None, scale, method)
            if found.status:
                continue
            value = min(value, float(cost @ self._private(found.x).ravel()))
            multipliers = found.ineqlin.marginals / (scale * len(self.distance))
            proved = max(proved, self._proved(weights, multipliers))
            if value - proved <= _GAP * value:
                break
        return value, proved

    def worst_case(self) -> tuple[float, float]:
        """The smallest largest error: of a mechanism, and proved."""
        c = len(self.distance)
        number, value, proved = self.first.size * c, math.inf, 0.0
        for scale, method in _ATTEMPTS:
            found = self._solve(np.append(np.zeros(c * c), 1.0), self.distance, scale, method)
            if found.status:
                continue
            table = self._private(found.x[:-1])
            value = min(value, float((self.distance * table).sum(axis=1).max()))
            weights = np.maximum(-found.ineqlin.marginals[number:], 0.0)
            # Rounded down, so that they sum to at most 1.
            total = weights.sum() / (1 - 2.0**-45)
            multipliers = found.ineqlin.marginals[:number] / total
            proved = max(proved, self._proved(weights / total, multipliers))
            if value - proved <= _GAP * value:
                break
        return value, proved

    def _solve(self, cost: Floats, largest: Floats | None, scale: float, method: str) -> Any:
        """The linear program, with a last variable above every error if `largest` is given."""
        c, m = len(self.distance), self.first.size
        releases = np.arange(c)
        columns = np.stack(
            [
                (self.first[:, None] * c + releases).ravel(),
                (self.second[:, None] * c + releases).ravel(),
            ],
            axis=1,
        )
        rows = np.repeat(np.arange(m * c), 2)
        private = sparse.csr_matrix(
            (np.tile([self.factor, -1.0], m * c), (rows, columns.ravel())), (m * c, c * c)
        )
        sums = sparse.kron(sparse.eye(c), np.ones((1, c)))
        if largest is not None:
            errors = sparse.block_diag([row[None] for row in largest])
            private = sparse.vstack(
                [
                    sparse.hstack([private, sparse.csr_matrix((m * c, 1))]),
                    sparse.hstack([errors, -np.ones((c, 1))]),
                ]
            )
            sums = sparse.hstack([sums, sparse.csr_matrix((c, 1))])
        return linprog(
            scale * c * cost,
            A_ub=private.tocsr(),
            b_ub=np.zeros(private.shape[0]),
            A_eq=sums.tocsr(),
            b_eq=np.full(c, scale),
            bounds=(0, None),
            method=method,
            options={
                "primal_feasibility_tolerance": _TOLERANCE,
                "dual_feasibility_tolerance": _TOLERANCE,
            },
        )

    def _private(self, solution: Floats) -> Floats:
        """A solution within the solver's tolerance, mixed with the uniform law as far as it takes
        to be a mechanism that is ε-private.
        """
        c = len(self.distance)
        table = np.maximum(solution.reshape(c, c), 0.0)
        table /= table.sum(axis=1, keepdims=True)
        violation = float(np.max(self.factor * table[self.first] - table[self.second], initial=0.0))
        part = min(violation * c / (1 - self.factor) * (1 + 1e-6), 1.0) if violation > 0 else 0.0
        return (1 - part) * table + part / c

    def _proved(self, weights: Floats, marginals: Floats) -> float:
        """The bound that these multipliers prove, rounded down."""
        v = np.maximum(-marginals, 0.0).reshape(self.first.size, -1)
        given, taken = np.zeros_like(self.distance), np.zeros_like(self.distance)
        np.add.at(given, self.first, v)
        np.add.at(taken, self.second, v)
        cost = weights[:, None] * self.distance
        slack = _ROUNDING * (cost + given + taken)
        least = (cost + self.factor * given - taken - slack).min(axis=1)
        return max(round_down(sum(map(Fraction, least.tolist()), start=Fraction(0))), 0.0)


def _distances(sets: Integers, prior: Floats) -> Floats:
    posteriors = prior + sets
    return np.asarray(hellinger_distance(posteriors[:, None], posteriors[None]))


def _neighbours(sets: Integers) -> tuple[Integers, Integers]:
    """Ordered pairs of data sets that differ by a record changed, as indices."""
    size, k = int(sets[0].sum()), sets.shape[1]
    first, second = [], []
    for i in range(k):
        for j in range(k):
            if i != j:
                at = np.flatnonzero(sets[:, i])
                moved = sets[at]
                moved[:, i] -= 1
                moved[:, j] += 1
                first.append(at)
                second.append(ranks(moved, size))
    return np.concatenate(first), np.concatenate(second)


def _weights(sets: Integers, prior: Floats, average: str) -> Floats:
    """Of the data sets in an average, shape `(c,)`; they sum to 1 or a rounding less."""
    if average == "uniform":
        weights = np.full(len(sets), 1 / len(sets))
    else:
        log_weights = (gammaln(prior + sets) - gammaln(sets + 1.0)).sum(axis=1)
        weights = np.exp(log_weights - log_sum_exp(log_weights, axis=0))
    return np.asarray(weights * (1 - 2.0**-45))
