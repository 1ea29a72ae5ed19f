"""Independent draws of counts given their sum, by rejection: half of them freely, kept where the
rest suits, and then each half in the same way.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from opendp_bayes.inference.convolution.sums import Part, SumLaws, Sums, part_of
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells, log_or_nothing
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.refinement import cells_between, cells_from, refined
from opendp_bayes.mathematics.validation import Floats, Integers

#: Half of the counts are drawn again while this share of them is kept, so many times at once.
_KEPT, _TRIALS = 0.005, 400
#: How far the largest density that is found may be below the true one, in logarithms.
_SLACK = 0.05
#: Counts that are drawn at once, and sums whose laws are computed at once.
_BLOCK, _ROWS = 1 << 22, 256
#: Laws of up to so many values are tabulated.
_TABLE = 1 << 11


class DrawsGivenSum:
    """Draws of the sums of some parts of all counts, which together are all of them.

    The parts are in the order of their variances. Given the sum of some, the first half of these
    are drawn as if nothing were known of it, and kept with the probability of what is left to the
    others; then these are split.
    """

    def __init__(self, sums: Sums, parts: Sequence[Part]) -> None:
        kinds = dict[tuple[bytes, bytes], int]()
        keys = [(rows.tobytes(), times.tobytes()) for rows, times in parts]
        kind = np.array([kinds.setdefault(key, len(kinds)) for key in keys])
        # Parts that are alike have one law.
        self._alike = [parts[int(at)] for at in np.unique(kind, return_index=True)[1]]
        self._sums, self._outline = sums, sums.outline(self._alike)
        self._order = np.argsort(self._outline.variance[kind], kind="stable")
        self._parts = [parts[at] for at in self._order.tolist()]
        self._kind = kind[self._order].tolist()
        self._known: dict[tuple[int, int], SumLaws] = {}
        self._peaks: dict[tuple[int, int], float] = {}

    def of(self, sizes: Integers, rng: np.random.Generator) -> Integers:
        """Draws of all parts, given the sums of all of shape `(draws,)`; shape `(draws, parts)`."""
        drawn = np.empty((sizes.size, len(self._parts)), dtype=np.int64)
        for block in np.array_split(np.arange(sizes.size), drawn.size // _BLOCK + 1):
            found = self._given(0, len(self._parts), sizes[block], rng)
            drawn[block[:, None], self._order] = found.T
        return drawn

    def _given(self, first: int, end: int, sums: Integers, rng: np.random.Generator) -> Integers:
        """Draws of some parts, given their sums; shape `(parts, draws)`."""
        if end - first == 1:
            return sums[None, :]
        middle = (first + end) // 2
        drawn, waiting = np.empty((middle - first, sums.size), dtype=np.int64), np.arange(sums.size)
        while waiting.size:
            times = max(_TRIALS // waiting.size, 1)
            counts = self._free(first, middle, waiting.size * times, rng)
            left = np.repeat(sums[waiting], times) - counts.sum(axis=0)
            log_weight = self._log_density((middle, end), left.astype(np.float64))
            peak = self._log_peak((middle, end))
            fits = np.log1p(-rng.random(left.size)) <= log_weight - peak - _SLACK
            place = fits.reshape(-1, times).argmax(axis=1) + times * np.arange(waiting.size)
            kept = fits[place]
            drawn[:, waiting[kept]] = counts[:, place[kept]]
            waiting = waiting[~kept]
            if fits.mean() < _KEPT:
                break
        if waiting.size:
            own = self._halves((first, middle), (middle, end), sums[waiting], rng)
            drawn[:, waiting] = self._given(first, middle, own, rng)
        return np.concatenate([drawn, self._given(middle, end, sums - drawn.sum(axis=0), rng)])

    def _free(self, first: int, end: int, draws: int, rng: np.random.Generator) -> Integers:
        """Draws of some parts, shape `(parts, draws)`, of which nothing else is known."""
        found = np.empty((end - first, draws), dtype=np.int64)
        kinds = self._kind[first:end]
        for row, kind in enumerate(kinds):
            if kind in self._tables:
                least, running = self._tables[kind]
                level = rng.random(draws) * running[-1]
                found[row] = least + np.searchsorted(running, level, side="right")
        rows = [row for row, kind in enumerate(kinds) if kind not in self._tables]
        if rows:
            laws = np.array([self._long[kinds[row]] for row in rows])
            every = np.broadcast_to(laws[:, None], (len(rows), draws))
            found[rows] = self._laws_in_cells.draw(every, rng)
        return found

    @cached_property
    def _tables(self) -> dict[int, tuple[int, Floats]]:
        """First value and cumulative weights of the kinds of parts of few values."""
        low = np.ceil(np.maximum(self._outline.low, 0)).astype(np.int64)
        length = np.floor(self._outline.high).astype(np.int64) - low + 1
        some = np.flatnonzero(length <= _TABLE)
        if not some.size:
            return {}
        low, length = low[some], np.maximum(length[some], 1)
        start = np.cumsum(length) - length
        row = np.repeat(np.arange(some.size), length)
        counts = (np.arange(row.size) - start[row] + low[row]).astype(np.float64)
        weights = self._sums.of([self._alike[kind] for kind in some.tolist()]).density(row, counts)
        every = zip(some.tolist(), low.tolist(), start.tolist(), length.tolist(), strict=True)
        return {kind: (first, np.cumsum(weights[at : at + n])) for kind, first, at, n in every}

    @cached_property
    def _long(self) -> dict[int, int]:
        """Places of the other kinds of parts."""
        long = [kind for kind in range(len(self._alike)) if kind not in self._tables]
        return {kind: place for place, kind in enumerate(long)}

    @cached_property
    def _laws_in_cells(self) -> CountLaws:
        """The laws of the kinds of parts of many values, in cells."""
        parts = [self._alike[kind] for kind in self._long]
        laws = self._sums.of(parts)
        return CountLaws.of(_cells(laws), lambda *where: log_or_nothing(laws.density(*where)))

    def _log_peak(self, half: tuple[int, int]) -> float:
        """Logarithm of the largest probability of the sum of some parts."""
        if half not in self._peaks:
            cells = _cells(self._law(half))
            self._peaks[half] = float(self._log_density(half, cells.nodes.ravel()).max())
        return self._peaks[half]

    def _halves(
        self, own: tuple[int, int], other: tuple[int, int], sums: Integers, rng: np.random.Generator
    ) -> Integers:
        """Draws of the sum of the first of two halves, from its law given each sum of both."""
        totals, which = np.unique(sums, return_inverse=True)
        drawn = np.empty_like(sums)
        for start in range(0, totals.size, _ROWS):
            total = totals[start : start + _ROWS]

            def log_weight(row: Integers, counts: Floats) -> Floats:
                beside = self._log_density(other, total[row] - counts)  # noqa: B023
                return np.maximum(self._log_density(own, counts) + beside, NOTHING)

            left, right = (self._law(half).starts()[1] for half in (own, other))
            seeds = np.hstack([np.tile(left, (total.size, 1)), total[:, None] - right])
            ends = np.zeros(total.size), np.maximum(total, 0).astype(np.float64)
            cells = refined(log_weight, cells_from(np.floor(seeds), *ends), total.size)
            laws = CountLaws.of(cells, log_weight)
            here = (which >= start) & (which < start + _ROWS)
            drawn[here] = laws.draw(which[here] - start, rng)
        return drawn

    def _law(self, half: tuple[int, int]) -> SumLaws:
        """The law of the sum of some parts."""
        if half not in self._known:
            times = np.zeros_like(self._sums.all[1])
            for rows, number in self._parts[slice(*half)]:
                times[rows] += number
            self._known[half] = self._sums.of([part_of(times)], alone=True)
        return self._known[half]

    def _log_density(self, half: tuple[int, int], sums: Floats) -> Floats:
        flat = sums.ravel()
        found = self._law(half).density(np.zeros(flat.size, dtype=np.int64), flat)
        return log_or_nothing(found).reshape(sums.shape)


def _cells(laws: SumLaws) -> Cells:
    """Cells in each of which a law is smooth."""
    cells = cells_between(*laws.starts(), laws.outline.low, laws.outline.high)
    return refined(lambda *where: log_or_nothing(laws.density(*where)), cells, laws.leaf.size)
