"""Laws of sums of independent counts, and of what is beside each: a transform for each pair.

Every law is held where it is and as finely as it needs: in steps of about a tenth of the narrowest
thing in it, with finer lattices near 0, where counts with a prior below 1 have a peak.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from opendp_bayes.inference.convolution.lattices import (
    Lattices,
    Row,
    added,
    aligned,
    quantiles,
    spread,
)
from opendp_bayes.inference.convolution.plan_of_sums import PlanOfSums
from opendp_bayes.inference.convolution.tilted_counts import TiltedCounts
from opendp_bayes.mathematics.validation import Floats, Integers

#: Steps are no longer than this share of the narrowest deviation in a law.
_STEP = 0.14
#: Deviations of a sum that are added to the reach of its widest count.
_REACH = 9.0
#: A lattice near 0 has so many points, and the next one steps so many times longer.
_ZOOM, _COARSER = 1024, 8
#: The most points of a lattice, about.
_MOST_POINTS = 1 << 17
#: Laws of single counts are kept that have at most so many points.
_KEPT = 1 << 11
#: Points at the end of such a lattice that lack what is beyond it.
_END = 4
#: A law goes so many steps beyond what is needed of it, so that it has no edge there; steps are no
#: longer than this share of all records, so that those beyond are steps enough.
_BEYOND, _SHARE = 6, 1 / 40
#: A law with less than this probability of next to nothing has no peak there.
_PEAK = 1e-7

_NOTHING = np.zeros(0)
_NO_LAW: Row = (0, 1, np.zeros(4))
_FIELDS = ("mean", "variance", "low", "high", "below", "above", "narrow", "zero")


@dataclass(frozen=True, eq=False)
class Outline:
    """Moments and ends of laws that are not computed yet, from which their lattices follow; arrays
    of shape `(laws,)`.

    Attributes
    ----------
    mean, variance : those of the law.
    low, high : its ends.
    below, above : how far the ends of its widest count are from the mean of that.
    narrow : the narrowest deviation in it.
    zero : its probability of next to nothing, where a prior below 1 makes a peak there.
    """

    mean: Floats
    variance: Floats
    low: Floats
    high: Floats
    below: Floats
    above: Floats
    narrow: Floats
    zero: Floats

    @classmethod
    def of_counts(cls, tilted: TiltedCounts) -> "Outline":
        """Measure the laws of single counts."""
        low, high = (end.astype(np.float64) for end in tilted.ends)
        cells, prior, bend = tilted.cells, tilted.categories.prior, tilted.categories.bend
        masses, sums = np.exp(tilted.log_masses), cells.nodes
        weights = [
            np.bincount(cells.category, np.sum(masses * sums**power, axis=1), low.size)
            for power in (1, 2, 3)
        ]
        # Finer lattices serve what is close to 0: of the rest, the law of counts by their size.
        first = np.maximum(weights[0], 1e-300)
        by_size = np.sqrt(np.maximum(weights[2] / first - (weights[1] / first) ** 2, 0.0))
        deviation = np.sqrt(tilted.variance)
        narrow = np.where(prior < 1, np.maximum(by_size, deviation), deviation)
        narrow = np.minimum(narrow, bend)
        few = np.sum(masses * (sums <= narrow[cells.category][:, None] / 8), axis=1)
        zero = np.where(prior < 1, np.bincount(cells.category, few, low.size), 0.0)
        below, above = tilted.mean - low, high - tilted.mean
        return cls(tilted.mean, tilted.variance, low, high, below, above, narrow, zero)

    def of(self, laws: Integers) -> "Outline":
        """Choose the shapes of some laws."""
        return Outline(*(getattr(self, name)[laws] for name in _FIELDS))

    def extended(self, size: int) -> "Outline":
        """Add room for more laws."""
        more = max(size - self.mean.size, 0)
        return Outline(*(np.append(getattr(self, name), np.zeros(more)) for name in _FIELDS))

    def put(self, laws: Integers, outline: "Outline") -> None:
        """Replace some of them."""
        for name in _FIELDS:
            getattr(self, name)[laws] = getattr(outline, name)

    def plus(self, other: "Outline") -> "Outline":
        """Shapes of the sums of laws and others, one by one."""
        mean, variance = self.mean + other.mean, self.variance + other.variance
        far = _REACH * np.sqrt(variance)
        below, above = np.maximum(self.below, other.below), np.maximum(self.above, other.above)
        low = np.maximum(self.low + other.low, np.floor(mean - below - far))
        high = np.minimum(self.high + other.high, np.ceil(mean + above + far))
        narrow = np.hypot(self.narrow, other.narrow)
        for one, beside in ((self, other), (other, self)):
            narrow = np.where(beside.zero > _PEAK, np.minimum(narrow, one.narrow), narrow)
        return Outline(mean, variance, low, high, below, above, narrow, self.zero * other.zero)

    def within(self, low: Floats, high: Floats) -> "Outline":
        """Cut the ends off a few steps beyond bounds."""
        beyond = _BEYOND * self.step
        new_low = np.minimum(np.maximum(self.low, np.floor(low - beyond)), self.high)
        new_high = np.maximum(np.minimum(self.high, np.ceil(high + beyond)), new_low)
        return replace(self, low=new_low, high=new_high)

    @property
    def step(self) -> Integers:
        """Steps of their lattices, powers of two."""
        wanted = np.floor(np.log2(np.maximum(_STEP * self.narrow, 1.0)))
        least = np.ceil(np.log2(np.maximum((self.high - self.low) / _MOST_POINTS, 1.0)))
        return np.exp2(np.maximum(wanted, least)).astype(np.int64)

    def lattice(self, step: Integers) -> tuple[Integers, Integers]:
        """Origins and numbers of points with these steps."""
        origin = np.floor(self.low / step).astype(np.int64) * step
        points = np.ceil((self.high - origin) / step).astype(np.int64) + 1
        return origin, np.maximum(points, 4)


@dataclass(frozen=True, eq=False)
class SumLaws:
    """Laws of some nodes, a row each: of sums on lattices, and of leaves as they are.

    Attributes
    ----------
    whole : each on a lattice; nothing for leaves whose law is read from `tilted`.
    near : finer lattices near 0, finest first, with the place of each row in them, or -1.
    leaf : the leaf that a row is, or -1.
    tilted : the laws of the leaves.
    """

    whole: Lattices
    near: list[tuple[Integers, Lattices]]
    leaf: Integers
    tilted: TiltedCounts

    def density(self, row: Integers, sums: Floats) -> Floats:
        """The probability of each sum in each row, elementwise."""
        found = self.whole.density(row, sums)
        for place, lattices in reversed(self.near):
            own = place[row]
            here = (own >= 0) & (sums < lattices.step[0] * (_ZOOM - _END))
            found[here] = lattices.density(own[here], sums[here])
        single = self.leaf[row]
        exact = single >= 0
        if np.any(exact):
            log_found = self.tilted.log_probability(single[exact], np.maximum(sums[exact], 0.0))
            found[exact] = np.where(sums[exact] >= 0, np.exp(log_found), 0.0)
        return found

    def close(self, ends: Integers) -> tuple[Integers, Floats, Floats]:
        """Rows, places and masses of the sums up to the end of each row, some of its steps: of the
        finest lattices there are; half of what is at an end belongs to the next lattice.
        """
        begin, found = np.zeros_like(ends), []
        for place, lattices in self.near:
            fine, rows = int(lattices.step[0]), np.flatnonzero(place >= 0)
            last = np.minimum(ends[rows], fine * (_ZOOM - _COARSER))
            sums = np.broadcast_to(fine * np.arange(_ZOOM), (rows.size, _ZOOM))
            first = begin[rows]
            inside = (sums >= first[:, None]) & (sums <= last[:, None]) & (last > first)[:, None]
            half = (sums == last[:, None]) | ((sums == first[:, None]) & (first > 0)[:, None])
            masses = np.maximum(lattices.masses[place[rows]], 0.0) * np.where(half, 0.5, 1.0)
            at, point = np.nonzero(inside)
            found.append((rows[at], sums[at, point].astype(np.float64), masses[at, point]))
            begin[rows] = last
        if not found:
            return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        whole = [np.concatenate(each) for each in zip(*found, strict=True)]
        return whole[0].astype(np.int64), whole[1], whole[2]

    @property
    def narrow(self) -> Floats:
        """The least that a deviation within each law can be, but near 0, shape `(rows,)`."""
        return np.where(self.whole.step > 1, self.whole.step / _STEP, 1.0)

    def seeds(self) -> Floats:
        """Sums between which no law has a narrow peak, shape `(rows, m)`."""
        near = np.append(0.0, 2.0 ** np.arange(int(np.log2(self.whole.step.max())) + 8))
        beside = np.broadcast_to(near, (self.whole.step.size, near.size))
        return np.concatenate([quantiles(self.whole), beside], axis=1)


class LawTable:
    """Laws of nodes, of which the first are the leaves; sums are put in one level after another.

    `outline` is that of all nodes, which tells the lattice of each.
    """

    def __init__(self, tilted: TiltedCounts, outline: Outline, leaves: int) -> None:
        self.tilted, self.outline, self._first_sum = tilted, outline, leaves
        self._rows: dict[int, Row] = {}
        self._near: dict[tuple[int, int], Floats] = {}
        self._leaves: dict[tuple[int, int, int], Floats] = {}

    def add(self, nodes: Integers, left: Integers, right: Integers) -> None:
        """Put in the laws of sums of two nodes each."""
        step = self.outline.of(nodes).step
        origin, points = self.outline.of(nodes).lattice(step)
        for some in _alike(points):
            law = added(self.on(left[some], step[some]), self.on(right[some], step[some]))
            law = law.on(origin[some], step[some], int(points[some].max()))
            for node, row, size in zip(
                nodes[some].tolist(), law.separate(), points[some].tolist(), strict=True
            ):
                self._rows[node] = row[0], row[1], row[2][:size]
        for fine, close in self._zooms(nodes):
            some = np.flatnonzero(close)
            law = added(self.close(left[some], fine), self.close(right[some], fine))
            for node, masses in zip(nodes[some].tolist(), law.masses, strict=True):
                self._near[fine, node] = masses[:_ZOOM]

    def _zooms(self, nodes: Integers) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """Steps of lattices near 0, and which nodes have one."""
        outline, fine = self.outline.of(nodes), 1
        while fine < outline.step.max():
            close = (outline.step > fine) & (outline.low < fine * _ZOOM)
            if np.any(close):
                yield fine, close
            fine *= _COARSER

    def on(self, nodes: Integers, step: Integers) -> Lattices:
        """The laws on lattices with these steps, where they have anything."""
        origin, points = self.outline.of(nodes).lattice(step)
        return self._on(nodes, origin, step, int(points.max()))

    def close(self, nodes: Integers, fine: int) -> Lattices:
        """The laws near 0, in these steps."""
        steps = np.full(nodes.size, fine)
        made = Lattices(np.zeros_like(steps), steps, np.zeros((nodes.size, _ZOOM)))
        zoomed = np.array([(fine, node) in self._near for node in nodes.tolist()])
        for place in np.flatnonzero(zoomed).tolist():
            masses = self._near[fine, int(nodes[place])]
            made.masses[place, : masses.size] = masses
        if not np.all(zoomed):
            rest = self._on(nodes[~zoomed], made.origin[~zoomed], steps[~zoomed], _ZOOM)
            made.masses[~zoomed] = rest.masses
        return made

    def composite(self, nodes: Integers, alone: bool = False) -> SumLaws:
        """The laws of nodes, with what is known of them near 0. Leaves are on lattices, too, if
        they are wanted `alone`, as the sum beside a node is: to be multiplied with others.
        """
        step = self.outline.of(nodes).step
        origin, points = self.outline.of(nodes).lattice(step)
        leaf = np.where(nodes < self._first_sum, nodes, -1)
        rows = [self._rows.get(node, _NO_LAW) for node in nodes.tolist()]
        single = np.flatnonzero(leaf >= 0) if alone else leaf[:0]
        for some in _alike(points[single]):
            place = single[some]
            made = self._on(nodes[place], origin[place], step[place], int(points[place].max()))
            for at, row in zip(place.tolist(), made.separate(), strict=True):
                rows[at] = row
        near = []
        for fine, close in self._zooms(nodes):
            chosen = close & (alone | (leaf < 0))
            if np.any(chosen):
                index = np.where(chosen, np.cumsum(chosen) - 1, -1)
                near.append((index, self.close(nodes[chosen], fine)))
        return SumLaws(Lattices.gathered(rows), near, leaf, self.tilted)

    def _on(self, nodes: Integers, origin: Integers, step: Integers, points: int) -> Lattices:
        alone = nodes < self._first_sum
        if np.all(alone):
            return self._counts_on(nodes, origin, step, points)
        sums = self._sums_on(nodes[~alone], origin[~alone], step[~alone], points)
        if not np.any(alone):
            return sums
        counts = self._counts_on(nodes[alone], origin[alone], step[alone], points)
        masses = np.empty((nodes.size, points))
        masses[~alone], masses[alone] = sums.masses, counts.masses
        return Lattices(origin, step, masses)

    def _sums_on(self, nodes: Integers, origin: Integers, step: Integers, points: int) -> Lattices:
        """Laws of sums: handed on to longer steps; read between their points for shorter ones, but
        near 0, where a finer lattice is handed on.
        """
        rows = Lattices.gathered([self._rows[node] for node in nodes.tolist()])
        made = rows.on(origin, np.maximum(step, rows.step), points)
        short = np.flatnonzero(step < rows.step)
        if short.size:
            sums = origin[short, None] + step[short, None] * np.arange(points, dtype=np.float64)
            row = np.broadcast_to(np.arange(len(sums))[:, None], sums.shape)
            read = self.composite(nodes[short]).density(row.ravel(), sums.ravel())
            made.masses[short] = read.reshape(sums.shape) * step[short, None]
            for place in short.tolist():
                self._hand_on(int(nodes[place]), int(origin[place]), int(step[place]), made, place)
        return Lattices(origin, step, made.masses)

    def _hand_on(self, node: int, origin: int, step: int, made: Lattices, place: int) -> None:
        """Replace what a law has near 0 by the masses of the longest lattice there that fits."""
        known = [fine for fine, of in self._near if of == node and fine <= step]
        if not known:
            return
        fine = max(known)
        near = Lattices.gathered([(0, fine, self._near[fine, node])])
        number = (fine * (_ZOOM - _END) - origin) // step
        number = min(max(number, 0), made.points)
        if number:
            handed = near.on(np.array([origin]), np.array([step]), number)
            made.masses[place, :number] = handed.masses[0]

    def _counts_on(self, row: Integers, origin: Integers, step: Integers, points: int) -> Lattices:
        """Laws of single counts; short ones are kept, since a sum and what is beside it take the
        same.
        """
        keys = list(zip(row.tolist(), origin.tolist(), step.tolist(), strict=True))
        known = [self._leaves.get(key, _NOTHING) for key in keys]
        new = np.flatnonzero([masses.size < points for masses in known])
        if new.size:
            made = self._new_counts_on(row[new], origin[new], step[new], points)
            for place, masses in zip(new.tolist(), made.masses, strict=True):
                known[place] = masses
                if points <= _KEPT:
                    self._leaves[keys[place]] = masses
        return Lattices(origin, step, np.stack([masses[:points] for masses in known]))

    def _new_counts_on(
        self, row: Integers, origin: Integers, step: Integers, points: int
    ) -> Lattices:
        """Laws of single counts, in cells from one lattice point to the next."""
        tilted = self.tilted.chosen(row)
        more = points + _END  # what is beyond the last point has a part in those before it
        cells = tilted.cells.within(origin, origin + step * (more - 1))
        cells = aligned(cells, origin, step)
        used = cells.used
        category = np.broadcast_to(cells.category[:, None], used.shape)[used]
        masses = np.exp(cells.log_masses(tilted.log_probability)[used])
        made = spread(category, cells.nodes[used], masses, origin, step, more)
        return Lattices(origin, step, made.masses[:, :points])


def _alike(points: Integers) -> Iterator[Integers]:
    """Places of rows of nearly the same length."""
    size = np.ceil(np.log2(points))
    for value in np.unique(size):
        yield np.flatnonzero(size == value)


class SumsByPairs:
    """Laws of all sums of a plan, computed on the way up; and of what stands beside a node, on the
    way down when it is asked for.

    `tilted` are the laws of the leaves; the sum of all matters from `lowest` to `highest`.
    """

    def __init__(
        self, tilted: TiltedCounts, plan: PlanOfSums, lowest: float, highest: float
    ) -> None:
        self.plan = plan
        self._parent, self._sibling = plan.parents()
        every, levels = np.arange(plan.nodes), plan.levels()
        # What is beside a child of the root is its sibling; beside others there are sums of their
        # own, with numbers from that of the nodes on.
        self._beside = np.where(self._parent == plan.root, self._sibling, plan.nodes + every)
        outline = Outline.of_counts(tilted).extended(2 * plan.nodes)
        for level in levels:
            first, second = plan.children(level)
            outline.put(level, outline.of(first).plus(outline.of(second)))
        longest = max(_SHARE * highest, 1.0) / _STEP
        outline = replace(outline, narrow=np.minimum(outline.narrow, longest))
        for level in reversed(levels):
            nodes, above, sibling = self._below(level)
            outline.put(plan.nodes + nodes, outline.of(above).plus(outline.of(sibling)))
        rest = outline.of(self._beside)
        inside = outline.of(every).within(lowest - rest.high, highest - rest.low)
        rest = rest.within(lowest - inside.high, highest - inside.low)
        own = np.flatnonzero(self._parent != plan.root)
        outline.put(plan.nodes + own, rest.of(own))
        outline.put(every, inside)
        self.laws = LawTable(tilted, outline, plan.leaves)
        for level in levels:
            self.laws.add(level, *plan.children(level))

    def beside(self, nodes: Integers) -> SumLaws:
        """The laws of the sums beside some nodes, of all categories that are not below each; none
        is the root.
        """
        wanted = np.zeros(self.plan.nodes, dtype=np.bool_)
        above = nodes
        while above.size:
            wanted[above] = True
            above = np.setdiff1d(self._parent[above], self.plan.root)
        for level in reversed(self.plan.levels()):
            below, beside, sibling = self._below(level)
            some = wanted[below]
            if np.any(some):
                self.laws.add(self.plan.nodes + below[some], beside[some], sibling[some])
        return self.laws.composite(self._beside[nodes], alone=True)

    def _below(self, level: Integers) -> tuple[Integers, Integers, Integers]:
        """Nodes that have a parent in a level that is not the root, what is beside this, and their
        siblings.
        """
        nodes = np.flatnonzero(np.isin(self._parent, level[level != self.plan.root]))
        return nodes, self._beside[self._parent[nodes]], self._sibling[nodes]
