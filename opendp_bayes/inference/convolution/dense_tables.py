"""Counts whose weights are a product of one table for each category, but for a factor that depends
on their sums: their laws by transforms of the tables.

A table has an axis for each of the data sets that the counts are of; the numbers of records of all
data sets are public, or there is one data set and its number is private.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special

from opendp_bayes.inference.convolution.count_tables import (
    along,
    check_entries,
    moments,
)
from opendp_bayes.mathematics.all_but_one import all_but_one
from opendp_bayes.mathematics.validation import Floats, Integers

Complexes = NDArray[np.complex128]

#: Standard deviations of the sums between which nothing wraps around.
_WIDE = 16.0
#: Relative to the largest, the error of a transform, and the smallest probability of the sums that
#: leaves enough digits.
_ROUNDING, _FEWEST_DIGITS = 1e-15, 1e-9
#: Private numbers of records are taken together that differ by this share, in no more parts than
#: these; those of a smaller share of the largest weight do not count.
_NEAR, _MOST_PARTS, _NEGLIGIBLE = 0.12, 40, 1e-8
#: Rounds of proposals.
_ROUNDS = 300
#: Fewer private numbers of records in other categories are looked at one by one: beside a prior
#: below 1, no one Beta stands for several.
FEW_LEFT = 32


@dataclass(frozen=True, eq=False)
class Given:
    """A category's counts in all data sets together, the weight of each, and the expected values of
    `1 / M` and of `1 / (M (M + 1))` given each, M the number of records and `concentration`. Where
    the records in other categories are few, they are given, too: `left`.
    """

    counts: Integers
    weights: Floats
    inverse: Floats
    inverse_square: Floats
    left: Integers | None = None


class Convolved:
    """Counts of every category in every data set.

    Parameters
    ----------
    windows : for every category the counts in each data set, the axes of its table.
    logs : the tables, logarithms.
    tilt : a rate for each data set with which its counts sum to their number on average.
    concentration : added to the number of records in M (`Given`).
    sizes : the public numbers of records; None for one data set with a private number,
    log_weight : whose numbers have these logarithms of weights.

    Raises `ValueError` where tables are too large, or the sums beyond floating point.
    """

    def __init__(
        self,
        windows: Sequence[Sequence[Integers]],
        logs: Sequence[Floats],
        tilt: Floats,
        concentration: float,
        sizes: Sequence[int] | None,
        log_weight: Callable[[Floats], Floats] = np.zeros_like,
    ) -> None:
        self._windows, self._concentration = windows, concentration
        self._sizes, self._log_weight = sizes, log_weight
        self.tilt, self.ends = tilt, (0.0, np.inf)
        self.mean, covariance = moments(windows, logs, tilt)
        deviations = self.deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        pairs = zip(windows, logs, strict=True)
        tilted = [log + along(row, tilt) for row, log in pairs]
        self._tables = [special.softmax(log) for log in tilted]
        shape = []
        for axis, deviation in enumerate(deviations):
            lengths = [row[axis].size for row in windows]
            length = min(sum(lengths), max(lengths) + int(np.ceil(_WIDE * deviation)))
            shape.append(fft.next_fast_len(length + 1, real=True))
        self._shape = tuple(shape)
        check_entries(len(windows) * float(np.prod(np.array(shape, dtype=float))))
        self._lowest = np.array([[int(window[0]) for window in row] for row in windows])
        self.log_constant = float(sum(special.logsumexp(log) for log in tilted))
        _ = self._weighted  # which refuses what is beyond floating point

    @cached_property
    def _transforms(self) -> Complexes:
        return np.stack([fft.rfftn(table, self._shape) for table in self._tables])

    @cached_property
    def _others(self) -> Complexes:
        """For every category the transform of the sum of the others."""
        return np.asarray(all_but_one(self._transforms, np.multiply))

    def _law(self, transform: Complexes) -> Floats:
        values = fft.irfftn(transform, self._shape)
        return np.where(values > _ROUNDING * values.max(), values, 0.0)

    @cached_property
    def _numbers(self) -> list[Integers]:
        """Numbers of records of each data set on the cycle of sums, as axes."""
        grid = []
        for first, length, mean in zip(
            self._lowest.sum(axis=0).tolist(), self._shape, self.mean, strict=True
        ):
            start = max(first, int(mean) - length // 2)
            grid.append(start + (first + np.arange(length) - start) % length)
        return list(np.meshgrid(*grid, indexing="ij", sparse=True))

    @cached_property
    def _sums(self) -> Floats:
        """The law of the sums of all counts, before their weights."""
        return self._law(self._transforms[0] * self._others[0])

    @cached_property
    def _has_digits(self) -> NDArray[np.bool_]:
        """True for sums whose probability, before their weights, transforms have digits of."""
        return np.asarray(self._sums > _FEWEST_DIGITS * self._sums.max())

    @cached_property
    def _weighted(self) -> tuple[Floats, float]:
        """Weights of the sums, and the logarithm of what they are divided by."""
        numbers = self._numbers
        if self._sizes is None:
            number = numbers[0].astype(np.float64)
            log_weight = self._log_weight(number) - self.tilt[0] * number
            inside = (number >= self.ends[0]) & (number <= self.ends[1])
            log_weight = np.where(inside, log_weight, -np.inf)
        else:
            right = [number == size for number, size in zip(numbers, self._sizes, strict=True)]
            log_weight = np.where(np.logical_and.reduce(np.broadcast_arrays(*right)), 0.0, -np.inf)
        log_weight = np.where(self._has_digits, log_weight, -np.inf)
        top = float(log_weight.max())
        if top == -np.inf:
            raise ValueError(
                "releases: what was drawn is so far from any counts that sum to the numbers of"
                " records that their probabilities are beyond floating point."
            )
        return np.exp(log_weight - top), top

    @property
    def _weights(self) -> Floats:
        return self._weighted[0]

    @property
    def log_evidence(self) -> float:
        """The logarithm of the sum of all weights, of a private number of records."""
        return (
            float(np.log((self._sums * self._weights).sum()))
            + self._weighted[1]
            + (self.log_constant)
        )

    @cached_property
    def served(self) -> tuple[int, int]:
        """The least and the largest private number of records with enough digits."""
        numbers = self._numbers[0][self._has_digits]
        return int(numbers.min()), int(numbers.max())

    def between(self, least: float, most: float) -> "Convolved":
        """Without other private numbers of records; some of these must be served."""
        part = copy(self)
        part.ends = least, most
        del part._weighted
        return part

    def log_weight_of(self, number: int) -> float:
        """The logarithm of the weight of a private number of records, as `log_evidence` is that of
        all.
        """
        here = self._numbers[0] == number
        with np.errstate(divide="ignore"):
            law = float(np.log((self._sums * self._weights)[here].sum()))
        return law + self._weighted[1] + self.log_constant

    def number_law(self) -> tuple[Integers, Floats]:
        """Private numbers of records and their probabilities."""
        law = (self._sums * self._weights).ravel()
        numbers = np.ravel(np.asarray(sum(self._numbers)))
        return numbers[law > 0], law[law > 0] / law.sum()

    def _parts(self) -> list[Floats]:
        """The weights, in parts of nearly the same number of all records."""
        if self._sizes is not None:
            return [self._weights]
        total = np.log(self._concentration + sum(self._numbers))
        law = self._sums * self._weights
        seen = total[law > _NEGLIGIBLE * law.max()]
        lowest, highest = float(seen.min()), float(seen.max())
        number = min(1 + int((highest - lowest) / _NEAR), _MOST_PARTS)
        place = np.clip((total - lowest) / max(highest - lowest, 1e-9) * number, 0, number - 1)
        parts = [np.where(place.astype(int) == part, self._weights, 0.0) for part in range(number)]
        return [part for part in parts if np.any(part * self._sums > _NEGLIGIBLE * law.max())]

    def given(self) -> list[list[Given]]:
        """List the counts of every category, for each part of the numbers of records."""
        total = np.asarray(self._concentration + sum(self._numbers))
        parts, axes = self._parts(), tuple(range(1, total.ndim + 1))
        ends = [(float(total[part > 0].min()), float(total[part > 0].max())) for part in parts]
        factors = (1.0, 1 / total, 1 / total / (total + 1))
        each = np.stack([part * factor for part in parts for factor in factors])
        weights = fft.rfftn(each, axes=axes)
        found: list[list[Given]] = []
        for category, (table, others) in enumerate(zip(self._tables, self._others, strict=True)):
            found.append([])
            if self._sizes is None:
                found[-1], others = self._few_left(category)
            completed = fft.irfftn(weights * others.conj(), self._shape, axes=axes)
            inside = completed[(slice(None), *map(slice, table.shape))]
            masses = (table * np.maximum(inside, 0.0)).reshape(len(each), -1)
            counts = self._counts(category)
            first = int(counts.min())
            if table.ndim > 1:
                masses = np.stack([np.bincount(counts - first, row) for row in masses])
            for (law, once, twice), (least, most) in zip(
                masses.reshape(len(parts), 3, -1), ends, strict=True
            ):
                seen = law > _ROUNDING * law.max()
                inverse = np.clip(once[seen] / law[seen], 1 / most, 1 / least)
                square = twice[seen] / law[seen]
                found[-1].append(Given(first + np.flatnonzero(seen), law[seen], inverse, square))
        return found

    def _few_left(self, category: int) -> tuple[list[Given], Complexes]:
        """List the counts of a category beside few records in the others, and transform the sum of
        the others where it is larger.
        """
        law, own = self._law(self._others[category]), self._counts(category)[:, None]
        least = int(self._lowest.sum()) - int(own[0, 0])
        few = np.arange(min(max(FEW_LEFT - least, 0), law.size))
        place = (np.arange(own.size)[:, None] + few) % law.size
        right = self._numbers[0][place] == own + least + few
        masses = self._tables[category][:, None] * law[few] * self._weights[place] * right
        seen = masses > 0
        counts, left = (part[seen] for part in np.broadcast_arrays(own, least + few))
        inverse = 1 / (self._concentration + counts + left)
        square = inverse / (1 / inverse + 1)
        law[few] = 0.0
        found = Given(counts, masses[seen], inverse, square, left)
        return [found] if np.any(seen) else [], np.asarray(fft.rfft(law))

    def _counts(self, category: int) -> Integers:
        """The counts of the entries of a table in all data sets together."""
        grid = np.meshgrid(*self._windows[category], indexing="ij", sparse=True)
        return np.ravel(np.asarray(sum(grid)))

    def sample(self, size: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the counts in all data sets together, shape `(size, k)`."""
        law = self._sums * self._weights
        place = rng.choice(law.size, size, p=(law / law.sum()).ravel())
        left = np.stack(np.unravel_index(place, self._shape), axis=1)
        drawn = np.empty((size, len(self._tables)), dtype=np.int64)
        # The narrowest first, beside which what follows is smooth.
        entropies = [float(special.entr(table).sum()) for table in self._tables]
        *order, last = np.argsort(entropies).tolist()
        later = accumulate((self._transforms[i] for i in (last, *order[:0:-1])), np.multiply)
        for category, rest in zip(order, list(later)[::-1], strict=True):
            taken = self._taken(self._tables[category], self._law(rest), left, rng)
            left = (left - taken) % np.array(self._shape)
            drawn[:, category] = taken.sum(axis=1)
        drawn[:, last] = left.sum(axis=1)
        return drawn + self._lowest.sum(axis=1)

    def _taken(
        self, table: Floats, rest: Floats, left: Integers, rng: np.random.Generator
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
            at = rest[tuple(((left[waiting] - proposed) % shape).T)]
            accepted = rng.random(waiting.size) * rest.max() < at
            taken[waiting[accepted]] = proposed[accepted]
            waiting = waiting[~accepted]
            if not waiting.size:
                return taken
        grid = np.meshgrid(*map(np.arange, table.shape), indexing="ij", sparse=True)
        totals, which = np.unique(left[waiting], axis=0, return_inverse=True)
        for place, total in enumerate(totals):
            rows = waiting[which.ravel() == place]
            completed = tuple((t - g) % n for t, g, n in zip(total, grid, shape, strict=True))
            weights = (table * rest[completed]).ravel()
            places = rng.choice(weights.size, rows.size, p=weights / weights.sum())
            taken[rows] = np.stack(np.unravel_index(places, table.shape), axis=1)
        return taken
