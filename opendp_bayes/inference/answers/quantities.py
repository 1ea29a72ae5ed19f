"""Posteriors of numbers that follow from the probabilities or from the counts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.display.as_table import Shown, figure, table
from opendp_bayes.display.sheet import Sheet
from opendp_bayes.inference.answers.comparison import Probability, standard_error
from opendp_bayes.inference.laws.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.mathematics.validation import Floats, as_level, as_size
from opendp_bayes.release_format.labels import ByLabel


class QuantityLaw(Protocol):
    """Distribution of a quantity."""

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
        """Monte Carlo standard error of the mean; 0 where it is computed without draws."""
        return self._law.mean_error

    @property
    def draws(self) -> float:
        """Independent ones; infinite where there are none."""
        return self._law.effective

    def mean(self) -> float:
        """Posterior mean; infinite where that of a ratio or of odds is (`docs/posterior.md`). That
        of a function of one's own is of its draws, also where it has none.
        """
        return self._law.mean

    def std(self) -> float:
        """Posterior standard deviation; infinite where that of a ratio or of odds is."""
        return self._law.std

    def median(self) -> float:
        """Posterior median, which is finite where the mean is not."""
        return float(self._law.quantiles(np.array([0.5]))[0])

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
        """Row of a table: label, mean, std, median, interval, probability of being above 0."""
        lower, upper = self.interval(level)
        spread = self.std() if np.isfinite(self.std()) else (upper - lower) / 4
        numbers = self.mean(), self.std(), self.median(), lower, upper
        shown = (figure(value, spread) for value in numbers)
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
        headings = "quantity", "mean", "std", "median", "2.5 %", "97.5 %", "P(> 0)"
        rows = [quantity.row() for quantity in self.values()]
        drawn = min((quantity.draws for quantity in self.values()), default=np.inf)
        note = f"By {drawn:.0f} independent draws." if np.isfinite(drawn) else ""
        return Sheet((table(headings, rows),), notes=(note,) if note else ())


@dataclass(frozen=True, eq=False)
class OfMixture:
    """A probability with a mixture of Betas, or its odds.

    `effective` are the independent draws that the mixture is of. Of odds, `rest` is the smallest
    that the second parameter may be: moments of that order and above are infinite, whatever
    components are left out because they weigh too little.
    """

    mixture: BetaMixture
    effective: float
    rest: float | None = None

    @property
    def mean(self) -> float:
        return self.mixture.mean() if self.rest is None else self._moment(1, self.rest)

    @property
    def std(self) -> float:
        if self.rest is None:
            return float(np.sqrt(self.mixture.variance()))
        square = self._moment(2, self.rest)
        return float(np.sqrt(square - self.mean**2)) if np.isfinite(square) else np.inf

    @property
    def mean_error(self) -> float:
        return float(self.std / np.sqrt(self.effective)) if np.isfinite(self.effective) else 0.0

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

    def cdf(self, value: float) -> Probability:
        if self.rest is not None:
            value = value / (1 + value) if value > 0 else 0.0
        return estimated(float(self.mixture.cdf(value)), self.effective)

    def quantiles(self, levels: Floats) -> Floats:
        one = BetaMixtures.joined([self.mixture])
        found, rest = one.two_sided_quantile(levels[:, None])
        return np.asarray((found if self.rest is None else found / rest)[:, 0])

    def sample(self, size: int, seed: int | None) -> Floats:
        drawn = self.mixture.draw(size, np.random.default_rng(seed))
        return drawn if self.rest is None else drawn / (1 - drawn)


@dataclass(frozen=True, eq=False)
class OfDraws:
    """Draws from a source, with what is known of them without any.

    `known` are the mean, the standard deviation and the independent draws behind them,
    `at_most_zero` the probability of that; infinitely many draws where they are computed.
    """

    source: Callable[[int, int | None], Floats]
    number: int
    effective: float
    seed: int | None
    known: tuple[float, float, float] | None = None
    at_most_zero: Probability | None = None

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
        behind = self.effective if self.known is None else self.known[2]
        return self.std / float(np.sqrt(behind))

    def cdf(self, value: float) -> Probability:
        if value == 0 and self.at_most_zero is not None:
            return self.at_most_zero
        return estimated(float((self.drawn <= value).mean()), self.effective)

    def quantiles(self, levels: Floats) -> Floats:
        return np.asarray(np.quantile(self.drawn, levels))

    def sample(self, size: int, seed: int | None) -> Floats:
        return self.source(size, seed)


def estimated(share: float, draws: float) -> Probability:
    """A share of so many independent draws; infinitely many where it is computed."""
    error = float(standard_error(share, draws)) if np.isfinite(draws) else 0.0
    return Probability(share, error)


def checked(values: ArrayLike, draws: int) -> Floats:
    """Return a function's values at so many draws; `ValueError` unless they are a number each."""
    array = np.asarray(values)
    if array.shape != (draws,) or array.dtype.kind not in "biuf":
        raise ValueError(
            f"function: returned an array of {array.dtype} and shape {array.shape} for {draws}"
            f" draws; must be numbers of shape ({draws},), one for each draw."
        )
    return array.astype(np.float64)
