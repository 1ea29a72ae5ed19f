"""Public functions of a sample, as laws: voting rules whose winner is published while some of the
votes are lost (paper, Example 1 and Section 5.1).
"""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.extend import candidates, number_of_candidates
from opendp_bayes_smoothed.arguments import samples_of
from opendp_bayes_smoothed.draws import DRAWS
from opendp_bayes_smoothed.laws import Law, outcomes_of, sampled

#: From the votes for each category, a tuple, to the winner, a number of an alternative.
Rule = Callable[[tuple[int, ...]], int]

#: Histograms of a sample whose outcomes are tabulated.
_LARGEST_SAMPLE = 1 << 20


def plurality(votes: ArrayLike) -> int:
    """Return the alternative with most votes, the first of those that tie.

    Parameters
    ----------
    votes : number of votes for each alternative, shape `(alternatives,)`.

    >>> plurality((2, 5, 5))
    1
    """
    return int(np.argmax(votes))


def rankings(alternatives: int) -> list[tuple[int, ...]]:
    """List all rankings of so many alternatives, best first, in lexicographic order: the categories
    of the votes that `borda` and `copeland` count.

    Parameters
    ----------
    alternatives : their number, from 2 to 6.

    Raises `ValueError` for another number.

    >>> rankings(3)[:3]
    [(0, 1, 2), (0, 2, 1), (1, 0, 2)]
    """
    if not 2 <= alternatives <= 6:
        raise ValueError(f"alternatives={alternatives!r}: must be from 2 to 6.")
    return list(permutations(range(alternatives)))


def borda(alternatives: int) -> Rule:
    """Make the rule by which the alternative with most points wins, the first of those that tie. A
    ranking gives its last alternative no point, and each other one more than the next.

    Parameters
    ----------
    alternatives : their number, from 2 to 6.

    The rule takes the number of votes for each of `rankings(alternatives)`, a tuple. Raises
    `ValueError` for another number.

    >>> borda(3)((4, 0, 0, 3, 0, 0))
    1
    """
    order = rankings(alternatives)
    points = np.array([[alternatives - 1 - r.index(a) for a in range(alternatives)] for r in order])
    return lambda votes: int(np.argmax(np.array(votes) @ points))


def copeland(alternatives: int) -> Rule:
    """Make the rule by which the alternative that beats most others by majority wins, a tie
    counting half; the first of those that tie.

    Parameters
    ----------
    alternatives : their number, from 2 to 6.

    The rule takes the number of votes for each of `rankings(alternatives)`, a tuple. Raises
    `ValueError` for another number.

    >>> copeland(3)((4, 0, 0, 3, 0, 0))
    0
    """
    order = rankings(alternatives)
    duels = list(combinations(range(alternatives), 2))
    margins = np.array([[1 if r.index(a) < r.index(b) else -1 for a, b in duels] for r in order])

    def rule(votes: tuple[int, ...]) -> int:
        score = np.zeros(alternatives)
        for (a, b), margin in zip(duels, np.array(votes) @ margins, strict=True):
            score[a] += (1 + np.sign(margin)) / 2
            score[b] += (1 - np.sign(margin)) / 2
        return int(np.argmax(score))

    return rule


def of_a_sample(
    function: Callable[[tuple[int, ...]], object], k: int, size: int, rate: float | Fraction
) -> Law:
    """Make the law of a public function of the histogram of `T = ceil(rate n)` records drawn
    without replacement, for `anonymous_delta` and `anonymous_profile`.

    Parameters
    ----------
    function : from the counts of the sample, a tuple of k, to anything hashable, such as the winner
        of an election some of whose votes are lost.
    k : number of categories.
    size : the number of records n.
    rate : share of the records that is drawn, in `(0, 1]`; `T = ceil(rate n)`, and T for
        `rate=T / n`.

    Outcomes are in the order in which they first occur among the histograms, in lexicographic
    order. Raises `ValueError`/`TypeError` for a rate that is not valid, and where the sample has
    more than 2^20 histograms.

    >>> law = of_a_sample(plurality, k=2, size=5, rate=0.6)
    >>> [round(float(p), 6) for p in law((2, 3))]
    [0.7, 0.3]
    """
    samples = samples_of(rate, size)
    if number_of_candidates(samples, k) > _LARGEST_SAMPLE:
        raise ValueError(
            f"size={size}: a sample of {samples} records of {k} categories has more than"
            f" {_LARGEST_SAMPLE} histograms. Use fewer records or categories."
        )
    histograms, outcomes = candidates(samples, k), outcomes_of(function, samples, k)
    draw = DRAWS["without"]
    return lambda counts: np.bincount(
        outcomes, weights=sampled(draw, np.array(counts), histograms), minlength=outcomes.max() + 1
    )
