"""Counts in several data sets, whose weights are a product of one table for each category but for a
factor that depends on their sums: marginal laws by Fourier transforms of several axes, draws by
rejection.

A table has an axis for each of the data sets that the counts are of; the numbers of records of all
data sets are public, or there is one data set and its number is private.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from opendp_bayes.inference.convolution.noisy_data_sets import check_entries
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.validation import Floats, Integers

Complexes = NDArray[np.complex128]
#: The counts of a category in each data set, the axes of its table.
Axes = Sequence[Integers]

#: Standard deviations of the sums between which nothing wraps around.
_WIDE = 16.0
#: Relative to the largest, the error of a transform, and the smallest probability of the sums that
#: leaves enough digits.
_ROUNDING, _FEWEST_DIGITS = 1e-15, 1e-12
#: Numbers of records are taken together that differ by this share, in no more parts than these;
#: those of a smaller share of the largest weight do not count.
_NEAR, _MOST_PARTS, _NEGLIGIBLE = 0.12, 40, 1e-8
#: Rounds of proposals.
_ROUNDS = 300
#: Fewer records in other categories are looked at one by one: beside a prior below 1, no one Beta
#: stands for several.
_FEW_LEFT = 32


@dataclass(frozen=True, eq=False)
class JointLaw:
    """The joint law of a category's count, in all data sets together, and of the records `left` in
    the other categories: parts of similar ones with their weight, mean and variance; shapes `(m,)`.
    """

    counts: Integers
    weights: Floats
    left: Floats
    variance: Floats

    @classmethod
    def joined(cls, parts: "Sequence[JointLaw]", shares: Floats) -> "JointLaw":
        """Put parts of some shares together; the weights sum to 1 if the shares do."""
        pairs = zip(parts, shares.tolist(), strict=True)
        weights = np.concatenate([law.weights * (x / law.weights.sum()) for law, x in pairs])
        counts, left, variance = (
            np.concatenate([getattr(law, field) for law in parts])
            for field in ("counts", "left", "variance")
        )
        return cls(counts, weights, left, variance)


def moments(axes: Sequence[Axes], logs: Sequence[Floats], tilt: Floats) -> tuple[Floats, Floats]:
    """Means and covariances of the sums over the categories, of tilted tables."""
    mean, covariance = np.zeros(tilt.size), np.zeros((tilt.size, tilt.size))
    for row, log_table in zip(axes, logs, strict=True):
        table = special.softmax(log_table + _along(row, tilt))
        grid = np.meshgrid(*row, indexing="ij", sparse=True)
        means = np.array([(table * counts).sum() for counts in grid])
        away = [counts - middle for counts, middle in zip(grid, means, strict=True)]
        mean += means
        covariance += [
            [(table * row_distances * column_distances).sum() for column_distances in away]
            for row_distances in away
        ]
    return mean, covariance


def _along(axes: Axes, tilt: Floats) -> Floats:
    """The tilt's part of the logarithms of weights, on a grid."""
    rates = [rate * counts for rate, counts in zip(tilt, axes, strict=True)]
    return np.asarray(sum(np.meshgrid(*rates, indexing="ij", sparse=True)))


