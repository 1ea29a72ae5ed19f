"""The probabilities that a mechanism states, and the most that they tell neighbours apart."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.extend import candidates, number_of_candidates
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes_research.auditing.results import LOG_ERROR, LawCheck, Pair
from opendp_bayes_research.neighbours import neighbours

#: What `Mechanism.log_pmf` returns: outcomes, shape `(c, k)`, and their log-probabilities, shape
#: `(c,)`.
Law = tuple[Integers, Floats]

#: Up to so many probabilities (data sets times outcomes) all neighbours are compared; beyond, the
#: pairs that draws are taken from.
LARGEST_TABLE = 1 << 18


def listed(setting: Setting, counts: Sequence[int]) -> Law | None:
    """`log_pmf`, or None where the outcomes cannot be enumerated."""
    try:
        return setting.mechanism.log_pmf(counts, setting.prior)
    except ValueError:
        return None


def over_all_neighbours(setting: Setting) -> LawCheck | None:
    """The largest log-ratio over all neighbours, or None where there are too many probabilities or
    none are stated.
    """
    size, k = setting.size, len(setting.prior)
    if size is None or number_of_candidates(size, k) > LARGEST_TABLE:
        return None
    sets = candidates(size, k)
    law = listed(setting, sets[-1].tolist())
    if law is None or law[1].size * len(sets) > LARGEST_TABLE:
        return None
    laws = [setting.mechanism.log_pmf(counts, setting.prior) for counts in sets]
    first, second = neighbours(sets)
    once = first < second
    pairs = sorted(zip(first[once].tolist(), second[once].tolist(), strict=True))
    return _largest((sets[i].tolist(), sets[j].tolist(), laws[i], laws[j]) for i, j in pairs)


def over_pairs(setting: Setting, pairs: list[Pair]) -> LawCheck | None:
    """The largest log-ratio over these pairs; None where the outcomes of none can be enumerated."""
    stated = [
        (first, second, listed(setting, first), listed(setting, second)) for first, second in pairs
    ]
    differences = [
        (first, second, p, q) for first, second, p, q in stated if p is not None and q is not None
    ]
    return _largest(differences, complete=False) if differences else None


def _largest(
    pairs: Iterable[tuple[Sequence[int], Sequence[int], Law, Law]], *, complete: bool = True
) -> LawCheck:
    """The pair with the largest log-ratio; of pairs that differ by rounding alone, the first."""
    best = LawCheck(first=(), second=(), epsilon=-1.0, error=0.0, pairs=0, complete=complete)
    for first, second, p, q in pairs:
        with np.errstate(invalid="ignore"):  # what is impossible for both tells nothing
            epsilon = float(np.nanmax(np.abs(np.subtract(*aligned(p, q)))))
        if epsilon - best.error > best.epsilon:
            log_p = np.concatenate([p[1], q[1]])
            error = LOG_ERROR * (1 - float(np.min(log_p, where=np.isfinite(log_p), initial=0.0)))
            best = replace(
                best, first=tuple(first), second=tuple(second), epsilon=epsilon, error=error
            )
        best = replace(best, pairs=best.pairs + 1)
    return best


def aligned(p: Law, q: Law) -> tuple[Floats, Floats]:
    """Log-probabilities of the same outcomes under both laws, `-inf` where one does not list an
    outcome.
    """
    if np.array_equal(p[0], q[0]):
        return p[1], q[1]
    outcomes = np.unique(np.concatenate([p[0], q[0]]), axis=0)
    return at_outcomes(outcomes, *p), at_outcomes(outcomes, *q)


def at_outcomes(
    outcomes: Integers, listed: Integers, values: ArrayLike, missing: float = -math.inf
) -> Floats:
    """The values at some outcomes, shape `(m, k)`, of a function given at those listed, shape `(c,
    k)`, and `missing` elsewhere.
    """
    _, outcome_of = np.unique(np.concatenate([outcomes, listed]), axis=0, return_inverse=True)
    outcome_of = outcome_of.ravel()
    table = np.full(outcome_of.max() + 1, missing)
    table[outcome_of[len(outcomes) :]] = values
    return table[outcome_of[: len(outcomes)]]
