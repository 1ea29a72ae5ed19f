"""Gaussian noise on the counts, on integers: for budgets in ρ and in (ε, δ)."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, SupportsIndex

import numpy as np

from opendp_bayes.mathematics.rounding import round_up, upper_end
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_delta, as_prior
from opendp_bayes.mathematics.zero_sum import nearest_counts
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian
from opendp_bayes.mechanisms.laws import AdditiveNoise
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.noisy_counts import NoisyCounts
from opendp_bayes.mechanisms.privacy_loss import NO_LOSS, PrivacyLoss

#: Relative error of the logarithm and the root in `proven_loss`.
_FLOAT_ERROR = 2.0**-48


@dataclass(frozen=True)
class GaussianParameters(NoisyCounts):
    """Add independent discrete Gaussian noise, `P(z) ∝ exp(-z^2 / (2 scale^2))`, to every count.

    Under ρ and under composition its error is smaller than that of Laplace and K-norm noise. It
    has no pure ε.

    Source: Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy";
    `docs/research/mechanisms.md`, "Gaussian noise".

    Parameters
    ----------
    scale : float
        Positive number, in records; the standard deviation, but for scales well below 1.
    total : {"private"} or None
        What becomes of the number of records.

        * `None`: where it is public the released counts are the nearest that sum to it, where it is
          private they are clamped to be non-negative.
        * `"private"`: clamped to be non-negative, also where it is public.

    Examples
    --------
    >>> from opendp_bayes import GaussianParameters, exact_loss
    >>> exact_loss(GaussianParameters(scale=4.0), size=100, prior=[1.0, 1.0]).rho
    0.0625
    """

    scale: float
    total: Literal["private"] | None = None
    name: ClassVar[str] = "gaussian_parameters"

    def __post_init__(self) -> None:
        super().__post_init__()
        as_choice(self.total, "total", (None, "private"))

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Accept any number of records, public or private."""

    def law(self, size: int | None, prior: Floats) -> AdditiveNoise:
        """Independent noise on all counts."""
        lowest = 0 if size is None or self.total == "private" else -math.inf
        return AdditiveNoise(
            DiscreteGaussian(self.scale), (True,) * prior.size, cut=(lowest, math.inf)
        )

    def project(self, drawn: Integers, size: int | None) -> Integers:
        """Project draws, shape `(..., k)`: to the nearest counts that sum to `size`, or clamped to
        be non-negative.
        """
        if size is None or self.total == "private":
            return np.maximum(drawn, 0)
        return nearest_counts(drawn, size, fair=True).astype(np.int64)

    def proven_loss(
        self, d_in: SupportsIndex, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        """`rho = L2^2 / (2 scale^2)`, which is attained. L2^2 is the sum of the squares of what the
        counts move by: of d records added or removed d^2, of a `Distance` what it says, and twice
        that for records changed (`docs/research/proofs.md`, "Gaussian noise").

        ε is infinite without `delta`, and `rho + 2 sqrt(rho ln(1 / delta))` with it.
        """
        squared = Distance.of(d_in).squared
        if squared == 0:
            return NO_LOSS
        moved = self.law(size, as_prior(prior)).moved(size)
        rho = Fraction(moved * squared) / (2 * Fraction(self.scale) ** 2)
        epsilon = math.inf
        if as_delta(delta):
            root = math.sqrt(round_up(rho) * -math.log(delta))
            epsilon = round_up(rho + 2 * Fraction(upper_end(root, _FLOAT_ERROR)))
        return PrivacyLoss(epsilon=epsilon, range=math.inf, rho=round_up(rho), delta=delta)
