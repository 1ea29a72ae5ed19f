"""Distributional differential privacy (paper, Definition 4): what an adversary learns who knows how
the other records are distributed, but none of them.

A mechanism is `(ε, δ, Π)`-distributionally private if some simulator, who sees all records but one
and not the distributions, has outcomes `(ε, δ)`-close to those of the mechanism on all records,
whatever the missing record is, and whatever the distributions of the others in Π. Smoothed
differential privacy implies it (Proposition 9; `docs/smoothed.md`, "The adversary").
"""

import math
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, lil_matrix

from opendp_bayes.extend import candidates, number_of_candidates
from opendp_bayes.mathematics.simplex import ranks
from opendp_bayes.mathematics.validation import as_size
from opendp_bayes_smoothed.arguments import as_epsilon
from opendp_bayes_smoothed.distributions import vertices
from opendp_bayes_smoothed.draws import Floats
from opendp_bayes_smoothed.laws import Law, hockey_stick, laws_of

#: Constraints of the linear program.
_LARGEST_PROGRAM = 4_000
_ERROR = 2.0**-35


def distributional_delta(law: Law, distributions: ArrayLike, size: int, epsilon: float) -> float:
    """The smallest δ for which an anonymous mechanism is `(ε, δ, Π)`-distributionally private.

    Arguments are those of `anonymous_delta`. The best simulator is found by a linear program; what
    is returned is the δ of the simulator found, rounded up, so an upper bound whatever the program
    did. Raises `ValueError` for more than 4000 constraints: a few records.
    """
    corners, epsilon = vertices(distributions), as_epsilon(epsilon)
    size, k = as_size(size), corners.shape[1]
    laws = laws_of(law, size, k).matrix
    choices = number_of_candidates(size - 1, len(corners))
    if (constraints := 2 * choices * k * laws.shape[1]) > _LARGEST_PROGRAM:
        raise ValueError(
            f"size={size}: {constraints} constraints for {choices} choices of distributions, {k}"
            f" records and {laws.shape[1]} outcomes; at most {_LARGEST_PROGRAM} are taken. Use"
            " fewer records."
        )
    others = _others(corners, size - 1)
    # shifted[X] has the laws for every histogram of the others and the missing record X.
    rest = candidates(size - 1, k)
    shifted = [laws[ranks(rest + np.eye(k, dtype=np.int64)[i], size)] for i in range(k)]
    truths = np.array([others @ rows for rows in shifted])
    simulator = _best_simulator(others, truths, epsilon)
    seen = others @ simulator
    worst = max(
        float(np.max(hockey_stick(p, q, epsilon, 2 * _ERROR)))
        for truth in truths
        for p, q in ((truth, seen), (seen, truth))
    )
    return min(1.0, worst)


def _others(corners: Floats, size: int) -> Floats:
    """The laws of the histogram of `size` records for every choice of a vertex for each, up to
    their order; shape `(choices, histograms)`.
    """
    k = corners.shape[1]
    rows = []
    for choice in combinations_with_replacement(range(len(corners)), size):
        law = np.ones(1)
        for n, vertex in enumerate(choice):
            after = np.zeros(len(candidates(n + 1, k)))
            for i in range(k):
                to = ranks(candidates(n, k) + np.eye(k, dtype=np.int64)[i], n + 1)
                np.add.at(after, to, law * corners[vertex, i])
            law = after
        rows.append(law)
    return np.array(rows)


def _best_simulator(others: Floats, truths: Floats, epsilon: float) -> Floats:
    """The laws of the simulator for every histogram that it may see, shape `(histograms,
    outcomes)`.

    The smallest δ such that for every choice c, missing record X and outcome a there are gains `u
    >= P(a) - e^ε Q(a)` and `v >= Q(a) - e^ε P(a)`, at least 0 and with sums over a of at most δ;
    `Q = others @ simulator`.
    """
    (choices, histograms), (k, _, outcomes) = others.shape, truths.shape
    cases = choices * k
    factor = math.exp(min(epsilon, 50.0))
    simulated, gains = histograms * outcomes, cases * outcomes
    width = simulated + 2 * gains + 1
    rows, limits = lil_matrix((2 * gains + 2 * cases, width)), np.zeros(2 * gains + 2 * cases)
    for case, (x, c) in enumerate(np.ndindex(k, choices)):
        for a in range(outcomes):
            up, down = case * outcomes + a, gains + case * outcomes + a
            columns = np.arange(histograms) * outcomes + a
            rows[up, columns], rows[down, columns] = -factor * others[c], others[c]
            rows[up, simulated + up] = rows[down, simulated + down] = -1
            limits[up], limits[down] = -truths[x, c, a], factor * truths[x, c, a]
        for side in (0, 1):
            total = 2 * gains + 2 * case + side
            start = simulated + side * gains + case * outcomes
            rows[total, start : start + outcomes] = 1
            rows[total, width - 1] = -1
    sums = lil_matrix((histograms, width))
    for h in range(histograms):
        sums[h, h * outcomes : (h + 1) * outcomes] = 1
    objective = np.zeros(width)
    objective[-1] = 1
    found = linprog(
        objective, csr_matrix(rows), limits, csr_matrix(sums), np.ones(histograms), method="highs"
    )
    simulator = np.maximum(found.x[:simulated].reshape(histograms, outcomes), 0.0)
    return simulator / simulator.sum(axis=1, keepdims=True)
