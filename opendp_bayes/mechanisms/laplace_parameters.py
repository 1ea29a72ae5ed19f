"""Laplace noise on the counts: the papers' LSZhang, LSDim and LSHist (floored), and discrete
Laplace.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, SupportsIndex, get_args

import numpy as np

from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_prior
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace, FlooredLaplace
from opendp_bayes.mechanisms.laws import AdditiveNoise
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.noisy_counts import NoisyCounts
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss

#: What becomes of the number of records n; `LaplaceParameters` says what they mean.
Total = Literal["remainder", "truncated", "bounded", "private"]


@dataclass(frozen=True)
class LaplaceParameters(NoisyCounts):
    """Add independent integer Laplace noise to the counts and clamp the result to what counts can
    be.

    Source: tailoring paper, section 4.1; Algorithms 1 to 3 of "Private mechanisms";
    `docs/research/mechanisms.md`, "Laplace noise".

    Parameters
    ----------
    scale : float
        Positive number, in records.
    noise : {"discrete", "floored"}
        `"discrete"` (two-sided geometric), or `"floored"`, the papers' `floor(Laplace(scale))`,
        which is biased by -1/2.
    total : {"remainder", "private", "bounded"}
        What becomes of the number of records n.

        * `"remainder"`: n is public; the first k - 1 counts are noised and clamped to [0, n], the
          last is what remains, clamped to [0, n]. Floored, this is LSDim at scale `k / ε` and
          LSHist at scale `1 / ε` (k = 2) or `2 / ε`.
        * `"truncated"`: the same, but where the first k - 1 counts sum to more than n, each keeps
          at most what those before it leave, so that n records are released.
        * `"bounded"`: n is public; all k counts are noised and clamped to [0, n]. Floored at scale
          `2 / ε`, this is LSZhang.
        * `"private"`: n is not public; all k counts are noised and clamped to be non-negative.

    Examples
    --------
    >>> from opendp_bayes import LaplaceParameters
    >>> candidates, log_p = LaplaceParameters(scale=1.0).log_pmf([1, 1], prior=1.0)
    >>> (2.718281828459045**log_p).round(4).tolist()
    [0.2689, 0.4621, 0.2689]
    """

    scale: float
    noise: Literal["discrete", "floored"] = "discrete"
    total: Total = "remainder"
    name: ClassVar[str] = "laplace_parameters"

    def __post_init__(self) -> None:
        super().__post_init__()
        as_choice(self.noise, "noise", ("discrete", "floored"))
        as_choice(self.total, "total", get_args(Total))

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` if the number of records is private and `total` needs it."""
        if size is None and self.total != "private":
            raise ValueError(
                f"total={self.total!r}: needs a public number of records; under add/remove"
                " neighbours it must be 'private'."
            )

    def law(self, size: int | None, prior: Floats) -> AdditiveNoise:
        """Independent noise on all counts, or on all but the last for `total="remainder"`."""
        self.check(size=size, prior=prior)
        kind = DiscreteLaplace if self.noise == "discrete" else FlooredLaplace
        noised = (*(True,) * (prior.size - 1), not self._keeps_the_last)
        largest = math.inf if self.total == "private" or size is None else size
        return AdditiveNoise(kind(self.scale), noised, cut=(0, largest))

    def project(self, drawn: Integers, size: int | None) -> Integers:
        """Clamp draws, shape `(..., k)`, to values that counts can have. `size` is used where it is
        public.
        """
        if self.total == "private":
            return np.maximum(drawn, 0)
        if size is None:
            raise ValueError(f"size=None: total={self.total!r} needs a public number of records.")
        clamped = np.clip(drawn, 0, size)
        if self.total == "truncated":
            upto = np.minimum(np.cumsum(clamped[..., :-1], axis=-1), size)
            return np.diff(upto, axis=-1, prepend=0, append=size)
        if self.total == "remainder":
            clamped[..., -1] = np.clip(size - clamped[..., :-1].sum(axis=-1), 0, size)
        return clamped

    @property
    def _keeps_the_last(self) -> bool:
        """True if the last count is not noised but takes the records that the others leave."""
        return self.total in ("remainder", "truncated")

    def proven_loss(
        self, d_in: SupportsIndex, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        """`L1 / scale`, where L1 is the largest total movement of the noised counts; tight
        (`docs/research/proofs.md`, "Laplace noise").

        A record changed moves one noised count by 1 if only one is noised, otherwise two; a record
        added or removed moves one. `rho` adds `(movement / scale)^2 / 2` over the counts that move,
        whose squares a `Distance` bounds.
        """
        distance, prior = Distance.of(d_in), as_prior(prior)
        moved = 1 if size is None or (self._keeps_the_last and prior.size == 2) else 2
        epsilon = moved * distance.records / Fraction(self.scale)
        rho = moved * distance.squared / (2 * Fraction(self.scale) ** 2)
        return PrivacyLoss(
            epsilon=round_up(epsilon), range=round_up(2 * epsilon), rho=round_up(rho)
        )
