"""A release with its two posteriors; inference is loaded when the noise-aware one is asked for."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.release_format.data import ReleasedData

if TYPE_CHECKING:
    from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior


@dataclass(frozen=True, eq=False)
class InferredRelease(UnderflowIsZero, ReleasedData):
    """The data of a release with its two posteriors, each computed when it is first read."""

    @property
    def plug_in(self) -> Any:
        """The papers' posterior: the released counts taken as if they were the data.

        A frozen `scipy.stats.beta` (k = 2, probability of the first category) or
        `scipy.stats.dirichlet`. It ignores the noise, so its intervals are too short
        (`docs/limits.md`); `posterior` does not.
        """
        from scipy import stats

        return (
            stats.beta(*self.concentration) if self.k == 2 else stats.dirichlet(self.concentration)
        )

    @cached_property
    def posterior(self) -> "NoiseAwarePosterior":
        """The posterior of the category probabilities given the release, its noise taken into
        account (`NoiseAwarePosterior`).

        Computed when first used. `noise_aware_posterior` makes one with other than the default
        settings.
        """
        from opendp_bayes.inference.noise_aware import noise_aware_posterior

        # That of the table is shared by all its groups.
        if isinstance(self.source, InferredRelease):
            return self.source.posterior._part(self)
        return noise_aware_posterior(self)

    @property
    def has_posterior(self) -> bool:
        """True if `posterior` was computed before."""
        return "posterior" in vars(self)
