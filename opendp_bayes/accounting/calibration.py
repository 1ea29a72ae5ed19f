"""The scale of a mechanism from the privacy that is asked for, and the smoothness that serves the
analyst best at that privacy.
"""

import math
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import count
from typing import Any, TypeVar, cast

import numpy as np
import scipy
from numpy.typing import ArrayLike

from opendp_bayes.accounting.losses import Accounting, curve_of, loss_of
from opendp_bayes.mathematics.validation import (
    SCALES,
    Floats,
    Integers,
    as_choice,
    as_flag,
    as_level,
    as_numbers,
    as_positive,
    as_size,
)
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.setting import Setting

M = TypeVar("M", bound=Mechanism)
RelativeLoss = Callable[[Setting, Distance, Accounting], float]

#: The loss at the scale found is at least this part of what was asked for, where the loss is
#: continuous.
_SLACK = 1e-9
_COARSE_SLACK = 1e-4  # while gamma or beta is chosen
_LOG_TOLERANCE = 0.05  # of gamma or beta; the error is flat around its smallest value


def calibrate(
    mechanism: M,
    *,
    size: int | None,
    prior: ArrayLike,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    accounting: Accounting = "exact",
    d_in: int | Distance = 1,
    proportions: ArrayLike | None = None,
    tune: bool = True,
) -> M:
    """Return the mechanism with the smallest scale whose loss is within the one asked for.

    Source: `docs/research/mechanisms.md`, "Calibration".

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism value; its scale does not matter.
    size : int or None
        The public number of records, or None where it is private (add/remove neighbours).
    prior : array_like
        The prior concentration, a positive number for every category, shape `(k,)`.
    epsilon, delta, rho : float, optional
        The privacy loss: `epsilon` alone, `epsilon` with `delta`, `delta` alone (ε = 0), or `rho`
        (zero-concentrated). `epsilon` and `rho` are positive, `delta` is between 0 and 1. With
        both, exponential mechanisms take the scale of `epsilon` alone.
    accounting : {"exact", "proven"}, default "exact"
        `"exact"` computes the loss where that takes at most a few seconds and uses the proven bound
        otherwise; `"proven"` always uses the proven bound.
    d_in : int or Distance, default 1
        Records changed, or added and removed, a whole number of at least 1; or a `Distance` of the
        counts. At 0 every scale would do.
    proportions : array_like, optional
        The analyst's public guess of the category proportions, shape `(k,)`; equal ones unless
        given.
    tune : bool, default True
        True chooses the γ or β of `SmoothHellingerExponential` too, so that the expected Hellinger
        error at `proportions` is smallest; the result shows the value chosen. False keeps that of
        `mechanism`.

    Raises
    ------
    ValueError
        If no scale is private enough.
    ValueError, TypeError
        For arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes import calibrate
    >>> from opendp_bayes.mechanisms import SmoothHellingerExponential
    >>> template = SmoothHellingerExponential(scale=1.0, gamma=1.0)
    >>> found = calibrate(template, size=50, prior=[1.0, 1.0], epsilon=1.0, tune=False)
    >>> round(found.scale, 3)
    1.239
    """
    as_choice(accounting, "accounting", ("exact", "proven"))
    setting, distance = Setting.of(mechanism, size, prior), planned_distance(d_in)
    guess = counts_to_suit(setting, proportions, tune)
    loss = relative_loss(epsilon=epsilon, delta=delta, rho=rho)
    calibrated = fitted(setting, lambda candidate: loss(candidate, distance, accounting), guess)
    return cast(M, deepcopy(calibrated.mechanism))  # caches of losses keep the other


def counts_to_suit(setting: Setting, proportions: ArrayLike | None, tune: bool) -> Integers | None:
    """The guess of the counts that `fitted` chooses the smoothness for; None where it keeps it."""
    if not as_flag(tune, "tune") or setting.size is None:
        return None
    return counts_in_proportion(setting.size, setting.prior_array, proportions)


def planned_distance(d_in: int | Distance) -> Distance:
    """The distance that is planned for; `ValueError`/`TypeError` for none, or too many records."""
    return Distance.of(
        d_in if isinstance(d_in, Distance) and d_in.records else as_size(d_in, "d_in")
    )


def fitted(
    setting: Setting,
    value: Callable[[Setting], float],
    guess: Integers | None,
    preference: float = 0.0,
) -> Setting:
    """The mechanism at its smallest scale, with the smoothness that suits `guess`, counts of shape
    `(k,)`, best if one is given and it has one.

    `preference` : what a factor e of gamma or beta must gain in the logarithm of the width.
    """
    if guess is None or not hasattr(setting.mechanism, "smoothness"):
        return smallest_scale(setting, value)
    parameter, bounds = setting.mechanism.smoothness
    settings: dict[float, Setting] = {}
    start = setting

    def width(log_smoothness: float) -> float:
        # At one data set the law depends on the width alone, and the expected distance increases
        # with it.
        nonlocal start
        start = smallest_scale(
            start.changed(**{parameter: math.exp(log_smoothness)}), value, _COARSE_SLACK
        )
        settings[log_smoothness] = start
        of_guess = cast(Any, start.mechanism).width(guess, start.prior_array)
        return math.log(of_guess) + preference * log_smoothness

    best = scipy.optimize.minimize_scalar(
        width,
        bounds=[math.log(bound) for bound in bounds],
        method="bounded",
        options={"xatol": _LOG_TOLERANCE},
    )
    return smallest_scale(
        settings[min(settings, key=lambda log_value: abs(log_value - best.x))], value
    )


