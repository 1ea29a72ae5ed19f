"""Choose the mechanism for `mechanism="auto"`."""

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from opendp_bayes.accounting import enumeration, two_categories
from opendp_bayes.accounting.exact import FEASIBLE_WORK
from opendp_bayes.accounting.profile import Accounting
from opendp_bayes.mathematics.simplex import log_number_of_candidates
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms import (
    GaussianParameters,
    HellingerExponential,
    KNormParameters,
    LaplaceParameters,
    Mechanism,
    PermuteAndFlip,
)
from opendp_bayes.mechanisms.laws import AdditiveNoise, Flips, SimplexNoise
from opendp_bayes.mechanisms.protocol import check_informative, law_of
from opendp_bayes.planning.scoring import preferred, proportions_of_interest, score_of

#: A private number of records is taken to be so many times the scale of the usual noise in each
#: category: many, so that which noise is best does not depend on it.
_MANY = 1000
#: The largest such number.
_MOST_RECORDS = 10**11
#: Up to so many records are few at every scale.
_FEW_RECORDS = 10
#: With more categories errors are those of so many, with as many records in each: simulating all of
#: them would take minutes.
_MOST_COMPARED = 100
#: So many probabilities of neighbours the exact accounting compares in about a second.
_QUICK_WORK = 500_000
#: So many it may compare at each of the many steps of a calibration with two categories, where a
#: window is enough; that takes a few seconds.
_EXACT_WORK_OF_TWO = FEASIBLE_WORK
#: So many with three categories or more; that takes a few seconds too.
_EXACT_WORK = 500_000
#: Up to so many candidates the law of permute-and-flip is computed at each step of a calibration;
#: one takes longer than the law of an exponential mechanism.
_EXACT_CANDIDATES_OF_FLIP = 100


def choose(fit: Callable[[Mechanism], Mechanism], size: int | None, prior: Floats) -> Mechanism:
    """Choose the mechanism for `mechanism="auto"`: the calibrated one with the smallest score of
    `plan`, among those that have a chance of it.

    `fit` gives a mechanism its scale, or raises `ValueError` where it has none within the budget.
    Compared are one kind of noise on the counts, `usual`, and Gaussian noise, which has a scale
    under ρ and with δ; for two categories floored Laplace noise too, wherever its scale is smaller;
    and others where the scale of the usual noise is more than half of the records in a category or
    there are few records. A private number of records is taken to be large. Over the settings of
    `tests/planning/test_plan.py` the score is within 5 % of the best mechanism's. Depends on public
    things only.
    """
    best = fit(usual(size, prior.size))
    records = size or min(round(_MANY * prior.size * max(best.scale, 1.0)), _MOST_RECORDS)
    k = min(prior.size, _MOST_COMPARED)
    few = records <= _FEW_RECORDS or records <= 2 * best.scale * prior.size
    few = few and k == prior.size
    fitted = [best]
    for template in _rivals(size, prior, few):
        try:
            mechanism = fit(template)
            check_informative(mechanism, size=size, prior=prior)
        except ValueError:  # refused, and so no rival
            continue
        floored = getattr(mechanism, "noise", None) == "floored"
        if few or not floored or mechanism.scale < best.scale:
            fitted.append(mechanism)
    if len(fitted) == 1:
        return best
    compared, records = tuple(prior[:k].tolist()), max(records * k // prior.size, 1)
    scores = [_score(one, compared, records, size is None) for one in fitted]
    return fitted[preferred(scores)]


@lru_cache(maxsize=256)  # a query is resolved when it is shown and again when it is released
def _score(mechanism: Mechanism, prior: tuple[float, ...], records: int, private: bool) -> float:
    concentration = np.array(prior)
    shares = proportions_of_interest(concentration, records, None)
    return score_of(mechanism, concentration, shares, records, private=private)


def _rivals(size: int | None, prior: Floats, few: bool) -> Iterator[Mechanism]:
    """Yield the mechanisms that `choose` compares with the usual noise, in the order of a plan."""
    if size is not None and (few or prior.size == 2):
        yield LaplaceParameters(1.0, "floored")
    yield GaussianParameters(1.0)
    if size is not None and few:
        yield LaplaceParameters(1.0, "floored", "bounded")
        # In between the exact accounting takes too long; beyond, the proven bound is used.
        if not _QUICK_WORK < _work(size, prior) <= FEASIBLE_WORK:
            yield HellingerExponential(1.0)
        if affordable(PermuteAndFlip(1.0), size, prior) == "exact":
            yield PermuteAndFlip(1.0)


def usual(size: int | None, k: int) -> Mechanism:
    """At scale 1, K-norm noise where the number of records is public and k is at least 3, otherwise
    discrete Laplace noise.
    """
    if size is None:
        return LaplaceParameters(1.0, total="private")
    return KNormParameters(1.0) if k > 2 else LaplaceParameters(1.0)


def affordable(mechanism: Mechanism, size: int | None, prior: Floats) -> Accounting:
    """`"exact"` where each step of a calibration takes little time."""
    law = law_of(mechanism, size, prior)
    if size is None or isinstance(law, (AdditiveNoise, SimplexNoise)):
        return "exact"
    log_candidates = log_number_of_candidates(size, prior.size)
    if isinstance(law, Flips) and log_candidates > math.log(_EXACT_CANDIDATES_OF_FLIP):
        return "proven"
    most = _EXACT_WORK_OF_TWO if prior.size == 2 else _EXACT_WORK
    return "exact" if _work(size, prior) <= most else "proven"


def _work(size: int, prior: Floats) -> int:
    """About how many probabilities of neighbours the exact accounting of an exponential mechanism
    compares.
    """
    if prior.size == 2:
        return two_categories.work(size, (float(prior[0]), float(prior[1])))
    return enumeration.work(size, tuple(prior.tolist()), 1)
