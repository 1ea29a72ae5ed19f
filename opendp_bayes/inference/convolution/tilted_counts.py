"""Dirichlet-multinomial weights of each count times its noise, `Γ(x + α) / x!` times that of every
look, in cells in which they are smooth times `exp(tilt x)` for each of several tilts: then the
counts are independent laws.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from opendp_bayes.inference.laws.count_cells import Cells, cells_from, refined
from opendp_bayes.inference.laws.dirichlet_multinomial import log_rising
from opendp_bayes.inference.likelihood.drawn_counts import DrawnCounts
from opendp_bayes.mathematics.log_space import log_sum_exp
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise

#: One record that does not fit costs `exp(-_STEEPEST)` where the noise is so small that it costs
#: less: what the prior can gain by it is at most about `exp(60)`, so that neither ever happens.
_STEEPEST = 256.0
#: Noise is followed down to `exp(-_FAR)`; and rates up to so many times themselves, in logarithms.
_FAR, _FARTHER = 40.0, 4.0
C = TypeVar("C", bound="NoisedCategories")


@dataclass(frozen=True, eq=False)
class NoisedCategories:
    """Looks at the counts of k categories, and the prior of these, shape `(k,)`.

    The weight of a count x is `Γ(x + prior) / x!` times `f(drawn - x)` for each look at which it
    was noised, f the law of the noise.
    """

    looks: tuple[DrawnCounts, ...]
    prior: Floats

    @property
    def columns(self) -> list[NDArray[Any]]:
        """Arrays of shape `(k,)`: categories for which all of them agree are alike."""
        columns_of_looks = [column for look in self.looks for column in (look.drawn, look.noised)]
        return [*columns_of_looks, self.prior]

    @property
    def centres(self) -> list[Integers]:
        """Counts around which those lie that matter, arrays of shape `(k,)`."""
        return [look.drawn for look in self.looks]

    @property
    def kinks(self) -> list[Integers]:
        """Counts at which a logarithm of noise is not smooth, arrays of shape `(k,)`."""
        return [kink for look in self.looks for kink in look.kinks]

    @property
    def bend(self) -> float:
        """A scale s such that the second derivative of the logarithm of all noise, but for kinks,
        is about `-1 / s^2`.
        """
        smooth = [look.noise.scale for look in self.looks if not look.noise.kinks]
        scales = np.array(smooth or [look.noise.scale for look in self.looks])
        return float(1 / np.sqrt(np.sum(1 / scales**2)))

    @property
    def slope(self) -> float:
        """The largest tilt that matters: how steeply the logarithm of all noise falls far out."""
        ratios = (
            share * look.noise.log_ratio(look.noise.reach(_FAR), 1) for share, look in self.used
        )
        return -float(sum(ratios))

    @property
    def k(self) -> int:
        """Number of categories."""
        return int(self.prior.size)

    @cached_property
    def used(self) -> list[tuple[float, DrawnCounts]]:
        """Looks, each with the share of its logarithm that is used."""
        return [(hardness(look.noise), look) for look in self.looks]

    def log_weight(self, category: Integers, counts: Floats | Integers, anchor: Integers) -> Floats:
        """The logarithm of the weight of each count of each category over that of the anchor, of
        shape `(k,)`.
        """
        start = anchor[category]
        # All at once: a call for few counts takes about as long as one for hundreds.
        both: Any = np.append(category, np.arange(anchor.size)), np.append(counts, anchor)
        alone, at_anchor = np.split(self.log_alone(*both), [-anchor.size])
        return self._log_ratio(category, start, counts - start) + (alone - at_anchor[category])

    def log_alone(self, category: Integers, counts: Floats | Integers) -> Floats:
        """The logarithm of the weight of each count without noise."""
        return log_rising(counts, self.prior[category])

    def log_step(self, category: Integers, counts: Integers) -> Floats:
        """The logarithm of the ratio of the weights of `counts + 1` and `counts`."""
        return self._log_ratio(category, counts, 1.0) + self._log_step_alone(category, counts)

    def _log_step_alone(self, category: Integers, counts: Integers) -> Floats:
        return np.asarray(np.log1p((self.prior[category] - 1) / (counts + 1.0)))

    def chosen(self: C, rows: Integers) -> C:
        """Those of some categories."""
        looks = tuple(look.chosen(rows) for look in self.looks)
        return replace(self, looks=looks, prior=self.prior[rows])

    def _log_ratio(self, category: Integers, start: Integers, step: ArrayLike) -> Floats:
        """The logarithm of the ratio of the noise's probabilities at `start + step` and `start`."""
        ratios = [share * look.log_ratio(start, step, category) for share, look in self.used]
        return np.asarray(sum(ratios))


