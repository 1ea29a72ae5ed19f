r"""The probability of a release as a function of the category probabilities, for samplers of other
packages: the true counts are summed out.

`L(θ) = sum over x of P(x | θ) P(drawn | x)`, where x is multinomial. Every term has degree 0 in θ
when θ is divided by its sum, so the gradient of `ln L` is `E[x_i | drawn, θ] / θ_i - E[n | drawn]`.
"""

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike
from scipy import special
from scipy.fft import next_fast_len

from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.of_counts import (
    LARGEST_LIST,
    IndependentNoise,
    Likelihood,
    likelihood_of,
    log_likelihoods,
)
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.simplex import candidates, number_of_candidates, ranks
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.release_format.data import ReleasedData, as_release

#: Numbers of records, and values of the noise, that weigh less than `exp(-_DEPTH)` are left out.
_DEPTH = 45.0
#: Nodes of the integral over the number of records, about a dozen in a standard deviation.
_NODES = 240


class LogLikelihood:
    """`ln P(what was drawn)` as a function of the counts or of the probabilities; what does not
    depend on them is left out. Made by `log_likelihood`.
    """

    def __init__(self, release: ReleasedData) -> None:
        if release.whole is not None:
            raise ValueError(
                "release: is one group of a table that was drawn at once, so its likelihood depends"
                " on the other groups; take that of the whole, release.whole."
            )
        self._k, self._size = release.k, release.size
        given = likelihood_of(release.setting, release.drawn)
        self._summed = _summed(given, release)
        self._given = self._summed if isinstance(self._summed, _Listed) else given

    def of_counts(self, counts: ArrayLike) -> Floats:
        """Log-likelihood of true counts, integers of shape `(..., k)`; shape `(...)`. It is minus
        infinity where they are negative or do not sum to the public number of records.
        """
        rows = np.asarray(counts)
        if not np.issubdtype(rows.dtype, np.integer) or rows.shape[-1:] != (self._k,):
            raise ValueError(f"counts: must be integers of shape (..., {self._k}).")
        flat = rows.reshape(-1, self._k).astype(np.int64)
        possible = flat.min(axis=1) >= 0
        if self._size is not None:
            possible &= flat.sum(axis=1) == self._size
        found = np.full(len(flat), -np.inf)
        if possible.any():
            found[possible] = self._given.log_likelihood(flat[possible])
        return found.reshape(rows.shape[:-1])

    def __call__(self, theta: ArrayLike) -> Floats:
        """Log-likelihood of probabilities, positive and of shape `(..., k)`, which are divided by
        their sum; shape `(...)`.

        With a private number of records every number is equally probable. Raises `ValueError` for
        another shape, or where one is not positive.
        """
        rows = self._probabilities(theta)
        values = [self._summed.moments(row)[0] for row in rows.reshape(-1, self._k)]
        return np.array(values).reshape(rows.shape[:-1])

    def gradient(self, theta: ArrayLike) -> Floats:
        """The gradient of `__call__`, shape `(..., k)`: at probabilities of sum 1, its product with
        them is 0.
        """
        rows = self._probabilities(theta)
        each = [self._summed.moments(row)[1] for row in rows.reshape(-1, self._k)]
        means = np.array(each).reshape(rows.shape)
        total = np.asarray(theta, dtype=np.float64).sum(axis=-1, keepdims=True)
        return (means / rows - means.sum(axis=-1, keepdims=True)) / total

    def _probabilities(self, theta: ArrayLike) -> Floats:
        given = np.asarray(theta, dtype=np.float64)
        if given.shape[-1:] != (self._k,):
            raise ValueError(f"theta: has shape {given.shape}; must have shape (..., {self._k}).")
        if not np.all((given > 0) & np.isfinite(given)):
            raise ValueError("theta: must be positive and finite; keep it inside the simplex.")
        return given / given.sum(axis=-1, keepdims=True)


