"""Noise from the K-norm mechanism on the counts: spread over all of them, and without changing
their sum.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.log_space import log_sums
from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.simplex import candidates, ranks
from opendp_bayes.mathematics.validation import Floats, Integers, as_counts, as_distance, as_prior
from opendp_bayes.mathematics.zero_sum import nearest_counts
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.mechanisms.laws import AdditiveNoise, SimplexNoise, saturated
from opendp_bayes.mechanisms.noisy_counts import LARGEST_NOISE, NEGLIGIBLE, NoisyCounts
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.samplers.knorm import knorm_noise


@dataclass(frozen=True)
class KNormParameters(NoisyCounts):
    """Add integer noise `z` with `P(z) ∝ exp(-||z||_1 / (2 scale))` on `sum z = 0`, and return to
    the nearest counts.

    Changing one record moves the counts by a vector of `||.||_1 / 2 = 1`, so the loss is `1 /
    scale` for every number of categories: half of that of Laplace noise of the same scale for k >=
    3. With two categories it is discrete Laplace noise. The number of records must be public; the
    released counts are non-negative and sum to it.

    Source: the K-norm mechanism (Hardt and Talwar, "On the geometry of differential privacy") for
    the polytope of differences of unit vectors, on integers; `docs/research/mechanisms.md`, "K-norm
    noise".

    Parameters
    ----------
    scale : float
        Positive number, in records changed.

    Examples
    --------
    >>> from opendp_bayes import KNormParameters
    >>> candidates, log_p = KNormParameters(scale=1.0).log_pmf([1, 1, 0], prior=1.0)
    >>> at = candidates.tolist().index([1, 1, 0])
    >>> round(float(2.718281828459045 ** log_p[at]), 4)
    0.1773
    """

    scale: float
    name: ClassVar[str] = "knorm_parameters"

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` if the number of records is private: the noise keeps it."""
        if size is None:
            raise ValueError(
                "size=None: the noise of KNormParameters keeps the number of records, which must be"
                " public; under add/remove neighbours use LaplaceParameters(scale,"
                " total='private')."
            )

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Candidates, shape `(c, k)`, and their log-probabilities, shape `(c,)`; the prior does not
        influence the noise.

        For k >= 3 every noise vector up to a norm is enumerated, beyond which less than 4e-14 of
        any candidate's probability lies.

        Raises
        ------
        ValueError
            Where that takes more than `LARGEST_NOISE` integers.
        """
        counts = as_counts(counts)
        as_prior(prior, counts.size)
        k, size = counts.size, int(counts.sum())
        if k == 2:
            return super().log_pmf(counts, prior)
        # A candidate at distance d has at least the weight exp(-d / scale) of the noise that leads
        # straight to it; at the distance of the furthest one,
        log_rest = -(size - int(counts.min())) / self.scale - NEGLIGIBLE
        listed = SimplexNoise(self.scale).listed(k, log_rest, LARGEST_NOISE // k)
        if listed is None:
            raise self._too_many(k)
        noise, log_p = listed
        support = candidates(size, k)
        return support, log_sums(
            ranks(self.project(counts + noise, size), size), log_p, len(support)
        )

    def law(self, size: int | None, prior: Floats) -> AdditiveNoise | SimplexNoise:
        """Noise on the simplex; for two categories, discrete Laplace noise on the first."""
        if prior.size == 2:
            largest = math.inf if size is None else size
            return AdditiveNoise(DiscreteLaplace(self.scale), (True, False), cut=(0, largest))
        return SimplexNoise(self.scale)

    def project(self, drawn: Integers, size: int | None) -> Integers:
        """The nearest non-negative counts that sum to `size`, shape `(..., k)`, like `drawn`."""
        if size is None:
            raise ValueError("size=None: KNormParameters needs a public number of records.")
        return nearest_counts(drawn, size).astype(np.int64)

    def draw(self, counts: ArrayLike, prior: ArrayLike, draws: int = 1) -> Integers:
        """Draw with exact integer noise, shape `(draws, k)`; draws may be negative."""
        counts = as_counts(counts)
        as_prior(prior, counts.size)
        return saturated(knorm_noise(counts.size, Fraction(self.scale), draws) + counts)

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        """`d_in / scale`, twice that for the range, both tight, and `epsilon^2 / 2` for rho
        (`docs/research/proofs.md`, "K-norm noise").
        """
        epsilon = as_distance(d_in) / Fraction(self.scale)
        return PrivacyLoss(
            epsilon=round_up(epsilon), range=round_up(2 * epsilon), rho=round_up(epsilon**2 / 2)
        )
