"""Any anonymous mechanism, from the laws of its outcome: its profile (paper, Definition 2), also
after sampling (`docs/research/smoothed.md`, "Any anonymous mechanism").

A mechanism is anonymous if the law of its outcome depends on the histogram of the data alone. The
laws of all databases of n records are the rows of one matrix, in the order of
`opendp_bayes.extend.candidates`. A mechanism that looks at a sample only is a product of two
matrices: the laws of the sample's histogram, and the laws of the outcome given that histogram.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.extend import candidates, number_of_candidates
from opendp_bayes.mathematics.simplex import ranks
from opendp_bayes.mathematics.validation import as_counts
from opendp_bayes_smoothed.arguments import as_epsilon
from opendp_bayes_smoothed.draws import DRAWS, Draw, Floats, Integers, Replacement

#: From the counts of a database, a tuple, to the probabilities of the outcomes, shape
#: `(outcomes,)`: the same outcomes for every database.
Law = Callable[[tuple[int, ...]], ArrayLike]

#: Entries of a matrix of laws: 256 MB.
LARGEST_LAWS = 1 << 25
#: Of a law that is computed in floats.
_OF_A_LAW = 2.0**-35
#: Beyond, `e^ε` times a float is no float; δ falls with ε, so a smaller ε gives a bound.
_LARGEST_EPSILON = 700.0
#: More than all probabilities together that were too small for floats.
_UNDERFLOW = 2.0**-900


@dataclass(frozen=True, eq=False)
class Laws:
    """The laws of all databases of `size` records in k categories.

    Attributes
    ----------
    matrix : shape `(c, outcomes)`, a row for each of `candidates(size, k)`.
    error : bound on the relative error of the entries.
    """

    matrix: Floats
    error: float
    size: int
    k: int

    def then(self, kernel: Floats, error: float) -> "Laws":
        """After a randomised function of the outcome: `kernel` has a row of probabilities for each
        outcome, with that relative error.
        """
        rounding = 2.0**-50 * len(kernel)
        return Laws(self.matrix @ kernel, self.error + error + rounding, self.size, self.k)

    def log_profiles(self, epsilon: float) -> Floats:
        """`ln δ_ε(x)` for every database, shape `(c,)`, rounded up; never minus infinity.

        Every probability that counts for an event is enlarged by its error, and every one that
        counts against it reduced, so outcomes in doubt count.
        """
        histograms = candidates(self.size, self.k)
        worst = np.zeros(len(histograms))
        rows_at_once = max(1, (1 << 20) // self.matrix.shape[1])
        for i, j in combinations(range(self.k), 2):
            here = np.flatnonzero(histograms[:, i] >= 1)
            moved = histograms[here]
            moved[:, i] -= 1
            moved[:, j] += 1
            there = ranks(moved, self.size)
            for start in range(0, len(here), rows_at_once):
                x, y = (rows[start : start + rows_at_once] for rows in (here, there))
                both = np.maximum(
                    hockey_stick(self.matrix[x], self.matrix[y], epsilon, self.error),
                    hockey_stick(self.matrix[y], self.matrix[x], epsilon, self.error),
                )
                worst[x] = np.maximum(worst[x], both)
                worst[y] = np.maximum(worst[y], both)
        return np.log(np.clip(worst, _UNDERFLOW, 1.0)) + 2.0**-50


def hockey_stick(p: Floats, q: Floats, epsilon: float, error: float) -> Floats:
    """`max_S P(S) - e^ε Q(S)` along the last axis, rounded up, for probabilities with that relative
    error. Never exactly 0: a probability may have been too small for a float.
    """
    factor = math.exp(min(epsilon, _LARGEST_EPSILON)) * (1 - 2.0**-50)
    gains = np.maximum(p * (1 + error + 2.0**-50) - q * (factor * (1 - error)), 0.0)
    total = gains.sum(axis=-1) * (1 + 2.0**-50 * (p.shape[-1] + 2))
    return total + _UNDERFLOW


def laws_of(law: Law, size: int, k: int, error: float = _OF_A_LAW) -> Laws:
    """Tabulate and check the laws that a callable gives; `ValueError` for rows that are no laws."""
    number = number_of_candidates(size, k)
    if number > LARGEST_LAWS:
        raise ValueError(
            f"size={size}: {k} categories have {number} histograms of so many records; their laws"
            f" can be tabulated for at most {LARGEST_LAWS}. Use fewer."
        )
    rows: list[Floats] = []
    for counts in candidates(size, k).tolist():
        rows.append(_checked(law, tuple(counts), rows[0].size if rows else None))
        if number * rows[0].size > LARGEST_LAWS:
            raise ValueError(
                f"law: gives {rows[0].size} outcomes for each of {number} databases; must be at"
                f" most {LARGEST_LAWS // number}. Use fewer records, or fewer outcomes."
            )
    return Laws(np.array(rows), error, size, k)


def _checked(law: Law, counts: tuple[int, ...], outcomes: int | None) -> Floats:
    row = np.asarray(law(counts), dtype=np.float64)
    if row.ndim != 1 or not np.all(row >= 0) or not abs(row.sum() - 1) <= 1e-9:
        raise ValueError(
            f"law: gives {row.tolist()!r:.100} for {counts}; must be the probabilities of all"
            " outcomes, with the sum 1."
        )
    if outcomes not in (None, row.size):
        raise ValueError(
            f"law: gives {row.size} outcomes for {counts} and {outcomes} for another database; must"
            " be as many for every database."
        )
    return row


def anonymous_profile(law: Law, counts: ArrayLike, epsilon: float) -> float:
    """Return `δ_ε(x)` of any anonymous mechanism (paper, Definition 2), from the law of its
    outcome.

    Parameters
    ----------
    law : from the counts of a database, a tuple, to the probabilities of the outcomes: the same
        outcomes for every database, each probability within a relative 2^-35.
    counts : records of each category, shape `(m,)`.
    epsilon : at least 0.

    Returns an upper bound, never exactly 0. Raises `ValueError`/`TypeError` for arguments that are
    not valid, and for a `law` that is none.

    >>> def report(counts):
    ...     return [0.75, 0.25] if counts[0] > counts[1] else [0.25, 0.75]
    >>> [round(anonymous_profile(report, counts, 0.5), 6) for counts in ([2, 1], [3, 0])]
    [0.33782, 0.0]
    """
    array, epsilon = as_counts(counts), as_epsilon(epsilon)
    here = _checked(law, tuple(array.tolist()), None)
    worst = _UNDERFLOW
    for i, j in permutations(range(array.size), 2):
        if array[i]:
            moved = array.copy()
            moved[i] -= 1
            moved[j] += 1
            there = _checked(law, tuple(moved.tolist()), here.size)
            for pair in ((here, there), (there, here)):
                worst = max(worst, float(hockey_stick(*pair, epsilon, _OF_A_LAW)))
    return min(1.0, worst)


def histogram_laws(size: int, samples: int, k: int, replacement: Replacement) -> Laws:
    """The laws of the histogram of a sample; its outcomes are `candidates(samples, k)`."""
    draw, histograms = DRAWS[replacement], candidates(samples, k)
    matrix = np.array([sampled(draw, x, histograms) for x in candidates(size, k)])
    return Laws(matrix, _OF_A_LAW, size, k)


def sampled(draw: Draw, counts: Integers, histograms: Integers) -> Floats:
    """The probability of each histogram of a sample from a database with these counts, within a
    relative 2^-35 for up to 6 categories.

    Category by category: given those before, the number drawn from one is a draw from two.
    """
    left, drawn = counts.sum(), histograms.sum(axis=1)
    logs, possible = np.zeros(len(histograms)), np.ones(len(histograms), dtype=np.bool_)
    for a, k in zip(counts[:-1], histograms.T[:-1], strict=True):
        low, high = draw.support(a + 0 * k, left - a + 0 * k, drawn)
        possible &= (low <= k) & (k <= high) & ((a > 0) | (k == 0))
        cells = (np.where(possible, cell, 0) for cell in (k, a, left - a, drawn))
        logs += draw.log_pmf(*cells)
        left, drawn = left - a, drawn - k
    return np.where(possible & ((drawn == 0) | (counts[-1] > 0)), np.exp(logs), 0.0)


def outcomes_of(function: Callable[[tuple[int, ...]], object], samples: int, k: int) -> Integers:
    """The number of the outcome of a function for each histogram of `samples` records; outcomes
    are numbered as they first occur.
    """
    numbers: dict[object, int] = {}
    histograms = candidates(samples, k).tolist()
    return np.array([numbers.setdefault(function(tuple(h)), len(numbers)) for h in histograms])


def one_hot(outcomes: Integers) -> Floats:
    """The kernel of a function that is not random."""
    return (outcomes[:, None] == np.arange(outcomes.max() + 1)).astype(np.float64)
