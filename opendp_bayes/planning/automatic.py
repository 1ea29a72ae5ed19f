"""Choose the mechanism for `mechanism="auto"`."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from opendp_bayes.accounting.losses import Accounting
from opendp_bayes.accounting.pairs import FEASIBLE_WORK, work_of
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
from opendp_bayes.mechanisms.laws import Flips
from opendp_bayes.mechanisms.setting import Setting

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
#: So many probabilities of neighbours the exact accounting compares in about a second, and at each
#: of the many steps of a calibration in a few. With two categories, where a window is enough, it
#: takes as long for `FEASIBLE_WORK`.
_QUICK_WORK = 500_000
#: Up to so many candidates the law of permute-and-flip is computed at each step of a calibration;
#: one takes longer than the law of an exponential mechanism.
_EXACT_CANDIDATES_OF_FLIP = 100


def choose(
    fit: Callable[[Setting], Setting], size: int | None, prior: Floats, *, noise_only: bool = False
) -> Setting:
    """Choose the mechanism for `mechanism="auto"`: the calibrated one with the smallest score of
    `plan`, among those that have a chance of it.

    `fit` gives a mechanism its scale, or raises `ValueError` where it has none within the budget.
    Compared are one kind of noise on the counts, `usual`, and Gaussian noise, which has a scale
    under ρ and with δ; for two categories floored Laplace noise too, wherever its scale is smaller;
    and others where the scale of the usual noise is more than half of the records in a category or
    there are few records. A private number of records is taken to be large. Over the settings of
    `tests/planning/test_plan.py` the score is within 5 % of the best mechanism's. Depends on public
    things only. With `noise_only` it compares noise on the counts alone, from which a prior can be
    learned.
    """
    best = fit(Setting.of(usual(size, prior.size), size, prior))
    scale = best.mechanism.scale
    records = size or min(round(_MANY * prior.size * max(scale, 1.0)), _MOST_RECORDS)
    k = min(prior.size, _MOST_COMPARED)
    few = k == prior.size and records <= max(_FEW_RECORDS, 2 * scale * prior.size)
    fitted = [best]
    for template in _rivals(size, prior, few):
        if noise_only and not Setting(template, size, tuple(prior.tolist())).adds_noise:
            continue
        try:
            rival = fit(Setting.of(template, size, prior))
            rival.check_informative()
        except ValueError:  # refused, and so no rival
            continue
        floored = getattr(rival.mechanism, "noise", None) == "floored"
        if few or not floored or rival.mechanism.scale < scale:
            fitted.append(rival)
    if len(fitted) == 1:
        return best
    records = max(records * k // prior.size, 1)
    from opendp_bayes.planning.expected_error import preferred

    scores = [_score(_compared(one, k, records), records) for one in fitted]
    return fitted[preferred(scores)]


@lru_cache(maxsize=256)  # a query is resolved when it is shown and again when it is released
def _score(setting: Setting, records: int) -> float:
    from opendp_bayes.planning.expected_error import proportions_of_interest, score_of

    shares = proportions_of_interest(setting.prior_array, records, None)
    return score_of(setting, shares, records)


def _compared(setting: Setting, k: int, records: int) -> Setting:
    """The setting with so many of its categories and records."""
    size = None if setting.size is None else records
    return replace(setting, size=size, prior=setting.prior[:k])


def _rivals(size: int | None, prior: Floats, few: bool) -> Iterator[Mechanism]:
    """Yield the mechanisms that `choose` compares with the usual noise, in the order of a plan."""
    if size is not None and (few or prior.size == 2):
        yield LaplaceParameters(1.0, "floored")
    yield GaussianParameters(1.0)
    if size is not None and few:
        yield LaplaceParameters(1.0, "floored", "bounded")
        # In between the exact accounting takes too long; beyond, the proven bound is used.
        if not _QUICK_WORK < work_of(size, tuple(prior.tolist())) <= FEASIBLE_WORK:
            yield HellingerExponential(1.0)
        if affordable(Setting(PermuteAndFlip(1.0), size, tuple(prior.tolist()))) == "exact":
            yield PermuteAndFlip(1.0)


def usual(size: int | None, k: int) -> Mechanism:
    """At scale 1, K-norm noise where the number of records is public and k is at least 3, otherwise
    discrete Laplace noise.
    """
    if size is None:
        return LaplaceParameters(1.0, total="private")
    return KNormParameters(1.0) if k > 2 else LaplaceParameters(1.0)


def affordable(setting: Setting) -> Accounting:
    """`"exact"` where each step of a calibration takes little time."""
    size, prior = setting.size, setting.prior
    if size is None or setting.adds_noise:
        return "exact"
    log_candidates = log_number_of_candidates(size, len(prior))
    if isinstance(setting.law, Flips) and log_candidates > math.log(_EXACT_CANDIDATES_OF_FLIP):
        return "proven"
    most = FEASIBLE_WORK if len(prior) == 2 else _QUICK_WORK
    return "exact" if work_of(size, prior) <= most else "proven"
