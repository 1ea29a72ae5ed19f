"""Checks of draws by what cannot share their blind spots: optimisation, and other proposals.

Chains agree with each other, and weights look even, where a peak was missed that none of them saw.
So the posterior of the counts is climbed from the release, from the prior's mean and from data sets
with empty categories. Then it is drawn again, from laws about the highest point that was found and
about the release.
"""

from collections.abc import Callable

import numpy as np

from opendp_bayes.inference.engines.engine import Generator, Listed
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.sampling.importance import Proposals, Weighted, by_importance
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mathematics.zero_sum import nearest_counts

#: Effective draws of the second look, and below which it says nothing.
_LOOKS, _FEWEST = 1000, 50
#: Steps of a climb.
_STEPS = 40
#: Starts with one category that holds all records, at most.
_CORNERS = 4


def disagreement(
    listed: Listed,
    ess: float,
    log_likelihood: Callable[[Integers], Floats],
    released: Integers,
    rng: Generator,
) -> float:
    """By how many standard errors the mean probability of a category differs, at most, between
    draws that are worth `ess` independent ones and those of the second look; 0 where it is worth
    too few itself.
    """
    top = climbed(log_likelihood, starts(listed, released), listed.prior)
    # About the release as well, where the posterior may have a narrower peak than at its top.
    proposals = Proposals(np.unique([top, released], axis=0), listed.prior, 1.0)
    second = by_importance(log_likelihood, proposals, min(_LOOKS, int(ess)), rng)
    effective = float(second.diagnostics.ess[0])
    if effective < _FEWEST:
        return 0.0
    means, squares = zip(expected(listed, ess), expected(second, effective), strict=True)
    return float(np.max(np.abs(means[0] - means[1]) / np.sqrt(squares[0] + squares[1])))


def expected(rows: Listed | Weighted, ess: float) -> tuple[Floats, Floats]:
    """Mean, over rows of counts, of the expected probabilities given them, and its squared standard
    error.

    Of weighted draws that is a sum over the draws themselves: where the heavy ones are far out, it
    is more than the effective sample size says.
    """
    concentration = rows.prior + rows.rows
    share = concentration / concentration.sum(axis=1, keepdims=True)
    mean = rows.weights @ share
    square = (share - mean) ** 2
    if isinstance(rows, Weighted):
        return mean, rows.weights**2 @ square + 1e-18
    return mean, rows.weights @ square / ess + 1e-18


def starts(listed: Listed, released: Integers) -> Integers:
    """Data sets to climb from, shape `(m, k)`."""
    size, prior = int(released.sum()), listed.prior
    best = listed.rows[np.argmax(listed.weights)]
    likely = np.argsort(-prior)[:_CORNERS]
    corners = size * np.eye(prior.size, dtype=np.int64)[likely]
    mean = nearest_counts(np.floor(prior / prior.sum() * size).astype(np.int64), size)
    return np.vstack([released, best, mean, corners])


def climbed(
    log_likelihood: Callable[[Integers], Floats], starts: Integers, prior: Floats
) -> Integers:
    """The data set with the highest posterior probability that climbs from some lead to: in each
    step the best move of 1, 4, 16, ... records, or of all, from a category to another.
    """

    def height(counts: Integers) -> Floats:
        return log_likelihood(counts) + log_rising(counts, prior).sum(axis=1)

    size, k = int(starts[0].sum()), prior.size
    steps = np.append(4 ** np.arange(int(np.log2(size) / 2) + 1), size)
    pairs = np.array([(i, j) for i in range(k) for j in range(k) if i != j])
    leave, enter = np.repeat(pairs, steps.size, axis=0).T
    number = np.tile(steps, len(pairs))
    points, tops = starts, height(starts)
    for _ in range(_STEPS):
        moved = np.minimum(number, points[:, leave])  # of each start, shape (m, moves)
        tried = np.repeat(points[:, None, :], number.size, axis=1)
        moves = np.arange(number.size)
        tried[:, moves, leave] -= moved
        tried[:, moves, enter] += moved
        heights = height(tried.reshape(-1, k)).reshape(moved.shape)
        best = np.argmax(heights, axis=1)
        rows = np.arange(len(points))
        better = heights[rows, best] > tops + 1e-9
        if not np.any(better):
            break
        points = np.where(better[:, None], tried[rows, best], points)
        tops = np.where(better, heights[rows, best], tops)
    return np.asarray(points[np.argmax(tops)])