@dataclass(frozen=True, eq=False)
class CategoriesOfShares(NoisedCategories):
    """Looks at the counts of k categories whose shares are known: the weight of a count x is
    `exp(x log_rate) / x!` in place of that of a prior, shape `(k,)`.
    """

    log_rate: Floats

    @classmethod
    def of(cls, noisy: DrawnCounts, log_rate: Floats) -> "CategoriesOfShares":
        """One look at them; the prior is so large that it is no part of what is not known."""
        return cls((noisy,), np.full(log_rate.size, 1e30), log_rate)

    @property
    def columns(self) -> list[NDArray[Any]]:
        return [*super().columns, self.log_rate]

    @property
    def slope(self) -> float:
        # Rates are multiplied by it, while noise is only moved.
        return super().slope + _FARTHER

    @property
    def centres(self) -> list[Integers]:
        return [*super().centres, np.exp(self.log_rate).astype(np.int64)]

    def log_alone(self, category: Integers, counts: Floats | Integers) -> Floats:
        return np.asarray(counts * self.log_rate[category] - special.gammaln(counts + 1.0))

    def _log_step_alone(self, category: Integers, counts: Integers) -> Floats:
        return np.asarray(self.log_rate[category] - np.log(counts + 1.0))

    def chosen(self, rows: Integers) -> "CategoriesOfShares":
        return replace(super().chosen(rows), log_rate=self.log_rate[rows])


def hardness(noise: IntegerNoise) -> float:
    """The share of a noise's logarithm that is used: 1 but for minute scales."""
    cost = -float(noise.log_ratio(0, 1))
    return 1.0 if cost <= _STEEPEST else _STEEPEST / cost


#: Numbers that are worked on at once.
_BLOCK = 1 << 21
#: Weights may change and bend so much more in a cell than in those of laws: only sums are read.
_COARSE = 2.0


def modes(categories: NoisedCategories, tilts: Floats, last: int) -> Integers:
    """For every tilt and category, the inner mode of the weights times `exp(tilt x)` on `0..last`,
    or an end where there is none, shape `(tilts, k)`.

    A prior below 1 adds a mode at 0; then the inner one is at least `bend sqrt(1 - prior)`, and
    the weight has no other beyond, for Laplace noise but its kinks.
    """
    rows = np.tile(np.arange(categories.k), tilts.size)
    start = categories.bend * np.sqrt(np.maximum(1 - categories.prior, 0))
    low = np.minimum(np.ceil(start), last).astype(np.int64)[rows]
    high, tilt = np.full(rows.size, last), np.repeat(tilts, categories.k)
    while np.any(low < high):
        middle = low + (high - low) // 2
        rising = categories.log_step(rows, middle) + tilt > 0
        low, high = (
            np.where(rising, np.minimum(middle + 1, high), low),
            np.where(rising, high, middle),
        )
    return low.reshape(tilts.size, -1)


@dataclass(frozen=True, eq=False)
class Moments:
    """The laws under some tilts, shape `(tilts,)`: `log_norm`, the logarithm of the sum of all
    weights of a category over that of its anchor, `mean` and `variance`, shape `(tilts, k)`.
    """

    anchor: Integers
    tilts: Floats
    log_norm: Floats
    mean: Floats
    variance: Floats

    def chosen(self, some: slice | Integers) -> "Moments":
        """Those under some of the tilts."""
        known = (each[some] for each in (self.tilts, self.log_norm, self.mean, self.variance))
        return Moments(self.anchor, *known)

    def some(self, rows: Integers) -> "Moments":
        """Those of some of the categories."""
        known = (each[:, rows] for each in (self.log_norm, self.mean, self.variance))
        return Moments(self.anchor[rows], self.tilts, *known)

    def log_sums(self, times: Integers) -> Floats:
        """Logarithms of the sums of the weights of all data sets, each times `exp(tilt n)` for its
        n records; every category is there so many times, and the anchors have weight 1.
        """
        return self.log_norm @ times + self.tilts * float(self.anchor @ times)


