"""Roots of increasing functions, many at once: quantiles of laws that have densities."""

from collections.abc import Callable

import numpy as np

from opendp_bayes.mathematics.validation import Floats, Integers

#: The most steps to a root, and how near the ends of a bracket are, relative to numbers above 1.
_MOST_STEPS, _ROUNDING = 200, 1e-15


def increasing_roots(
    function: Callable[[Floats, Integers], tuple[Floats, Floats]],
    start: Floats,
    low: float,
    high: float,
    tolerance: float,
) -> Floats:
    """Find where each of some increasing functions is 0, or nearest to it between two bounds, by
    Newton's steps in a bracket, or Halley's, by the derivatives that these have. Where a step did
    not halve the value, or would leave the bracket, the bracket is halved.

    Parameters
    ----------
    function : Callable[[ndarray, ndarray of int], tuple[ndarray, ndarray]]
        Values and derivatives of some of the functions, from one place for each of these and their
        numbers; minus infinity is a value.
    start : ndarray
        Where the search begins, shape `(m,)`, which is that of the result.
    tolerance : float
        From a value as close to 0 the next step, which comes far nearer, is the last.

    Examples
    --------
    >>> def powers(places, which):
    ...     return places ** (which + 2) - 2, (which + 2) * places ** (which + 1)
    >>> increasing_roots(powers, np.ones(2), 0.0, 2.0, 1e-12).round(6).tolist()
    [1.414214, 1.259921]
    """
    points = np.array(start, dtype=np.float64)
    lower, upper = np.full(points.shape, low), np.full(points.shape, high)
    active, before = np.arange(points.size), np.full(points.shape, np.inf)
    for _ in range(_MOST_STEPS):
        here = points[active]
        value, slope = function(here, active)
        lower[active] = np.where(value <= 0, here, lower[active])
        upper[active] = np.where(value >= 0, here, upper[active])
        left, right = lower[active], upper[active]
        with np.errstate(all="ignore"):
            step = here - value / slope
        done = np.abs(value) <= tolerance
        done |= right - left <= _ROUNDING * np.maximum(np.abs(here), 1)
        halved = np.abs(value) <= before[active] / 2
        before[active] = np.abs(value)
        inside = (step > left) & (step < right) & (halved | done)
        points[active] = np.where(inside, step, np.where(done, here, (left + right) / 2))
        active = active[~done]
        if not active.size:
            break
    return points
