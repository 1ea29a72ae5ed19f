"""Answers of a posterior about events and about numbers that follow from its categories."""

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes.inference.answers.by_label import CATEGORIES, position_of
from opendp_bayes.inference.answers.category_answers import (
    DRAWS,
    CategoryAnswers,
    independent_draws,
)
from opendp_bayes.inference.answers.comparison import Probability, standard_error
from opendp_bayes.inference.answers.quantities import (
    OfDraws,
    OfMixture,
    Quantities,
    Quantity,
    checked,
    estimated,
)
from opendp_bayes.inference.laws.beta_mixture import BetaMixture
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_size
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.labels import ByLabel

#: Draws on which a function is tried before many are made.
_TRIAL = 5


class QuantityAnswers(CategoryAnswers):
    """Probabilities of events, and differences, ratios, odds and any function of the probabilities
    or of the counts.
    """

    def probability(
        self,
        event: Callable[[Floats], NDArray[np.bool_]],
        draws: int = DRAWS,
        seed: int | None = 0,
    ) -> Probability:
        """The posterior probability of an event, with its Monte Carlo standard error.

        `event` is a function of the probabilities, an array of shape `(k, draws)` so that
        `theta[0]` is the first category in every draw; it returns booleans of shape `(draws,)`, as
        `lambda theta: theta[0] > theta[1]` does. Raises `ValueError` if it returns anything else.
        """
        draws = as_size(draws, "draws", "draws")
        trial = np.random.default_rng(0).dirichlet(np.ones(len(self.categories)), _TRIAL)
        _occurred(event, trial)  # before the draws, which may take long
        holds = _occurred(event, self.sample(draws, seed))
        return Probability(
            float(holds.mean()), float(standard_error(holds.mean(), self._effective(draws)))
        )

    def difference(self, first: Label, second: Label, seed: int | None = 0) -> Quantity:
        """The probability of one category minus that of another, for instance of two parties.

        Its mean, its standard deviation and the probability of its sign are computed; intervals
        are of draws. Raises `KeyError` for what is no category.
        """
        places = [position_of(label, self.categories) for label in (first, second)]
        mean, variance = self.mean()[places], self.std()[places] ** 2
        # Of the sum of both, which is 1 where there are no others.
        rest = [[i] for i in range(len(self.categories)) if i not in places]
        merged = self._true_counts.merged([places, *rest]).probabilities if rest else None
        together = 0.0 if merged is None else float(merged.chosen(np.array([0])).variance()[0])
        square = max(2 * float(variance.sum()) - together, 0.0)
        among = self._true_counts.given(places)
        behind = independent_draws(self._true_counts)
        law = OfDraws(
            lambda size, seed: self._differences(places, size, seed),
            DRAWS,
            self._effective(DRAWS),
            seed,
            (float(mean[0] - mean[1]), float(np.sqrt(square)), behind),
            estimated(float(among.probabilities[0].cdf(0.5)), independent_draws(among)),
        )
        return Quantity(f"{first} - {second}", law)

    def ratio(self, first: Label, second: Label) -> Quantity:
        """The probability of one category over that of another, by the mixture of Betas that it
        follows from. Its mean is infinite where the prior of the second is at most 1, and its
        standard deviation where that is at most 2: the second may have no records. Raises
        `KeyError` for what is no category.
        """
        places = [position_of(label, self.categories) for label in (first, second)]
        among = self._true_counts.given(places)
        mixture = among.probabilities[0]
        law = OfMixture(mixture, independent_draws(among), self._smallest(places[1:], mixture))
        return Quantity(f"{first} / {second}", law)

    def odds(self, label: Label) -> Quantity:
        """The odds of one category, `θ / (1 - θ)`, as the `ratio` to all others together. Raises
        `KeyError` for what is none.
        """
        place = position_of(label, self.categories)
        others = [other for other in range(len(self.categories)) if other != place]
        behind = independent_draws(self._true_counts)
        mixture = self._marginals[place]
        law = OfMixture(mixture, behind, self._smallest(others, mixture))
        return Quantity(f"odds of {label}", law)

    def cumulative(self) -> Quantities:
        """For ordered categories, the probability of each or one before it. The last one's is 1
        and left out.
        """
        k = len(self.categories)
        found = []
        for last, label in enumerate(self.categories[:-1]):
            merged = self._true_counts.merged([range(last + 1), range(last + 1, k)])
            law = OfMixture(merged.probabilities[0], independent_draws(merged))
            found.append((label, Quantity(f"up to {label}", law)))
        return Quantities(found)

    def quantity(
        self,
        function: Callable[[Mapping[Label, Floats]], ArrayLike],
        label: str = "quantity",
        *,
        of: Literal["probabilities", "counts"] = "probabilities",
        draws: int = DRAWS,
        seed: int | None = 0,
    ) -> Quantity:
        """Any function of the probabilities, or of the true counts, by draws.

        `function` takes a mapping from each category to its draws, shape `(draws,)`, and returns a
        number for each draw, as `lambda p: p["yes"] - 2 * p["no"]` does. It is tried on a few
        draws first. Raises `ValueError` if it returns anything else, and `KeyError` if it asks for
        what is no category.
        """
        as_choice(of, "of", ("probabilities", "counts"))
        number = as_size(draws, "draws", "draws")

        def of_rows(rows: Floats | Integers) -> Floats:
            columns = ByLabel(zip(self.categories, rows.T, strict=True), CATEGORIES)
            return checked(function(columns), len(rows))

        def source(size: int, seed: int | None) -> Floats:
            drawn = (
                self.sample(size, seed) if of == "probabilities" else self.counts.sample(size, seed)
            )
            return of_rows(drawn)

        trial = np.random.default_rng(0).dirichlet(np.ones(len(self.categories)), _TRIAL)
        of_rows(trial if of == "probabilities" else np.rint(100 * trial).astype(np.int64))
        return Quantity(label, OfDraws(source, number, self._effective(number), seed))

    def _smallest(self, places: list[int], mixture: BetaMixture) -> float:
        """The smallest concentration that some categories may have together, the second parameter
        of the mixture: that of the prior, since all records may be in others.
        """
        return float(sum(self.prior[place] for place in places))

    def _differences(self, places: list[int], size: int, seed: int | None) -> Floats:
        drawn = self.sample(size, seed)
        return drawn[:, places[0]] - drawn[:, places[1]]


def _occurred(event: Callable[[Floats], NDArray[np.bool_]], theta: Floats) -> NDArray[np.bool_]:
    """Evaluate an event in draws of shape `(draws, k)`; booleans of shape `(draws,)`."""
    holds = np.asarray(event(theta.T))
    if holds.dtype != np.bool_ or holds.shape != (len(theta),):
        raise ValueError(
            f"event: returned an array of {holds.dtype} and shape {holds.shape} for {len(theta)}"
            f" draws; must be booleans of shape ({len(theta)},), one for each draw."
        )
    return holds
