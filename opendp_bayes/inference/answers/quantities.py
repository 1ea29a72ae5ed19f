"""Posteriors of numbers that follow from the probabilities or from the counts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.display.sheet import Sheet, Shown, labelled_frame
from opendp_bayes.display.tables import Table, figure
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    RandomState,
    as_generator,
    as_level,
    as_number,
    as_numbers,
    as_size,
)
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.labels import CATEGORIES, ByLabel

if TYPE_CHECKING:
    import polars as pl


class Probability(NamedTuple):
    """A posterior probability, with its Monte Carlo standard error."""

    value: float
    standard_error: float


class Quantity(Shown):
    """The posterior of one number: a probability, a difference, or any function of the
    probabilities or of the counts.

    Attributes
    ----------
    label : Any
        What it is.
    above : float or None, default 0.0
        The number that `probability` compares it with: 0.5 of a probability, 0 of others; None
        where no number divides it.
    """

    def __init__(self, label: Any, law: "OfMixture | OfDraws", above: float | None = 0.0) -> None:
        self.label, self.above, self._law = label, above, law

    @property
    def standard_error(self) -> float:
        """Monte Carlo standard error of the mean; 0 where it is computed without draws."""
        return 0.0 if np.isinf(self.draws) else float(self._law.std() / np.sqrt(self.draws))

    @property
    def draws(self) -> float:
        """Independent draws that it rests on; infinite where it is computed without any."""
        return self._law.draws

    def mean(self) -> float:
        """Posterior mean. That of a function is of its draws, also where it has none, as a ratio
        may (`docs/reading.md`).
        """
        return self._law.mean()

    def std(self) -> float:
        """Posterior standard deviation; infinite where a draw is."""
        return self._law.std()

    def median(self) -> float:
        """Posterior median."""
        return float(self._law.quantiles(np.array([0.5]))[0])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Ends of the equal-tailed credible interval of probability `level`."""
        level = as_level(level)
        lower, upper = self._law.quantiles(np.array([(1 - level) / 2, (1 + level) / 2]))
        return float(lower), float(upper)

    def cdf(self, values: ArrayLike) -> Floats:
        """Posterior probability of being at most each value, elementwise."""
        return self._law.cdf(as_numbers(values, "values"))

    def probability(self, above: float | None = None) -> Probability:
        """The posterior probability that it is larger than a number, which is its `above` unless
        given, with the standard error of the simulation: 0 where nothing is simulated.
        """
        above = (self.above or 0.0) if above is None else as_number(above, "above")
        share = 1 - float(self._law.cdf(above))
        # Not 0 where all of finitely many draws agree.
        safer = (share * self.draws + 1) / (self.draws + 2) if np.isfinite(self.draws) else 0.0
        return Probability(share, float(np.sqrt(safer * (1 - safer) / self.draws)))

    def sample(self, size: int = 1, random_state: RandomState = None) -> Floats:
        """Draws, shape `(size,)`; repeatable with a seed as `random_state`."""
        return self._law.sample(as_size(size, "size", "draws"), random_state)

    def row(self, level: float = 0.95) -> tuple[str, ...]:
        """Row of a table: label, mean, std, median, interval, and the probability of being above
        its number, where it has one.
        """
        lower, upper = self.interval(level)
        spread = self.std() if np.isfinite(self.std()) else (upper - lower) / 4
        moments = (self.mean(), self.std())
        shown = [figure(value, spread) if np.isfinite(value) else "none" for value in moments]
        shown += [figure(value, spread) for value in (self.median(), lower, upper)]
        share = () if self.above is None else (f"{self.probability().value:.3f}",)
        return str(self.label), *shown, *share

    def sheet(self) -> Sheet:
        return Quantities([(self.label, self)]).sheet()


