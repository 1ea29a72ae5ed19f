r"""Sensitivities of a score `u(x, r) = -distance(posterior(x), r)` under change-one neighbours, for
any `n`, `k` and prior.

With `g(t) = h(t, t + 1) = -ln phi(t)` (decreasing and convex) the posteriors of neighbours `x` and
`x - e_i + e_j` are at distance `sqrt(1 - exp(-g(a_i - 1) - g(a_j)))`, where `a = prior + x`.
Everything below maximises the exponent, which is called the *gap* of a data set; every distance
that increases with the Bhattacharyya divergence has its sensitivities at the same data sets.

The results are floats within `RELATIVE_ERROR` of the true value; `docs/research/numerics.md`
derives the bound. Use `upper_end` or `lower_end` of `opendp_bayes.mathematics.rounding` where a
certified side is needed.
"""

import math
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.exponential.hellinger import distance_from_divergence, gap_above
from opendp_bayes.mathematics.rounding import lower_end
from opendp_bayes.mathematics.simplex import candidates
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    as_counts,
    as_positive,
    as_prior,
    as_size,
)

#: Bound on the relative error of every sensitivity in this module.
RELATIVE_ERROR = 2.0**-45

_LARGEST_BLOCK = 1 << 20  # entries of one block of the smooth-sensitivity search; bounds its memory
_ROWS = 1024  # data sets that are searched together


def local_sensitivity(counts: ArrayLike, prior: ArrayLike) -> float:
    """Local sensitivity `LS(x) = max over neighbours x' of H(posterior(x), posterior(x'))`; 0 for
    an empty data set, which has no neighbour.

    Source: tailoring paper, section 4.2.2; `docs/research/proofs.md`, "Sensitivities".

    Parameters
    ----------
    counts : array_like
        Non-negative whole numbers, shape `(k,)`.
    prior : array_like
        The prior concentration, a positive number or an array of shape `(k,)`.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import local_sensitivity
    >>> round(local_sensitivity([5, 5], 1.0), 6)
    0.21151
    """
    counts = as_counts(counts)
    prior = as_prior(prior, counts.size)
    if not counts.any():
        return 0.0
    return float(distance_from_divergence(_largest_gaps(counts[None], prior)[0]))


def global_sensitivity(size: int, prior: ArrayLike) -> float:
    """Global sensitivity: the largest local sensitivity over data sets of `size` records.

    Source: `docs/research/proofs.md`, "Sensitivities". The papers' constant `sqrt(1 - pi/4)` is the
    case of an all-ones prior with `k >= 3` or `size = 1`.

    Parameters
    ----------
    size : int
        The number of records, at least 1.
    prior : array_like
        The prior concentration, shape `(k,)`.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import global_sensitivity
    >>> round(global_sensitivity(100, [1.0, 1.0]), 6)
    0.33894
    >>> round(global_sensitivity(100, [1.0, 1.0, 1.0]), 6)
    0.463251
    """
    size, prior = as_size(size), as_prior(prior)
    if prior.size == 2:
        gap = np.max(half_gap(prior) + half_gap(prior[::-1] + (size - 1)))
    else:
        gap = np.sum(half_gap(np.partition(prior, 1)[:2]))
    return float(distance_from_divergence(gap))


def smooth_sensitivity(
    counts: ArrayLike, prior: ArrayLike, *, gamma: float | None = None, beta: float | None = None
) -> float:
    """Smooth sensitivity of `counts` over all data sets x' of the same size; `d(x, x')` is the
    number of records changed.

    * `gamma`: `1/S(x) = min over x' of 1/LS(x') + gamma d(x, x')` (tailoring paper, Definition 3);
    * `beta`: `S(x) = max over x' of LS(x') exp(-beta d(x, x'))` (notes, section 3.2).

    Found without enumerating data sets (`docs/research/proofs.md`, "Smooth sensitivity" and "Smooth
    sensitivity by search"); 0 for an empty data set.

    Parameters
    ----------
    counts : array_like
        Non-negative whole numbers, shape `(k,)`.
    prior : array_like
        The prior concentration, a positive number or an array of shape `(k,)`.
    gamma : float, optional
        Positive number; S is γ-smooth.
    beta : float, optional
        Positive number; S is β-smooth. Exactly one of `gamma` and `beta` is given.

    Raises
    ------
    ValueError
        When neither or both of `gamma` and `beta` are given.
    ValueError, TypeError
        For arguments that are not valid.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import smooth_sensitivity
    >>> round(smooth_sensitivity([50, 50], 1.0, gamma=1.0), 6)
    0.070276
    """
    if (gamma is None) == (beta is None):
        raise ValueError(f"gamma={gamma!r}, beta={beta!r}: give exactly one of the two.")
    if gamma is not None:
        gamma = as_positive(gamma, "gamma")
    else:
        beta = as_positive(beta, "beta")
    counts = as_counts(counts)
    prior = as_prior(prior, counts.size)
    if not counts.any():
        return 0.0
    return float(_smooth(counts[None], prior, gamma, beta)[0])


