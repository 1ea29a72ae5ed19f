"""Distributional differential privacy (paper, Definition 4): protection against an adversary who
knows how the other records are distributed, but none of them.

A mechanism is `(ε, δ, Π)`-distributionally private if some simulator has outcomes `(ε, δ)`-close to
those of the mechanism on all records. The simulator sees all records but one and not the
distributions. This holds whatever the missing record is, and whatever the distributions of the
others in Π. Smoothed differential privacy implies it (Proposition 9; `docs/research/smoothed.md`,
"The adversary").
"""

import math

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

#: Constraints of the linear program over all simulators.
_LARGEST_PROGRAM = 4_000
#: Histograms of the others, and products of two numbers, beyond it.
_LARGEST_HISTOGRAMS, _LARGEST_PRODUCT = 1 << 15, 1 << 30
#: Cuts of the search for the best record.
_CUTS = 60
_ERROR = 2.0**-35


def distributional_delta(law: Law, distributions: ArrayLike, size: int, epsilon: float) -> float:
    """Return the smallest δ for which an anonymous mechanism is `(ε, δ, Π)`-distributionally
    private, as far as simulators are searched.

    Parameters
    ----------
    law : from the counts of a database, a tuple, to the probabilities of the outcomes: the same
        outcomes for every database, each probability within a relative 2^-35.
    distributions : the set Π, shape `(l, m)`: rows of probabilities of the m categories. Only the
        vertices of their convex hull matter, and are used.
    size : the number of records n, at least 1.
    epsilon : at least 0.

    Returns the δ of the simulator found, rounded up, so an upper bound whichever it is. For few
    records (two categories, vertices and outcomes: 500) that is the best of all simulators, by a
    linear program. For more (two categories: 1000) it is the best of those that put a random record
    in the place of the missing one, whose δ is at most that of `anonymous_delta`. Raises
    `ValueError`/`TypeError` for arguments that are not valid, for a `law` that is none, and where
    there are too many histograms and outcomes.
    """
    corners, epsilon = vertices(distributions), as_epsilon(epsilon)
    size, k = as_size(size), corners.shape[1]
    choices, histograms = (number_of_candidates(size - 1, n) for n in (len(corners), k))
    laws = laws_of(law, size, k).matrix
    work = choices * histograms * max(laws.shape[1], size)
    if histograms > _LARGEST_HISTOGRAMS or work > _LARGEST_PRODUCT:
        raise ValueError(
            f"size={size}: {choices} choices of distributions, {histograms} histograms and"
            f" {laws.shape[1]} outcomes take {work} products; at most {_LARGEST_PRODUCT} are taken,"
            f" and {_LARGEST_HISTOGRAMS} histograms. Use fewer records."
        )
    others = _others(corners, size - 1)
    # shifted[X] has the laws for every histogram of the others and the missing record X.
    rest = candidates(size - 1, k)
    shifted = [laws[ranks(rest + np.eye(k, dtype=np.int64)[i], size)] for i in range(k)]
    truths = np.array([others @ rows for rows in shifted])
    if 2 * choices * k * laws.shape[1] <= _LARGEST_PROGRAM:
        seen = others @ _best_simulator(others, truths, epsilon)
    else:
        seen = np.tensordot(_best_record(truths, epsilon), truths, 1)
    return min(1.0, _worst(truths, seen, epsilon))


def _worst(truths: Floats, seen: Floats, epsilon: float) -> float:
    """δ of a simulator with the outcomes `seen`, shape `(choices, outcomes)`, rounded up."""
    return max(
        float(np.max(hockey_stick(p, q, epsilon, 2 * _ERROR)))
        for truth in truths
        for p, q in ((truth, seen), (seen, truth))
    )


def _others(corners: Floats, size: int) -> Floats:
    """The laws of the histogram of `size` records for every choice of a vertex for each, up to
    their order; shape `(choices, histograms)`.
    """
    k = corners.shape[1]
    # By the last vertex of a choice: one record more comes from that or a later one.
    laws = [np.ones((1, 1)), *(np.ones((0, 1)) for _ in corners[1:])]
    for n in range(size):
        histograms, width = candidates(n, k), number_of_candidates(n + 1, k)
        to = [ranks(histograms + np.eye(k, dtype=np.int64)[i], n + 1) for i in range(k)]
        grown = []
        for vertex, corner in enumerate(corners):
            before = np.concatenate(laws[: vertex + 1])
            after = np.zeros((len(before), width))
            for i in range(k):
                after[:, to[i]] += before * corner[i]
            grown.append(after)
        laws = grown
    return np.concatenate(laws)


def _best_record(truths: Floats, epsilon: float) -> Floats:
    """The law of the record that a simulator puts in the place of the missing one, shape `(k,)`.

    Its δ is the largest of convex functions of that law, and found from below by cuts: where it is
    tried, one of these and its slopes give a linear function that is nowhere above.
    """
    k = len(truths)
    factor = math.exp(min(epsilon, 50.0))
    rows, limits = [], []
    best, record = np.full(k, 1 / k), np.full(k, 1 / k)
    least = math.inf
    for _ in range(_CUTS):
        seen = np.tensordot(record, truths, 1)
        gains = np.array([truths - factor * seen, seen - factor * truths])
        deltas = np.maximum(gains, 0).sum(axis=3)
        side, x, c = np.unravel_index(int(np.argmax(deltas)), deltas.shape)
        value = float(deltas[side, x, c])
        if value < least:
            least, best = value, record
        # The sum of the gains that count, as a function of the record's law.
        slopes = (-factor, 1.0)[side] * truths[:, c, gains[side, x, c] > 0].sum(axis=1)
        rows.append([*slopes, -1.0])
        limits.append(float(slopes @ record) - value)
        found = linprog([0.0] * k + [1.0], rows, limits, [[1.0] * k + [0.0]], [1.0])
        if found.x is None or found.x[-1] >= least * (1 - 1e-9):
            break
        record = np.maximum(found.x[:k], 0.0) / np.maximum(found.x[:k], 0.0).sum()
    return best


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
