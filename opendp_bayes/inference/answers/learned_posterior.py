"""The posterior under a prior that was learned from the release itself."""

import numpy as np

from opendp_bayes.inference.answers.posterior import NoiseAwarePosterior
from opendp_bayes.inference.answers.quantities import OfDraws, Quantities, Quantity
from opendp_bayes.inference.learned.learned_counts import LearnedCounts
from opendp_bayes.mathematics.validation import Floats


class LearnedPosterior(NoiseAwarePosterior):
    """The posterior of the category probabilities under a learned prior, by draws of Markov chains.

    It answers what a `NoiseAwarePosterior` answers. Given a draw the probabilities are Gamma
    variates divided by their sum and not Dirichlet, so that `prior` holds zeros; `learned` says
    what took its place.

    Source: `docs/posterior.md`, "A prior that is learned".
    """

    _engine: LearnedCounts

    @property
    def learned(self) -> Quantities:
        """Posteriors of what describes the prior: the share of empty cells, the standard deviation
        of the others' log-intensity within margins, and that of the effects of each margin.
        """

        def quantity(label: str, values: Floats) -> Quantity:
            def source(draws: int, seed: int | None) -> Floats:
                return np.random.default_rng(seed).choice(values, draws)

            behind = min(self._engine.independent, values.size)
            return Quantity(label, OfDraws(source, values.size, behind, 0))

        return Quantities((label, quantity(label, v)) for label, v in self._engine.learned.items())

    def __repr__(self) -> str:
        found = self._engine.diagnostics
        return (
            f"LearnedPosterior({{{self._estimates()}}}, prior learned by Markov chains, R-hat"
            f" {found.r_hat.max():.3f}, ESS {found.ess.min():.0f})"
        )
