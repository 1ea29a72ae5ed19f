"""Laws of sums of independent counts on grids, with any one count left out."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from opendp_bayes.inference.convolution.number_of_records import Total
from opendp_bayes.inference.convolution.sum_laws import GridLaw, cubic_weights
from opendp_bayes.inference.convolution.tilted_counts import Windows
from opendp_bayes.mathematics.validation import Floats, Integers

#: Sums are left out whose probability, in all, is below `exp(-_DEPTH)`.
_DEPTH = 36.0
#: Entries of the transforms that are held at once.
_BLOCK = 1 << 23
#: A zoom reaches so many steps.
ZOOM = 4096
#: What is left at the end of a fine grid, `exp(-_DAMPED)`, so that its cycle of twice the length
#: repeats nothing that counts.
_DAMPED = 14.0
#: Relative to the largest, the error of a transform.
_ROUNDING = 1e-15
#: The smallest deviation, in records, for which the tails of a sum are bounded.
_SMALLEST = 0.05

Complexes = NDArray[np.complex128]


def tails(windows: Windows, multiplicity: Integers) -> tuple[Floats, Floats]:
    """Bounds of the sum of all counts (first entry) and of all but one of each row (the others).

    Arrays of shape `(rows + 1,)`. Beyond them the probability is below `exp(-_DEPTH)`, by Chernoff.
    """
    cells = windows.cells
    log_masses = windows.log_masses
    away = cells.nodes - windows.mean[cells.category][:, None]
    starts = np.flatnonzero(np.diff(cells.category, prepend=-1))
    deviations = np.sqrt(np.maximum(_less_one(windows.variance, multiplicity), _SMALLEST**2))
    # From those that suit the widest sum to those that suit the narrowest.
    steps = np.arange(-6, 11 + np.log2(deviations.max() / deviations.min()))
    exponents = 2.0**steps / deviations.max()
    mean, first, last = windows.mean, *windows.ends
    bounds = []
    for sign, ends in ((-1, first), (1, last)):
        best = _less_one(ends.astype(np.float64), multiplicity)
        for exponent in sign * exponents:
            values = log_masses + exponent * away
            top = np.maximum.reduceat(values.ravel(), 4 * starts)
            scaled = np.exp(values - top[cells.category][:, None])
            cumulant = top + np.log(np.add.reduceat(scaled.ravel(), 4 * starts))
            reach = (_less_one(cumulant, multiplicity) + _DEPTH) / exponent
            bound = _less_one(mean, multiplicity) + reach
            best = np.maximum(best, bound) if sign < 0 else np.minimum(best, bound)
        bounds.append(np.floor(best) if sign < 0 else np.ceil(best))
    return bounds[0], bounds[1]


def _less_one(values: Floats, multiplicity: Integers) -> Floats:
    """The sum of all, then the sums without one of each row."""
    whole = float(multiplicity @ values)
    return np.append(whole, whole - values)


def trimmed(
    windows: Windows, multiplicity: Integers, total: Total
) -> tuple[Windows, tuple[Floats, Floats]]:
    """Windows without the counts that no sum of the others completes to the total, and the bounds
    of the sums: the widest category given the sum is no wider than the others together.
    """
    bounds = tails(windows, multiplicity)
    lowest, highest = windows.ends
    for _ in range(2):
        low, high = bounds
        lower = np.maximum(lowest, max(total.lowest, low[0]) - high[1:]).astype(np.int64)
        # A count that may be all there is has no edge there, as far as the others reach.
        beyond = np.where(low[1:] < total.margin, np.minimum(total.margin, high[1:]), 0)
        upper = np.minimum(highest, min(total.highest, high[0]) - low[1:] + beyond).astype(np.int64)
        if np.all((lower == lowest) & (upper == highest)):
            break
        windows = windows.within(np.minimum(lower, highest), np.maximum(upper, lowest))
        bounds = tails(windows, multiplicity)
        lowest, highest = windows.ends
    return windows, bounds


@dataclass(frozen=True, eq=False)
class Grid:
    """A cycle of `length` points, `step` counts apart, on which sums of counts are convolved.

    Every row of the windows, there `multiplicity` times, is spread over its nearest four points so
    that its moments up to the third are kept. A `zoom` is a grid from 0 on, for small sums only.
    """

    windows: Windows
    multiplicity: Integers
    step: int
    length: int
    zoom: bool = False

    @property
    def damping(self) -> float:
        """The rate at which laws on a zoom are made to decrease."""
        return _DAMPED / (ZOOM * self.step) if self.zoom else 0.0

    @cached_property
    def origins(self) -> Integers:
        """The grid point from which each row is counted."""
        return np.zeros_like(self.multiplicity) if self.zoom else self.windows.ends[0] // self.step

    def blocks(self) -> list[tuple[int, int]]:
        """Rows whose transforms are held together."""
        size = max(1, _BLOCK // self.length)
        rows = self.multiplicity.size
        return [(start, min(start + size, rows)) for start in range(0, rows, size)]

    def transforms(self, start: int, stop: int) -> Complexes:
        """Of some rows, shape `(rows, length // 2 + 1)`."""
        cells = self.windows.cells
        edges = np.searchsorted(cells.category, [start, stop])
        cells = cells.where(np.arange(*edges))
        lower, upper = np.zeros(stop, dtype=np.int64), np.full(stop, ZOOM * self.step)
        if not self.zoom:  # what is further from the mean than a cycle is long weighs nothing
            middle = self.windows.mean[:stop].astype(np.int64)
            lower, upper = middle - self.length * self.step, middle + self.length * self.step
        cells = cells.within(lower, upper)
        cells = cells.cut(-(-cells.length // self.step))
        used = cells.used
        category = np.broadcast_to(cells.category[:, None], used.shape)[used]
        counts = cells.nodes[used]
        log_masses = cells.log_masses(self.windows.log_probability)[used]
        masses = np.exp(log_masses - self.damping * counts)
        place = counts / self.step - self.origins[category]
        row = (category - start) * self.length
        binned = np.zeros((stop - start) * self.length)
        if self.step == 1:
            target = row + place.astype(np.int64) % self.length
            binned += np.bincount(target, masses, minlength=binned.size)
        else:
            base, weights = cubic_weights(place)
            for offset, weight in enumerate(weights):
                target = row + (base + offset) % self.length
                binned += np.bincount(target, weight * masses, minlength=binned.size)
        return np.asarray(fft.rfft(binned.reshape(-1, self.length), axis=1))

    @cached_property
    def _only_block(self) -> Complexes | None:
        return self.transforms(*self.blocks()[0]) if len(self.blocks()) == 1 else None

    def _transformed(self, start: int, stop: int) -> Complexes:
        return self.transforms(start, stop) if self._only_block is None else self._only_block

    @cached_property
    def _products(self) -> list[Complexes]:
        """Of the rows of each block, repeated ones as often as they are there."""
        return [
            np.prod(_power(self._transformed(*block), self.multiplicity[slice(*block)]), axis=0)
            for block in self.blocks()
        ]

    @property
    def shows_all(self) -> bool:
        """Whether the law of the sum of all has nothing finer than the steps: its transform has
        vanished where it ends.
        """
        product = np.abs(np.prod(self._products, axis=0))
        return bool(product[-(self.length // 8) :].max() <= _ROUNDING * product[0])

    def whole(self) -> "GridLaw":
        """The law of the sum of all."""
        return self._law(np.prod(self._products, axis=0), int(self.multiplicity @ self.origins))

    def others(self) -> Iterator["GridLaw"]:
        """The law of the sum of all but one of each row, by products from both sides."""
        whole = int(self.multiplicity @ self.origins)
        outer = all_but_one(np.stack(self._products))
        for block, outside in zip(self.blocks(), outer, strict=True):
            transformed, times = self._transformed(*block), self.multiplicity[slice(*block)]
            inside = all_but_one(_power(transformed, times))
            several = times > 1
            if np.any(several):
                inside[several] *= _power(transformed[several], times[several] - 1)
            values = fft.irfft(inside * outside, self.length, axis=1)
            for row, law in enumerate(values):
                yield self._finished(law, whole - int(self.origins[block[0] + row]))

    def groups(self, times: Integers) -> Iterator[tuple["GridLaw", "GridLaw"]]:
        """The laws of sums in which each row is so many times, shape `(groups, rows)`, and of all
        without them. No count is in two groups.
        """
        left = self.multiplicity - times.sum(axis=0)
        factors = np.ones((len(times) + 1, self.length // 2 + 1), dtype=np.complex128)
        for block in self.blocks():
            transformed = self._transformed(*block)
            for factor, each in zip(factors, np.vstack([times, left]), strict=True):
                own = each[slice(*block)]
                some = own > 0
                factor *= np.prod(_power(transformed[some], own[some]), axis=0)
        whole, origins = int(self.multiplicity @ self.origins), times @ self.origins
        outside = all_but_one(factors)
        for factor, rest, origin in zip(factors, outside, origins.tolist(), strict=False):
            yield self._law(factor, origin), self._law(rest, whole - origin)

    def later(self) -> Iterator["GridLaw"]:
        """The law of the sum of all rows after each; of nothing after the last."""
        blocks, products = self.blocks(), self._products
        origin = int(self.multiplicity @ self.origins)
        for place, block in enumerate(blocks):
            transformed = _power(self._transformed(*block), self.multiplicity[slice(*block)])
            after = np.prod(np.stack([np.ones_like(products[0]), *products[place + 1 :]]), axis=0)
            suffix = np.empty_like(transformed)
            for row in range(len(suffix) - 1, -1, -1):
                suffix[row] = after
                after = after * transformed[row]
            values = fft.irfft(suffix, self.length, axis=1)
            for row, law in enumerate(values, start=block[0]):
                origin -= int(self.multiplicity[row] * self.origins[row])
                yield self._finished(law, origin)

    def _law(self, transform: Complexes, origin: int) -> "GridLaw":
        return self._finished(fft.irfft(transform, self.length), origin)

    def _finished(self, values: Floats, origin: int) -> "GridLaw":
        values = np.where(values > _ROUNDING * values.max(), values, 0.0) / self.step
        # The last points are beside an edge, where counts were left out.
        reach = (ZOOM - 4) * self.step if self.zoom else None
        return GridLaw(values, origin, self.step, self.damping, reach)


def _power(transforms: Complexes, times: Integers) -> Complexes:
    """Each row to a power, by squares."""
    several = times != 1
    if not np.any(several):
        return transforms
    square, times = transforms[several], times[several]
    powers = np.ones_like(square)
    while np.any(times > 0):
        odd = times % 2 == 1
        powers[odd] *= square[odd]
        times = times // 2
        square = square * square if np.any(times > 0) else square
    result = transforms.copy()
    result[several] = powers
    return result


def all_but_one(factors: Complexes) -> Complexes:
    """For every row the product of the others."""
    result, before = np.empty_like(factors), np.ones_like(factors[0])
    for row, factor in enumerate(factors):  # row by row: numpy's cumprod goes along columns
        result[row] = before
        before = before * factor
    after = np.ones_like(factors[0])
    for row in range(len(factors) - 1, -1, -1):
        result[row] *= after
        after = after * factors[row]
    return result
