"""Posteriors of numbers that follow from the probabilities or from the counts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.comparison import Probability, standard_error
from opendp_bayes.inference.shown import Shown, figure, table
from opendp_bayes.mathematics.validation import Floats, as_level, as_size
from opendp_bayes.released.labels import ByLabel
from opendp_bayes.report.sheet import Sheet


class QuantityLaw(Protocol):
    """How a quantity is distributed."""

    @property
    def mean(self) -> float:
        """Expected value."""
        ...

    @property
    def std(self) -> float:
        """Standard deviation."""
        ...

    @property
    def effective(self) -> float:
        """Independent draws that it is known from; infinite where it is computed."""
        ...

    @property
    def mean_error(self) -> float:
        """Monte Carlo standard error of the mean."""
        ...

    def cdf(self, value: float) -> Probability:
        """Probability of being at most the value."""
        ...

    def quantiles(self, levels: Floats) -> Floats:
        """Inverse of `cdf`."""
        ...

    def sample(self, size: int, seed: int | None) -> Floats:
        """Draws, shape `(size,)`."""
        ...


class Quantity(Shown):
    """The posterior of one number: a difference, a ratio, odds, or any function of the
    probabilities or of the counts.

    Attributes
    ----------
    label : what it is.
    standard_error : Monte Carlo standard error of the mean; 0 where it is computed without draws.
    draws : independent draws that probabilities and intervals rest on; infinite where they are
        computed without any.
    """

    def __init__(self, label: Any, law: QuantityLaw) -> None:
        self.label, self._law = label, law

    @property
    def standard_error(self) -> float:
        """Of the mean, by Monte Carlo."""
        return self._law.mean_error

    @property
    def draws(self) -> float:
        """Independent ones; infinite where there are none."""
        return self._law.effective

    def mean(self) -> float:
        """Posterior mean; infinite where that of a ratio or of odds is."""
        return self._law.mean

    def std(self) -> float:
        """Posterior standard deviation."""
        return self._law.std

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Ends of the equal-tailed credible interval of probability `level`."""
        level = as_level(level)
        lower, upper = self._law.quantiles(np.array([(1 - level) / 2, (1 + level) / 2]))
        return float(lower), float(upper)

    def probability(self, above: float = 0.0) -> Probability:
        """The posterior probability that it is larger than a number, with the standard error of
        the simulation: 0 where nothing is simulated. That of a sign is the default.
        """
        value, error = self._law.cdf(above)
        return Probability(1 - value, error)

    def sample(self, size: int, seed: int | None = None) -> Floats:
        """Draws, shape `(size,)`. A `seed` makes them repeatable."""
        return self._law.sample(as_size(size, of="draws"), seed)

    def row(self, level: float = 0.95) -> tuple[str, ...]:
        """What a table shows of it."""
        lower, upper = self.interval(level)
        spread = self.std() if np.isfinite(self.std()) else (upper - lower) / 4
        shown = (figure(value, spread) for value in (self.mean(), self.std(), lower, upper))
        return str(self.label), *shown, f"{self.probability().value:.3f}"

    def sheet(self) -> Sheet:
        return Quantities([(self.label, self)]).sheet()


class Quantities(Shown, Mapping[Any, Quantity]):
    """Several quantities by their labels."""

    def __init__(self, quantities: Iterable[tuple[Any, Quantity]]) -> None:
        self._quantities = ByLabel(quantities, ("quantity", "quantities"))

    def __getitem__(self, label: Any) -> Quantity:
        return self._quantities[label]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._quantities)

    def __len__(self) -> int:
        return len(self._quantities)

    def sheet(self) -> Sheet:
        headings = "quantity", "mean", "std", "2.5 %", "97.5 %", "P(> 0)"
        rows = [quantity.row() for quantity in self.values()]
        drawn = min((quantity.draws for quantity in self.values()), default=np.inf)
        note = f"By {drawn:.0f} independent draws." if np.isfinite(drawn) else ""
        return Sheet((table(headings, rows),), notes=(note,) if note else ())


@dataclass(frozen=True, eq=False)
class OfMixture:
    """A probability with a mixture of Betas, or its odds."""

    mixture: BetaMixture
    odds: bool = False
    effective: float = np.inf
    mean_error: float = 0.0

    @property
    def mean(self) -> float:
        return self._moment(1) if self.odds else self.mixture.mean()

    @property
    def std(self) -> float:
        if not self.odds:
            return float(np.sqrt(self.mixture.variance()))
        square = self._moment(2)
        return float(np.sqrt(square - self.mean**2)) if np.isfinite(square) else np.inf

    def _moment(self, order: int) -> float:
        """Of the odds of Beta(a, b): `a / (b - 1)`, and `a (a + 1) / ((b - 1) (b - 2))`."""
        a, b, weights = self.mixture.a, self.mixture.b, self.mixture.weights
        if np.any(b <= order):
            return np.inf
        first = a / (b - 1)
        return float(weights @ (first if order == 1 else first * (a + 1) / (b - 2)))

    def cdf(self, value: float) -> Probability:
        if self.odds:
            value = value / (1 + value) if value > 0 else 0.0
        return Probability(float(self.mixture.cdf(value)), 0.0)

    def quantiles(self, levels: Floats) -> Floats:
        one = BetaMixtures.joined([self.mixture])
        found, rest = one.two_sided_quantile(levels[:, None])
        return np.asarray((found / rest if self.odds else found)[:, 0])

    def sample(self, size: int, seed: int | None) -> Floats:
        drawn = self.mixture.draw(size, np.random.default_rng(seed))
        return drawn / (1 - drawn) if self.odds else drawn


@dataclass(frozen=True, eq=False)
class OfDraws:
    """Draws from a source, with what is known of them without any.

    `known` are the mean and the standard deviation, `at_most_zero` the probability of that.
    """

    source: Callable[[int, int | None], Floats]
    number: int
    effective: float
    seed: int | None
    known: tuple[float, float] | None = None
    at_most_zero: float | None = None

    @cached_property
    def drawn(self) -> Floats:
        return self.source(self.number, self.seed)

    @property
    def mean(self) -> float:
        return float(self.drawn.mean()) if self.known is None else self.known[0]

    @property
    def std(self) -> float:
        return float(self.drawn.std(ddof=1)) if self.known is None else self.known[1]

    @property
    def mean_error(self) -> float:
        return self.std / float(np.sqrt(self.effective)) if self.known is None else 0.0

    def cdf(self, value: float) -> Probability:
        if value == 0 and self.at_most_zero is not None:
            return Probability(self.at_most_zero, 0.0)
        share = float((self.drawn <= value).mean())
        return Probability(share, float(standard_error(share, self.effective)))

    def quantiles(self, levels: Floats) -> Floats:
        return np.asarray(np.quantile(self.drawn, levels))

    def sample(self, size: int, seed: int | None) -> Floats:
        return self.source(size, seed)


def checked(values: ArrayLike, draws: int) -> Floats:
    """What a function returned for so many draws; `ValueError` where it is not one number each."""
    array = np.asarray(values)
    if array.shape != (draws,) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"function: returned an array of {array.dtype} and shape {array.shape} for {draws}"
            f" draws; must be numbers of shape ({draws},), one for each draw."
        )
    return array.astype(np.float64)
