"""Sensitivities of every data set of a size, listed in the order of `simplex.candidates`."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.exponential.sensitivity import (
    global_sensitivity,
    local_sensitivities_at,
)
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.simplex import (
    candidates,
    check_enumerable,
    neighbours,
    number_of_candidates,
)
from opendp_bayes.mathematics.validation import Floats, Integers, as_positive, as_prior, as_size

#: Entries of the table that the smooth sensitivities of three or more categories need.
_LARGEST_TABLE = 1 << 23


@dataclass(frozen=True, eq=False)
class SensitivityCurves:
    """Sensitivities at every data set of a size.

    Attributes
    ----------
    counts : ndarray of int
        The data sets, in lexicographic order, shape `(c, k)`.
    local : ndarray
        LS(x), shape `(c,)`.
    smooth : ndarray
        S(x), shape `(c,)`.
    largest : float
        The global sensitivity.
    """

    counts: Integers
    local: Floats
    smooth: Floats
    largest: float


def sensitivity_curves(
    size: int, prior: ArrayLike, *, gamma: float | None = None, beta: float | None = None
) -> SensitivityCurves:
    """Local, smooth and global sensitivity at every data set of `size` records.

    Source: tailoring paper, section 3 and Figure 1.

    Parameters
    ----------
    size : int
        The number of records, at least 1.
    prior : array_like
        The prior concentration, shape `(k,)`.
    gamma : float, optional
        Positive number for a smooth sensitivity with `1/S(x) = min over x' of 1/LS(x') + gamma d(x,
        x')`.
    beta : float, optional
        Positive number for one with `S(x) = max over x' of LS(x') exp(-beta d(x, x'))`. Exactly one
        of `gamma` and `beta` is given.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid or if there are too many data sets to list; for three or
        more categories also if there are more than about 8e6 / `size`.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import sensitivity_curves
    >>> curves = sensitivity_curves(100, [1.0, 1.0], gamma=1.0)
    >>> round(curves.largest, 4), round(curves.local[50], 4), round(curves.local[0], 4)
    (0.3389, np.float64(0.0703), np.float64(0.3389))
    """
    size, prior = as_size(size), as_prior(prior)
    check_enumerable(size, prior.size)
    entries = number_of_candidates(size, prior.size) * size
    if prior.size > 2 and entries > _LARGEST_TABLE:
        raise ValueError(
            f"size={size}, {prior.size} categories: the smooth sensitivities need a table of"
            f" {entries:.1e} entries, and {_LARGEST_TABLE:.1e} are allowed. Use fewer records, or"
            " smooth_sensitivity at the data sets of interest."
        )
    return SensitivityCurves(
        counts=np.asarray(candidates(size, prior.size)),
        local=local_sensitivities(size, prior),
        smooth=smooth_sensitivities(size, prior, gamma=gamma, beta=beta),
        largest=global_sensitivity(size, prior),
    )


def local_sensitivities(size: int, prior: ArrayLike) -> Floats:
    """`local_sensitivity` of every data set of `size` records, in the order of
    `simplex.candidates`; `prior` has shape `(k,)`.
    """
    size, prior = as_size(size), as_prior(prior)
    return local_sensitivities_at(candidates(size, prior.size), prior)


def smooth_sensitivities(
    size: int, prior: ArrayLike, *, gamma: float | None = None, beta: float | None = None
) -> Floats:
    """`smooth_sensitivity` of every data set of `size` records, in the order of
    `simplex.candidates`; `prior` has shape `(k,)`.
    """
    if (gamma is None) == (beta is None):
        raise ValueError(f"gamma={gamma!r}, beta={beta!r}: give exactly one of the two.")
    size, prior = as_size(size), as_prior(prior)
    slope = as_positive(gamma, "gamma") if gamma is not None else as_positive(beta, "beta")
    # Of a sensitivity what is added to at each record changed, and back.
    cost, sensitivity = (
        (np.reciprocal, np.reciprocal)
        if gamma is not None
        else (lambda values: -np.log(values), lambda values: np.exp(-values))
    )
    if prior.size == 2:
        return sensitivity(_lower_envelope(cost(local_sensitivities(size, prior)), slope))
    levels = cost(_largest_within(size, tuple(prior.tolist())))
    return sensitivity(np.min(levels + slope * np.arange(size + 1)[:, None], axis=0))


@lru_cache(maxsize=1)
def _largest_within(size: int, prior: tuple[float, ...]) -> Floats:
    """The largest local sensitivity within distance d = 0..size of every data set, shape `(size +
    1, data sets)`: neighbours of neighbours.
    """
    first, second = neighbours(candidates(size, len(prior)))
    order = np.argsort(first, kind="stable")
    of_each = Segments.of(first[order])  # every data set has neighbours
    levels = [local_sensitivities(size, np.array(prior))]
    for _ in range(size):
        levels.append(np.maximum(levels[-1], of_each.largest(levels[-1][second[order]])))
    return np.stack(levels)


def _lower_envelope(value: Floats, slope: float) -> Floats:
    """`min over s of value[s] + slope |t - s|` for every t.

    The best s on either side is found by a running minimum; its value is then computed afresh,
    without cancellation. A tie that rounding decides wrongly costs no more than rounding.
    """
    positions = np.arange(value.size)
    best = value
    for order in (slice(None), slice(None, None, -1)):
        falling = value[order] - slope * positions
        lowest = np.minimum.accumulate(falling)
        lowest_at = np.maximum.accumulate(np.where(falling == lowest, positions, 0))
        best = np.minimum(best, (value[order][lowest_at] + slope * (positions - lowest_at))[order])
    return best
