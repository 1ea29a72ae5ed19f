"""Posteriors of numbers that follow from the probabilities or from the counts."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.display.sheet import Sheet, Shown, labelled_frame
from opendp_bayes.display.tables import Table, figure
from opendp_bayes.inference.answers.comparison import Probability, standard_error
from opendp_bayes.inference.engines import Engine
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.inference.laws.dirichlet_multinomial import dirichlet
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import (
    Floats,
    RandomState,
    as_choice,
    as_generator,
    as_level,
    as_number,
    as_numbers,
    as_size,
)
from opendp_bayes.release_format.labels import ByLabel

if TYPE_CHECKING:
    import polars as pl


class Quantity(Shown):
    """The posterior of one number: a difference, a ratio, odds, or any function of the
    probabilities or of the counts.

    Attributes
    ----------
    label : Any
        What it is.
    above : float or None, default 0.0
        The number that `probability` compares it with: 1 of a ratio or of odds, 0.5 of a
        probability, 0 of others; None where no number divides it.
    """

    def __init__(self, label: Any, law: "OfMixture | OfDraws", above: float | None = 0.0) -> None:
        self.label, self.above, self._law = label, above, law

    @property
    def standard_error(self) -> float:
        """Monte Carlo standard error of the mean; 0 where it is computed without draws."""
        behind = self._law.draws_behind()
        return 0.0 if np.isinf(behind) else float(self._law.std() / np.sqrt(behind))

    @property
    def draws(self) -> float:
        """Independent draws that probabilities and intervals rest on; infinite where they are
        computed without any.
        """
        return self._law.draws

    def mean(self) -> float:
        """Posterior mean; infinite where that of a ratio or of odds is (`docs/reading.md`). That
        of a function of one's own is of its draws, also where it has none.
        """
        return self._law.mean()

    def std(self) -> float:
        """Posterior standard deviation; infinite where that of a ratio or of odds is."""
        return self._law.std()

    def median(self) -> float:
        """Posterior median, which is finite where the mean is not."""
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
        return Probability(share, float(standard_error(share, self._law.draws_behind(above))))

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
        shown = ["none" if np.isposinf(value) else figure(value, spread) for value in moments]
        shown += [figure(value, spread) for value in (self.median(), lower, upper)]
        share = () if self.above is None else (f"{self.probability().value:.3f}",)
        return str(self.label), *shown, *share

    def sheet(self) -> Sheet:
        return Quantities([(self.label, self)]).sheet()

    @property
    def _missing(self) -> str:
        """A sentence on the moments that it does not have; empty where it has both."""
        if np.isfinite(self.std()):
            return ""
        what = "standard deviation" if np.isfinite(self.mean()) else "mean"
        return f"A {what} of {self.label} does not exist, as what it is divided by may be near 0."


class Quantities(Shown, ByLabel[Any, Quantity]):
    """Several quantities by their labels."""

    def __init__(
        self, quantities: Iterable[tuple[Any, Quantity]], notes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(quantities, ("quantity", "quantities"))
        self._notes = notes

    def sheet(self) -> Sheet:
        quantities = list(self.values())
        above = (
            [f"P(> {quantities[0].above:g})"]
            if quantities and quantities[0].above is not None
            else []
        )
        headings = "quantity", "mean", "std", "median", "2.5 %", "97.5 %", *above
        notes = [quantity._missing for quantity in quantities if quantity._missing]
        fewest = min((quantity.draws for quantity in quantities), default=np.inf)
        if np.isfinite(fewest):
            notes.append(f"By {fewest:.0f} effective draws.")
        return Sheet(
            (Table(headings, [quantity.row() for quantity in quantities]),),
            notes=(*notes, *self._notes),
        )

    def to_frame(self, level: float = 0.95) -> "pl.DataFrame":
        """A polars frame with a row for each quantity: its label as text, `mean`, `std`, `median`,
        and `lower` and `upper` end of the equal-tailed interval of probability `level`.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        quantities = self.values()
        rows = [
            (quantity.mean(), quantity.std(), quantity.median(), *quantity.interval(level))
            for quantity in quantities
        ]
        names = "mean", "std", "median", "lower", "upper"
        columns = np.array(rows, dtype=np.float64).reshape(-1, len(names)).T
        return labelled_frame({"quantity": self}, dict(zip(names, columns, strict=True)))


