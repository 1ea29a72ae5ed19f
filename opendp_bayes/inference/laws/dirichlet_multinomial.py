"""The laws of counts whose probabilities are Dirichlet, or whose means are Gamma: their logarithms,
and draws from them, from Dirichlets and from tables, for posteriors, never for releases.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.mathematics.validation import Floats, Integers

#: Stirling's series of `ln Γ` is exact to the last digits from here on.
_STIRLING = 24.0


def log_rising(counts: ArrayLike, alpha: ArrayLike) -> Floats:
    """`ln Γ(x + alpha) - ln x!`, elementwise, for real `x >= 0`: what one category contributes to
    the Dirichlet-multinomial probability of the counts.

    Examples
    --------
    >>> log_rising([0, 1, 2], 3.0).round(6).tolist()
    [0.693147, 1.791759, 2.484907]
    """
    x, a = np.broadcast_arrays(
        np.asarray(counts, dtype=np.float64), np.asarray(alpha, dtype=np.float64)
    )
    small = x < _STIRLING
    if np.all(small):
        return np.asarray(special.gammaln(x + a) - special.gammaln(x + 1))
    large = np.maximum(x, _STIRLING)  # keeps the unused branch finite
    upper, lower = large + a, large + 1
    # The difference of two series of Stirling, its large terms taken together.
    logs = (large + 0.5) * np.log1p((a - 1) / lower) + (a - 1) * (np.log(upper) - 1)
    logs = np.asarray(logs + stirling_correction(upper) - stirling_correction(lower))
    if np.any(small):
        logs[small] = special.gammaln(x[small] + a[small]) - special.gammaln(x[small] + 1)
    return logs


def log_rising_factorial(a: Floats, counts: Integers) -> Floats:
    """`ln Γ(x + a) - ln Γ(a)`, elementwise, also for `a` so large that `ln Γ(a)` has no digits left
    for the difference.
    """
    large = np.maximum(a, _STIRLING)  # keeps the unused branch finite
    upper = np.asarray(large + counts, dtype=np.float64)
    series = counts * (np.log(upper) - 1) + (large - 0.5) * np.log1p(counts / large)
    series += stirling_correction(upper) - stirling_correction(large)
    return np.where(a < _STIRLING, special.gammaln(a + counts) - special.gammaln(a), series)


def stirling_correction(value: Floats) -> Floats:
    """Compute `ln Γ(z)` less Stirling's formula `(z - 1/2) ln z - z + ln(2 pi) / 2`, elementwise,
    for z of at least 24.
    """
    inverse = 1 / value
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))


def log_negative_binomial(counts: Floats, shape: ArrayLike, mean: Floats) -> Floats:
    """`ln P(count)` of a Poisson law whose mean has a Gamma law of a shape and a mean."""
    shape = np.asarray(shape, dtype=np.float64)
    choose = special.gammaln(counts + shape) - special.gammaln(shape) - special.gammaln(counts + 1)
    none = shape * (np.log(shape) - np.log(shape + mean))
    return np.asarray(choose + none + counts * (np.log(mean) - np.log(shape + mean)))


def dirichlet(concentration: Floats, rng: np.random.Generator) -> Floats:
    """A draw from the Dirichlet distribution of each row, shape `(draws, k)`, also for
    concentrations that underflow a gamma variate.
    """
    shares = rng.standard_gamma(concentration + 1)
    np.log(shares, out=shares)  # in place, for there may be many draws of many categories
    smaller = rng.standard_exponential(concentration.shape)
    smaller /= concentration
    shares -= smaller
    shares -= shares.max(axis=1, keepdims=True)
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def one_of(log_weight: Floats, rng: np.random.Generator) -> Integers:
    """An index of the last axis, drawn in proportion to the weights: that of the smallest of
    exponential variates divided by them.
    """
    return np.argmax(log_weight - np.log(rng.standard_exponential(log_weight.shape)), axis=-1)


def picked(masses: Floats, row: Integers, level: Floats) -> Integers:
    """For each of some levels the first place up to which the masses of its row have a larger share
    of their sum; `row` is broadcast to the shape of the levels.
    """
    up_to = np.cumsum(masses, axis=1)
    up_to /= up_to[:, -1:].copy()
    up_to += np.arange(len(masses))[:, None]
    entry = np.searchsorted(up_to.reshape(-1), level + row, side="right")
    return np.asarray(np.clip(entry - row * masses.shape[1], 0, masses.shape[1] - 1))


def alike(*columns: ArrayLike) -> tuple[Integers, Integers]:
    """The first of all rows that are alike, and which of these each row is."""
    rows = np.column_stack(columns)
    _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return first, place.reshape(-1)


def rows_of(*values: Integers) -> tuple[Integers, tuple[Integers, ...]]:
    """The row of each of some tuples of whole numbers among those that occur, and these."""
    values = np.broadcast_arrays(*values)
    sizes = [int(array.max()) + 1 for array in values]
    key = np.ravel_multi_index(values, sizes)
    rows, row = np.unique(key, return_inverse=True)
    return row.reshape(key.shape), np.unravel_index(rows, sizes)


def dirichlet_multinomial(
    size: int, prior: Floats, draws: int, rng: np.random.Generator
) -> Integers:
    """Counts of `size` records whose probabilities are drawn from the prior, shape `(draws, k)`."""
    return rng.multinomial(size, dirichlet(np.tile(prior, (draws, 1)), rng))


def log_dirichlet_multinomial(counts: Integers, prior: Floats) -> Floats:
    """The logarithms of their probabilities, shape `(draws,)`."""
    terms = log_rising_factorial(prior, counts) - special.gammaln(counts + 1.0)
    size = counts.sum(axis=1)
    whole = log_rising_factorial(prior.sum(), size) - special.gammaln(size + 1.0)
    return np.asarray(terms.sum(axis=1) - whole)
