r"""The Hellinger distance between Dirichlet distributions, to full relative accuracy.

`H(a, b)^2 = 1 - BC(a, b)`, and the logarithm of the Bhattacharyya coefficient is a sum of Jensen
gaps of the log-gamma function,

    -ln BC(a, b) = sum_i h(a_i, b_i) - h(sum a, sum b),      h(a, b) = (ln G(a) + ln G(b)) / 2 - ln
    G((a + b) / 2) >= 0,

whose last term is zero when the two totals agree, as they do for two posteriors of the same prior
and sample size. Three calls of a log-gamma function lose the gap, which is of order `(b - a)^2 /
a`, in the rounding of `ln G(a)`, which is of order `a ln a`. `gap_above` computes it from its
own expansion instead, in which every large term has been cancelled by hand (docs: Numerics).
"""

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.validation import SMALLEST_PRIOR, Floats

#: Bound on the relative error of a gap for arguments up to the largest, which is more than priors
#: and sizes may be (docs: Numerics).
GAP_RELATIVE_ERROR, _LARGEST = 2.0**-45, 1e13

#: Arguments are moved to at least this by `G(z + 1) = z G(z)` before the Stirling series is used.
_STIRLING_FROM = 20.0

#: For p = 1, 3, 5, ...: the Stirling coefficient of `z^-p` and the polynomial in w (lowest power
#: first, from w^1) that its gap leaves.
_STIRLING_GAPS: tuple[tuple[float, tuple[int, ...]], ...] = (
    (1 / 12, (1,)),
    (-1 / 360, (6, -3, 1)),
    (1 / 1260, (15, -5, 10, -5, 1)),
    (-1 / 1680, (28, 14, 42, -35, 21, -7, 1)),
    (1 / 1188, (45, 90, 168, -117, 126, -84, 36, -9, 1)),
)


def hellinger_distance(a: ArrayLike, b: ArrayLike) -> Floats:
    """Hellinger distance `sqrt(1 - BC)` between the Dirichlet distributions with concentrations `a`
    and `b`.

    Source: tailoring paper, section 4.2; `docs/research/numerics.md` for the form used and its
    error.

    Parameters
    ----------
    a, b : array_like
        Positive numbers, shape `(..., k)`, category axis last; leading axes broadcast. `k = 2` is
        the Beta distribution.

    Returns
    -------
    ndarray
        An array of shape `(...)` with values in `[0, 1]`.

    Raises
    ------
    ValueError
        If the arrays have different numbers of categories or an entry is not from 1e-100 to 1e13.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import hellinger_distance
    >>> float(hellinger_distance([2, 1], [1, 2]).round(6))
    0.463251
    """
    try:
        first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("a, b: must be numbers, or arrays of them of one shape.") from None
    if first.ndim == 0 or second.ndim == 0 or first.shape[-1] != second.shape[-1]:
        raise ValueError(
            f"a, b: have shapes {first.shape} and {second.shape}; the last axes must have the same"
            " length, one entry for each category."
        )
    for argument, array in (("a", first), ("b", second)):
        if not (np.all(array >= SMALLEST_PRIOR) and np.all(array <= _LARGEST)):
            raise ValueError(
                f"{argument}: every concentration must be from {SMALLEST_PRIOR:.0e} to"
                f" {_LARGEST:.0e}."
            )
    apart = np.abs((second - first).sum(axis=-1)) / 2  # of the totals, whose rounding is larger
    of_totals = gap_above(np.minimum(first.sum(axis=-1), second.sum(axis=-1)), apart)
    gaps = gap_above(np.minimum(first, second), np.abs(second - first) / 2)
    return distance_from_divergence(np.maximum(gaps.sum(axis=-1) - of_totals, 0.0))


def distance_from_divergence(divergence: ArrayLike) -> Floats:
    """The Hellinger distance of a Bhattacharyya divergence `D = -ln BC >= 0`, accurate near 0."""
    return np.sqrt(-np.expm1(-np.asarray(divergence, dtype=np.float64)))


def gap_above(lower: ArrayLike, half_difference: ArrayLike) -> Floats:
    """The gap `h(a, b)` of `a = lower` and `b = lower + 2 half_difference`, elementwise, within
    `GAP_RELATIVE_ERROR`: for callers that know the difference exactly, as that of two counts.

    With `d = |b - a| / 2` and `m = (a + b) / 2`, one step of `G(z + 1) = z G(z)` changes the gap by
    `log1p(d^2 / (a b)) / 2`, which is positive; above `_STIRLING_FROM` the gap of Stirling's series
    is summed, term by term in closed form.
    """
    lower, half_difference = np.broadcast_arrays(
        np.asarray(lower, dtype=np.float64), np.asarray(half_difference, dtype=np.float64)
    )
    shift = np.maximum(np.ceil(_STIRLING_FROM - lower), 0.0)
    shifted = lower + shift
    log_ratio = _log_ratio(shifted, half_difference)
    # The leading part, m G(d / m), of Stirling's series.
    leading = (
        half_difference * np.log1p(2 * half_difference / shifted)
        - (shifted + half_difference) * log_ratio
    ) / 2
    return (
        _steps(lower, half_difference, shift)
        + leading
        + _stirling_rest(shifted, half_difference, log_ratio)
    )


def falling_gaps(lower: Floats, half_difference: Floats) -> Floats:
    """The gaps of columns, shape `(m, n)`, whose `lower` falls by 1 from each to the next, and of
    one `half_difference` a row, shape `(m, 1)`: that of the first column, and a positive step for
    each further one. So the relative error grows by less than `2^-53` a column, and by `2^-50`.
    """
    gaps = _log_ratio(lower, half_difference) / 2
    gaps[:, :1] = gap_above(lower[:, :1], half_difference)
    return np.cumsum(gaps, axis=1)


def _steps(lower: Floats, d: Floats, shift: Floats) -> Floats:
    """The gap at `a = lower`, `b = lower + 2 d`, less the gap `shift` whole numbers further up:
    `sum of log1p(d^2 / (a b)) / 2` over the steps.
    """
    steps, needed = np.zeros(lower.shape), shift > 0
    first, half, number = lower[needed], d[needed], shift[needed]
    total = np.zeros(first.shape)
    for step in range(int(number.max(initial=0.0))):
        total += np.where(step < number, _log_ratio(first + step, half), 0.0)
    steps[needed] = total / 2
    return steps


def _log_ratio(lower: Floats, d: Floats) -> Floats:
    """`ln(m^2 / (a b)) = log1p(d^2 / (a b))`, for `a = lower`, `m = a + d` and `b = a + 2 d`."""
    return np.log1p((d / lower) * (d / (lower + 2 * d)))


def _stirling_rest(lower: Floats, d: Floats, log_ratio: Floats) -> Floats:
    """Remainder of Stirling's series beyond the leading part: a quarter of the log ratio, and the
    gaps of `z^-1`, `z^-3`, ...
    """
    upper = lower + 2 * d
    middle = lower + d
    w = (d / middle) ** 2
    scale = middle / lower / upper  # (m^-p) / (1 - w)^p is this to the power p
    square, gap = scale * scale, np.zeros_like(w)
    for coefficient, polynomial in reversed(_STIRLING_GAPS):
        value = np.zeros_like(w)
        for term in reversed(polynomial):
            value += term
            value *= w
        value *= coefficient
        gap = gap * square + value
    return np.asarray(log_ratio / 4 + gap * scale)
