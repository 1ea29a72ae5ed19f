"""The smallest privacy loss and the smallest number of records that a wanted error takes."""

import math
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from opendp_bayes.accounting.calibration import relative_loss, smallest_scale
from opendp_bayes.mathematics.validation import (
    LARGEST_CONCENTRATION,
    Floats,
    as_distance,
    as_positive,
    as_prior,
)
from opendp_bayes.planning.automatic import choose
from opendp_bayes.planning.compare import (
    PlanRow,
    errors_at,
    proportions_of_interest,
    records_of,
)

#: The smallest ε is found to this relative accuracy.
_LOG_TOLERANCE = 1e-3


def smallest_epsilon(
    error: float,
    *,
    size: int | None,
    prior: ArrayLike,
    d_in: int = 1,
    proportions: ArrayLike | None = None,
    guess_size: int | None = None,
) -> float:
    """The smallest ε, within 0.1 %, at which `mechanism="auto"` has a score of at most `error`;
    arguments of `plan`.

    Raises `ValueError` unless `0 < error < 1`, and where it takes more than ε = 1000.

    >>> from opendp_bayes import smallest_epsilon
    >>> round(smallest_epsilon(0.05, size=1000, prior=[1.0, 1.0]), 2)
    0.92
    """
    error = _as_error(error)
    concentration, records = as_prior(prior), records_of(size, guess_size)
    shares = proportions_of_interest(concentration, records, proportions)

    def enough(log_epsilon: float) -> bool:
        return (
            _automatic_score(
                size, concentration, math.exp(log_epsilon), as_distance(d_in), shares, records
            )
            <= error
        )

    low, high = math.log(1e-9), math.log(1e3)
    if not enough(high):
        raise ValueError(
            f"error={error!r}: is not reached with {records} records at any ε up to 1000; ask for a"
            " larger error or take more records."
        )
    while high - low > _LOG_TOLERANCE:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
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
    """The smallest number of records from which on `mechanism="auto"` has a score of at most
    `error`; arguments of `plan`.

    `private` : whether the number is private (add/remove neighbours). With very few records the
    prior outweighs them and the score is small too; that is passed over. Beyond, the score
    decreases up to the rounding of counts, within which the result is smallest. Raises `ValueError`
    unless `0 < error < 1`, and where it takes more than 10^12 records.

    >>> from opendp_bayes import smallest_size
    >>> smallest_size(0.05, epsilon=1.0, prior=[1.0, 1.0])
    798
    """
    error, epsilon = _as_error(error), as_positive(epsilon, "epsilon")
    concentration, d_in = as_prior(prior), as_distance(d_in)

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
    mechanism = choose(
        lambda template: smallest_scale(
            template, lambda value: loss(value, size, prior, d_in, "exact")
        ),
        size,
        prior,
    )
    return PlanRow(mechanism, None, errors_at(mechanism, prior, shares, records)).score


def _as_error(error: float) -> float:
    error = as_positive(error, "error")
    if error >= 1:
        raise ValueError(f"error={error!r}: must be below 1, the largest Hellinger distance.")
    return error
