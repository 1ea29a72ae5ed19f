"""Answers of a posterior about its categories one by one."""

from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.answers.by_label import position_of
from opendp_bayes.inference.answers.one_category import CategoryPosterior
from opendp_bayes.inference.answers.simultaneous import pointwise_level
from opendp_bayes.inference.answers.whole_numbers import CountsPosterior, NumberPosterior
from opendp_bayes.inference.engines.true_counts import TrueCounts
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet
from opendp_bayes.inference.sampling.importance import WeightDiagnostics, Weighted
from opendp_bayes.inference.sampling.markov_chain import Chains, Diagnostics
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_level, as_size
from opendp_bayes.release_format.data import Label

Interval = Literal["equal-tailed", "highest density", "simultaneous"]

#: Draws behind every number that is estimated by simulation.
DRAWS = 40_000


class CategoryAnswers:
    """Means, intervals, densities and draws of the probabilities of categories, and their counts.

    `prior` is the concentration of the prior of the probabilities, which given the counts are
    Dirichlet.
    """

    def __init__(
        self, categories: tuple[Label, ...], prior: tuple[float, ...], true_counts: TrueCounts
    ) -> None:
        self.categories, self.prior = categories, prior
        self._true_counts = true_counts

    @property
    def diagnostics(self) -> Diagnostics | WeightDiagnostics | None:
        """Effective sample sizes, and R-hat of Markov chains; None where nothing was drawn."""
        if not isinstance(self._true_counts, (Chains, Weighted)):
            return None
        return replace(self._true_counts.diagnostics, categories=self.categories)

    def __getitem__(self, label: Label) -> CategoryPosterior:
        """The probability of one category. Raises `KeyError` for what is none."""
        place = position_of(label, self.categories)
        return CategoryPosterior(label, self._marginals.chosen(np.array([place])))

    @cached_property
    def counts(self) -> CountsPosterior:
        """The posterior of the true counts, those of the records that were counted."""
        return CountsPosterior(self.categories, self._counted.counts, self._counted.sample)

    @cached_property
    def size(self) -> NumberPosterior:
        """The posterior of the number of records; a certainty where that is public."""
        return NumberPosterior(
            "records",
            self._counted.size,
            lambda size, rng: self._counted.sample(size, rng).sum(axis=1),
        )

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._marginals.mean()

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return np.sqrt(self._marginals.variance())

    def pdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior density of every category at the values of shape `(...)`; shape `(...,
        k)`.
        """
        return self._marginals.pdf(np.asarray(values)[..., None])

    def cdf(self, values: ArrayLike) -> Floats:
        """Marginal posterior probability of being at most the values, of shape `(...)`; shape
        `(..., k)`.
        """
        return self._marginals.cdf(np.asarray(values)[..., None])

    def interval(
        self, level: float = 0.95, kind: Interval = "equal-tailed"
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends of credible intervals of probability `level`, two arrays of shape
        `(k,)`.

        Parameters
        ----------
        level : between 0 and 1.
        kind : `"equal-tailed"`; `"highest density"`, the shortest interval; or `"simultaneous"`,
            equal-tailed intervals widened until all of them hold together with probability
            `level` (by simulation).

        Raises `ValueError` for another level or kind.
        """
        level = as_level(level)
        as_choice(kind, "kind", ("equal-tailed", "highest density", "simultaneous"))
        if kind == "simultaneous":
            level = self._pointwise_level(level)
        if kind == "highest density":
            return self._marginals.shortest_interval(level)
        return self._marginals.interval(level)

    def sample(self, size: int, seed: int | None = None) -> Floats:
        """Draws of the category probabilities, shape `(size, k)`. A `seed` makes them
        repeatable.
        """
        rng = np.random.default_rng(seed)
        return self._given(self._true_counts.sample(as_size(size, of="draws"), rng), rng)

    def predictive(self, size: int, draws: int = 4000, seed: int | None = None) -> Integers:
        """Draws of the counts of `size` further records from the posterior predictive distribution,
        shape `(draws, k)`.
        """
        rng = np.random.default_rng(seed)
        size = as_size(size)
        return rng.multinomial(
            size, self._given(self._true_counts.sample(as_size(draws, "draws", "draws"), rng), rng)
        )

    @property
    def _counted(self) -> TrueCounts:
        """The true counts alone."""
        return self._true_counts

    @property
    def _marginals(self) -> BetaMixtures:
        return self._true_counts.probabilities

    def _given(self, counts: Integers, rng: np.random.Generator) -> Floats:
        return dirichlet(np.array(self.prior) + counts, rng)

    def _draws(self, seed: np.random.SeedSequence) -> Floats:
        rng = np.random.default_rng(seed)
        return self._given(self._true_counts.sample(DRAWS, rng), rng)

    def _effective(self, draws: int) -> float:
        """Independent draws that `draws` draws are worth: no more than those that they are taken
        from, where the posterior is known by draws itself.
        """
        behind = independent_draws(self._true_counts)
        return draws if behind == np.inf else 1 / (1 / draws + 1 / behind)

    def _pointwise_level(self, level: float) -> float:
        """The level at which equal-tailed intervals hold for all categories at once with
        probability `level`, from ranks of draws.
        """
        if len(self.categories) == 2:
            return level
        return pointwise_level(self._draws(np.random.SeedSequence(0)), level)


def independent_draws(true_counts: TrueCounts) -> float:
    """Independent draws that a posterior of counts rests on; infinite where it is computed."""
    if isinstance(true_counts, (Chains, Weighted)):
        return float(true_counts.diagnostics.ess.min())
    return float(getattr(true_counts, "independent", np.inf))