def log_likelihood(release: ReleasedData) -> LogLikelihood:
    """The noise-aware log-likelihood of a release, for models of your own: a function of the
    probabilities, with its gradient, and of the true counts.

    Parameters
    ----------
    release : a `Release`, of noise on the counts, or of any mechanism with at most 200 000 data
        sets.

    Sums over the true counts are exact but for rounding: convolutions for a public number of
    records, and for a private one an integral of one dimension, to 1e-9. A call takes time in
    proportion to categories and records.

    Raises `TypeError` for what is not a `Release`, and `ValueError` for one group of a table that
    was drawn at once, and where there are too many data sets.

    >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, Promise, Release, log_likelihood
    >>> promise = Promise(8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
    >>> release = Release((3, 5), ("a", "b"), (1.0, 1.0), LaplaceParameters(2.0), promise)
    >>> of = log_likelihood(release)
    >>> bool(of([0.4, 0.6]) > of([0.9, 0.1])), of.gradient([0.4, 0.6]).shape
    (True, (2,))
    """
    return LogLikelihood(as_release(release))


def _summed(given: Likelihood, release: ReleasedData) -> "_Listed | _Public | _Private":
    """Sum the true counts out: `moments(theta)` are `ln L(θ)`, and the mean of the true counts
    given θ and what was drawn, shape `(k,)`.
    """
    if not isinstance(given, IndependentNoise):
        if release.size is None:
            raise ValueError(
                f"mechanism={release.mechanism.name!r}: with a private number of records, a"
                " likelihood is known only for noise on the counts."
            )
        if (number := number_of_candidates(release.size, release.k)) > LARGEST_LIST:
            raise ValueError(
                f"mechanism={release.mechanism.name!r}: its likelihood is a sum over all data sets,"
                f" {number:.3g} here, and may be of {LARGEST_LIST}; that of noise on the counts is"
                " for any number."
            )
        counts = candidates(release.size, release.k)
        log_prior = log_rising(counts, np.array(release.prior)).sum(axis=1)
        return _Listed(counts, log_likelihoods([given], counts, log_prior))
    return _Private(given) if release.size is None else _Public(given, release.size)


class _Listed:
    """A sum over all data sets, shape `(c, k)`, each with its log-likelihood."""

    def __init__(self, counts: Integers, log_likelihoods: Floats) -> None:
        self._size, self._log_likelihoods = int(counts[0].sum()), log_likelihoods
        self._counts = counts.astype(np.float64)
        orders = special.gammaln(self._size + 1) - special.gammaln(self._counts + 1).sum(axis=1)
        self._log_weights = log_likelihoods + orders

    def log_likelihood(self, counts: Integers) -> Floats:
        """Log-likelihood of some of the data sets, shape `(m, k)`."""
        return self._log_likelihoods[ranks(counts, self._size)]

    def moments(self, theta: Floats) -> tuple[float, Floats]:
        log_terms = self._log_weights + self._counts @ np.log(theta)
        value = special.logsumexp(log_terms)
        return float(value), np.exp(log_terms - value) @ self._counts


def _log_factors(given: IndependentNoise, counts: Integers) -> Floats:
    """`ln P(drawn_i | x) - ln x!` of every category and count, shape `(k, counts)`."""
    factors = [given.log_factor(i, counts) for i in range(given.drawn.size)]
    return np.array(factors) - special.gammaln(counts + 1)


def _tilted(log_factors: Floats, rates: Floats) -> tuple[Floats, Floats]:
    """Logarithms of the sums of `exp(rate x)` times the factors of each category, shape `(k,)`, and
    the share of every count in its sum, shape `(k, counts)`.
    """
    log_terms = log_factors + np.multiply.outer(rates, np.arange(log_factors.shape[1]))
    top = log_terms.max(axis=1, keepdims=True)
    shares = np.exp(log_terms - top)
    totals = shares.sum(axis=1, keepdims=True)
    return (top + np.log(totals))[:, 0], shares / totals