class Convolved:
    """Counts of every category in every data set.

    Raises `ValueError` where tables are too large, or the sums beyond floating point.

    Parameters
    ----------
    axes : Sequence[Axes]
        For every category the counts in each data set, the axes of its table.
    logs : Sequence[ndarray]
        The tables, logarithms.
    tilt : ndarray
        A rate for each data set with which its counts sum to their number on average.
    concentration : float
        That of the prior, beside which the numbers of records are large or small.
    log_weight : Callable[[Axes], ndarray]
        Logarithms of the weights of numbers of records, which are given as a grid.
    """

    def __init__(
        self,
        axes: Sequence[Axes],
        logs: Sequence[Floats],
        tilt: Floats,
        concentration: float,
        log_weight: Callable[[Axes], Floats],
    ) -> None:
        self._axes, self._concentration, self._log_weight = axes, concentration, log_weight
        self._tilt = tilt
        self._mean, covariance = moments(axes, logs, tilt)
        deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        tilted = [log + _along(row, tilt) for row, log in zip(axes, logs, strict=True)]
        self._tables = [special.softmax(log) for log in tilted]
        self._log_constant = float(sum(special.logsumexp(log) for log in tilted))
        shape = []
        for axis, deviation in enumerate(deviations.tolist()):
            lengths = [row[axis].size for row in axes]
            length = min(sum(lengths), max(lengths) + int(np.ceil(_WIDE * deviation)))
            shape.append(fft.next_fast_len(length + 1, real=True))
        self._shape = tuple(shape)
        check_entries(len(axes) * float(np.prod(np.array(shape, dtype=float))))
        self._lowest = np.array([[int(counts[0]) for counts in row] for row in axes])
        _ = self._weighted  # which refuses what is beyond floating point

    @cached_property
    def _transforms(self) -> Complexes:
        return np.stack([fft.rfftn(table, self._shape) for table in self._tables])

    @cached_property
    def _others(self) -> Complexes:
        """For every category the transform of the sum of the others."""
        return np.asarray(all_but_one(self._transforms, np.multiply))

    def _values(self, transform: Complexes) -> Floats:
        values = fft.irfftn(transform, self._shape)
        return np.where(values > _ROUNDING * values.max(), values, 0.0)

    @cached_property
    def _numbers(self) -> list[Integers]:
        """Numbers of records of each data set on the cycle of sums, as axes."""
        grid = []
        ends = zip(self._lowest.sum(axis=0).tolist(), self._shape, self._mean, strict=True)
        for first, length, mean in ends:
            start = max(first, int(mean) - length // 2)
            grid.append(start + (first + np.arange(length) - start) % length)
        return list(np.meshgrid(*grid, indexing="ij", sparse=True))

    @cached_property
    def _total(self) -> Integers:
        """The number of records of all data sets together, on the cycles of sums."""
        return np.asarray(sum(self._numbers))

    @cached_property
    def _sums(self) -> Floats:
        """The law of the sums of all counts, before their weights."""
        return self._values(self._transforms[0] * self._others[0])

    @cached_property
    def _weighted(self) -> tuple[Floats, float]:
        """Weights of the sums, and the logarithm of what they are divided by."""
        rates = [rate * number for rate, number in zip(self._tilt, self._numbers, strict=True)]
        log_weight = self._log_weight(self._numbers) - sum(rates)
        has_digits = self._sums > _FEWEST_DIGITS * self._sums.max()
        log_weight = np.where(has_digits, log_weight, -np.inf)
        top = float(log_weight.max())
        if top == -np.inf:
            raise ValueError(
                "releases: what was drawn is so far from any counts that sum to the numbers of"
                " records that their probabilities are beyond floating point."
            )
        return np.exp(log_weight - top), top

    @cached_property
    def _law(self) -> Floats:
        """Probabilities of the sums, but for a factor."""
        return self._sums * self._weighted[0]

    @property
    def log_evidence(self) -> float:
        """The logarithm of the sum of all weights."""
        return float(np.log(self._law.sum())) + self._weighted[1] + self._log_constant

    def number_law(self) -> tuple[Integers, Floats]:
        """Numbers of all records and their probabilities."""
        seen = self._law > 0
        return self._total[seen], self._law[seen] / self._law.sum()

    def _parts(self) -> list[Floats]:
        """The weights, in parts of nearly the same number of all records."""
        logs, law, weights = np.log(self._concentration + self._total), self._law, self._weighted[0]
        seen = logs[law > _NEGLIGIBLE * law.max()]
        lowest, highest = float(seen.min()), float(seen.max())
        number = min(1 + int((highest - lowest) / _NEAR), _MOST_PARTS)
        part_of = np.clip((logs - lowest) / max(highest - lowest, 1e-9) * number, 0, number - 1)
        parts = [np.where(part_of.astype(int) == i, weights, 0.0) for i in range(number)]
        return [
            weights_of_part
            for weights_of_part in parts
            if np.any(weights_of_part * self._sums > _NEGLIGIBLE * law.max())
        ]

    def joint_laws(self) -> list[JointLaw]:
        """Joint laws of the count of every category and of the records in the others."""
        total, parts, axes = self._total, self._parts(), tuple(range(1, len(self._shape) + 1))
        least, most = (
            np.array([end(total[weights_of_part > 0]) for weights_of_part in parts])[:, None]
            for end in (np.min, np.max)
        )
        middle = (least + most) // 2
        terms = [
            weights_of_part * (total - centre) ** power
            for weights_of_part, centre in zip(parts, middle.ravel(), strict=True)
            for power in range(3)
        ]
        weights = fft.rfftn(np.stack(terms), axes=axes)
        laws: list[list[JointLaw]] = []
        for category, (table, others) in enumerate(zip(self._tables, self._others, strict=True)):
            laws.append([])
            if len(self._shape) == 1:  # of one data set, or of two with a given share
                laws[-1], others = self._few_left(category)
            completed = fft.irfftn(weights * others.conj(), self._shape, axes=axes)
            inside = (slice(None), *map(slice, table.shape))
            masses = table * completed[inside]
            counts = self._counts(category)
            first = int(counts.min())
            masses = np.stack([np.bincount(counts - first, row.ravel()) for row in masses])
            law, once, twice = np.moveaxis(masses.reshape(len(parts), 3, -1), 1, 0)
            seen = law > _ROUNDING * law.max(axis=1, keepdims=True)
            safe = np.where(seen, law, 1.0)
            number = np.clip(middle + once / safe, least, most)
            variance = np.clip(twice / safe - (number - middle) ** 2, 0, (most - least) ** 2)
            counts = np.broadcast_to(first + np.arange(law.shape[1]), law.shape)
            left = np.maximum(number - counts, 0)
            if np.any(seen):
                laws[-1].append(JointLaw(counts[seen], law[seen], left[seen], variance[seen]))
        return [
            JointLaw.joined(laws_of_one, np.array([x.weights.sum() for x in laws_of_one]))
            for laws_of_one in laws
        ]

    def _few_left(self, category: int) -> tuple[list[JointLaw], Complexes]:
        """List the counts of a category beside few records in the others, and transform the sum of
        the others where it is larger.
        """
        law, counts_here = self._values(self._others[category]), self._counts(category)[:, None]
        least = int(self._lowest.sum()) - int(counts_here[0, 0])
        few = np.arange(min(max(_FEW_LEFT - least, 0), law.size))
        index = (np.arange(counts_here.size)[:, None] + few) % law.size
        right = self._total[index] == counts_here + least + few
        masses = self._tables[category][:, None] * law[few] * self._weighted[0][index]
        # At other places of the cycle are sums that are larger by its length.
        right &= 2 * (masses * right).sum(axis=0) > masses.sum(axis=0)
        masses *= right
        law[few[right.any(axis=0)]] = 0.0
        seen = masses > _ROUNDING * masses.max(initial=0.0)
        counts, left = (array[seen] for array in np.broadcast_arrays(counts_here, least + few))
        near = JointLaw(counts, masses[seen], left.astype(np.float64), np.zeros(left.size))
        return [near] if left.size else [], np.asarray(fft.rfft(law))

    def _counts(self, category: int) -> Integers:
        """The counts of the entries of a table in all data sets together."""
        grid = np.meshgrid(*self._axes[category], indexing="ij", sparse=True)
        return np.ravel(np.asarray(sum(grid)))

    def sample(self, draws: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the counts in all data sets together, shape `(draws, k)`."""
        index = rng.choice(self._law.size, draws, p=(self._law / self._law.sum()).ravel())
        left = np.stack(np.unravel_index(index, self._shape), axis=1)
        counts = np.empty((draws, len(self._tables)), dtype=np.int64)
        # The narrowest first, beside which what follows is smooth.
        entropies = [float(special.entr(table).sum()) for table in self._tables]
        *order, last = np.argsort(entropies).tolist()
        later = accumulate((self._transforms[i] for i in (last, *order[:0:-1])), np.multiply)
        for category, transform in zip(order, list(later)[::-1], strict=True):
            taken = self._taken(self._tables[category], self._values(transform), left, rng)
            left = (left - taken) % np.array(self._shape)
            counts[:, category] = taken.sum(axis=1)
        counts[:, last] = left.sum(axis=1)
        return counts + self._lowest.sum(axis=1)

    def _taken(
        self, table: Floats, others: Floats, left: Integers, rng: np.random.Generator
    ) -> Integers:
        """Draws of the counts of a category, from the first of their windows, given what is left to
        it and those that follow: proposed without, and accepted with the probability of the rest.
        """
        shape = np.array(self._shape)
        taken, waiting = np.empty_like(left), np.arange(len(left))
        running = np.cumsum(table.ravel())
        for _ in range(_ROUNDS):
            places = np.searchsorted(running, rng.random(waiting.size) * running[-1])
            proposed = np.stack(np.unravel_index(places, table.shape), axis=1)
            chances = others[tuple(((left[waiting] - proposed) % shape).T)]
            accepted = rng.random(waiting.size) * others.max() < chances
            taken[waiting[accepted]] = proposed[accepted]
            waiting = waiting[~accepted]
            if not waiting.size:
                return taken
        grid = np.meshgrid(*map(np.arange, table.shape), indexing="ij", sparse=True)
        totals, which = np.unique(left[waiting], axis=0, return_inverse=True)
        for number, total in enumerate(totals):
            rows = waiting[which.ravel() == number]
            completed = tuple((t - g) % n for t, g, n in zip(total, grid, shape, strict=True))
            weights = (table * others[completed]).ravel()
            places = rng.choice(weights.size, rows.size, p=weights / weights.sum())
            taken[rows] = np.stack(np.unravel_index(places, table.shape), axis=1)
        return taken
