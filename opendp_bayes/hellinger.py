r"""The Hellinger distance between Dirichlet distributions, to full relative accuracy.

`H(a, b)^2 = 1 - BC(a, b)`, and the logarithm of the Bhattacharyya coefficient is a sum of Jensen gaps of the log-gamma function,

    -ln BC(a, b) = sum_i h(a_i, b_i) - h(sum a, sum b),      h(a, b) = (ln G(a) + ln G(b)) / 2 - ln G((a + b) / 2) >= 0,

whose last term is zero when the two totals agree, as they do for two posteriors of the same prior and sample size. Three calls of a log-gamma
function lose the gap, which is of order `(b - a)^2 / a`, in the rounding of `ln G(a)`, which is of order `a ln a`. `log_gamma_gap` computes it
from its own expansion instead, in which every large term has been cancelled by hand (docs: Numerics).
"""

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes._validation import Floats

#: Bound on the relative error of `log_gamma_gap` (docs: Numerics, where it is derived).
GAP_RELATIVE_ERROR = 2.0**-46

#: Arguments are moved to at least this by `G(z + 1) = z G(z)` before the Stirling series is used.
_STIRLING_FROM = 20.0

#: For p = 1, 3, 5, ...: the Stirling coefficient of `z^-p` and the polynomial in w (lowest power first, from w^1) that its gap leaves.
_STIRLING_GAPS: tuple[tuple[int, float, tuple[int, ...]], ...] = (
    (1, 1 / 12, (1,)),
    (3, -1 / 360, (6, -3, 1)),
    (5, 1 / 1260, (15, -5, 10, -5, 1)),
    (7, -1 / 1680, (28, 14, 42, -35, 21, -7, 1)),
    (9, 1 / 1188, (45, 90, 168, -117, 126, -84, 36, -9, 1)),
)


def hellinger_distance(a: ArrayLike, b: ArrayLike) -> Floats:
    """Hellinger distance between the Dirichlet distributions with concentrations `a` and `b`.

    Parameters are arrays of positive numbers of shape `(..., k)`, category axis last; leading axes broadcast. Returns an array of shape `(...)`
    with values in `[0, 1]`; `k = 2` is the Beta distribution. Rows of equal total use the separable form.

    Raises `ValueError` if the arrays have different numbers of categories or an entry is not positive and finite.

    Source: tailoring paper, section 4.2; `docs/numerics.md` for the form used and its error.

    >>> from opendp_bayes import hellinger_distance
    >>> float(hellinger_distance([2, 1], [1, 2])).__round__(6)
    0.463251
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim == 0 or second.ndim == 0 or first.shape[-1] != second.shape[-1]:
        raise ValueError(f"a, b: have shapes {first.shape} and {second.shape}; the last axes must have the same length, one entry for each category.")
    for name, array in (("a", first), ("b", second)):
        if not (np.all(np.isfinite(array)) and np.all(array > 0)):
            raise ValueError(f"{name}: every concentration must be finite and greater than 0.")
    divergence = log_gamma_gap(first, second).sum(axis=-1)
    total_a, total_b = np.broadcast_arrays(first.sum(axis=-1), second.sum(axis=-1))
    unequal = total_a != total_b
    if np.any(unequal):
        divergence = np.where(unequal, np.maximum(divergence - log_gamma_gap(total_a, total_b), 0.0), divergence)
    return distance_from_divergence(divergence)


def distance_from_divergence(divergence: ArrayLike) -> Floats:
    """`H = sqrt(1 - exp(-D))` for the Bhattacharyya divergence `D = -ln BC >= 0`, accurate near 0 and near 1."""
    return np.sqrt(-np.expm1(-np.asarray(divergence, dtype=np.float64)))


def log_gamma_gap(a: ArrayLike, b: ArrayLike) -> Floats:
    """`(ln G(a) + ln G(b)) / 2 - ln G((a + b) / 2)` for positive `a`, `b`, elementwise, within `GAP_RELATIVE_ERROR`.

    With `d = |b - a| / 2` and `m = (a + b) / 2`, one step of `G(z + 1) = z G(z)` changes the gap by `log1p(d^2 / (a b)) / 2`, which is positive;
    above `_STIRLING_FROM` the gap of Stirling's series is summed, term by term in closed form.
    """
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    half_difference = np.abs(b - a) / 2
    lower = np.minimum(a, b)
    gap = np.zeros(a.shape)
    shift = np.maximum(np.ceil(_STIRLING_FROM - lower), 0.0)
    small = shift > 0
    if np.any(small):
        z, d = lower[small], half_difference[small]
        steps = np.zeros(z.shape)
        for i in range(int(_STIRLING_FROM)):
            shifted = z + i
            step = np.log1p((d / shifted) * (d / (shifted + 2 * d)))
            steps += np.where(i < shift[small], step, 0.0)
        gap[small] = steps / 2
    return gap + _stirling_gap(lower + shift, half_difference)


def _stirling_gap(lower: Floats, d: Floats) -> Floats:
    """The gap for `a = lower >= _STIRLING_FROM` and `b = lower + 2 d`, from Stirling's series to `z^-9`."""
    upper = lower + 2 * d
    middle = lower + d
    ratio = (d / lower) * (d / upper)  # d^2 / (a b) = w / (1 - w) with w = (d / m)^2
    log_ratio = np.log1p(ratio)
    gap = (d * np.log1p(2 * d / lower) - middle * log_ratio) / 2 + log_ratio / 4
    w = (d / middle) ** 2
    scale = middle / lower / upper  # (m^-p) / (1 - w)^p is this to the power p
    for power, coefficient, polynomial in _STIRLING_GAPS:
        value = np.zeros(w.shape)
        for term in reversed(polynomial):
            value = (value + term) * w
        gap = gap + coefficient * scale**power * value
    return np.maximum(gap, 0.0)
