"""Posteriors of whole numbers: of the true counts, and of a private number of records."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.inference.answers.by_label import Intervals
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.mathematics.telling import shortly
from opendp_bayes.mathematics.underflow import UnderflowIsZero
from opendp_bayes.mathematics.validation import (
    Floats,
    Integers,
    RandomState,
    as_generator,
    as_level,
    as_numbers,
    as_size,
)
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.labels import position_of

#: Rows of draws from a generator.
Draw = Callable[[int, np.random.Generator], Integers]


class NumberPosterior(UnderflowIsZero):
    """The posterior of one whole number, such as the number of records (`posterior.records`).

    Attributes
    ----------
    label : str or int or bool or tuple
        What it is the number of.
    """

    def __init__(self, label: Label, law: CountLaws, draw: Draw, places: list[int]) -> None:
        self.label = label
        self._places = places  # in a row of a draw, of those that it is the sum of
        self._alone = CountsPosterior((label,), law, draw)

    def mean(self) -> float:
        """Posterior mean."""
        return float(self._alone.mean()[0])

    def std(self) -> float:
        """Posterior standard deviation."""
        return float(self._alone.std()[0])

    def interval(self, level: float = 0.95) -> tuple[int, int]:
        """Both ends, which belong to it, of the equal-tailed credible interval: not more than
        `(1 - level) / 2` is below it, and not more above.
        """
        lower, upper = self._alone.interval(level)
        return int(lower[0]), int(upper[0])

    def pmf(self, values: ArrayLike) -> Floats:
        """The probability of each value, elementwise; 0 for what is not whole."""
        return self._alone.pmf(values)[..., 0]

    def cdf(self, values: ArrayLike) -> Floats:
        """The probability of being at most each value, elementwise."""
        return self._alone.cdf(values)[..., 0]

    def sample(self, size: int = 1, random_state: RandomState = None) -> Integers:
        """Draws, shape `(size,)`; repeatable with a seed as `random_state`."""
        return np.asarray(self._alone.sample(size, random_state)[:, self._places].sum(axis=1))

    def __repr__(self) -> str:
        return f"NumberPosterior({self.label!r}: {_shown(self.mean(), self.std())})"


class CountsPosterior(UnderflowIsZero):
    """The posterior of the true counts of the records that a release was made from
    (`posterior.counts`), integers of shape `(k,)` in the order of `categories`.

    They are the finite population's: a census office asks for them, and they are known better than
    the probabilities behind them.

    Attributes
    ----------
    categories : tuple[str or int or bool or tuple, ...]
        The labels.
    """

    def __init__(self, categories: tuple[Label, ...], laws: CountLaws, draw: Draw) -> None:
        self.categories = categories
        self._laws, self._draw = laws, draw

    def __getitem__(self, label: Label) -> NumberPosterior:
        """The count of one category. Raises `KeyError` for what is none."""
        position = position_of(label, self.categories)
        law = self._laws.chosen(np.array([position]))
        return NumberPosterior(label, law, self._draw, [position])

    def mean(self) -> Floats:
        """Posterior means, shape `(k,)`."""
        return self._laws.mean()

    def std(self) -> Floats:
        """Posterior standard deviations, shape `(k,)`."""
        return self._laws.std()

    def interval(self, level: float = 0.95) -> Intervals[Integers]:
        """Both ends, which belong to them, of the equal-tailed credible intervals, two arrays of
        shape `(k,)`: not more than `(1 - level) / 2` is below, and not more above.
        `interval()["yes"]` are those of one category.
        """
        level = as_level(level)
        lower, upper = (self._laws.quantile((1 + side * level) / 2) for side in (-1, 1))
        return Intervals((lower, upper), self.categories)

    def pmf(self, values: ArrayLike) -> Floats:
        """The probability of each value, of shape `(...)`, for every category; shape `(..., k)`."""
        wanted = as_numbers(values, "values")[..., None]
        return np.where(wanted > np.floor(wanted), 0.0, self._laws.pmf(wanted))

    def cdf(self, values: ArrayLike) -> Floats:
        """The probability of being at most each value, of shape `(...)`, for every category; shape
        `(..., k)`.
        """
        return self._laws.cdf(as_numbers(values, "values")[..., None])

    def sample(self, size: int = 1, random_state: RandomState = None) -> Integers:
        """Draws of all counts together, shape `(size, k)`; repeatable with a seed as
        `random_state`.
        """
        return self._draw(as_size(size, "size", "draws"), as_generator(random_state))

    def __repr__(self) -> str:
        rows = zip(self.categories, self.mean(), self.std(), strict=True)
        texts = (f"{label!r}: {_shown(mean, std)}" for label, mean, std in rows)
        return f"CountsPosterior({{{shortly(texts, len(self.categories))}}})"


def _shown(mean: float, std: float) -> str:
    """Mean and standard deviation as text: two digits of the latter, at most four decimals."""
    decimals = 0 if std == 0 else int(np.clip(1 - np.floor(np.log10(std)), 0, 4))
    return f"{mean:.{decimals}f} ± {std:.{decimals}f}"
