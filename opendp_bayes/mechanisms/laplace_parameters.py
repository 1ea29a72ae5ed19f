"""Laplace noise on the counts: the papers' LSZhang, LSDim and LSHist (floored), and discrete Laplace."""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes._rounding import round_up
from opendp_bayes._validation import Floats, Integers, as_choice, as_counts, as_distance, as_prior, as_scale
from opendp_bayes.privacy_loss import NO_LOSS, PrivacyLoss
from opendp_bayes.sampling import discrete_laplaces, floored_laplaces
from opendp_bayes.simplex import LARGEST_ENUMERATION

_SATURATION = 2**62


@dataclass(frozen=True)
class LaplaceParameters:
    """Add independent integer Laplace noise to the counts and clamp the result to what counts can be.

    Parameters
    ----------
    scale : positive number, in records.
    noise : `"discrete"` (two-sided geometric), or `"floored"`, the papers' `floor(Laplace(scale))`, which is biased by -1/2.
    total : what becomes of the number of records n.

        * `"remainder"`: n is public; the first k - 1 counts are noised and clamped to [0, n], the last is what remains, clamped to [0, n].
          Floored, this is LSDim at scale `k / ε` and LSHist at scale `1 / ε` (k = 2) or `2 / ε`.
        * `"bounded"`: n is public; all k counts are noised and clamped to [0, n]. Floored at scale `2 / ε`, this is LSZhang.
        * `"private"`: n is not public; all k counts are noised and clamped to be non-negative.

    Source: tailoring paper, section 4.1; Algorithms 1 to 3 of "Private mechanisms"; `docs/mechanisms.md`, "Laplace noise".

    >>> from opendp_bayes import LaplaceParameters
    >>> candidates, log_p = LaplaceParameters(scale=1.0).log_pmf([1, 1], prior=1.0)
    >>> (2.718281828459045**log_p).round(4).tolist()
    [0.2689, 0.4621, 0.2689]
    """

    scale: float
    noise: Literal["discrete", "floored"] = "discrete"
    total: Literal["remainder", "bounded", "private"] = "remainder"
    name: ClassVar[str] = "laplace_parameters"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", as_scale(self.scale))  # a float, whatever number was given
        as_choice(self.noise, "noise", ("discrete", "floored"))
        as_choice(self.total, "total", ("remainder", "bounded", "private"))

    def check(self, *, size: int | None, prior: Floats) -> None:
        """Raise `ValueError` if the number of records is private and `total` needs it."""
        if size is None and self.total != "private":
            raise ValueError(f"total={self.total!r}: needs a public number of records; under add/remove neighbours it must be 'private'.")

    def noised_part(self, counts: Integers) -> Integers:
        """The counts that receive noise: all but the last for `total="remainder"`, otherwise all."""
        return counts[:-1] if self.total == "remainder" else counts

    def assemble(self, noised: Integers, size: int) -> Integers:
        """Post-processing: clamp the noised counts, shape `(..., j)`, and complete them to shape `(..., k)`. `size` is used where it is public."""
        if self.total == "private":
            return np.maximum(noised, 0)
        clamped = np.clip(noised, 0, size)
        if self.total == "bounded":
            return clamped
        remainder = np.clip(size - clamped.sum(axis=-1, keepdims=True), 0, size)
        return np.concatenate([clamped, remainder], axis=-1)

    def log_pmf(self, counts: ArrayLike, prior: ArrayLike) -> tuple[Integers, Floats]:
        """Candidates, shape `(c, k)`, and their log-probabilities, shape `(c,)`; the prior does not influence the noise.

        Raises `ValueError` for `total="private"`, whose candidates are infinitely many, or beyond 10^6 candidates.
        """
        counts = as_counts(counts)
        as_prior(prior, counts.size)
        if self.total == "private":
            raise ValueError("total='private': the released counts are unbounded, so their probabilities cannot be enumerated.")
        size, part = int(counts.sum()), self.noised_part(counts)
        number = (size + 1) ** part.size
        if number > LARGEST_ENUMERATION:
            raise ValueError(
                f"counts: there are {Decimal(number):.3g} candidates for {size} records; must be at most {LARGEST_ENUMERATION} to enumerate."
            )
        values = np.indices((size + 1,) * part.size).reshape(part.size, -1)
        marginals = [self._log_clamped(int(count), size) for count in part]
        log_p = sum((marginal[value] for marginal, value in zip(marginals, values, strict=True)), start=np.zeros(number))
        return self.assemble(values.T, size), log_p

    def sample(self, counts: ArrayLike, prior: ArrayLike, size: int = 1) -> Integers:
        """`size` releases, shape `(size, k)`, with exact integer noise."""
        counts = as_counts(counts)
        as_prior(prior, counts.size)
        part, scale = self.noised_part(counts), Fraction(self.scale)
        draw = discrete_laplaces if self.noise == "discrete" else floored_laplaces
        noised = draw(scale, size * part.size).reshape(size, part.size) + part
        # Saturated, which is post-processing, so that sums stay within int64.
        saturated = np.clip(noised, -_SATURATION, _SATURATION).astype(np.int64)
        return self.assemble(saturated, int(counts.sum()))

    def proven_loss(self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0) -> PrivacyLoss:
        """`L1 / scale`, where L1 is the largest total movement of the noised counts; tight (`docs/proofs.md`, "Laplace noise").

        A record changed moves one noised count by 1 if only one is noised, otherwise two; a record added or removed moves one. `rho` adds
        `(movement / scale)^2 / 2` over the counts that move, which is at most two by `d_in` each.
        """
        d_in, prior = as_distance(d_in), as_prior(prior)
        if d_in == 0:
            return NO_LOSS
        moved = 1 if size is None or (self.total == "remainder" and prior.size == 2) else 2
        each = d_in / Fraction(self.scale)
        epsilon = round_up(moved * each)
        return PrivacyLoss(epsilon=epsilon, range=round_up(2 * moved * each), rho=round_up(moved * each**2 / 2))

    def _log_clamped(self, count: int, size: int) -> Floats:
        """`ln P(clamp(count + Z, 0, size) = y)` for y = 0..size."""
        if size == 0:
            return np.zeros(1)
        rate = 1 / self.scale
        value = np.arange(size + 1)
        step = value - count
        log_one_minus_q = math.log(-math.expm1(-rate))
        if self.noise == "discrete":
            log_p = -rate * np.abs(step) + log_one_minus_q - math.log1p(math.exp(-rate))
            log_p[0] = -rate * count - math.log1p(math.exp(-rate))
            log_p[size] = -rate * (size - count) - math.log1p(math.exp(-rate))
        else:
            log_p = -rate * np.where(step >= 0, step, -step - 1) + log_one_minus_q - math.log(2)
            log_p[0] = -rate * (count - 1) - math.log(2) if count else math.log1p(-math.exp(-rate) / 2)
            log_p[size] = -rate * (size - count) - math.log(2)
        return log_p
