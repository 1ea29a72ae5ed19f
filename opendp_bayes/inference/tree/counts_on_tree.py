"""The posterior of true counts and of probabilities, given counts with additive noise.

The weights of the counts are a product over the categories but for their sum. So the law of one
count, given the sum, needs the law of the sum of the others, which `sums_by_pairs` finds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.inference.convolution.noised_categories import Categories
from opendp_bayes.inference.convolution.number_of_records import Total, balanced, private, public
from opendp_bayes.inference.convolution.tilted_counts import Windows
from opendp_bayes.inference.engines.merged import Groups, Merged
from opendp_bayes.inference.laws.beta_mixture import BetaMixture, BetaMixtures
from opendp_bayes.inference.laws.count_cells import NOTHING, Cells
from opendp_bayes.inference.laws.count_laws import CountLaws
from opendp_bayes.inference.laws.negligible import matters
from opendp_bayes.inference.laws.refinement import refined
from opendp_bayes.inference.tree.draws_by_pairs import DrawsByPairs
from opendp_bayes.inference.tree.part_of_total import (
    NO_FADE,
    Beside,
    Fade,
    PartOfTotal,
    bin_of,
    cells_between,
)
from opendp_bayes.inference.tree.sums_by_pairs import SumLaws
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import IntegerNoise

#: Two tilts put the sum at least, about and at most twice so many deviations apart (the geometric
#: mean of both), and fade into each other over so many deviations of the narrower on each side.
_APART, _RAMP = (2.2, 3.2, 4.0), 1.2
#: Sums are not taken to vary less, in squared records.
_SMALLEST_VARIANCE = 0.06
#: Numbers of records are reached by a tilt within so many deviations of its mean.
_REACHED = 4.0
#: Tilts that weigh less than `exp(-_DEPTH)` are left out.
_DEPTH = 20.0
#: What one tilt does not reach weighs less than `exp(-_HELD)`.
_HELD = 18.0
#: The most tilts of a private number of records.
_MOST_PARTS = 300
#: Of the laws of counts, cells that hold less than `exp(-_SEEN)` are left out; over others the
#: logarithm changes by so much.
_SEEN, _CHANGE = 32.0, 1.0
#: The share of a cell that is longer than its Beta is wide, at most.
_LARGEST_SHARE = 1 / 200
#: Parts of the weight and of the variance that are left out.
_NEGLIGIBLE = 1e-17
#: Betas are put together that lie within this share of their own deviation, with deviations so near
#: in logarithms of variances, and none wider than this in logits; those of small counts only with
#: the same.
_NEAR, _NEARLY, _WIDEST, _SMALL = 0.5, 0.3, 0.2, 12.0
_SMALLEST = float(np.finfo(float).tiny)
#: Weights of sums of some categories are tabulated up to so many sums.
_LONGEST_TABLE = 1 << 16
#: An odd number without a pattern, for keys.
_MIXER = np.int64(-7046029254386353131)


class CountsOnTree:
    """The true counts and the probabilities of k >= 2 categories, given what was drawn."""

    def __init__(
        self,
        drawn: ArrayLike,
        prior: ArrayLike,
        noise: IntegerNoise,
        *,
        noised: ArrayLike | None = None,
        size: int | None = None,
        size_prior: Any = None,
    ) -> None:
        known = np.ones(np.shape(drawn), dtype=bool) if noised is None else np.asarray(noised, bool)
        drawn = np.where(known, np.asarray(drawn, dtype=np.int64), 0)
        categories = Categories(drawn, known, np.asarray(prior, dtype=np.float64), noise)
        self._set(categories, _total(categories, size, size_prior))

    @classmethod
    def of_looks(cls, looks: Sequence[Categories], size: int | None) -> "CountsOnTree":
        """The same for counts that were drawn several times, each with noise of its own."""
        categories = replace(looks[0], also=tuple(looks[1:]))
        return cls._of(categories, _total(categories, size, None))

    @classmethod
    def _of(cls, categories: Categories, total: Total) -> "CountsOnTree":
        made = cls.__new__(cls)
        made._set(categories, total)
        return made

    def _set(self, categories: Categories, total: Total) -> None:
        self.categories, self._total = categories, total
        index: dict[tuple[float, ...], int] = {}
        keys = zip(*(column.tolist() for column in categories.columns), strict=True)
        self._row = np.array([index.setdefault(key, len(index)) for key in keys])
        self._first = np.unique(self._row, return_index=True)[1]
        self._origin = np.clip(categories.drawn[self._first], 0, total.highest)
        self._times = np.bincount(self._row)
        if self._total.all:
            self._tilts = self._listed()
            self._parts = self._made(())
            return
        rows = categories.chosen(self._first)
        best = self._tilted(balanced(rows, self._times, self._total, 0.0))
        self._tilts = [(best.windows, NO_FADE)]
        self._parts = self._made(())
        if not self._total.is_point and not self._parts[0].holds_all(_HELD):
            self._tilts = self._covering(best)
            self._parts = self._made(())

    def _made(self, groups: Sequence[Sequence[int]]) -> list[PartOfTotal]:
        concentration = float(self.categories.prior.sum())
        parts = [
            PartOfTotal(windows, self._row, self._total, self._origin, concentration, fade, groups)
            for windows, fade in self._tilts
        ]
        best = max(part.log_evidence for part in parts)
        return [part for part in parts if part.log_evidence >= best - _DEPTH]

    def _tilted(self, windows: Windows) -> "_Tilted":
        mean = float(self._times @ windows.mean)
        deviation = math.sqrt(max(float(self._times @ windows.variance), _SMALLEST_VARIANCE))
        return _Tilted(windows, mean, deviation, windows.log_sum(self._times, self._origin))

    def _listed(self) -> list[tuple[Windows, Fade]]:
        """Tilts that reach every number of records that has a weight."""
        total, found, tilt, border = self._total, list[tuple[Windows, Fade]](), 0.0, -math.inf
        rows, numbers = self.categories.chosen(self._first), total.seeds
        while numbers.size:
            _check_number(len(found), self.categories)
            goal = total.goal(float(numbers[0]))
            made = self._tilted(balanced(rows, self._times, goal, tilt))
            reached = max(made.mean + _REACHED * made.deviation, float(numbers[0]))
            numbers = numbers[numbers > reached]
            end = float(numbers[0]) - 0.5 if numbers.size else math.inf
            found.append((made.windows, Fade(border, border, end, end)))
            tilt, border = made.windows.tilt, end
        return found

    def _covering(self, best: "_Tilted") -> list[tuple[Windows, Fade]]:
        """Tilts that reach all numbers of records that weigh anything."""
        total = self._total
        top, found = best.height(total), [best]
        for sign in (-1, 1):
            last, step = best, 2 * _APART[1] / best.deviation
            while True:
                end = total.lowest if sign < 0 else total.highest
                beyond = (end, last.mean) if sign < 0 else (last.mean, end)
                bound = last.log_sum + total.between(*beyond).most(last.windows.tilt)
                if bound < top - _DEPTH or sign * (end - last.mean) < _REACHED * last.deviation:
                    break
                _check_number(len(found), self.categories)
                before, last = last, self._apart(last, sign * step)
                step = abs(last.windows.tilt - before.windows.tilt)
                step *= before.deviation / last.deviation
                top = max(top, last.height(total))
                found.append(last)
        return _faded(sorted(found, key=lambda each: each.mean))

    def _apart(self, start: "_Tilted", step: float) -> "_Tilted":
        """A tilt, about a step from another, whose sums overlap a little with those of this."""
        rows, last = self.categories.chosen(self._first), self._total.highest + self._total.margin
        near, far = 0.0, math.inf
        while True:
            found = self._tilted(Windows.of(rows, start.windows.tilt + step, last))
            apart = abs(found.mean - start.mean) / 2
            apart /= math.sqrt(found.deviation * start.deviation)
            near, far = (abs(step), far) if apart < _APART[0] else (near, abs(step))
            narrow = far - near <= 1e-12 * (abs(start.windows.tilt) + far)
            if _APART[0] <= apart <= _APART[2] or narrow:
                return found
            wanted = abs(step) * min(max(_APART[1] / max(apart, 1e-3), 1 / 8), 8)
            if not near < wanted < far:
                wanted = (near + far) / 2
            step = math.copysign(wanted, step)

    # -- answers ------------------------------------------------------------------------------

    @cached_property
    def _marginals(self) -> tuple[CountLaws, BetaMixtures]:
        others = _sums_of_others(self.categories.prior)[self._first]
        alpha = self.categories.prior[self._first]
        return self._laws(self._parts, np.arange(self._first.size), alpha, others)

    def _laws(
        self, parts: list[PartOfTotal], nodes: Integers, alpha: Floats, others: Floats
    ) -> tuple[CountLaws, BetaMixtures]:
        """The laws of nodes of the trees of all parts, and of their probabilities."""
        own = [part.sums.inside.composite(nodes) for part in parts]
        beside = [part.beside(nodes, others) for part in parts]
        scale = np.array([each.log_scale for each in beside])
        scale = scale - scale.max()

        def log_weight(row: Integers, counts: Floats) -> Floats:
            found = np.zeros(counts.shape)
            for law, rest, log_scale in zip(own, beside, scale.tolist(), strict=True):
                found += np.exp(log_scale) * law.density(row, counts) * rest.weights(row, counts)
            with np.errstate(divide="ignore"):
                return np.maximum(np.log(found), NOTHING)

        start = self._start(parts, nodes, beside)
        cells = refined(log_weight, start, nodes.size, _SEEN, _CHANGE)
        law = CountLaws.of(cells, log_weight)
        cells = self._cut(law, alpha, others)
        law = CountLaws.of(cells, log_weight)
        return law, self._mixtures(law, own, beside, alpha, others)

    def _start(self, parts: list[PartOfTotal], nodes: Integers, beside: list[Beside]) -> Cells:
        """Cells that begin wherever the weight of a node may have a peak."""
        shapes = [part.sums.inside.shape.of(nodes) for part in parts]
        low = np.min([shape.low for shape in shapes], axis=0)
        high = np.max([shape.high for shape in shapes], axis=0)
        place, single = np.full(self._first.size, -1), nodes < self._first.size
        place[nodes[single]] = np.flatnonzero(single)
        row, first = [], []
        for part, rest, shape in zip(parts, beside, shapes, strict=True):
            own = part.windows.cells
            for edge in (own.first, own.last + 1):
                row.append(place[own.category])
                first.append(edge.astype(np.float64))
            seeds = [rest.seeds(shape), part.sums.inside.composite(nodes).seeds()]
            for each in seeds[: 1 if np.all(single) else 2]:
                row.append(np.repeat(np.arange(nodes.size), each.shape[1]))
                first.append(each.ravel())
        narrow = np.max([shape.narrow for shape in shapes], axis=0)
        return cells_between(np.concatenate(row), np.concatenate(first), low, high, narrow)

    def _cut(self, law: CountLaws, alpha: Floats, others: Floats) -> Cells:
        """Cells that hold little where they are longer than their Betas are wide."""
        cells, shares = law.cells, law.masses.sum(axis=1)
        size = float(self.size.mean()[0])
        middle = cells.nodes[:, 1]
        a = middle + alpha[cells.category]
        b = np.maximum(size - middle, 0) + others[cells.category]
        lengths = cells.length / np.sqrt(a * b / (a + b))
        squares = (cells.nodes - law.mean()[cells.category][:, None]) ** 2
        squares = np.sum(law.masses * squares, axis=1) / np.maximum(shares, 1e-300)
        seen = matters(shares, squares, cells.category, _NEGLIGIBLE)
        pieces = np.ceil(np.minimum(lengths, shares / _LARGEST_SHARE))[seen].astype(np.int64)
        return cells.where(seen).cut(pieces)

    def _mixtures(
        self,
        law: CountLaws,
        own: list[SumLaws],
        beside: list[Beside],
        alpha: Floats,
        others: Floats,
    ) -> BetaMixtures:
        """Of the probabilities, given the laws of their counts."""
        cells, used = law.cells, law.cells.used
        row = np.broadcast_to(cells.category[:, None], used.shape)[used]
        nodes, masses = cells.nodes[used], law.masses[used]
        a = alpha[row] + nodes
        if self._total.is_point:
            b = others[row] + np.maximum(self._total.lowest - nodes, 0)
            return _grouped(a, b, masses, alpha[row], others[row], row)
        top = max(each.log_scale for each in beside)
        found = []
        for laws, rest in zip(own, beside, strict=True):
            known = rest.completions(row, nodes)
            scale = np.exp(rest.log_scale - top) * laws.density(row, nodes)
            weight = known.weight * scale[known.point]
            found.append((known.point, weight, known.mean, known.variance))
        point, weight, mean, variance = _united(found, others[row])
        weight *= (masses / np.maximum(np.bincount(point, weight, nodes.size), 1e-300))[point]
        b = others[row][point] + np.maximum(mean, 0)
        a, b = _matched(a[point], b, variance)
        seen = weight > 0
        point, row = point[seen], row[point[seen]]
        return _grouped(a[seen], b[seen], weight[seen], alpha[row], others[row], row)

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The marginals of the probabilities of all categories."""
        return self._marginals[1].chosen(self._row)

    @cached_property
    def counts(self) -> CountLaws:
        """The marginals of the true counts of all categories."""
        return self._marginals[0].chosen(self._row)

    @cached_property
    def size(self) -> CountLaws:
        """The law of the number of records."""
        if self._total.is_point:
            return CountLaws.of_rows(np.array([[self._total.lowest]]), np.ones(1))
        top = max(part.log_evidence for part in self._parts)
        every = [part.size_cells for part in self._parts]
        edges = np.unique(np.concatenate([np.append(c.first, c.last + 1) for c in every]))
        if self._total.all:
            starts = edges[np.isin(edges, self._total.seeds)]
            cells = Cells(np.zeros_like(starts), starts, starts)
        else:
            cells = Cells(np.zeros_like(edges[1:]), edges[:-1], edges[1:] - 1)

        def log_weight(row: Integers, sizes: Floats) -> Floats:
            found = [part.log_total(row, sizes) - top for part in self._parts]
            return np.asarray(special.logsumexp(found, axis=0))

        return CountLaws.of(cells, log_weight)

    @cached_property
    def log_evidence(self) -> float:
        """`ln P(drawn)`, with a public or a private number of records."""
        prior, rows = self.categories.prior, self.categories.chosen(self._first)
        constant = special.gammaln(prior.sum()) - special.gammaln(prior).sum()
        constant += np.bincount(self._row) @ rows.log_absolute(self._origin)
        return float(special.logsumexp([part.log_evidence for part in self._parts]) + constant)

    def together(self, groups: Groups) -> list[tuple[CountLaws, BetaMixture]]:
        """The laws of the counts of groups of categories, and of their probabilities; of no group
        that holds all categories, or none.
        """
        prior, found = self.categories.prior, dict[int, tuple[CountLaws, BetaMixture]]()
        for family in _families([frozenset(group) for group in groups]):
            own = [list(groups[place]) for place in family]
            parts = self._made(own)
            alpha = np.array([prior[group].sum() for group in own])
            others = np.array([np.delete(prior, group).sum() for group in own])
            laws, mixtures = self._laws(parts, np.array(parts[0].plan.groups), alpha, others)
            for at, place in enumerate(family):
                found[place] = laws.chosen(np.array([at])), mixtures[at]
        return [found[place] for place in range(len(groups))]

    def merged(self, groups: Groups) -> Merged:
        """The counts and the probabilities of groups of categories; every category is in one
        group, and no group holds all.
        """
        return Merged(self, groups)

    def given(self, categories: Sequence[int]) -> "CountsOnTree | Merged":
        """The posterior of some categories among themselves: of their counts, and of their
        probabilities divided by the sum of these. At least two.

        It is that of a private number of records, whose weight is what the other categories and the
        number of all records say of it.
        """
        inside = np.isin(np.arange(self.categories.k), categories)
        some = self if np.all(inside) else self._some(np.flatnonzero(inside))
        order = np.argsort(np.argsort(categories))
        return some if np.all(np.diff(order) > 0) else some.merged([[i] for i in order.tolist()])

    def _some(self, inside: Integers) -> "CountsOnTree":
        parts = self._made([inside.tolist()])
        node = np.array(parts[0].plan.groups)
        others = np.array([np.delete(self.categories.prior, inside).sum()])
        beside = [part.beside(node, others) for part in parts]
        times = np.bincount(self._row[inside], minlength=self._first.size)
        known = [part.windows.log_sum(times, self._origin) for part in parts]
        shapes = [part.sums.inside.shape.of(node) for part in parts]
        seeds = [rest.seeds(shape) for rest, shape in zip(beside, shapes, strict=True)]
        seeds += [part.sums.inside.composite(node).seeds() for part in parts]
        lowest = max(min(float(shape.low[0]) for shape in shapes), 0.0)
        highest = max(float(shape.high[0]) for shape in shapes)
        ends = np.floor(np.clip(np.concatenate(seeds, axis=None), lowest, highest))
        every = np.unique(np.append(ends, [lowest, highest])).astype(np.int64)

        def log_weight(sums: Floats) -> Floats:
            flat = np.ravel(np.asarray(sums, dtype=np.float64))
            row = np.zeros(flat.size, dtype=np.int64)
            found = []
            for part, rest, own in zip(parts, beside, known, strict=True):
                with np.errstate(divide="ignore"):
                    log_rest = np.log(rest.weights(row, flat)) + rest.log_scale
                found.append(log_rest + part.tilt * flat - own)
            whole = np.maximum(special.logsumexp(found, axis=0), NOTHING)
            return np.asarray(whole).reshape(np.shape(sums))

        heights = log_weight(every.astype(np.float64))
        seen = np.flatnonzero(heights > NOTHING / 2)
        first, last = max(int(seen[0]) - 1, 0), min(int(seen[-1]) + 1, every.size - 1)
        total = Total(int(every[first]), int(every[last]), log_weight, every[first : last + 1])
        if total.highest - total.lowest <= _LONGEST_TABLE:
            total = _tabulated(total)  # asked for far more often than there are sums
        return CountsOnTree._of(self.categories.chosen(inside), total)

    def sample(self, size: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the true counts, shape `(size, k)`."""
        return self._drawn(size, self._parts, self._row, rng)

    def sample_sums(self, groups: Groups, size: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the sums of groups, which have every category once."""
        several = [list(group) for group in groups if len(group) > 1]
        parts = self._made(several)
        node, row = iter(parts[0].plan.groups), self._row
        wanted = [int(row[group[0]]) if len(group) == 1 else next(node) for group in groups]
        return self._drawn(size, parts, np.array(wanted), rng)

    def _drawn(
        self, size: int, parts: list[PartOfTotal], wanted: Integers, rng: np.random.Generator
    ) -> Integers:
        """Draws of the nodes that are wanted, in their order."""
        shares = special.softmax([part.log_evidence for part in parts])
        numbers = rng.multinomial(size, shares).tolist()
        found = []
        for part, number in zip(parts, numbers, strict=True):
            if not number:
                continue
            law = CountLaws.of(part.size_cells, part.log_total)
            sizes = law.draw(np.zeros(number, dtype=np.int64), rng)[0]
            found.append(DrawsByPairs(part.sums, wanted.tolist()).of(sizes, rng))
        drawn = np.concatenate(found)
        return drawn if len(found) == 1 else rng.permutation(drawn)


def _families(groups: list[frozenset[int]]) -> list[list[int]]:
    """Places of groups, of which in one list any two are one inside the other or apart."""
    found: list[list[int]] = []
    for place, group in enumerate(groups):
        for family in found:
            if all(_fit(group, groups[other]) for other in family):
                family.append(place)
                break
        else:
            found.append([place])
    return found


def _fit(first: frozenset[int], second: frozenset[int]) -> bool:
    return first < second or second < first or not first & second


def _tabulated(total: Total) -> Total:
    """The same with weights from a table of those of whole numbers, linear in between."""
    sums = np.arange(total.lowest, total.highest + 1, dtype=np.float64)
    table = total.log_weight(sums)

    def upper(lowest: int, highest: int) -> float:
        part = table[max(lowest - total.lowest, 0) : max(highest - total.lowest + 1, 0)]
        return float(part.max(initial=NOTHING))

    return replace(total, log_weight=lambda sizes: np.interp(sizes, sums, table), upper=upper)


@dataclass(frozen=True, eq=False)
class _Tilted:
    """Windows of a tilt: mean and deviation of the sum of all, and the logarithm of all weights."""

    windows: Windows
    mean: float
    deviation: float
    log_sum: float

    def height(self, total: Total) -> float:
        """Logarithm of about what the numbers near the mean weigh."""
        at = min(max(self.mean, total.lowest), total.highest)
        return self.log_sum + float(total.log_weight(np.array([at]))[0]) - self.windows.tilt * at


def _check_number(parts: int, categories: Categories) -> None:
    if parts >= _MOST_PARTS:
        raise ValueError(
            f"prior: its concentration, {categories.prior.sum():g}, is too large for this "
            "uncertain a private number of records; give a narrower size_prior."
        )


def _faded(found: "list[_Tilted]") -> list[tuple[Windows, Fade]]:
    """Tilts with where they are used: they fade into each other between their means."""
    means, deviations = (np.array([getattr(x, name) for x in found]) for name in _PLACES)
    left, right = deviations[:-1], deviations[1:]
    middles = (means[:-1] * right + means[1:] * left) / (left + right)
    gaps = np.diff(np.concatenate([[-np.inf], middles, [np.inf]]))
    ramps = np.minimum(_RAMP * np.minimum(left, right), 0.45 * np.minimum(gaps[:-1], gaps[1:]))
    ends = np.column_stack([middles - ramps, middles + ramps])
    borders = [(-math.inf, -math.inf), *map(tuple, ends.tolist()), (math.inf, math.inf)]
    return [
        (each.windows, Fade(*below, *above))
        for each, below, above in zip(found, borders[:-1], borders[1:], strict=True)
    ]


_PLACES = ("mean", "deviation")


def _united(
    found: list[tuple[Integers, Floats, Floats, Floats]], others: Floats
) -> tuple[Integers, Floats, Floats, Floats]:
    """Parts of what completes each point, those of all tilts that are alike together."""
    point, weight, mean, variance = (np.concatenate(each) for each in zip(*found, strict=True))
    if len(found) == 1:
        return point, weight, mean, variance
    bins = bin_of(np.maximum(mean, 0), others[point])
    key = point * (int(bins.max()) + 1) + bins
    used = np.flatnonzero(np.bincount(key))
    place = np.zeros(used[-1] + 1, dtype=np.int64)
    place[used] = np.arange(used.size)
    place = place[key]
    whole = np.maximum(np.bincount(place, weight), _SMALLEST)
    middle = np.bincount(place, weight * mean) / whole
    spread = np.bincount(place, weight * (variance + (mean - middle[place]) ** 2)) / whole
    return used // (int(bins.max()) + 1), whole, middle, spread


def _matched(a: Floats, b: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Betas with the means and variances of `Beta(a, b)` whose b varies."""
    total = a + b
    off = variance / total**2
    share, rest = a / total, b / total
    mean, other = share * (1 + off), np.maximum(rest - share * off, _SMALLEST)
    # Of `share rest / (total + 1)`, the second derivative with respect to b.
    bend = np.maximum(1 + off * (6 - 3 / np.maximum(rest, _SMALLEST)), 0.5)
    spread = share * rest / (total + 1) * bend + share**2 * off
    more = np.maximum(mean * other / np.maximum(spread, _SMALLEST) - 1, 1e-6)
    exact = variance <= 0
    return np.where(exact, a, mean * more), np.where(exact, b, other * more)


def _grouped(
    a: Floats, b: Floats, weights: Floats, alpha: Floats, others: Floats, row: Integers
) -> BetaMixtures:
    """Mixtures of the rows, with Betas put together that are nearly the same."""
    order = np.argsort(row, kind="stable")
    a, b, weights, alpha = a[order], b[order], weights[order], alpha[order]
    others, row = others[order], row[order]
    width = np.floor(np.logaddexp(-np.log(a), -np.log(b)) / _NEARLY)
    deviation = np.minimum(np.exp((width + 0.5) * _NEARLY / 2), _WIDEST)
    place = np.floor(np.log(a / b) / (_NEAR * deviation))
    small = [
        np.where(x < _SMALL, np.rint(4 * np.maximum(x, 0)), -1) for x in (a - alpha, b - others)
    ]
    key = np.zeros(a.shape, dtype=np.int64)
    for column in (width, place, *small):  # two of the 2^64 keys hardly ever agree
        key = (key ^ column.astype(np.int64)) * _MIXER
        key ^= key >> 29
    return BetaMixtures.grouped(a, b, weights, key, row)


def _total(categories: Categories, size: int | None, size_prior: Any) -> Total:
    concentration = float(categories.prior.sum())
    return private(categories, size_prior) if size is None else public(size, concentration)


def _sums_of_others(values: Floats) -> Floats:
    """The sum of all values but each, without a difference."""
    before = np.cumsum(np.append(0.0, values[:-1]))
    after = np.cumsum(np.append(0.0, values[:0:-1]))[::-1]
    return np.asarray(before + after)