def local_sensitivities_at(counts: Integers, prior: Floats) -> Floats:
    """`local_sensitivity` of every row of `counts`, shape `(m, k)`, all with a positive sum; shape
    `(m,)`. Arguments are not checked.
    """
    return distance_from_divergence(_largest_gaps(counts, prior))


def smooth_sensitivities_at(
    counts: Integers, prior: Floats, *, gamma: float | None = None, beta: float | None = None
) -> Floats:
    """`smooth_sensitivity` of every row of `counts`, shape `(m, k)`, all rows with the same
    positive sum; shape `(m,)`. Arguments are not checked.
    """
    parts = [counts[row : row + _ROWS] for row in range(0, len(counts), _ROWS)]
    return np.concatenate([_smooth(chunk, prior, gamma, beta) for chunk in parts])


def smooth_sensitivities(
    size: int, prior: Floats, *, gamma: float | None = None, beta: float | None = None
) -> Floats:
    """`smooth_sensitivity` of every data set of `size` records, in the order of
    `simplex.candidates`; of two categories, of which many can be listed, by a lower envelope.
    Arguments are not checked.
    """
    sets = candidates(size, prior.size)
    if prior.size > 2:
        return smooth_sensitivities_at(sets, prior, gamma=gamma, beta=beta)
    local = local_sensitivities_at(sets, prior)
    if gamma is not None:
        return 1 / _lower_envelope(1 / local, gamma)
    return np.exp(-_lower_envelope(-np.log(local), beta or 0.0))


def smallest_local_sensitivity(size: int, prior: Floats) -> float:
    """A certified lower bound on `LS(x)` over all data sets of `size` records, and so on every
    smooth sensitivity.

    Every admissible pair has `(a_i - 1) + a_j <= A - 1` with `A = sum(prior) + size`, and `ln phi`
    is concave, so `phi(a_i - 1) phi(a_j) <= phi((A - 1) / 2)^2` (`docs/research/proofs.md`,
    "Sensitivities"). Arguments are not checked.
    """
    gap = 2 * half_gap((math.fsum(prior) + (size - 1)) / 2)
    return lower_end(float(distance_from_divergence(gap)), 2 * RELATIVE_ERROR)


def half_gap(t: ArrayLike) -> Floats:
    """`-ln phi(t)`, `phi(t) = G(t + 1/2) / sqrt(G(t) G(t + 1))`, for `t > 0`."""
    return gap_above(t, 0.5)


