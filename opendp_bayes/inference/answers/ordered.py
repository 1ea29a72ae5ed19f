"""Quantiles of ordered categories: which category holds one, and where in its bin it lies."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.display.sheet import Sheet, Shown
from opendp_bayes.display.tables import Table, figure
from opendp_bayes.display.wording import group_name, listed
from opendp_bayes.inference.answers.quantities import OfDraws, Quantity
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import Floats, Integers, as_level, as_numbers
from opendp_bayes.release_format.data import Label
from opendp_bayes.release_format.labels import ByLabel

#: The most standard deviations by which a prior may move the share of all records up to a quantile
#: without a warning.
_MOVED = 0.5
_TINY = 1e-300
OF_NO_ORDER = (
    "Quantiles of categories that have a trend depend on the prior, which was learned without their"
    " order: it draws all of them to one level, which adds up. Their intervals may hold the truth"
    " less often than they say: learn it along their order, by ordered= (docs: Reading a posterior,"
    " Quantiles)."
)


class QuantilePosterior(Shown):
    """The posterior of a quantile of ordered categories: of the first category up to which the
    probabilities sum to at least `level`.

    Attributes
    ----------
    level : float
        The part of the records at or below the quantile, 0.5 for the median.
    categories : tuple[str or int or bool or tuple, ...]
        The labels in order.
    probabilities : ndarray
        The posterior probability of each category to hold the quantile, shape `(k,)`.
    edges : ndarray or None
        The `k + 1` ends of the bins; None where none were given.
    left_out : tuple[str or int or bool or tuple, ...], optional
        The categories without an order, whose records are not among those of `categories`.
    """

    def __init__(
        self,
        level: float,
        categories: tuple[Label, ...],
        probabilities: Floats,
        edges: Floats | None,
        law: OfDraws,
        left_out: tuple[Label, ...] = (),
    ) -> None:
        self.left_out = left_out
        self.level, self.categories = level, categories
        self.probabilities, self.edges = probabilities, edges
        self._law = law  # of the value, of the place without edges

    @property
    def category(self) -> Label:
        """The category that holds the quantile most probably."""
        return self.categories[int(self.probabilities.argmax())]

    def interval(self, level: float = 0.95) -> tuple[Label, Label]:
        """The first and the last category of the equal-tailed credible interval of probability
        `level` or more: not more than `(1 - level) / 2` is before it, and not more after.

        Raises
        ------
        ValueError
            Unless `0 < level < 1`.
        """
        tail = (1 - as_level(level)) / 2
        before, after = (
            int(np.searchsorted(np.cumsum(probabilities), tail, side="right"))
            for probabilities in (self.probabilities, self.probabilities[::-1])
        )
        return self.categories[before], self.categories[-1 - after]

    @cached_property
    def value(self) -> Quantity:
        """The quantile in the units of `edges`: where the distribution function reaches the level
        if records are spread evenly within each bin, so that it is linear there. By draws.

        Raises
        ------
        ValueError
            Where no edges were given.
        """
        if self.edges is None:
            raise ValueError(
                "edges=None: a value needs the ends of the bins; give the"
                f" {len(self.categories) + 1} of them, as in quantile({self.level}, edges=[...])."
            )
        return Quantity(f"quantile {self.level:g}", self._law, None)

    def row(self, level: float = 0.95) -> tuple[str, ...]:
        """Row of a table: level, most probable category and its probability, interval of
        categories, and with edges the mean, the standard deviation and the interval of the value.
        """
        most = f"{self.probabilities.max():.3f}"
        texts = f"{self.level:g}", str(self.category), most, *map(str, self.interval(level))
        if self.edges is None:
            return texts
        std = self.value.std()
        numbers = self.value.mean(), std, *self.value.interval(level)
        return *texts, *(figure(number, std) for number in numbers)

    def sheet(self) -> Sheet:
        return Quantiles([self]).sheet()


class Quantiles(Shown, ByLabel[float, QuantilePosterior]):
    """Several quantiles of the same categories by their levels.

    Attributes
    ----------
    warning
        A sentence on those that a fixed prior may have moved; empty where there are none.
    """

    def __init__(self, quantiles: Iterable[QuantilePosterior]) -> None:
        self.warning = ""
        super().__init__(
            ((quantile.level, quantile) for quantile in quantiles), ("level", "levels")
        )

    def sheet(self) -> Sheet:
        headings = ["quantile", "category", "probability", "2.5 %", "97.5 %"]
        if next(iter(self.values())).edges is not None:
            headings += ["value", "std", "2.5 %", "97.5 %"]
        rows = [quantile.row() for quantile in self.values()]
        return Sheet((Table(headings, rows),), left_out_said(next(iter(self.values())).left_out))


def quantiles_of(
    categories: tuple[Label, ...],
    levels: Sequence[float],
    edges: ArrayLike | None,
    draws: Floats,
    behind: float,
    left_out: tuple[Label, ...] = (),
) -> Quantiles:
    """The posteriors of quantiles of categories in order, without those that are `left_out`, by
    draws of their probabilities, shape `(draws, k)`, with so many independent ones `behind` them.

    Raises
    ------
    ValueError, TypeError
        For levels that are not between 0 and 1 or there twice, and for edges that do not rise or
        are not one more than the categories.
    """
    if isinstance(levels, (str, bytes)) or not np.iterable(levels) or not len(levels):
        raise TypeError(f"levels={told(levels)}: must be a list of numbers between 0 and 1.")
    wanted = [as_level(level, "0.5 for the median", "levels") for level in levels]
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"levels={told(levels)}: must hold every level once.")
    upto, rows, k = np.cumsum(draws, axis=1), np.arange(len(draws)), len(categories)
    ends = None if edges is None else as_numbers(edges, "edges")
    if ends is not None and (
        ends.shape != (k + 1,) or not np.isfinite(ends).all() or (np.diff(ends) <= 0).any()
    ):
        raise ValueError(
            f"edges={told(edges)}: must be {k + 1} finite numbers in rising order, the ends of the"
            f" {k} bins; close a bin that is open with the least or the largest value there can be."
        )
    upto[:, -1] = 1.0  # but for rounding
    quantiles = []
    for level in wanted:
        place = (upto < level).sum(axis=1)
        held = np.bincount(place, minlength=k) / rows.size
        value = place
        if ends is not None:
            mass = np.maximum(draws[rows, place], _TINY)
            share = np.clip(1 - (upto[rows, place] - level) / mass, 0.0, 1.0)
            value = ends[place] + share * (ends[place + 1] - ends[place])
        law = OfDraws.of(value, behind)
        quantiles.append(QuantilePosterior(level, categories, held, ends, law, left_out))
    return Quantiles(quantiles)


def said_of_pulls(
    quantiles: Quantiles,
    pulls: Floats,
    records: float,
    cumulative: Callable[[Integers], BetaMixtures],
) -> str:
    """A sentence on quantiles that a fixed prior may have moved: at one end of whose category the
    share of all `records` moves by more than half its standard deviation where the prior adds the
    `pulls` to the categories on one side. Empty where there are none.
    """
    places = [int(quantile.probabilities.argmax()) for quantile in quantiles.values()]
    ends = np.unique(
        [end for position in places for end in (position, position + 1) if 0 < end < pulls.size]
    )
    shares, sums = cumulative(ends), np.cumsum(pulls)
    upto, below = shares.mean(), sums[ends - 1]
    pulled = np.maximum((1 - upto) * below, upto * (sums[-1] - below))
    moved = dict(zip(ends.tolist(), pulled > _MOVED * shares.std() * records, strict=True))
    levels = [
        f"{level:g}"
        for level, position in zip(quantiles, places, strict=True)
        if moved.get(position) or moved.get(position + 1)
    ]
    if not levels:
        return ""
    return (
        f"Quantiles of the levels {', '.join(levels)} depend on the prior, because counts are small"
        " beside it or beside their noise. Their intervals may hold the truth less often than they"
        " say: learn the prior along their order, by ordered=, or ask with a larger budget or for"
        " fewer categories (docs: Reading a posterior, Quantiles)."
    )


def left_out_said(unordered: Sequence[Label]) -> tuple[str, ...]:
    """A sentence on the categories that an ordered answer leaves out; none where there are none."""
    if not unordered:
        return ()
    return (
        f"Without the records of {listed(list(map(group_name, unordered)), 'and')}, in no order.",
    )
