r"""The probability of a release as a function of the category probabilities, for samplers of other
packages: the true counts are summed out.

`L(θ) = sum over x of P(x | θ) P(drawn | x)`, where x is multinomial. Every term has degree 0 in θ
when θ is divided by its sum, so the gradient of `ln L` is `E[x_i | drawn, θ] / θ_i - E[n | drawn]`.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.inference.compatible import as_release
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.inference.likelihood.of_counts import (
    LARGEST_LIST,
    Likelihood,
    likelihood_of,
    log_likelihoods,
)
from opendp_bayes.inference.likelihood.poisson_counts import PoissonCounts, given_sum, log_poisson
from opendp_bayes.mathematics.simplex import candidates, number_of_candidates, ranks
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.release_format.data import ReleasedData

#: Numbers of records, and values of the noise, that weigh less than `exp(-_DEPTH)` are left out.
_DEPTH = 45.0
#: Points at which a peak is looked for; panels of the integral over the number of records, at
#: first, and Gauss's points in each; halves and their whole differ by this share of all.
_GRID, _PANELS, _GAUSS, _NEAR = 17, 6, np.polynomial.legendre.leggauss(8), 1e-7
#: The expected sum of the counts is so many of its deviations from their number, at most; steps of
#: its logarithm towards that, and what is too near to tell apart.
_OFF, _FARTHEST, _NARROW = 0.2, 2.0, 1e-13


class LogLikelihood(UnderflowIsZero):
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
        likelihood = likelihood_of(release.setting, release.noisy_counts)
        self._summed = _summed(likelihood, release)
        self._likelihood = self._summed if isinstance(self._summed, _Listed) else likelihood

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
        values = np.full(len(flat), -np.inf)
        if possible.any():
            values[possible] = self._likelihood.log_likelihood(flat[possible])
        return values.reshape(rows.shape[:-1])

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
        moments = [self._summed.moments(row)[1] for row in rows.reshape(-1, self._k)]
        means = np.array(moments).reshape(rows.shape)
        total = np.asarray(theta, dtype=np.float64).sum(axis=-1, keepdims=True)
        return (means / rows - means.sum(axis=-1, keepdims=True)) / total

    def _probabilities(self, theta: ArrayLike) -> Floats:
        array = np.asarray(theta, dtype=np.float64)
        if array.shape[-1:] != (self._k,):
            raise ValueError(f"theta: has shape {array.shape}; must have shape (..., {self._k}).")
        if not np.all((array > 0) & np.isfinite(array)):
            raise ValueError("theta: must be positive and finite; keep it inside the simplex.")
        return array / array.sum(axis=-1, keepdims=True)


def log_likelihood(release: ReleasedData) -> LogLikelihood:
    """The noise-aware log-likelihood of a release, for models of your own: a function of the
    probabilities, with its gradient, and of the true counts.

    Sums over the true counts are right to 1e-5, and to 1e-9 where counts and noise are of some tens
    of records. A call takes time in proportion to the categories, and hardly more for more records
    (`docs/research/computation.md`, "A likelihood for other models").

    Parameters
    ----------
    release : Release
        A `Release`, of noise on the counts, or of any mechanism with at most 200 000 data sets.

    Raises
    ------
    TypeError
        For what is not a `Release`.
    ValueError
        For one group of a table that was drawn at once, and where there are too many data sets.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters, PrivacyLoss, PrivacyGuarantee, Release
    >>> from opendp_bayes import log_likelihood
    >>> promise = PrivacyGuarantee(8, 1, PrivacyLoss(0.5, 0.125, 1.0), "MaxDivergence")
    >>> release = Release((3, 5), ("a", "b"), (1.0, 1.0), LaplaceParameters(2.0), promise)
    >>> of = log_likelihood(release)
    >>> bool(of([0.4, 0.6]) > of([0.9, 0.1])), of.gradient([0.4, 0.6]).shape
    (True, (2,))
    """
    return LogLikelihood(as_release(release))


def _summed(likelihood: Likelihood, release: ReleasedData) -> "_Listed | _Public | _Private":
    """Sum the true counts out: `moments(theta)` are `ln L(θ)`, and the mean of the true counts
    given θ and what was drawn, shape `(k,)`.
    """
    if not isinstance(likelihood, DrawnCounts):
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
        return _Listed(counts, log_likelihoods([likelihood], counts, log_prior))
    return _Private(likelihood) if release.size is None else _Public(likelihood, release.size)


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


class _Public:
    """`P(drawn) P(n | drawn) / P(n)` of Poisson counts of rates `t θ`, whatever t is: the best one
    makes n the expected sum of the counts given what was drawn.
    """

    def __init__(self, noisy: DrawnCounts, size: int) -> None:
        self._noisy, self._size, self._categories = noisy, size, np.arange(noisy.drawn.size)

    def moments(self, theta: Floats) -> tuple[float, Floats]:
        size = self._size
        if size == 0:
            return float(self._noisy.log_mass(0).sum()), np.zeros(theta.size)
        log_total, laws = self._balanced(np.log(theta))
        log_density, means = given_sum(laws, size)
        of_size = log_poisson(np.array(size), np.array(log_total), np.exp(log_total))
        return float(laws.log_evidence.sum()) + log_density - float(of_size), means

    def _balanced(self, log_theta: Floats) -> tuple[float, PoissonCounts]:
        """The logarithm of t, and the laws of the counts."""
        log_total, low, high = math.log(self._size), -math.inf, math.inf
        while True:
            laws = PoissonCounts.of(self._noisy, self._categories, log_theta + log_total)
            off, variance = self._size - float(laws.mean.sum()), float(laws.variance.sum())
            if abs(off) <= _OFF * math.sqrt(variance) or high - low < _NARROW:
                return log_total, laws
            low, high = (log_total, high) if off > 0 else (low, log_total)
            # The derivative of the expected sum is its variance.
            step = off / max(variance, abs(off) / _FARTHEST)
            inside = low < log_total + step < high
            log_total = log_total + step if inside else (low + high) / 2


class _Private:
    """For equally probable numbers of records, `integral over t of prod_i S_i(t θ_i)`, where `S_i`
    is the mass of a Poisson count with noise: `n! = integral of t^n exp(-t)`.

    The root of t is `ln(1 + e^w)`: a peak in w is about as wide for few records as for many.
    """

    def __init__(self, noisy: DrawnCounts) -> None:
        self._noisy = noisy
        most = float(np.maximum(noisy.drawn, 0).sum()) + noisy.noise.reach(_DEPTH)
        self._longest = 2 * math.sqrt(most + 10)

    def moments(self, theta: Floats) -> tuple[float, Floats]:
        log_theta = np.log(theta)
        low, high, wide = -20.0, self._longest, math.inf
        while high - low < 0.5 * wide:  # the one peak is in the middle of ever shorter ranges
            wide = high - low
            grid = np.linspace(low, high, _GRID)
            heights = self._heights(log_theta, grid)[0]
            top = float(heights.max())
            seen = np.flatnonzero(heights > top - _DEPTH)
            low, high = float(grid[max(seen[0] - 1, 0)]), float(grid[min(seen[-1] + 1, _GRID - 1)])
        edges = np.linspace(low, high, _PANELS + 1)
        left, right = edges[:-1], edges[1:]
        integrals, total = self._panels(log_theta, left, right, top), np.zeros(theta.size + 1)
        least = _NEAR * float(integrals[:, 0].sum())
        # Panels are halved until both halves are the whole: what the noise has of kinks is narrow.
        while left.size:
            middle = (left + right) / 2
            halves = np.concatenate([left, middle]), np.concatenate([middle, right])
            finer = self._panels(log_theta, *halves, top)
            first, second = np.split(finer, 2)
            fine = np.abs(first + second - integrals)[:, 0] < least
            total += (first + second)[fine].sum(axis=0)
            again = np.tile(~fine, 2)
            left, right, integrals = halves[0][again], halves[1][again], finer[again]
        return top + math.log(total[0]), total[1:] / total[0]

    def _panels(self, log_theta: Floats, left: Floats, right: Floats, top: float) -> Floats:
        """Integrals over panels divided by `exp(top)`, and of it times the mean counts, shape
        `(panels, 1 + k)`.
        """
        half, middle = (right - left)[:, None] / 2, (right + left)[:, None] / 2
        heights, means = self._heights(log_theta, (middle + half * _GAUSS[0]).ravel())
        weights = half * _GAUSS[1] * np.exp(heights.reshape(left.size, -1) - top)
        of_counts = np.einsum("pn,pnk->pk", weights, means.reshape(*weights.shape, -1))
        return np.column_stack([weights.sum(axis=1), of_counts])

    def _heights(self, log_theta: Floats, w: Floats) -> tuple[Floats, Floats]:
        """Logarithms of the integrand, and the means of the counts of every category, shape
        `(nodes, k)`.
        """
        root = np.logaddexp(0.0, w)
        log_rate = np.add.outer(2 * np.log(root), log_theta)
        category = np.broadcast_to(np.arange(log_theta.size), log_rate.shape)
        laws = PoissonCounts.of(self._noisy, category.ravel(), log_rate.ravel())
        log_masses, means = (x.reshape(log_rate.shape) for x in (laws.log_evidence, laws.mean))
        # `dt / dw` is twice the root times `1 / (1 + e^-w)`.
        return np.log(2 * root) - np.logaddexp(0.0, -w) + log_masses.sum(axis=1), means