class Quantities(Shown, ByLabel[Any, Quantity]):
    """Several quantities by their labels."""

    def __init__(
        self, quantities: Iterable[tuple[Any, Quantity]], notes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(quantities, ("quantity", "quantities"))
        self._notes = notes

    def sheet(self) -> Sheet:
        quantities = self.values()
        above = {f"P(> {one.above:g})" for one in quantities if one.above is not None}
        headings = "quantity", "mean", "std", "median", "2.5 %", "97.5 %", *above
        fewest = min((quantity.draws for quantity in quantities), default=np.inf)
        notes = [f"By {fewest:.0f} effective draws."] if np.isfinite(fewest) else []
        rows = [quantity.row() for quantity in quantities]
        return Sheet((Table(headings, rows),), notes=(*notes, *self._notes))

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for each quantity: its label as text, `mean`, `std`, `median`,
        and `lower` and `upper` end of the equal-tailed interval of probability `level`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        rows = [
            (one.mean(), one.std(), one.median(), *one.interval(level)) for one in self.values()
        ]
        names = "mean", "std", "median", "lower", "upper"
        columns = np.array(rows, dtype=np.float64).reshape(-1, len(names)).T
        return labelled_frame({"quantity": self}, dict(zip(names, columns, strict=True)))


@dataclass(frozen=True, eq=False)
class OfMixture:
    """A probability with a mixture of Betas, and the independent draws that it is of."""

    mixture: BetaMixtures
    draws: float

    def mean(self) -> float:
        return float(self.mixture.mean()[0])

    def std(self) -> float:
        return float(self.mixture.std()[0])

    def cdf(self, values: ArrayLike) -> Floats:
        return self.mixture.cdf(np.asarray(values, dtype=np.float64)[..., None])[..., 0]

    def quantiles(self, levels: Floats) -> Floats:
        return self.mixture.quantile(levels[:, None])[:, 0]

    def sample(self, draws: int, random_state: RandomState = None) -> Floats:
        rng, weights = as_generator(random_state), self.mixture.weights
        component = rng.choice(weights.size, draws, p=weights / weights.sum())
        parts = np.column_stack([self.mixture.a[component], self.mixture.b[component]])
        return dirichlet(parts, rng)[:, 0]


@dataclass(frozen=True, eq=False)
class OfDraws:
    """Draws from a source, so many of a seed, which are worth `draws` independent ones."""

    source: Callable[[int, RandomState], Floats]
    number: int
    draws: float
    random_state: RandomState

    @classmethod
    def of(cls, values: Floats, draws: float) -> "OfDraws":
        """The law of draws that there are, which are worth so many independent ones."""
        return cls(partial(again, values), values.size, draws, 0)

    @cached_property
    def drawn(self) -> Floats:
        """The draws, in rising order."""
        return np.sort(self.source(self.number, self.random_state))

    def mean(self) -> float:
        return float(self.drawn.mean())

    def std(self) -> float:
        return float(self.drawn.std(ddof=1)) if np.isfinite(self.drawn).all() else np.inf

    def cdf(self, values: ArrayLike) -> Floats:
        at_most = np.searchsorted(self.drawn, values, side="right") / self.drawn.size
        return np.where(np.isnan(values), np.nan, at_most)

    def quantiles(self, levels: Floats) -> Floats:
        return np.asarray(np.quantile(self.drawn, levels, method="inverted_cdf"))

    def sample(self, draws: int, random_state: RandomState = None) -> Floats:
        return self.source(draws, random_state)


def again(values: Floats, draws: int, random_state: RandomState) -> Floats:
    """Draws of some draws, each of these once as far as there are enough."""
    rng = as_generator(random_state)
    return rng.permutation(values)[:draws] if draws <= len(values) else rng.choice(values, draws)


def values_of(
    function: Callable[..., ArrayLike], labels: tuple[Label, ...], rows: Floats | Integers
) -> Floats:
    """A user's function of rows of probabilities or of counts, a mapping from labels to columns;
    `ValueError` unless it returns a number for each row, or a boolean.
    """
    array = np.asarray(function(ByLabel(zip(labels, rows.T, strict=True), CATEGORIES)))
    if array.shape != (len(rows),) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"function: returned an array of {array.dtype} and shape {array.shape} for {len(rows)}"
            f" draws; must be numbers of shape ({len(rows)},), one for each draw."
        )
    values = array.astype(np.float64)
    if np.isnan(values).any():
        raise ValueError(
            f"function: returned nan for {np.isnan(values).sum()} of {len(rows)} draws; must be a"
            " number for each, also where probabilities or counts are 0."
        )
    return values
