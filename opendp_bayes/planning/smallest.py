"""The smallest privacy loss and the smallest number of records that a wanted error takes."""

import math
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from opendp_bayes.accounting.calibration import relative_loss, smallest_scale
from opendp_bayes.mathematics.validation import (
    LARGEST_CONCENTRATION,
    Floats,
    as_positive,
    as_prior,
    as_size,
)
from opendp_bayes.planning.automatic import choose
from opendp_bayes.planning.expected_error import proportions_of_interest, records_of, score_of

#: The smallest ε is found to this relative accuracy.
_LOG_TOLERANCE = 1e-3
#: It is searched for from 1 in steps of at most this, between these.
_LOG_STEP, _LOWEST, _HIGHEST = 3.0, math.log(1e-9), math.log(1e3)


def smallest_epsilon(
    error: float,
    *,
    size: int | None = None,
    prior: ArrayLike,
    d_in: int = 1,
    proportions: ArrayLike | None = None,
    guess_size: int | None = None,
) -> float:
    """Return the smallest ε, within 0.1 %, at which `mechanism="auto"` has a score of at most
    `error`.

    Parameters
    ----------
    error : the score asked for, an expected Hellinger distance between 0 and 1: the mean of those
        that `plan` shows, or that at `proportions` alone.
    size : the public number of records, or None where it is private (add/remove neighbours). Then
        `guess_size` is needed.
    prior : the prior concentration, a positive number for every category, shape `(k,)`.
    d_in : records changed, or added and removed; a whole number of at least 1.
    proportions : the analyst's public guess of the category proportions, shape `(k,)`. With it, the
        score is the error there.
    guess_size : a public guess of a private number of records.

    Raises `ValueError` unless `0 < error < 1`, and where it takes more than ε = 1000;
    `ValueError`/`TypeError` for other arguments that are not valid.

    >>> from opendp_bayes.research import smallest_epsilon
    >>> round(smallest_epsilon(0.05, size=1000, prior=[1.0, 1.0]), 2)
    0.92
    """
    error = _as_error(error)
    concentration, records = as_prior(prior), records_of(size, guess_size)
    d_in = as_size(d_in, "d_in")
    shares = proportions_of_interest(concentration, records, proportions)

    def excess(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        found = _automatic_score(size, concentration, epsilon, d_in, shares, records)
        return math.log(max(found, 1e-300) / error)

    low = high = 0.0
    above = below = excess(0.0)
    while above <= 0 and low > _LOWEST:  # the error is about proportional to 1 / ε
        high, below = low, above
        low = max(low + min(above, -0.1) - _LOG_TOLERANCE, low - _LOG_STEP, _LOWEST)
        above = excess(low)
    while below > 0 and high < _HIGHEST:
        low, above = high, below
        high = min(high + max(below, 0.1) + _LOG_TOLERANCE, high + _LOG_STEP, _HIGHEST)
        below = excess(high)
    if below > 0:
        raise ValueError(
            f"error={error!r}: is not reached with {records} records at any ε up to 1000; ask for a"
            " larger error or take more records."
        )
    while high - low > _LOG_TOLERANCE and above > 0:
        # Between the straight line's crossing and the middle, so that both ends come near.
        part = min(max(above / (above - below), 0.1), 0.9)
        middle = low + part * (high - low) + math.copysign(_LOG_TOLERANCE / 4, 0.5 - part)
        value = excess(middle)
        if value <= 0:
            high, below = middle, value
        else:
            low, above = middle, value
    return math.exp(high)


def smallest_size(
    error: float,
    *,
    epsilon: float,
    prior: ArrayLike,
    d_in: int = 1,
    proportions: ArrayLike | None = None,
    private: bool = False,
) -> int:
    """Return the smallest number of records from which on `mechanism="auto"` has a score of at most
    `error`.

    Parameters
    ----------
    error : the score asked for, an expected Hellinger distance between 0 and 1: the mean of those
        that `plan` shows, or that at `proportions` alone.
    epsilon : the budget, positive.
    prior : the prior concentration, a positive number for every category, shape `(k,)`.
    d_in : records changed, or added and removed; a whole number of at least 1.
    proportions : the analyst's public guess of the category proportions, shape `(k,)`. With it, the
        score is the error there.
    private : True if the number of records is private (add/remove neighbours).

    With very few records the prior outweighs them and the score is small too; that is passed over.
    Beyond, the score decreases up to the rounding of counts, within which the result is smallest.

    Raises `ValueError` unless `0 < error < 1`, and where it takes more than 10^12 records;
    `ValueError`/`TypeError` for other arguments that are not valid.

    >>> from opendp_bayes.research import smallest_size
    >>> smallest_size(0.05, epsilon=1.0, prior=[1.0, 1.0])
    798
    """
    error, epsilon = _as_error(error), as_positive(epsilon, "epsilon")
    concentration, d_in = as_prior(prior), as_size(d_in, "d_in")

    def score(records: int) -> float:
        shares = proportions_of_interest(concentration, records, proportions)
        return _automatic_score(
            None if private else records, concentration, epsilon, d_in, shares, records
        )

    low, high, before = 0, 1, -math.inf
    while (now := score(high)) > error or now > before:
        if high >= LARGEST_CONCENTRATION:
            raise ValueError(
                f"error={error!r}: is not reached at epsilon={epsilon!r} with up to 10^12 records;"
                " ask for a larger error or epsilon."
            )
        low, high, before = (
            high if now > error else low,
            min(2 * high, int(LARGEST_CONCENTRATION)),
            now,
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if score(middle) <= error else (middle, high)
    return high


def _automatic_score(
    size: int | None,
    prior: Floats,
    epsilon: float,
    d_in: int,
    shares: Mapping[str, Any],
    records: int,
) -> float:
    loss = relative_loss(epsilon=epsilon)
    found = choose(
        lambda template: smallest_scale(template, lambda setting: loss(setting, d_in, "exact")),
        size,
        prior,
    )
    return score_of(found, shares, records)


def _as_error(error: float) -> float:
    error = as_positive(error, "error")
    if error >= 1:
        raise ValueError(f"error={error!r}: must be below 1, the largest Hellinger distance.")
    return error
