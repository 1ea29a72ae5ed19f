"""Independent draws of counts given their sum: half of them freely, kept where the rest suits."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from opendp_bayes.inference.convolution.sums_by_pairs import SumLaws, SumsByPairs
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


class DrawsByPairs:
    """Draws of the counts of some nodes of sums by pairs, in which every leaf is once.

    Given the sum of two nodes, the counts below the narrower one are drawn as if nothing were known
    of the sum, and kept with the probability of what is left to the wider one; then this is split.
    """

    def __init__(self, sums: SumsByPairs, wanted: Sequence[int]) -> None:
        self._plan, self._outline = sums.plan, sums.laws.outline
        self._laws, self._wanted = sums.laws, np.array(wanted)
        self._alone: dict[int, SumLaws] = {}
        self._below: dict[int, list[int]] = {node: [node] for node in wanted}
        self._peaks: dict[int, float] = {}
        self._order = np.empty_like(self._wanted)
        below = np.array(self._all_below(self._plan.root))
        self._order[np.argsort(self._wanted, kind="stable")] = np.argsort(below, kind="stable")

    def of(self, sizes: Integers, rng: np.random.Generator) -> Integers:
        """Draws of the wanted nodes, given the sums of all of shape `(draws,)`; shape `(draws,
        nodes)`.
        """
        blocks = np.array_split(sizes, sizes.size * self._wanted.size // _BLOCK + 1)
        drawn = [self._given(self._plan.root, block, rng)[self._order].T for block in blocks]
        return np.concatenate(drawn)

    def _given(self, node: int, sums: Integers, rng: np.random.Generator) -> Integers:
        """Draws of what is wanted below a node, given its sums; shape `(nodes, draws)`."""
        if self._below.get(node) == [node]:
            return sums[None, :]
        own, other = self._sides(node)
        below = self._all_below(own)
        drawn, waiting = np.empty((len(below), sums.size), dtype=np.int64), np.arange(sums.size)
        while waiting.size:
            times = max(_TRIALS // waiting.size, 1)
            counts = np.stack([self._free(each, waiting.size * times, rng) for each in below])
            left = np.repeat(sums[waiting], times) - counts.sum(axis=0)
            log_weight = self._log_density(other, left.astype(np.float64))
            fits = np.log1p(-rng.random(left.size)) <= log_weight - self._log_peak(other) - _SLACK
            first = fits.reshape(-1, times).argmax(axis=1) + times * np.arange(waiting.size)
            kept = fits[first]
            drawn[:, waiting[kept]] = counts[:, first[kept]]
            waiting = waiting[~kept]
            if fits.mean() < _KEPT:
                break
        if waiting.size:
            parts = self._parts(own, other, sums[waiting], rng)
            drawn[:, waiting] = self._given(own, parts, rng)
        rest = self._given(other, sums - drawn.sum(axis=0), rng)
        return np.concatenate([drawn, rest])

    def _sides(self, node: int) -> tuple[int, int]:
        """The two nodes that a sum is of, the narrower one first."""
        first, second = self._plan.pairs[node - self._plan.leaves]
        variance = self._outline.variance
        return (second, first) if variance[first] > variance[second] else (first, second)

    def _all_below(self, node: int) -> list[int]:
        """The wanted nodes that a node is a sum of, in the order in which they are drawn."""
        if node not in self._below:
            own, other = self._sides(node)
            self._below[node] = self._all_below(own) + self._all_below(other)
        return self._below[node]

    def _free(self, node: int, draws: int, rng: np.random.Generator) -> Integers:
        """Draws of one node, shape `(draws,)`, of which nothing else is known."""
        table = self._tables.get(node)
        if table is not None:
            first, running = table
            return first + np.searchsorted(running, rng.random(draws) * running[-1], side="right")
        return self._laws_in_cells.draw(np.full(draws, self._place[node]), rng)[0]

    @cached_property
    def _tables(self) -> dict[int, tuple[int, Floats]]:
        """First value and cumulative weights of the wanted nodes of few values."""
        nodes = np.unique(self._wanted)
        low = np.ceil(np.maximum(self._outline.low[nodes], 0)).astype(np.int64)
        length = np.floor(self._outline.high[nodes]).astype(np.int64) - low + 1
        some = length <= _TABLE
        nodes, low, length = nodes[some], low[some], np.maximum(length[some], 1)
        start = np.cumsum(length) - length
        row = np.repeat(np.arange(nodes.size), length)
        counts = (np.arange(row.size) - start[row] + low[row]).astype(np.float64)
        weights = self._laws.composite(nodes).density(row, counts) if nodes.size else counts
        every = zip(nodes.tolist(), low.tolist(), start.tolist(), length.tolist(), strict=True)
        return {node: (first, np.cumsum(weights[at : at + n])) for node, first, at, n in every}

    @cached_property
    def _place(self) -> dict[int, int]:
        long = [node for node in np.unique(self._wanted).tolist() if node not in self._tables]
        return {node: place for place, node in enumerate(long)}

    @cached_property
    def _laws_in_cells(self) -> CountLaws:
        """The laws of the wanted nodes of many values, in cells."""
        nodes = np.array(list(self._place))
        laws = self._laws.composite(nodes)
        return CountLaws.of(
            self._cells(nodes, laws), lambda *where: log_or_nothing(laws.density(*where))
        )

    def _log_peak(self, node: int) -> float:
        """Logarithm of the largest probability of a node."""
        if node not in self._peaks:
            cells = self._cells(np.array([node]), self._law(node))
            places = cells.nodes.ravel()
            heights = self._log_density(node, places)
            self._peaks[node] = float(heights.max())
        return self._peaks[node]

    def _cells(self, nodes: Integers, laws: SumLaws) -> Cells:
        """Cells in each of which the law of a node is smooth."""
        seeds = laws.seeds()
        place = np.full(self._plan.nodes, -1)
        place[nodes] = np.arange(nodes.size)
        counts = self._laws.tilted.cells
        own = place[: self._plan.leaves][counts.category]
        row = np.append(np.repeat(np.arange(nodes.size), seeds.shape[1]), own[own >= 0])
        first = np.append(seeds.ravel(), counts.first[own >= 0].astype(np.float64))
        cells = cells_between(row, first, self._outline.low[nodes], self._outline.high[nodes])
        return refined(lambda *where: log_or_nothing(laws.density(*where)), cells, nodes.size)

    def _parts(self, own: int, other: int, sums: Integers, rng: np.random.Generator) -> Integers:
        """Draws of the first of two nodes, from its law given each sum."""
        totals, which = np.unique(sums, return_inverse=True)
        drawn = np.empty_like(sums)
        for start in range(0, totals.size, _ROWS):
            total = totals[start : start + _ROWS]

            def log_weight(row: Integers, counts: Floats) -> Floats:
                beside = self._log_density(other, total[row] - counts)  # noqa: B023
                return np.maximum(self._log_density(own, counts) + beside, NOTHING)

            left, right = (
                np.tile(self._law(node).seeds(), (total.size, 1)) for node in (own, other)
            )
            seeds = np.concatenate([left, total[:, None] - right], axis=1)
            ends = np.zeros(total.size), np.maximum(total, 0).astype(np.float64)
            cells = refined(log_weight, cells_from(np.floor(seeds), *ends), total.size)
            laws = CountLaws.of(cells, log_weight)
            here = (which >= start) & (which < start + _ROWS)
            drawn[here] = laws.draw(which[here] - start, rng)[0]
        return drawn

    def _law(self, node: int) -> SumLaws:
        if node not in self._alone:
            self._alone[node] = self._laws.composite(np.array([node]), alone=True)
        return self._alone[node]

    def _log_density(self, node: int, sums: Floats) -> Floats:
        flat = sums.ravel()
        found = self._law(node).density(np.zeros(flat.size, dtype=np.int64), flat)
        return log_or_nothing(found).reshape(sums.shape)
