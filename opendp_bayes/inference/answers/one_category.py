"""The posterior of the probability of one category."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.mathematics.validation import Floats, as_choice, as_level, as_size
from opendp_bayes.release_format.data import Label


class CategoryPosterior:
    """The posterior of the probability of one category, `posterior["yes"]`: a mixture of Betas.

    Attributes
    ----------
    label : the category.
    """

    def __init__(self, label: Label, mixture: BetaMixtures) -> None:
        self.label = label
        self._mixture = mixture

    def mean(self) -> float:
        """Posterior mean."""
        return float(self._mixture.mean()[0])

    def std(self) -> float:
        """Posterior standard deviation."""
        return float(np.sqrt(self._mixture.variance()[0]))

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
        return self._mixture[0].pdf(values)

    def cdf(self, values: ArrayLike) -> Floats:
        """Posterior probability of being at most each value, elementwise."""
        return self._mixture[0].cdf(values)

    def sample(self, size: int, seed: int | None = None) -> Floats:
        """Independent draws, shape `(size,)`. A `seed` makes them repeatable."""
        return self._mixture[0].draw(as_size(size, of="draws"), np.random.default_rng(seed))

    def __repr__(self) -> str:
        return f"CategoryPosterior({self.label!r}: {self.mean():.4g} ± {self.std():.2g})"
