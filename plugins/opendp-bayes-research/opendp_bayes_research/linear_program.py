r"""A linear program over all ε-private mechanisms, certified by its dual.

A mechanism is a table `P(r | x)` over the data sets x and the releases r of `size` records.
It is ε-private if `exp(-epsilon) P(r | x) <= P(r | y)` for neighbours x, y: linear, as is the
error. Multipliers `v(x, y, r) >= 0` of these constraints prove that no mechanism has an error below

    sum over x of min over r of w(x) H(x, r) + exp(-epsilon) sum_y v(x, y, r) - sum_y v(y, x, r),

whatever they are (`docs/research/optimality.md`); so a solver need not be trusted.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from opendp_bayes.extend import lower_end, round_down
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms import hellinger_distance
from opendp_bayes_research.neighbours import neighbours

_TOLERANCE = 1e-10
#: The program is solved for probabilities and errors times a number, so that the solver's
#: tolerances are smaller parts of them; where that leaves a gap, the next way is tried.
_ATTEMPTS = ((1000.0, "highs-ipm"), (1000.0, "highs-ds"), (1.0, "highs-ds"))
_GAP = 1e-9
#: Relative error of a distance and of a sum of up to 2^10 terms, of the sum of their sizes.
_ROUNDING = 2.0**-40


@dataclass(frozen=True, eq=False)
class Program:
    """`distance` of every data set and release, shape `(c, c)`; neighbours, as indices."""

    distance: Floats
    first: Integers
    second: Integers
    factor: float

    @classmethod
    def of(cls, sets: Integers, prior: Floats, epsilon: float) -> "Program":
        first, second = neighbours(sets)
        # Rounded down, so that what is proved holds for the true factor.
        factor = lower_end(math.exp(-epsilon), 2.0**-48)
        return cls(distances(sets, prior), first, second, factor)

    def smallest(self, weights: Floats | None = None) -> tuple[float, float]:
        """The smallest error, on average with these `weights` of the data sets, or without them of
        the data set where it is largest: that of a mechanism, and what is proved.
        """
        c, number = len(self.distance), self.first.size * len(self.distance)
        value, proved = math.inf, 0.0
        for scale, method in _ATTEMPTS:
            solution = self._solve(weights, scale, method)
            if solution.status:
                continue
            errors = (self.distance * self._private(solution.x[: c * c])).sum(axis=1)
            multipliers = solution.ineqlin.marginals
            if weights is None:
                error, of_errors = errors.max(), np.maximum(-multipliers[number:], 0.0)
                # Rounded down, so that they sum to at most 1.
                total = of_errors.sum() / (1 - 2.0**-45)
                bound = self._proved(of_errors / total, multipliers[:number] / total)
            else:
                error, bound = weights @ errors, self._proved(weights, multipliers / (scale * c))
            value, proved = min(value, float(error)), max(proved, bound)
            if value - proved <= _GAP * value:
                break
        return value, proved

    def _solve(self, weights: Floats | None, scale: float, method: str) -> Any:
        """The linear program; without `weights` with a last variable above every error."""
        c, m = len(self.distance), self.first.size
        pairs = np.stack([self.first, self.second], axis=1)
        columns = (pairs[:, None] * c + np.arange(c)[:, None]).ravel()
        rows = np.repeat(np.arange(m * c), 2)
        private = sparse.csr_matrix((np.tile([self.factor, -1.0], m * c), (rows, columns)))
        sums = sparse.kron(sparse.eye(c), np.ones((1, c)))
        if weights is None:
            cost = np.append(np.zeros(c * c), 1.0)
            errors = sparse.block_diag([row[None] for row in self.distance])
            private = sparse.block_array([[private, None], [errors, -np.ones((c, 1))]])
            sums = sparse.hstack([sums, sparse.csr_matrix((c, 1))])
        else:
            cost = (weights[:, None] * self.distance).ravel()
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
        share = min(violation * c / (1 - self.factor) * (1 + 1e-6), 1.0) if violation > 0 else 0.0
        return (1 - share) * table + share / c

    def _proved(self, weights: Floats, marginals: Floats) -> float:
        """The bound that these multipliers prove, rounded down."""
        v = np.maximum(-marginals, 0.0).reshape(self.first.size, -1)
        received, taken = np.zeros_like(self.distance), np.zeros_like(self.distance)
        np.add.at(received, self.first, v)
        np.add.at(taken, self.second, v)
        cost = weights[:, None] * self.distance
        slack = _ROUNDING * (cost + received + taken)
        least = (cost + self.factor * received - taken - slack).min(axis=1)
        return max(round_down(sum(map(Fraction, least.tolist()), start=Fraction(0))), 0.0)


def distances(sets: Integers, prior: Floats) -> Floats:
    posteriors = prior + sets
    return np.asarray(hellinger_distance(posteriors[:, None], posteriors[None]))