@dataclass(frozen=True, eq=False)
class TiltedCounts:
    """The weights of each category's count, over that of a probable one, its `anchor`, shape
    `(k,)`, in cells of counts.
    """

    categories: NoisedCategories
    anchor: Integers
    cells: Cells

    @classmethod
    def of(cls, categories: NoisedCategories, tilts: Floats, last: int) -> "TiltedCounts":
        """Place the cells on `0..last`, so that they suit all the tilts and those between."""
        k, rows = categories.k, np.arange(categories.k)
        inner = modes(categories, tilts, last)
        columns = [*inner, *categories.kinks, np.zeros(k, dtype=np.int64), np.full(k, last)]
        seeds = np.stack([np.clip(column, 0, last) for column in columns], axis=1)
        anchor = inner[len(inner) // 2]
        every = np.repeat(rows, seeds.shape[1])
        heights = categories.log_weight(every, seeds.ravel().astype(float), anchor)
        heights = heights.reshape(seeds.shape) + tilts[:, None, None] * (seeds - anchor[:, None])
        peaks = heights.max(axis=2)

        def log_weight(category: Integers, counts: Floats) -> Floats:
            number = tilts.size * counts.size // _BLOCK + 1
            blocks = zip(*(np.array_split(x, number) for x in (category, counts)), strict=True)
            along = [
                log_sum_exp(tilts[:, None] * (x - anchor[row]) - peaks[:, row], axis=0)
                for row, x in blocks
            ]
            return categories.log_weight(category, counts, anchor) + np.concatenate(along)

        # Each seed has a cell of its own, and so has what is between two.
        edges = np.concatenate([seeds, seeds + 1], axis=1).astype(np.float64)
        start = cells_from(edges, np.zeros(k), np.full(k, float(last)))
        return cls(categories, anchor, refined(log_weight, start, k, coarse=_COARSE))

    @cached_property
    def parts(self) -> Segments:
        """The cells of each category."""
        return Segments.of(self.cells.category)

    @cached_property
    def ends(self) -> tuple[Floats, Floats]:
        """The smallest and the largest count of each category that has a cell."""
        edges = self.parts.start
        ends = self.cells.first[edges[:-1]], self.cells.last[edges[1:] - 1]
        return ends[0].astype(np.float64), ends[1].astype(np.float64)

    def log_weight(self, category: Integers, counts: Floats) -> Floats:
        """Logarithms of the weights, without a tilt, elementwise."""
        return self.categories.log_weight(category, counts, self.anchor)

    @cached_property
    def log_masses(self) -> Floats:
        """Logarithms of the weights that the nodes of the cells stand for, without a tilt."""
        return self.cells.log_masses(self.log_weight)

    @cached_property
    def away(self) -> Floats:
        """Distances of the nodes of the cells from the anchors."""
        return np.asarray(self.cells.nodes - self.anchor[self.cells.category][:, None])

    def under(self, tilts: Floats) -> Moments:
        """The moments of the laws under some tilts."""
        used = self.cells.used
        parts = Segments(np.append(0, np.cumsum(used.sum(axis=1)))[self.parts.start])
        away, log_masses, known = self.away[used], self.log_masses[used], []
        for some in np.array_split(tilts, tilts.size * away.size // _BLOCK + 1):
            logs = log_masses + some[:, None] * away
            largest = parts.largest(logs)
            masses = np.exp(logs - largest[:, parts.owner])
            total = parts.sums(masses)
            shift = parts.sums(masses * away) / total
            square = parts.sums(masses * (away - shift[:, parts.owner]) ** 2) / total
            known.append((largest + np.log(total), self.anchor + shift, square))
        whole = (np.concatenate(each) for each in zip(*known, strict=True))
        return Moments(self.anchor, tilts, *whole)

    def some(self, rows: Integers) -> "TiltedCounts":
        """Those of some of the categories, in their order."""
        parts, place = self.parts.chosen(rows)
        cells = replace(self.cells.where(place), category=parts.owner)
        return TiltedCounts(self.categories.chosen(rows), self.anchor[rows], cells)

    def within(self, low: Floats, high: Floats) -> "TiltedCounts":
        """The parts of the cells between bounds of each category."""
        bounds = (each.astype(np.int64) for each in (np.floor(low), np.ceil(high)))
        return replace(self, cells=self.cells.within(*bounds))
