"""The posterior under a prior that was learned from the release itself."""

from typing import Any

import numpy as np

from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.answers.quantities import OfDraws, Quantities, Quantity
from opendp_bayes.inference.engines.true_counts import Listed, TrueCounts
from opendp_bayes.inference.laws.beta_mixture import BetaMixture
from opendp_bayes.inference.learned.learned_counts import LearnedCounts
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.release_format.combination import Combination
from opendp_bayes.release_format.data import Label, ReleasedData


class LearnedPosterior(NoiseAwarePosterior):
    """The posterior of the category probabilities under a learned prior, by draws of Markov chains.

    It answers what a `NoiseAwarePosterior` answers. Given a draw the probabilities are Gamma
    variates divided by their sum and not Dirichlet, so that `prior` holds zeros; `learned` says
    what took its place.

    Source: `docs/posterior.md`, "A prior that is learned".
    """

    _true_counts: LearnedCounts

    def __init__(
        self,
        release: ReleasedData | Combination,
        true_counts: TrueCounts,
        categories: tuple[Label, ...] | None = None,
        prior: tuple[float, ...] | None = None,
    ) -> None:
        k = len(release.categories if categories is None else categories)
        super().__init__(release, true_counts, categories, (0.0,) * k)

    @property
    def learned(self) -> Quantities:
        """Posteriors of what describes the prior: the share of empty cells, the standard deviation
        of the others' log-intensity within margins, and that of the effects of each margin.
        """
        ess = self._true_counts.independent

        def quantity(label: str, values: Floats) -> Quantity:
            def source(size: int, seed: int | None) -> Floats:
                return np.random.default_rng(seed).choice(values, size)

            return Quantity(label, OfDraws(source, values.size, min(ess, values.size), 0))

        learned = self._true_counts.learned
        return Quantities([(label, quantity(label, each)) for label, each in learned.items()])

    @property
    def _counted(self) -> Listed:
        return self._true_counts.counted

    def _shares(self, counts: Any, prior: Floats, rng: np.random.Generator) -> Floats:
        """Probabilities from intensities, which stand for the counts here."""
        return np.asarray(counts / counts.sum(axis=1, keepdims=True, dtype=np.float64))

    def _smallest(self, places: list[int], mixture: BetaMixture) -> float:
        """No cell is without an intensity: moments are those of the mixture."""
        return float(mixture.b.min())

    def __repr__(self) -> str:
        found = self._true_counts.diagnostics
        return (
            f"LearnedPosterior({{{self._estimates()}}}, prior learned by Markov chains, R-hat"
            f" {found.r_hat.max():.3f}, ESS {found.ess.min():.0f})"
        )
