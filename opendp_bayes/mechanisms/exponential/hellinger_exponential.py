"""EHD and EHDL: the exponential mechanism on the Hellinger score, with global or local
sensitivity.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np

from opendp_bayes.mathematics.exponential.sensitivity import (
    RELATIVE_ERROR,
    global_sensitivity,
    local_sensitivities_at,
    smallest_local_sensitivity,
)
from opendp_bayes.mathematics.rounding import round_down, upper_end
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    as_choice,
    as_distance,
    as_prior,
    as_size,
)
from opendp_bayes.mechanisms.exponential.posterior_exponential import (
    PosteriorExponential,
    certified_loss,
    exponent_error,
)
from opendp_bayes.mechanisms.privacy_loss import NO_BOUND, NO_LOSS, PrivacyLoss


@dataclass(frozen=True)
class HellingerExponential(PosteriorExponential):
    """Release a posterior `r` with probability proportional to `exp(-H / scale)` or `exp(-H /
    (scale LS(x)))`, `H = H(posterior(x), r)`.

    Needs a public number of records. Source: tailoring paper, sections 4.2.1 and 4.2.2 (Algorithms
    4 and 5 of "Private mechanisms").

    Parameters
    ----------
    scale : float
        Positive number. The papers' ε is `2 GS / scale` (EHD) or nominally `2 / scale` (EHDL).
    sensitivity : {"global", "local"}
        `"global"` (EHD), which is private, or `"local"` (EHDL), whose width depends on the data and
        for which no closed-form bound holds: its loss is reported as infinite.

    Examples
    --------
    >>> from opendp_bayes.mechanisms import HellingerExponential
    >>> candidates, log_p = HellingerExponential(scale=0.5).log_pmf([1, 1], 1.0)
    >>> candidates.tolist()
    [[0, 2], [1, 1], [2, 0]]
    """

    scale: float
    sensitivity: Literal["global", "local"] = "global"
    name: ClassVar[str] = "hellinger_exponential"

    def __post_init__(self) -> None:
        super().__post_init__()
        as_choice(self.sensitivity, "sensitivity", ("global", "local"))

    def widths_at(self, counts: Integers, prior: Floats) -> Floats:
        return (
            np.full(len(counts), self.scale)
            if self.sensitivity == "global"
            else self.scale * local_sensitivities_at(counts, prior)
        )

    def smallest_width(self, size: int, prior: Floats) -> float:
        least = 1.0 if self.sensitivity == "global" else smallest_local_sensitivity(size, prior)
        return round_down(Fraction(self.scale) * Fraction(least))

    def proven_loss(
        self, d_in: int, *, size: int | None, prior: Floats, delta: float = 0.0
    ) -> PrivacyLoss:
        """`epsilon = range = 2 d_in GS / scale` plus the sampler's error for EHD; infinite for EHDL
        (`docs/research/proofs.md`, "EHD").
        """
        d_in, size, prior = as_distance(d_in), as_size(size), as_prior(prior)
        if d_in == 0:
            return NO_LOSS
        if self.sensitivity == "local":
            return NO_BOUND
        largest_change = Fraction(upper_end(global_sensitivity(size, prior), RELATIVE_ERROR))
        return certified_loss(
            2 * d_in * largest_change / Fraction(self.scale),
            exponent_error(self.smallest_width(size, prior), prior.size),
        )
