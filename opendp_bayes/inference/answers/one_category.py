"""The posterior of the probability of one category."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.answers.quantities import OfMixture, Quantity
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.mathematics.validation import Floats, as_choice, as_level
from opendp_bayes.release_format.data import Label


class CategoryPosterior(Quantity):
    """The posterior of the probability of one category, `posterior["yes"]`: a mixture of Betas.

    Attributes
    ----------
    label : the category.
    """

    def __init__(self, label: Label, mixture: BetaMixtures, draws: float) -> None:
        super().__init__(label, OfMixture(mixture[0], draws))
        self._mixture = mixture

    def interval(
        self, level: float = 0.95, kind: Literal["equal-tailed", "highest density"] = "equal-tailed"
    ) -> tuple[float, float]:
        """Lower and upper end of the credible interval of probability `level`.

        Raises `ValueError` for another level or kind.
        """
        level = as_level(level)
        as_choice(kind, "kind", ("equal-tailed", "highest density"))
        equal = kind == "equal-tailed"
        found = self._mixture.interval(level) if equal else self._mixture.shortest_interval(level)
        return float(found[0][0]), float(found[1][0])

    def pdf(self, values: ArrayLike) -> Floats:
        """Posterior density, elementwise; 0 outside [0, 1]."""
        return self._mixture[0].pdf(np.asarray(values))

    def __repr__(self) -> str:
        return f"CategoryPosterior({self.label!r}: {self.mean():.4g} ± {self.std():.2g})"
