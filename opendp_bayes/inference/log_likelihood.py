r"""The probability of a release as a function of the category probabilities, for samplers of other
packages: the true counts are summed out.

`L(θ) = sum over x of P(x | θ) P(drawn | x)`, where x is multinomial. Every term has degree 0 in θ
when θ is divided by its sum, so the gradient of `ln L` is `E[x_i | drawn, θ] / θ_i - E[n | drawn]`.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.inference.compatible import as_release
from opendp_bayes.inference.convolution.counts_given_noise import CountsGivenNoise
from opendp_bayes.inference.convolution.number_of_records import Total, private
from opendp_bayes.inference.convolution.tilted_counts import CategoriesOfShares
from opendp_bayes.inference.likelihood.of_counts import noise_of
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import Floats, as_numbers
from opendp_bayes.release_format.data import ReleasedData


class LogLikelihood(UnderflowIsZero):
    """`ln P(what was drawn)` as a function of the counts or of the probabilities; what does not
    depend on them is left out. Made by `log_likelihood`.

    Multinomial counts, times `n!`, are Poisson counts of rates `t θ` times `exp(t)`, with about the
    number of records for t.
    """

    def __init__(self, release: ReleasedData) -> None:
        if release.whole is not None:
            raise ValueError(
                "release: is one group of a table that was drawn at once, so its likelihood depends"
                " on the other groups; take that of the whole, release.whole."
            )
        noisy = noise_of("release", release)
        self._k, self._size, self._drawn = release.k, release.size, noisy
        self._noisy = noisy.without_others
        records = np.maximum(noisy.drawn, 0).sum() if release.size is None else release.size
        self._log_records = math.log(max(int(records), 1))

    def of_counts(self, counts: ArrayLike) -> Floats:
        """Log-likelihood of true counts, integers of shape `(..., k)`; shape `(...)`. It is minus
        infinity where they are negative or do not sum to the public number of records.
        """
        rows = np.asarray(counts)
        if not np.issubdtype(rows.dtype, np.integer) or rows.shape[-1:] != (self._k,):
            raise ValueError(f"counts: must be integers of shape (..., {self._k}).")
        possible = rows.min(axis=-1) >= 0
        if self._size is not None:
            possible &= rows.sum(axis=-1) == self._size
        return np.where(possible, self._drawn.log_likelihood(rows), -np.inf)

    def __call__(self, theta: ArrayLike) -> Floats:
        """Log-likelihood of probabilities, positive and of shape `(..., k)`, which are divided by
        their sum; shape `(...)`.

        With a private number of records every number is equally probable. It may be minus
        infinity where what was drawn rules the probabilities out, by a factor beyond
        `exp(-10 000)`. Raises `ValueError` for another shape, or where one is not positive.
        """
        rows = self._probabilities(theta)
        values = [self._moments(row)[0] for row in rows.reshape(-1, self._k)]
        return np.array(values).reshape(rows.shape[:-1])

    def gradient(self, theta: ArrayLike) -> Floats:
        """The gradient of `__call__`, shape `(..., k)`: at probabilities of sum 1, its product with
        them is 0. It is not a number where that is minus infinity.
        """
        rows = self._probabilities(theta)
        moments = [self._moments(row)[1] for row in rows.reshape(-1, self._k)]
        means = np.array(moments).reshape(rows.shape)
        total = np.asarray(theta, dtype=np.float64).sum(axis=-1, keepdims=True)
        return (means / rows - means.sum(axis=-1, keepdims=True)) / total

    def _probabilities(self, theta: ArrayLike) -> Floats:
        array = as_numbers(theta, "theta")
        if array.shape[-1:] != (self._k,):
            raise ValueError(f"theta: has shape {array.shape}; must have shape (..., {self._k}).")
        if not np.all((array > 0) & np.isfinite(array)):
            raise ValueError("theta: must be positive and finite; keep it inside the simplex.")
        return array / array.sum(axis=-1, keepdims=True)

    def _moments(self, theta: Floats) -> tuple[float, Floats]:
        """`ln L(θ)`, and the mean of the true counts given θ and what was drawn, shape `(k,)`."""
        categories = CategoriesOfShares.of(self._noisy, np.log(theta) + self._log_records)
        if self._size is None:
            total = replace(private(categories, None), log_weight=self._log_orders)
        else:
            total = Total(self._size, self._size, self._log_orders, np.array([self._size]))
        try:
            engine = CountsGivenNoise(categories, total, warns=False)
            return engine.log_evidence, engine.counts.mean()
        except ValueError:  # no tilt brings together what was drawn and what is expected
            return -math.inf, np.full(theta.size, math.nan)

    def _log_orders(self, sizes: Floats) -> Floats:
        return np.asarray(special.gammaln(sizes + 1) - sizes * self._log_records)


def log_likelihood(release: ReleasedData) -> LogLikelihood:
    """The noise-aware log-likelihood of a release, for models of your own: a function of the
    probabilities, with its gradient, and of the true counts.

    Sums over the true counts are right to 1e-4, and to 1e-8 where counts and noise are of some tens
    of records. A call takes time in proportion to the categories, and hardly more for more records
    (`docs/research/computation.md`, "A likelihood for other models").

    Parameters
    ----------
    release : Release
        A `Release`, of noise on the counts.

    Raises
    ------
    TypeError
        For what is not a `Release`.
    ValueError
        For one group of a table that was drawn at once, and for what is not noise on the counts.

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
