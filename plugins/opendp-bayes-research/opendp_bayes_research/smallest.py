"""The smallest privacy loss and the smallest number of records that a wanted error takes."""

import math
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from opendp_bayes import Distance, calibrate
from opendp_bayes.mathematics.validation import (
    LARGEST_CONCENTRATION,
    Floats,
    as_flag,
    as_level,
    as_positive,
    as_prior,
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
    d_in: int | Distance = 1,
    proportions: ArrayLike | None = None,
    guess_size: int | None = None,
) -> float:
    """Return the smallest ε, within 0.1 %, at which `mechanism="auto"` has an expected error of at
    most `error`.

    Parameters
    ----------
    error : float
        The expected error asked for, between 0 and 1.
    size : int, optional
        The public number of records, or None where it is private (add/remove neighbours). Then
        `guess_size` is needed.
    prior : array_like
        The prior concentration, a positive number for every category, shape `(k,)`.
    d_in : int or Distance, default 1
        Records changed, or added and removed, a whole number of at least 1; or a `Distance` of the
        counts.
    proportions : array_like, optional
        The analyst's public guess of the category proportions, shape `(k,)`, at which the error is
        to be had. Otherwise that is the mean of the Hellinger distances that `plan` shows.
    guess_size : int, optional
        A public guess of a private number of records.

    Raises
    ------
    ValueError
        Unless `0 < error < 1`, and where it takes more than ε = 1000; `ValueError`/`TypeError` for
        other arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes_research import smallest_epsilon
    >>> round(smallest_epsilon(0.05, size=1000, prior=[1.0, 1.0]), 2)
    0.92
    """
    error = as_level(error, "0.05", "error")
    concentration, records = as_prior(prior), records_of(size, guess_size)
    shares = proportions_of_interest(concentration, records, proportions)

    def excess(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        least_found = _automatic_error(size, concentration, epsilon, d_in, shares, records)
        return math.log(max(least_found, 1e-300) / error)

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
            " larger one or take more records."
        )
    while high - low > _LOG_TOLERANCE and above > 0:
        # Between the straight line's crossing and the middle, so that both ends come near.
        share = min(max(above / (above - below), 0.1), 0.9)
        middle = low + share * (high - low) + math.copysign(_LOG_TOLERANCE / 4, 0.5 - share)
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
    d_in: int | Distance = 1,
    proportions: ArrayLike | None = None,
    private: bool = False,
) -> int:
    """Return the smallest number of records from which on `mechanism="auto"` has an expected error
    of at most `error`.

    With very few records the prior outweighs them and the error is small too; that is passed over.
    Beyond, the error decreases up to the rounding of counts, within which the result is smallest.

    Parameters
    ----------
    error : float
        The expected error asked for, between 0 and 1.
    epsilon : float
        The budget, positive.
    prior : array_like
        The prior concentration, a positive number for every category, shape `(k,)`.
    d_in : int or Distance, default 1
        Records changed, or added and removed, a whole number of at least 1; or a `Distance` of the
        counts.
    proportions : array_like, optional
        The analyst's public guess of the category proportions, shape `(k,)`, at which the error is
        to be had. Otherwise that is the mean of the Hellinger distances that `plan` shows.
    private : bool, default False
        True if the number of records is private (add/remove neighbours).

    Raises
    ------
    ValueError
        Unless `0 < error < 1`, and where it takes more than 10^12 records; `ValueError`/`TypeError`
        for other arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes_research import smallest_size
    >>> smallest_size(0.05, epsilon=1.0, prior=[1.0, 1.0])
    798
    """
    error = as_level(error, "0.05", "error")
    epsilon, private = as_positive(epsilon, "epsilon"), as_flag(private, "private")
    concentration = as_prior(prior)

    def score(records: int) -> float:
        shares = proportions_of_interest(concentration, records, proportions)
        size = None if private else records
        return _automatic_error(size, concentration, epsilon, d_in, shares, records)

    low, high, before = 0, 1, -math.inf
    while (now := score(high)) > error or now > before:
        if high >= LARGEST_CONCENTRATION:
            raise ValueError(
                f"error={error!r}: is not reached at epsilon={epsilon!r} with up to 10^12 records;"
                " ask for a larger one or epsilon."
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


def _automatic_error(
    size: int | None,
    prior: Floats,
    epsilon: float,
    d_in: int | Distance,
    shares: Mapping[str, Any],
    records: int,
) -> float:
    budget: Any = {"size": size, "prior": prior, "epsilon": epsilon, "d_in": d_in, "tune": False}
    chosen = choose(
        lambda template: template.changed(scale=calibrate(template.mechanism, **budget).scale),
        size,
        prior,
    )
    return score_of(chosen, shares, records)