class _Public:
    """`n! sum prod_i θ_i^x_i f_i(x_i) / x_i!` over counts of sum n: the coefficient of a product of
    polynomials, by a discrete Fourier transform long enough for all of it.

    The factors are tilted, by `exp(λ x)`, so that the coefficient is one of the largest.
    """

    def __init__(self, given: IndependentNoise, size: int) -> None:
        self._size, self._values = size, np.arange(size + 1)
        self._log_factors = _log_factors(given, self._values)
        self._length = next_fast_len(given.drawn.size * size + 1, real=True)
        # Reads coefficient n of a product from its transform.
        frequency = np.arange(self._length // 2 + 1)
        self._reader = np.exp(2j * math.pi * (frequency * size % self._length) / self._length)
        self._reader[1 : (self._length + 1) // 2] *= 2

    def moments(self, theta: Floats) -> tuple[float, Floats]:
        size = self._size
        if size == 0:
            return float(self._log_factors.sum()), np.zeros(theta.size)
        tilt = self._tilt(np.log(theta))
        log_totals, weights = _tilted(self._log_factors, np.log(theta) + tilt)
        one = np.fft.rfft(weights, self._length)
        first = np.fft.rfft(weights * self._values, self._length)
        others = all_but_one(one, np.multiply)
        coefficient = self._read(others[0] * one[0])
        means = np.array([self._read(row) for row in first * others]) / coefficient
        log_scale = math.fsum(log_totals) - size * tilt
        value = math.log(coefficient) + log_scale + math.lgamma(size + 1)
        return value, means

    def _read(self, transform: Any) -> float:
        return float((self._reader * transform).real.sum() / self._length)

    def _tilt(self, log_theta: Floats) -> float:
        """The λ at which the factors' means sum to n."""

        def excess(tilt: float) -> float:
            weights = _tilted(self._log_factors, log_theta + tilt)[1]
            return float((weights @ self._values).sum() - self._size)

        low = high = math.log(self._size)
        step = 1.0
        while excess(low) > 0:
            low, step = low - step, 2 * step
        step = 1.0
        while excess(high) < 0:
            high, step = high + step, 2 * step
        return low if low == high else float(scipy.optimize.brentq(excess, low, high, xtol=1e-3))


class _Private:
    """For equally probable numbers of records, `integral over t of prod_i S_i(t θ_i)`, where `S_i`
    is the mass of a Poisson count with noise: `n! = integral of t^n exp(-t)`.
    """

    def __init__(self, given: IndependentNoise) -> None:
        self._given = given
        reach = given.noise.reach(_DEPTH)
        self._highest = int(np.maximum(given.drawn, 0).max()) + reach
        self._longest = math.log(4 * (float(np.maximum(given.drawn, 0).sum()) + reach + 10))
        self._tabulate(self._highest)

    def _tabulate(self, highest: int) -> None:
        self._values = np.arange(highest + 1)
        self._log_factors = _log_factors(self._given, self._values)

    def moments(self, theta: Floats) -> tuple[float, Floats]:
        def height(log_records: float) -> float:
            return log_records + float(self._log_masses(log_records, theta)[0].sum())

        best = scipy.optimize.minimize_scalar(
            lambda at: -height(at), bounds=(-20.0, self._longest), method="bounded"
        )
        peak, top = float(best.x), -float(best.fun)
        ends = []
        for side in (-1, 1):
            step = 0.05
            while height(peak + side * step) > top - _DEPTH:
                step *= 1.5
            ends.append(peak + side * step)
        nodes = np.linspace(ends[0], ends[1], _NODES)
        masses, means = zip(*(self._log_masses(node, theta) for node in nodes), strict=True)
        log_terms = nodes + np.sum(masses, axis=1)
        value = special.logsumexp(log_terms)
        return float(value + math.log(nodes[1] - nodes[0])), np.exp(log_terms - value) @ np.array(
            means
        )

    def _log_masses(self, log_records: float, theta: Floats) -> tuple[Floats, Floats]:
        """`ln S_i` and the mean of the count given the draw, both of shape `(k,)`."""
        log_means = log_records + np.log(theta)
        largest = math.exp(log_means.max())
        needed = math.ceil(largest + 12 * math.sqrt(largest) + _DEPTH)
        if needed > self._values[-1]:
            self._tabulate(2 * needed)
        used = max(needed, self._highest) + 1
        log_totals, weights = _tilted(self._log_factors[:, :used], log_means)
        return log_totals - np.exp(log_means), weights @ self._values[:used]
