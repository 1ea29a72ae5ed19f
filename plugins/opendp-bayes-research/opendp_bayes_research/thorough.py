"""Calibrate to the exact loss where that takes more than a few seconds: find the scale with the
pairs of neighbours that were worst so far, and then look at all pairs. A pair that is worse joins
them, and the search begins again.
"""

from collections.abc import Callable
from copy import deepcopy
from itertools import chain
from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.accounting.calibration import counts_to_suit, fitted
from opendp_bayes.accounting.losses import LARGEST_WORK, loss_of, worst_pair
from opendp_bayes.accounting.pairs import work_of
from opendp_bayes.extend import ExponentialWeights
from opendp_bayes.mathematics.validation import as_positive
from opendp_bayes.mechanisms import Mechanism
from opendp_bayes.mechanisms.neighbours import ONE_RECORD
from opendp_bayes.mechanisms.setting import Setting

M = TypeVar("M", bound=Mechanism)

#: Of the loss asked for, left to the rounding between one way to compute a loss and another.
_MARGIN = 1e-12
#: A loss of all pairs that exceeds the one asked for by no more than this part of it ends the
#: choice of the smoothness, around whose best value the error is flat.
_NEAR = 0.005
#: Of smoothnesses with the same width the smallest, whose loss is the most even over the data sets,
#: so that few pairs not yet known are worse.
_PREFERENCE = 3e-4


def calibrate_thoroughly(
    mechanism: M,
    *,
    size: int | None,
    prior: ArrayLike,
    epsilon: float,
    proportions: ArrayLike | None = None,
    tune: bool = True,
) -> M:
    """Return the mechanism with the smallest scale whose exact loss, for neighbours that differ by
    one record, is at most `epsilon`, also where that takes minutes.

    Source: `docs/research/mechanisms.md`, "Calibration".

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism value; its scale does not matter.
    size : int or None
        The public number of records, or None where it is private (add/remove neighbours).
    prior : array_like
        The prior concentration, a positive number for every category, shape `(k,)`.
    epsilon : float
        The privacy loss, positive.
    proportions : array_like, optional
        The analyst's public guess of the category proportions, shape `(k,)`; equal ones unless
        given.
    tune : bool, default True
        True chooses the γ or β of `SmoothHellingerExponential` too, so that the expected Hellinger
        error at `proportions` is smallest. False keeps that of `mechanism`.

    Raises
    ------
    ValueError
        Where there are too many probabilities to compare or no scale is private enough.
    ValueError, TypeError
        For arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import HellingerExponential
    >>> from opendp_bayes_research import calibrate_thoroughly
    >>> found = calibrate_thoroughly(
    ...     HellingerExponential(1.0), size=10, prior=[1.0, 1.0, 1.0], epsilon=1.0
    ... )
    >>> round(found.scale, 3)
    0.463
    """
    setting, epsilon = Setting.of(mechanism, size, prior), as_positive(epsilon, "epsilon")
    guess = counts_to_suit(setting, proportions, tune)
    calibrated = thorough(
        setting,
        epsilon,
        lambda start, loss, chosen: fitted(start, loss, guess if chosen else None, _PREFERENCE),
    )
    return cast(M, deepcopy(calibrated.mechanism))  # caches of losses keep the other


def thorough(
    setting: Setting,
    epsilon: float,
    solved: Callable[[Setting, Callable[[Setting], float], bool], Setting],
) -> Setting:
    """The mechanism that `solved` finds for the exact loss of all pairs at distance 1.

    `solved` takes a mechanism, its loss relative to the one asked for, and whether it may choose
    the smoothness too.

    Raises
    ------
    ValueError
        Where there are too many probabilities to compare.
    """
    size, prior = setting.size, setting.prior
    work = work_of(size, prior)
    if work > LARGEST_WORK:
        raise ValueError(
            f"size={size}, {len(prior)} categories: {work:.1e} probabilities would have to be"
            f" compared, and {LARGEST_WORK:.0e} are allowed. Use opendp_bayes.calibrate, which"
            " takes the proven bound there."
        )

    def of_all(candidate: Setting) -> float:
        loss = loss_of(candidate, ONE_RECORD, renyi=False, largest_work=LARGEST_WORK)
        return loss.epsilon / epsilon

    if size is None or len(prior) == 2 or not isinstance(setting.law, ExponentialWeights):
        return solved(setting, of_all, True)
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def of_known(candidate: Setting) -> float:
        error = 2 * candidate.law.widths.log_error(size, setting.prior_array)  # type: ignore[union-attr]
        return (_loss_of(candidate, pairs) + error) / epsilon * (1 + _MARGIN)

    current, near = setting, False
    while True:
        bad = worst_pair(current)
        if bad is None or (bad.first, bad.second) in pairs:
            return solved(current, of_all, not near)
        # From there on only the scale is sought, which more pairs can only raise.
        near = near or (len(pairs) > 0 and bad.epsilon <= epsilon * (1 + _NEAR))
        pairs.append((bad.first, bad.second))
        current = solved(current if near else setting, of_known, not near)
        if of_all(current) <= 1:
            return current


def _loss_of(setting: Setting, pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> float:
    """The largest |log-ratio| of these pairs alone."""
    laws = {
        counts: setting.mechanism.log_pmf(counts, setting.prior)[1]
        for counts in chain.from_iterable(pairs)
    }
    return max(float(np.abs(laws[first] - laws[second]).max()) for first, second in pairs)