class CategoryPosterior(Quantity):
    """The posterior of the probability of one category, `posterior["yes"]`: a mixture of Betas.

    Attributes
    ----------
    label : Any
        The category.
    """

    _law: "OfMixture"

    def __init__(self, label: Any, law: "OfMixture") -> None:
        super().__init__(label, law, 0.5)

    def interval(
        self, level: float = 0.95, kind: Literal["eti", "hdi"] = "eti"
    ) -> tuple[float, float]:
        """Lower and upper end of the credible interval of probability `level`.

        Raises
        ------
        ValueError
            For another level or kind.
        """
        level, mixture = as_level(level), self._law.mixture
        as_choice(kind, "kind", ("eti", "hdi"))
        equal = kind == "eti"
        ends = mixture.interval(level) if equal else mixture.shortest_interval(level)
        return float(ends[0][0]), float(ends[1][0])

    def pdf(self, values: ArrayLike) -> Floats:
        """Posterior density, elementwise; 0 outside [0, 1]."""
        return self._law.mixture.pdf(as_numbers(values, "values")[..., None])[..., 0]

    def __repr__(self) -> str:
        return f"CategoryPosterior({self.label!r}: {self.mean():.4g} ± {self.std():.2g})"


@dataclass(frozen=True, eq=False)
class OfMixture:
    """A probability with a mixture of Betas, or its odds: its distribution, and how far that is
    known, by the independent draws behind its mean and behind each probability.

    `draws` are the independent draws that the mixture is of. Of odds, `rest` is the smallest
    that the second parameter may be: moments of that order and above are infinite, whatever
    components are left out because they weigh too little.
    """

    mixture: BetaMixtures
    draws: float
    rest: float | None = None

    def mean(self) -> float:
        return float(self.mixture.mean()[0]) if self.rest is None else self._moment(1, self.rest)

    def std(self) -> float:
        if self.rest is None:
            return float(self.mixture.std()[0])
        square = self._moment(2, self.rest)
        return float(np.sqrt(square - self.mean() ** 2)) if np.isfinite(square) else np.inf

    def draws_behind(self, value: float | None = None) -> float:
        """Draws behind the mean, or behind the probability of being at most a value."""
        return self.draws

    def _moment(self, order: int, rest: float) -> float:
        """Moment of the odds of the mixture: the mean of those of its parts. For Beta(a, b) they
        are `a / (b - 1)` of order 1 and `a (a + 1) / ((b - 1) (b - 2))` of order 2.
        """
        if rest <= order:
            return np.inf
        # One component for several may have a smaller parameter than any of them.
        a, b, weights = self.mixture.a, np.maximum(self.mixture.b, rest), self.mixture.weights
        first = a / (b - 1)
        return float(weights @ (first if order == 1 else first * (a + 1) / (b - 2)))

    def cdf(self, values: ArrayLike) -> Floats:
        values = np.asarray(values, dtype=np.float64)[..., None]
        if self.rest is None:
            return self.mixture.cdf(values)[..., 0]
        # From the smaller side: shares close to 1 have no digits left for large odds.
        odds = np.maximum(values, 0.0)
        small = np.minimum(odds, 1.0)
        above = self.mixture.mirrored.cdf(1 / (1 + odds))
        return np.where(odds > 1, 1 - above, self.mixture.cdf(small / (1 + small)))[..., 0]

    def quantiles(self, levels: Floats) -> Floats:
        shares, others = self.mixture.two_sided_quantile(levels[:, None])
        return self._or_odds(shares[:, 0], others[:, 0])

    def sample(self, draws: int, random_state: RandomState = None) -> Floats:
        rng, weights = as_generator(random_state), self.mixture.weights
        component = rng.choice(weights.size, draws, p=weights / weights.sum())
        parts = np.column_stack([self.mixture.a[component], self.mixture.b[component]])
        return self._or_odds(*dirichlet(parts, rng).T)

    def _or_odds(self, share: Floats, other: Floats) -> Floats:
        """Probabilities, or their odds, which may be larger than any float."""
        with np.errstate(divide="ignore", over="ignore"):
            return share if self.rest is None else share / other


