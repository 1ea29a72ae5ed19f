"""The posterior of a table of some variables of a survey, by draws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from opendp_bayes.inference.answers.by_label import CATEGORIES, position_of
from opendp_bayes.inference.answers.comparison import Comparison, DrawnDifferences
from opendp_bayes.inference.answers.ordered import (
    OrderedShares,
    QuantilePosterior,
    Quantiles,
    check_one_variable,
    quantiles_of,
)
from opendp_bayes.inference.answers.quantities import OfDraws, Quantity, checked
from opendp_bayes.inference.answers.whole_numbers import CountsPosterior
from opendp_bayes.inference.engines.true_counts import Groups, summed
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.sampling.markov_chain import Diagnostics, r_hat_and_ess
from opendp_bayes.mathematics.validation import Floats, Integers, as_choice, as_level, as_size
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.labels import ByLabel, are_same


class TablePosterior:
    """The posterior of the probabilities of a table, or of those within some values of others, and
    of the counts behind them: draws from Markov chains, the same as those of the survey's other
    tables, so that all agree.

    Attributes
    ----------
    axes : the variables.
    categories : the values of the variable, or tuples with a value of each of several.
    measured : True where a released table holds all variables that are asked for, those given
        included; False where the answer follows from what the model assumes besides.
    """

    def __init__(
        self,
        axes: tuple[str, ...],
        categories: tuple[Label, ...],
        measured: bool,
        theta: Floats,
        counts: Integers | None,
        survey: object = None,
    ) -> None:
        self.axes, self.categories, self.measured = axes, categories, measured
        self._survey = survey  # tables of one are drawn together
        self._chains, self._counts = theta, counts
        self._theta = theta.reshape(-1, theta.shape[-1])

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return np.asarray(self._theta.mean(axis=0))

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return np.asarray(self._theta.std(axis=0))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Lower and upper ends of equal-tailed credible intervals of probability `level`, two
        arrays of shape `(k,)`. Raises `ValueError` unless `0 < level < 1`.
        """
        level = as_level(level)
        lower, upper = np.quantile(self._theta, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return lower, upper

    def cdf(self, values: ArrayLike) -> Floats:
        """Posterior probability of being at most the values, of shape `(k,)` or one for all."""
        return np.asarray((self._theta <= np.asarray(values)).mean(axis=0))

    def sample(self, size: int, seed: int | None = None) -> Floats:
        """Draws of the probabilities, shape `(size, k)`, picked at random from those of the chains.
        A `seed` makes them repeatable.
        """
        return self._theta[_picked(len(self._theta), size, seed)]

    @property
    def diagnostics(self) -> Diagnostics:
        """R-hat and effective draws of each probability."""
        return replace(Diagnostics.of(self._chains), categories=self.categories)

    @property
    def counts(self) -> CountsPosterior:
        """The posterior of the true counts. Raises `ValueError` for variables that no clique of the
        model holds, whose counts only whole records tell: `SurveyPosterior.synthetic`.
        """
        if self._counts is None:
            raise ValueError(
                f"variables={list(self.axes)!r}: no clique of the model holds them together, so"
                " that the tables leave their counts open; count them in"
                " synthetic(kind='population')."
            )
        rows = self._counts.reshape(-1, self._counts.shape[-1])

        def drawn(size: int, rng: np.random.Generator) -> Integers:
            return np.asarray(rows[rng.integers(len(rows), size=size)])

        laws = CountLaws.of_rows(rows, np.full(len(rows), 1 / len(rows)))
        return CountsPosterior(self.categories, laws, drawn)

    def difference(self, first: Label, second: Label) -> Quantity:
        """The probability of one category minus that of another. Raises `KeyError` for what is
        none.
        """
        one, other = (position_of(label, self.categories) for label in (first, second))
        return self._quantity(lambda theta: theta[:, one] - theta[:, other], f"{first} - {second}")

    def ratio(self, first: Label, second: Label) -> Quantity:
        """The probability of one category over that of another. Raises `KeyError` for what is
        none.
        """
        one, other = (position_of(label, self.categories) for label in (first, second))
        return self._quantity(lambda theta: theta[:, one] / theta[:, other], f"{first} / {second}")

    def odds(self, label: Label) -> Quantity:
        """The odds of one category, `θ / (1 - θ)`. Raises `KeyError` for what is none."""
        at = position_of(label, self.categories)
        return self._quantity(lambda theta: theta[:, at] / (1 - theta[:, at]), f"odds of {label}")

    def compare(self, other: "TablePosterior") -> Comparison:
        """The difference of the probabilities of each category, this table's minus the other's.

        Of one `SurveyPosterior`, as votes given one party and given another, they are drawn
        together; tables of two are taken for those of independent data. Raises `ValueError` if
        the two do not have the same categories in the same order.
        """
        if not are_same(self.categories, other.categories):
            raise ValueError(
                f"other: has the categories {other.categories}, not {self.categories}; compare"
                " tables of the same categories."
            )
        if self._survey is not None and self._survey is other._survey:
            together = self._chains - other._chains
            drawn, draws = together.reshape(self._theta.shape), Diagnostics.of(together).ess.min()
        else:
            number = max(len(self._theta), len(other._theta))
            drawn = self.sample(number, 0) - other.sample(number, 1)
            draws = 1 / sum(1 / each.diagnostics.ess.min() for each in (self, other))

        def sample(size: int, seed: int | None) -> Floats:
            return drawn[_picked(len(drawn), size, seed)]

        return Comparison(self.categories, DrawnDifferences(drawn), float(draws), sample)

    def quantile(self, level: float, *, edges: ArrayLike | None = None) -> QuantilePosterior:
        """A quantile of one ordered variable, 0.5 for the median: the first category up to which
        the probabilities sum to at least `level`, with the part of the draws in which it is each.

        Parameters
        ----------
        level : between 0 and 1.
        edges : the ends of the bins that the categories are, `k + 1` rising numbers; the quantile
            then has a `value` in their units, with the records of a bin spread evenly within it.

        The order is that of `categories`. Raises `ValueError`/`TypeError` for another level, for
        edges that do not rise or are not one more than the categories, and for several variables.
        """
        return self.quantiles([level], edges=edges)[level]

    def quantiles(self, levels: Sequence[float], *, edges: ArrayLike | None = None) -> Quantiles:
        """Several quantiles at once, by their `levels`, all different and between 0 and 1; with
        `edges`, the `k + 1` rising ends of the bins, each has a `value` in their units.

        Raises `ValueError`/`TypeError` for other levels, for edges that do not rise or are not one
        more than the categories, and for several variables.
        """
        check_one_variable(self.axes)
        upto = np.cumsum(self._theta, axis=1)
        upto[:, -1] = 1.0

        def at_least(ends: Integers, levels: Floats) -> Floats:
            return np.stack([(upto[:, ends - 1] >= level).mean(axis=0) for level in levels])

        def drawn(groups: Groups, size: int, seed: int | None) -> Floats:
            rows: Any = self._theta[_picked(len(self._theta), size, seed)]
            return np.asarray(summed(rows, groups), dtype=np.float64)

        draws = min(float(self.diagnostics.ess.min()), len(self._theta))
        shares = OrderedShares(self.categories, at_least, drawn, len(self._theta), draws)
        return quantiles_of(shares, levels, edges)

    def quantity(
        self,
        function: Callable[[Mapping[Label, Floats]], ArrayLike],
        label: str = "quantity",
        *,
        of: Literal["probabilities", "counts"] = "probabilities",
    ) -> Quantity:
        """Any function of the probabilities, or of the true counts.

        `function` takes a mapping from each category to its draws, shape `(draws,)`, and returns a
        number for each draw, as `lambda p: p["yes"] - 2 * p["no"]` does. Raises `ValueError` if it
        returns anything else, and `KeyError` if it asks for what is no category.
        """
        as_choice(of, "of", ("probabilities", "counts"))

        def of_rows(rows: NDArray[np.float64]) -> Floats:
            columns = ByLabel(zip(self.categories, rows.T, strict=True), CATEGORIES)
            return checked(function(columns), len(rows))

        return self._quantity(of_rows, label, counted=of == "counts")

    def _quantity(
        self, function: Callable[[Floats], Floats], label: str, counted: bool = False
    ) -> Quantity:
        if counted:
            _ = self.counts  # refuses what is not known
        chains: Any = self._counts if counted else self._chains
        values = function(chains.reshape(-1, chains.shape[-1]))
        effective = r_hat_and_ess(values.reshape(chains.shape[:2]) * 1.0)[1]

        def source(size: int, seed: int | None) -> Floats:
            return values[_picked(len(values), size, seed)]

        return Quantity(label, OfDraws(source, len(values), effective, 0))

    def __repr__(self) -> str:
        rows = zip(self.categories, self.mean(), self.std(), strict=True)
        estimates = ", ".join(f"{label!r}: {mean:.4g} ± {std:.2g}" for label, mean, std in rows)
        return f"TablePosterior({{{estimates}}}, {'measured' if self.measured else 'implied'})"


def _picked(rows: int, size: int, seed: int | None) -> Integers:
    """Rows in random order, each once as far as there are enough."""
    rng, size = np.random.default_rng(seed), as_size(size, of="draws")
    return rng.permutation(rows)[:size] if size <= rows else rng.integers(rows, size=size)
