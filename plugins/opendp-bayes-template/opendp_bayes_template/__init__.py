"""The exponential mechanism on the Hamming score: a template for a mechanism of your own."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes import PrivacyLoss
from opendp_bayes.extend import (
    NO_LOSS,
    as_counts,
    as_prior,
    as_scale,
    candidates,
    certified_loss,
    check_enumerable,
    exact_categorical,
)


@dataclass(frozen=True)
class HammingExponential:
    """Release counts `y` with probability proportional to `exp(-d(x, y) / scale)`, where d is the
    number of records that differ.

    `scale` is a positive number, in records. Needs a public number of records.
    """

    scale: float
    name: ClassVar[str] = "hamming_exponential"

    def __post_init__(self) -> None:
        as_scale(self.scale)

    def check(self, *, size: int | None, prior: NDArray[np.float64]) -> None:
        """Raise `ValueError` where the size is private or there are too many candidates."""
        if size is None:
            raise ValueError(
                "HammingExponential: its candidates have `size` records, so the number of records"
                " must be public."
            )
        check_enumerable(size, prior.size)

    def log_pmf(
        self, counts: ArrayLike, prior: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Candidates, shape `(c, k)`, and their log-probabilities, shape `(c,)`."""
        support, exponents = self._support(counts, prior)
        return support, -exponents - np.log(np.sum(np.exp(-exponents)))

    def sample(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> NDArray[np.int64]:
        """Release independently, shape `(draws, k)`."""
        support, exponents = self._support(counts, prior)
        return support[exact_categorical(exponents, draws)]

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: NDArray[np.float64], delta: float = 0.0
    ) -> PrivacyLoss:
        """`2 d_in / scale` by the triangle inequality, plus the rounding of the exponents."""
        if d_in == 0:
            return NO_LOSS
        assert size is not None, "check() has refused a private size"
        # The distance is exact; dividing by the scale costs one rounding of at most size / scale.
        largest = size / self.scale
        error = Fraction(largest) * Fraction(1, 2**50)
        return certified_loss(2 * d_in / Fraction(self.scale), error)

    def _support(
        self, counts: ArrayLike, prior: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        counts = as_counts(counts)
        size = int(counts.sum())
        self.check(size=size, prior=as_prior(prior, counts.size))
        support = candidates(size, counts.size)
        return support, np.abs(support - counts).sum(axis=1) / 2 / self.scale
