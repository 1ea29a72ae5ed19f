"""Sensitivities of every data set of a size, listed in the order of `simplex.candidates`."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.exponential.sensitivity import local_sensitivities_at
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.simplex import candidates, neighbours
from opendp_bayes.mathematics.validation import Floats, as_positive, as_prior, as_size


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
