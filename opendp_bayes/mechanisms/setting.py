"""A mechanism in its public setting: everything that follows from the two together."""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import SCALES, Floats, Integers, as_prior, as_size
from opendp_bayes.mechanisms import registry
from opendp_bayes.mechanisms.laws import AdditiveNoise, Law, SimplexNoise
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism, is_lawful, law_of


@dataclass(frozen=True)
class Setting:
    """A mechanism, the public number of records, None where it is private, and the prior, one entry
    for each category.

    `Setting.of` validates them at the boundary; whoever is given a setting relies on that. Losses
    are cached by it, so it stays out of everybody's reach.
    """

    mechanism: Mechanism
    size: int | None
    prior: tuple[float, ...]

    @classmethod
    def of(cls, mechanism: Mechanism, size: int | None, prior: ArrayLike) -> "Setting":
        """Validate the three, and hold a copy of the mechanism that nobody else can change.

        Raises
        ------
        ValueError, TypeError
            For what is not valid, and where the mechanism cannot be used for so many records and
            this prior.
        """
        if not isinstance(mechanism, Mechanism):
            raise TypeError(
                f"mechanism={told(mechanism)}: must be a mechanism value, such as"
                " LaplaceParameters(scale=1.0)."
            )
        if type(mechanism).__hash__ is None:
            raise TypeError(
                f"mechanism={told(mechanism)}: must be hashable; give its class"
                " @dataclass(frozen=True)."
            )
        array = as_prior(prior)
        size = None if size is None else as_size(size)
        checked: Mechanism = replace(deepcopy(mechanism))  # its own checks are made once more
        # A loss may be asked for at a scale that no release should use.
        replace(checked, scale=SCALES[0]).check(size=size, prior=array)
        return cls(checked, size, tuple(array.tolist()))

    def changed(self, **parameters: Any) -> "Setting":
        """Give the mechanism another scale or smoothness, on which no check depends."""
        return replace(self, mechanism=replace(self.mechanism, **parameters))

    @property
    def prior_array(self) -> Floats:
        """The prior as an array, shape `(k,)`."""
        return np.array(self.prior)

    @cached_property
    def law(self) -> Law | None:
        """The law of the draws; None where the mechanism does not state it."""
        return law_of(self.mechanism, self.size, self.prior_array)

    @property
    def adds_noise(self) -> bool:
        """True if the draws are counts with noise that depends on nothing else, so that they say
        the same under every prior.
        """
        return isinstance(self.law, (AdditiveNoise, SimplexNoise))

    @cached_property
    def is_accounted(self) -> bool:
        """True if the loss can be computed, as for every mechanism built in; of any other only its
        `proven_loss` is known.
        """
        return type(self.mechanism) in registry.BUILT_IN

    @property
    def spends_no_delta(self) -> bool:
        """True for an exponential mechanism built in: the exact profile at 1e-6 would change the
        fifth digit of its ε, in a minute.
        """
        return self.is_accounted and not self.adds_noise

    def proven_loss(self, distance: Distance, delta: float = 0.0) -> PrivacyLoss:
        """The loss that the mechanism proves at a distance; one that is not built in proves it for
        numbers of records.
        """
        d_in: Any = distance if self.is_accounted else distance.records
        return self.mechanism.proven_loss(d_in, size=self.size, prior=self.prior_array, delta=delta)

    def check_informative(self) -> None:
        """Raise `ValueError` if the mechanism cannot be used, or if it has a method
        `check_informative` and that says that nearly every release would ignore the data.

        Not asked at construction: OpenDP searches for a scale by building a measurement at many.
        """
        public: Any = {"size": self.size, "prior": self.prior_array}
        self.mechanism.check(**public)
        of_its_own = getattr(self.mechanism, "check_informative", None)
        if of_its_own is not None:
            of_its_own(**public)

    def check_learnable(self) -> None:
        """Raise `ValueError` where a prior cannot be learned from what the mechanism draws."""
        if not self.adds_noise:
            raise ValueError(
                "prior='learned': needs noise on the counts, as of KNormParameters,"
                f" LaplaceParameters or GaussianParameters; what {self.mechanism.name!r} draws"
                " depends on the prior. Leave prior out, or use another mechanism."
            )

    def projected(self, drawn: Integers) -> Integers:
        """The counts released for draws, shape `(..., k)`: the draws themselves where the mechanism
        has no projection.
        """
        return self.mechanism.project(drawn, self.size) if is_lawful(self.mechanism) else drawn