def smallest_scale(
    setting: Setting, loss: Callable[[Setting], float], slack: float = _SLACK
) -> Setting:
    """Find the mechanism at the smallest scale where `loss`, relative to the loss allowed, is at
    most 1, by regula falsi on logarithms.

    The loss there is at least `1 - slack` where it is continuous. A loss is nearly proportional to
    a power of the scale, so a few evaluations suffice. The scale returned was itself evaluated.
    """
    # A scale that is private enough, and the logarithm of its loss.
    allowed: tuple[float, float] | None = None
    refused: tuple[float, float] | None = None
    smallest = candidate = setting
    for step in count():
        scale, value = candidate.mechanism.scale, loss(candidate)
        logarithm = math.log(value) if value > 0 else -math.inf
        if value <= 1:
            smallest, allowed = candidate, (scale, logarithm)
        else:
            refused = (scale, logarithm)
            if scale >= SCALES[1]:
                remedy = (
                    "choose another mechanism, such as LaplaceParameters. One that needs a δ has no"
                    " finite loss without it: give epsilon and delta"
                    if math.isinf(value)
                    else "choose another mechanism or a larger loss, a larger δ where it needs one"
                )
                raise ValueError(
                    f"mechanism={setting.mechanism!r}: its privacy loss exceeds what is asked for"
                    f" at every scale; {remedy}."
                )
        if allowed and (
            allowed[1] >= -slack
            or allowed[0] <= SCALES[0]
            or (refused and allowed[0] <= refused[0] * (1 + slack / 4))
        ):
            break
        scale = min(max(_next(allowed, refused, scale, value, step, slack), SCALES[0]), SCALES[1])
        candidate = candidate.changed(scale=scale)
    return smallest


def _next(allowed: Any, refused: Any, scale: float, value: float, step: int, slack: float) -> float:
    """The scale to try next: as if the loss were inversely proportional to it until both sides are
    known, then between them.
    """
    if not (allowed and refused):
        furthest = 16.0 * 2.0**step
        factor = min(max(value, 1 / furthest), furthest)
        # The first guess is exact for additive noise, but for rounding; later ones aim a little
        # beyond the crossing.
        if step:
            factor = (
                max(factor * (1 + math.copysign(slack / 2, value - 1)), 0.0)
                if abs(value - 1) > 2.0**-48
                else 1 + 2.0**-52
            )
        # And further each time: a loss that hardly depends on the scale, as relative to a δ near 1,
        # would be followed without end.
        if step > 4:
            least = math.exp(min(slack * 4.0 ** (step - 5), 8.0))
            factor = max(factor, least) if value > 1 else min(factor, 1 / least)
        return scale * factor
    (high, below), (low, above) = allowed, refused
    if step % 4 == 3 or not (math.isfinite(below) and math.isfinite(above)):
        return math.sqrt(low * high)
    position = (above + slack / 2) / (above - below)  # a little to the private side of the crossing
    return float(low * (high / low) ** min(max(position, 1e-3), 1 - 1e-3))


def relative_loss(
    *, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
) -> RelativeLoss:
    """Make the function from a setting to its loss divided by the one asked for: at most 1 if it
    is private enough.

    Give `epsilon`, `delta`, both of these, or `rho` alone. Raises `ValueError` otherwise, and for
    what is not positive or a δ of 1 or more.
    """
    if (epsilon is None and delta is None) == (rho is None):
        raise ValueError(
            f"epsilon={epsilon!r}, delta={delta!r}, rho={rho!r}: give epsilon, delta, both of"
            " these, or rho alone."
        )
    delta = None if delta is None else as_level(delta, "1e-6", "delta")
    if rho is not None:
        return partial(_by_bound, "rho", as_positive(rho, "rho"))
    if epsilon is not None and delta is None:
        return partial(_by_bound, "epsilon", as_positive(epsilon, "epsilon"))
    return partial(
        _by_profile, 0.0 if epsilon is None else as_positive(epsilon, "epsilon"), cast(float, delta)
    )


def _by_bound(
    measure: str, limit: float, setting: Setting, distance: Distance, accounting: Accounting
) -> float:
    loss = loss_of(setting, distance, accounting=accounting, renyi=measure == "rho")
    value: float = getattr(loss, measure)
    if measure == "epsilon" and math.isinf(value) and math.isfinite(loss.rho):
        raise ValueError(
            f"mechanism={type(setting.mechanism).__name__}: has no ε without δ. Give delta as well,"
            " or rho, in a Context by dp.loss_of(epsilon=..., delta=...); or take another"
            " mechanism, such as LaplaceParameters."
        )
    return value / limit


def _by_profile(
    epsilon: float, delta: float, setting: Setting, distance: Distance, accounting: Accounting
) -> float:
    # So that the profile's inverse, which has a tolerance, gives no more than the epsilon asked
    # for.
    epsilon *= 1 - 1e-9
    exact = accounting == "exact" and setting.is_accounted
    if exact and epsilon and setting.spends_no_delta:
        return loss_of(setting, distance, renyi=False).epsilon / epsilon
    relative = curve_of(setting, distance, accounting).delta(epsilon) / delta
    proven = setting.proven_loss(distance, delta)
    if exact or not epsilon or proven.delta > delta:
        return relative
    return min(relative, proven.epsilon / epsilon)


def counts_in_proportion(
    size: int, prior: Floats, proportions: ArrayLike | None = None
) -> Integers:
    """Counts of `size` records in the given proportions, equal ones unless given, by largest
    remainders.
    """
    share = (
        np.full(prior.size, 1.0) if proportions is None else as_numbers(proportions, "proportions")
    )
    if share.shape != prior.shape or not (np.all(share >= 0) and 0 < share.sum() < math.inf):
        raise ValueError(
            f"proportions={proportions!r}: must be {prior.size} numbers of at least 0, not all 0,"
            " one for each category."
        )
    exact = size * share / share.sum()
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(counts - exact, kind="stable")[: size - counts.sum()]] += 1
    return counts
