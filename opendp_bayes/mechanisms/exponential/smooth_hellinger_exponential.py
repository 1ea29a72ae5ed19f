"""EHDS and the notes' β variant: the exponential mechanism on the Hellinger score scaled by a
smooth sensitivity.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from opendp_bayes.mathematics.exponential.sensitivity import (
    RELATIVE_ERROR,
    global_sensitivity,
    smallest_local_sensitivity,
    smooth_sensitivities,
    smooth_sensitivities_at,
)
from opendp_bayes.mathematics.rounding import lower_end, round_down, round_up, upper_end
from opendp_bayes.mathematics.validation import (
    RATES,
    Floats,
    Integers,
    as_between,
    as_distance,
    as_prior,
    as_size,
)
from opendp_bayes.mechanisms.exponential.posterior_exponential import (
    PosteriorExponential,
    certified_loss,
    exponent_error,
)
from opendp_bayes.mechanisms.privacy_loss import NO_LOSS, PrivacyLoss

#: Where a calibration looks for the best smoothness.
_GAMMAS, _BETAS = (0.01, 4.0), (1e-4, 2.0)
_LIBM_ERROR = 2.0**-50  # relative error of expm1 in the C library, generously


@dataclass(frozen=True)
class SmoothHellingerExponential(PosteriorExponential):
    """Release a posterior `r` with probability proportional to `exp(-H(posterior(x), r) / (scale
    S(x)))` for a smooth sensitivity S.

    Needs a public number of records. Near the edge of the simplex (a rare category) S is as large
    as the global sensitivity and the release is little better than a uniform one; see
    `docs/research/mechanisms.md`, "The edge of the simplex".

    Source: tailoring paper, Definitions 3 and 4 (Algorithm 6 of "Private mechanisms"); notes,
    section 3.

    Parameters
    ----------
    scale : float
        Positive number. The papers' ε is `2 (1 + gamma) / scale`; what is proved here is `(1 +
        sqrt(1 + gamma^2)) / scale`.
    gamma : float or None
        Positive number; S is γ-smooth (EHDS). 1 unless `beta` is given.
    beta : float or None
        Positive number; S is β-smooth (the notes' variant). Exactly one of the two is used.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import SmoothHellingerExponential
    >>> SmoothHellingerExponential(scale=4.0)
    SmoothHellingerExponential(scale=4.0, gamma=1.0, beta=None)
    """

    scale: float
    gamma: float | None = None
    beta: float | None = None
    name: ClassVar[str] = "smooth_hellinger_exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gamma is not None and self.beta is not None:
            raise ValueError(
                f"gamma={self.gamma!r}, beta={self.beta!r}: give at most one of the two."
            )
        if self.beta is not None:
            object.__setattr__(self, "beta", as_between(self.beta, "beta", RATES))
        else:
            object.__setattr__(
                self, "gamma", 1.0 if self.gamma is None else as_between(self.gamma, "gamma", RATES)
            )

    @property
    def smoothness(self) -> tuple[str, tuple[float, float]]:
        """The parameter that the calibration may choose, and the range in which it looks."""
        return ("gamma", _GAMMAS) if self.gamma is not None else ("beta", _BETAS)

    def widths(self, size: int, prior: Floats) -> Floats:
        return self.scale * smooth_sensitivities(size, prior, gamma=self.gamma, beta=self.beta)

    def widths_at(self, counts: Integers, prior: Floats) -> Floats:
        return self.scale * smooth_sensitivities_at(counts, prior, gamma=self.gamma, beta=self.beta)

    def smallest_width(self, size: int, prior: Floats) -> float:
        """`S >= LS`; and S reaches from the data set where LS is GS to any other, at most `size`
        changes away.
        """
        smallest, largest = smallest_local_sensitivity(size, prior), global_sensitivity(size, prior)
        reached = (
            1 / (1 / largest + self.gamma * size)
            if self.gamma is not None
            else largest * math.exp(-(self.beta or 0.0) * size)
        )
        return round_down(
            Fraction(self.scale) * Fraction(max(smallest, lower_end(reached, 2 * RELATIVE_ERROR)))
        )

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        """`d_in (1 + sqrt(1 + gamma^2)) / scale` plus the sampler's error, of ε and of the range;
        less than the papers' `2 (1 + gamma) d_in / scale`.

        For β the same with the change of `1 / S` in place of gamma (`docs/research/proofs.md`, "A
        Hilbert metric", "EHDS" and "The β-smooth variant").
        """
        d_in, size, prior = as_distance(d_in), as_size(size), as_prior(prior)
        if d_in == 0:
            return NO_LOSS
        if self.gamma is not None:
            change = Fraction(self.gamma)
        else:  # S(x') <= exp(beta) S(x), and 1 / S is at most 1 / min LS
            part = upper_end(-math.expm1(-(self.beta or 0.0)), _LIBM_ERROR)
            change = Fraction(part) / Fraction(smallest_local_sensitivity(size, prior))
        error = exponent_error(self.smallest_width(size, prior), prior.size)
        return certified_loss(d_in * _score_range(change) / Fraction(self.scale), error)


def _score_range(change: Fraction) -> Fraction:
    """Upper bound on the range over r of `H(x, r) / S(x) - H(x', r) / S(x')` for neighbours whose
    `1 / S` differ by at most `change`.
    """
    root = math.sqrt(round_up(1 + change**2))
    return 1 + Fraction(upper_end(root, 2.0**-52)) if math.isfinite(root) else 2 + change