@dataclass(frozen=True, eq=False)
class OfDraws:
    """Draws from a source, so many of a seed, which are worth `draws` independent ones; as
    `OfMixture`, their distribution and how far it is known."""

    source: Callable[[int, RandomState], Floats]
    number: int
    draws: float
    random_state: RandomState
    #: Of a ratio, the smallest concentration of what it is divided by: moments of that order and
    #: above are infinite.
    divisor: float = field(default=np.inf, kw_only=True)

    @cached_property
    def drawn(self) -> Floats:
        return self.source(self.number, self.random_state)

    @cached_property
    def _ascending(self) -> Floats:
        return np.sort(self.drawn)

    def mean(self) -> float:
        return float(self.drawn.mean()) if self.divisor > 1 else np.inf

    def std(self) -> float:
        return float(self.drawn.std(ddof=1)) if self.divisor > 2 else np.inf

    def draws_behind(self, value: float | None = None) -> float:
        return self.draws

    def cdf(self, values: ArrayLike) -> Floats:
        at_most = np.searchsorted(self._ascending, values, side="right") / self.drawn.size
        return np.where(np.isnan(values), np.nan, at_most)

    def quantiles(self, levels: Floats) -> Floats:
        return np.asarray(np.quantile(self.drawn, levels))

    def sample(self, draws: int, random_state: RandomState = None) -> Floats:
        return self.source(draws, random_state)


@dataclass(frozen=True, eq=False)
class OfDifference(OfDraws):
    """The probability of the first of two categories minus that of the second, `places`; `rest` are
    the others. Mean, deviation and sign are computed, each when it is asked for.
    """

    counts: Engine
    places: list[int]
    rest: list[int]

    @cached_property
    def _among(self) -> Engine:
        return self.counts.given(self.places)

    def mean(self) -> float:
        first, second = self.counts.probabilities.mean()[self.places]
        return float(first - second)

    def std(self) -> float:
        return self._std

    @cached_property
    def _std(self) -> float:
        variance = self.counts.probabilities.variance()[self.places]
        # Of the sum of both, which is 1 where there are no others.
        together = 0.0
        if self.rest:
            merged = self.counts.merged([self.places, self.rest])
            together = float(merged.probabilities.variance()[0])
        return float(np.sqrt(max(2 * float(variance.sum()) - together, 0.0)))

    def cdf(self, values: ArrayLike) -> Floats:
        values = np.asarray(values, dtype=np.float64)
        if not np.any(values == 0):
            return super().cdf(values)
        below = float(self._among.probabilities[0].cdf(0.5)[0])
        return np.where(values == 0, below, super().cdf(values) if np.any(values) else below)

    def draws_behind(self, value: float | None = None) -> float:
        if value is None:
            return self.counts.independent
        return self._among.independent if value == 0 else self.draws


def check_function(function: object, name: str, such_as: str) -> None:
    """Raises `TypeError` for what cannot be called.

    Raises
    ------
    TypeError
        For what cannot be called.
    """
    if not callable(function):
        raise TypeError(f"{name}={told(function)}: must be a function, such as {such_as}.")


def checked(
    values: ArrayLike, draws: int, name: str = "function", wanted: str = "numbers"
) -> Floats:
    """Return a function's values at so many draws; `ValueError` unless they are a number each, or a
    boolean.
    """
    array = np.asarray(values)
    kinds = "b" if wanted == "booleans" else "biuf"
    if array.shape != (draws,) or array.dtype.kind not in kinds:
        raise ValueError(
            f"{name}: returned an array of {array.dtype} and shape {array.shape} for {draws}"
            f" draws; must be {wanted} of shape ({draws},), one for each draw."
        )
    values = array.astype(np.float64)
    if np.isnan(values).any():
        raise ValueError(
            f"{name}: returned nan for {np.isnan(values).sum()} of {draws} draws; must be a number"
            " for each, also where probabilities or counts are 0."
        )
    return values