def _smooth(counts: Integers, prior: Floats, gamma: float | None, beta: float | None) -> Floats:
    """The smooth sensitivity of every row of `counts`: `max over d` of the largest damped local
    sensitivity, in blocks of distances d.

    For two categories the distance is exactly d, otherwise at most d, which comes to the same in
    the maximum. A distance at which no data set needs to be considered has sensitivity 0.
    """
    size = int(counts[0].sum())
    largest = np.array(global_sensitivity(size, prior))

    damped = partial(_damped, gamma, beta)
    best = damped(distance_from_divergence(_largest_gaps(counts, prior)), 0)
    gaps_within = _gaps_within_two if prior.size == 2 else _gaps_within
    if len(counts) == 1 and prior.size > 2:
        undominated = _undominated(counts[0], prior)
        counts, prior = counts[:, undominated], prior[undominated]
    pending, first, block = np.arange(len(counts)), 1, 64 if len(counts) == 1 else 8
    while first <= size:
        # No data set further away can be better for the others.
        pending = pending[damped(largest, first) > best[pending]]
        if not pending.size:
            break
        distances = np.arange(first, min(size + 1, first + block))
        sensitivities = distance_from_divergence(gaps_within(counts[pending], prior, distances))
        largest_damped = damped(sensitivities, distances).max(axis=1)
        best[pending] = np.maximum(best[pending], largest_damped)
        first += block
        block = min(2 * block, max(block, _LARGEST_BLOCK // (prior.size * pending.size)))
    return best


def _damped(
    gamma: float | None, beta: float | None, sensitivity: Floats, distances: Integers | int
) -> Floats:
    """Local sensitivities at a distance, damped by `gamma` or by `beta`."""
    if gamma is None:
        return sensitivity * np.exp(-(beta or 0.0) * distances)
    with np.errstate(divide="ignore"):
        return 1 / (1 / sensitivity + gamma * distances)


def _undominated(counts: Integers, prior: Floats) -> list[int]:
    """Categories with fewer than two others that have no more records and no larger prior; the rest
    are in no pair that these do not match.

    For equal priors these are the two smallest counts.
    """
    undominated, smallest, second = [], np.inf, np.inf
    for i in np.lexsort((prior, counts)).tolist():
        if prior[i] < second:
            undominated.append(i)
            smallest, second = sorted((smallest, second, prior[i]))[:2]
    return undominated


def _largest_gaps(counts: Integers, prior: Floats) -> Floats:
    """The gap of every row of `counts`: `max over i != j of g(a_i - 1) + g(a_j)`, where category i
    has a record.

    Since g decreases, one of the two smallest entries of each suffices.
    """
    leaving = np.where(counts > 0, prior + (counts - 1), np.inf)
    entering = prior + counts
    i, j = (np.argsort(gap, axis=1, kind="stable")[:, :2] for gap in (leaving, entering))
    left = np.take_along_axis(leaving, i, axis=1)
    finite = np.isfinite(left)
    from_i, to_j = half_gap(
        np.stack([np.where(finite, left, 1.0), np.take_along_axis(entering, j, axis=1)])
    )
    return np.max(
        from_i[:, :, None] + to_j[:, None, :],
        axis=(1, 2),
        where=finite[:, :, None] & (i[:, :, None] != j[:, None, :]),
        initial=-np.inf,
    )


def _gaps_within_two(counts: Integers, prior: Floats, distances: Integers) -> Floats:
    """Two categories: the data sets at distance d are `x_1 - d` and `x_1 + d`, as far as they
    exist; shape `(rows, distances)`.
    """
    ones = np.stack([counts[:, :1] - distances, counts[:, :1] + distances])
    here = np.stack([ones, counts[0].sum() - ones])
    leaving, entering = half_gap(
        prior[:, None, None, None] + np.maximum(np.stack([here - 1, here]), 0)
    )
    valid = (here >= 1) & (here[::-1] >= 0)
    return np.max(leaving + entering[::-1], axis=(0, 1), where=valid, initial=0.0)


def _gaps_within(counts: Integers, prior: Floats, distances: Integers) -> Floats:
    """Three or more categories, d >= 1: the best pair (i, j) after one of them has been emptied.

    Shape `(rows, distances)`.
    At most d records leave i and j for some third category. The gap is convex in how they are split
    between the two, so the best split takes as many as it can from one first; and what the pair
    costs is concave in d until that one is empty, so that nothing in between is better than both
    ends (docs: Smooth sensitivity by search). `spare` counts the removals that leave at least the
    record that must be able to leave category i.
    """
    spare = np.maximum(counts - 1, 0)
    return np.maximum(
        _drain_first(prior, spare, counts, distances), _drain_first(prior, counts, spare, distances)
    )


def _drain_first(
    prior: Floats, drained: Integers, counts_of_other: Integers, distances: Integers
) -> Floats:
    """`max over i != j` of the gap when i, which has `drained_i` records, is emptied.

    The rest of `distances` is taken from j, which has `other_j`. 0 where no category has so few
    records that it can be emptied.
    """
    emptied = np.moveaxis(drained[:, :, None] <= distances, 1, 0)
    emptied_first, lowest = np.flatnonzero(emptied.any(axis=(1, 2))), []
    for i in emptied_first:
        taken = np.maximum(distances - drained[:, i, None], 0)[:, None]
        others = np.delete(np.arange(prior.size), i)
        left = prior[others, None] + np.maximum(counts_of_other[:, others, None] - taken, 0)
        lowest.append(np.min(left, axis=1))
    if not lowest:
        return np.zeros((len(drained), distances.size))
    gaps = half_gap(prior[emptied_first])[:, None, None] + half_gap(np.stack(lowest))
    return np.max(gaps, axis=0, where=emptied[emptied_first], initial=0.0)


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
