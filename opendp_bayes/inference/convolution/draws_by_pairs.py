"""Independent draws of counts given their sum: each sum is split between its two, from the top."""

from collections.abc import Sequence

import numpy as np

from opendp_bayes.inference.convolution.sums_by_pairs import SumLaws, SumsByPairs
from opendp_bayes.inference.laws.count_cells import NOTHING
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.refinement import cells_between, cells_from, refined
from opendp_bayes.mathematics.validation import Floats, Integers

#: Rounds of proposals, and the share of them that has to be accepted for another.
_ROUNDS, _ACCEPTED = 12, 0.05
#: How far the laws of which proposals are drawn may be below the true ones, in logarithms.
_SLACK = 0.05
#: Sums that are split at once, and those whose laws are computed one by one.
_BLOCK, _ROWS = 1 << 19, 256


class DrawsByPairs:
    """Draws of the counts below the root of sums by pairs."""

    def __init__(self, sums: SumsByPairs) -> None:
        self._plan = sums.plan
        self._nodes = np.arange(self._plan.nodes)
        self._laws: SumLaws = sums.inside.composite(self._nodes)
        self._variance = sums.inside.shape.variance
        low, high = sums.inside.shape.low, sums.inside.shape.high
        self._seeds = self._laws.seeds()
        counts = sums.inside.windows.cells
        row = np.append(np.repeat(self._nodes, self._seeds.shape[1]), counts.category)
        first = np.append(self._seeds.ravel(), counts.first.astype(np.float64))
        cells = refined(self._log_density, cells_between(row, first, low, high), self._nodes.size)
        log_masses = cells.log_masses(self._log_density)
        start = np.flatnonzero(np.diff(cells.category, prepend=-1))
        heights = log_masses - np.log(np.maximum(cells.node_weights, 1e-300))
        self._log_peak = np.maximum.reduceat(np.max(heights, axis=1), start)
        self._proposals = CountLaws.of(cells, self._log_density)

    def of(
        self, sizes: Integers, wanted: Sequence[int], rng: np.random.Generator
    ) -> dict[int, list[Integers]]:
        """Draws of the sums of the wanted nodes, given the sums of all, of shape `(draws,)`: for
        every node one array for each time that it is there.
        """
        found: dict[int, list[Integers]] = {self._plan.root: [sizes]}
        for level in reversed(self._plan.levels()):
            nodes = [int(n) for n in level if int(n) in found and int(n) not in wanted]
            if not nodes:
                continue
            rows = [(node, each) for node in nodes for each in found.pop(node)]
            sums = np.concatenate([row[1] for row in rows])
            pairs = np.array([self._plan.children(n) for n in (row[0] for row in rows)])
            first, second = (np.repeat(side, sizes.size) for side in pairs.T)
            taken = self._split(first, second, sums, rng).reshape(len(rows), -1)
            left = sums.reshape(len(rows), -1) - taken
            for (one, two), own, other in zip(pairs.tolist(), taken, left, strict=True):
                found.setdefault(one, []).append(own)
                found.setdefault(two, []).append(other)
        return found

    def _split(
        self, first: Integers, second: Integers, sums: Integers, rng: np.random.Generator
    ) -> Integers:
        """A draw of the first of two, given their sum; elementwise."""
        swap = self._variance[first] > self._variance[second]
        own, other = np.where(swap, second, first), np.where(swap, first, second)
        drawn = np.empty_like(sums)
        for start in range(0, sums.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            drawn[part] = self._narrower(own[part], other[part], sums[part], rng)
        return np.where(swap, sums - drawn, drawn)

    def _narrower(
        self, own: Integers, other: Integers, sums: Integers, rng: np.random.Generator
    ) -> Integers:
        drawn, waiting = np.empty_like(sums), np.arange(sums.size)
        for _ in range(_ROUNDS):
            law = own[waiting]
            counts, log_proposed = self._proposals.draw(law, rng)
            real = counts.astype(np.float64)
            log_weight = self._log_density(law, real) - log_proposed - _SLACK
            beside = other[waiting]
            log_weight += self._log_density(beside, sums[waiting] - real) - self._log_peak[beside]
            accepted = np.log1p(-rng.random(waiting.size)) <= log_weight
            drawn[waiting[accepted]] = counts[accepted]
            share = accepted.mean()
            waiting = waiting[~accepted]
            if not waiting.size or share < _ACCEPTED:
                break
        if waiting.size:
            drawn[waiting] = self._one_by_one(own[waiting], other[waiting], sums[waiting], rng)
        return drawn

    def _one_by_one(
        self, own: Integers, other: Integers, sums: Integers, rng: np.random.Generator
    ) -> Integers:
        """Draw from the law given each sum, where proposals are seldom accepted."""
        keys, which = np.unique(np.stack([own, other, sums]), axis=1, return_inverse=True)
        drawn = np.empty_like(sums)
        for start in range(0, keys.shape[1], _ROWS):
            left, right, total = keys[:, start : start + _ROWS]

            def log_weight(row: Integers, counts: Floats) -> Floats:
                beside = self._log_density(right[row], total[row] - counts)  # noqa: B023
                return np.maximum(self._log_density(left[row], counts) + beside, NOTHING)  # noqa: B023

            seeds = np.concatenate([self._seeds[left], total[:, None] - self._seeds[right]], axis=1)
            ends = np.zeros(total.size), np.maximum(total, 0).astype(np.float64)
            cells = refined(log_weight, cells_from(np.floor(seeds), *ends), total.size)
            laws = CountLaws.of(cells, log_weight)
            here = (which.ravel() >= start) & (which.ravel() < start + _ROWS)
            drawn[here] = laws.draw(which.ravel()[here] - start, rng)[0]
        return drawn

    def _log_density(self, row: Integers, sums: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.maximum(np.log(self._laws.density(row, sums)), NOTHING)
