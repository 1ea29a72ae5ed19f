r"""Poisson counts of cells, with noise, whose intensities have a law that is learned and effects of
margins: the counts are summed out at nodes, so that chains move the law and the effects alone.

`ln λ = location + ln γ`: the location is the sum of an origin and the effects of margins. γ is
independent of other cells. It has the law of `intensity_law`, or that of an empty cell, of
intensity `exp(-7.5)`. Between two places of the lattice a location is one of the three nearest, by
quadratic B-splines, so that the likelihood is smooth.

Given weights and locations, what was drawn of a cell has the probability

    P(drawn | state) = sum_j w_j sum_x P(drawn | x) P(x | location + j),

so that chains never move counts; they are drawn afterwards, given the states of the chains.

A public sum N is a condition on these: a state weighs as much as `P(sum = N | state)`. Four parts
of the cells are drawn several times each, and one cell takes what every choice of these leaves. Its
probability of that is on average that of the sum, and one choice is drawn in proportion to it. This
is so for any tilt, by which counts weigh `exp(tilt x)` times as much; with a good one sums are N on
average.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from opendp_bayes.inference.laws.dirichlet_multinomial import alike, one_of, picked, rows_of
from opendp_bayes.inference.learned.intensity_law import (
    STEP,
    HamiltonianChains,
    IntensityLaw,
    Points,
)
from opendp_bayes.inference.learned.noised_table import Effects, NoisedTable, margins_of
from opendp_bayes.inference.likelihood.drawn_counts import nodes_of
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: The lowest logarithms of intensities, of an empty cell and of the others.
_EMPTY, _LOWEST = -7.5, -3.0
#: How far ln γ goes from 0, and a location from the origin, in steps of the lattice.
_HALF, _REACH = 52, 96
#: Counts up to this have a class each; larger ones share classes that grow by so much.
_DENSE, _GROWTH = 128, 0.02
#: How far counts are from what was drawn, `exp(-_DEPTH)` of the noise's largest mass.
_DEPTH = 20.0
#: Nodes are this part as far apart as those of pooled counts.
_PART = 0.5
#: Parts of the cells, how often each is drawn, and which draw of each part every choice has.
_PARTS, _TIMES = 4, 8
_CHOICES = np.indices((_TIMES,) * _PARTS).reshape(_PARTS, -1)
#: Below every logarithm of a probability that matters.
_IMPOSSIBLE = -1e30
#: Masses that rounding may make of none, and a variance of whole numbers.
_TINY, _LEAST, _ROUNDING = 1e-30, 1e-300, 1 / 12
#: About the variance of ln γ, by which what cells know of their locations is guessed.
_SPREAD = 0.25


@dataclass(frozen=True, eq=False)
class Draw:
    """Counts and intensities drawn given the states of chains.

    `counts` and the Gamma law of each cell's intensity, its `mean` and its `scale`, have shape
    `(chains, k)`; the share of `empty` cells and the `spread` of the others' ln γ `(chains,)`; the
    scales of effects `tau` `(chains, margins)`. Draws weigh `exp(log_weight)`, shape `(chains,)`.
    """

    counts: Integers
    mean: Floats
    scale: Floats
    empty: Floats
    spread: Floats
    tau: Floats
    log_weight: Floats


class Cells(IntensityLaw):
    """Cells by what was drawn of them; `kind`, shape `(k,)`, numbers those that agree.

    `nodes`, shape `(kinds, m)`, are counts in order, each of which stands for integers, the first
    of them at `begin`. `log_mass` is the logarithm of what these have of P(drawn | x). A
    node is between the two classes of counts at `below` and the next place, and `part` of the way
    to the second.
    """

    def __init__(self, table: NoisedTable, ordered: Sequence[str] = ()) -> None:
        self.size, self._largest = table.size, table.largest
        self._find_nodes(table)
        points, empty = Points(_LOWEST, math.log(1.5 * (self._largest + 5))), Points(_EMPTY, _EMPTY)
        index = np.arange(math.floor(_class_of(self._largest)) + 2)
        beyond = np.exp(_GROWTH * np.maximum(index - _DENSE, 0))
        values = np.where(index <= _DENSE, index, _DENSE * beyond)
        self._means = np.append(empty.means[0], points.means)
        self._shapes = np.append(empty.shapes[0], points.shapes)
        self._pmf = np.append(empty.pmf(values)[:1], points.pmf(values), axis=0)
        #: Points that stand for the sum of a location and ln γ, from the lowest of both on; the
        #: place there of the origin with the lowest γ, and how many values γ has.
        self._places = np.arange(1, self._means.size)
        self._origin, self._gammas = 0, self._places.size
        self.margins = margins_of(table.variables, ordered, table.apart)
        if self.margins:
            self._origin, self._gammas = _REACH + 1, 2 * _HALF + 1
            far = np.arange(-_REACH - 1 - _HALF, _REACH + 2 + _HALF)
            middle = 1 + round((table.origin() - _LOWEST) / STEP)
            self._places = np.clip(middle + far, 1, points.means.size)
            mean, noise = np.maximum(table.start(), 1.0), 2 * table.scale**2
            information = 1 / (_SPREAD + 1 / mean + noise / mean**2)
            self._effects = Effects(self.margins, information, table.start(), table.scale)
            self.start = self._effects.start
        like, number = self._seen()
        super().__init__(like, number, np.ones(self._gammas + 1), alone=1)

    def _find_nodes(self, table: NoisedTable) -> None:
        look = min(table.looks, key=lambda look: look.noise.scale)
        cells, self.kind = alike(*(look.drawn for look in table.looks), ~look.noised)
        start = np.clip(look.drawn, 0, self._largest)
        centre = np.where(look.noised, look.drawn, start)[cells]
        wide = np.where(look.noised, 1.0, np.sqrt(table.k))[cells]
        known = nodes_of(
            centre, look.noise, _DEPTH, part=_PART, wide=wide, most=float(self._largest)
        )
        self.nodes, self.begin, self._number = map(np.ascontiguousarray, known.swapaxes(1, 2))
        # What was not noised is taken for as uncertain as the sum of the others, which is undone
        # where a state is weighed.
        away = (self.nodes - start[cells, None]) / (typical_std(look.noise) * np.sqrt(table.k))
        self._taken = np.where(look.noised[cells, None], 0.0, -(away**2) / 2)
        with np.errstate(divide="ignore"):
            self._log_number = np.log(self._number)
        log_mass = table.log_noise(self.nodes[None], cells)[0] + self._taken + self._log_number
        self.log_mass = log_mass - log_mass.max(axis=1, keepdims=True)
        class_of_node = _class_of(self.nodes)
        self.below = class_of_node.astype(np.int64)
        self.part = class_of_node - self.below
        order = np.argsort(np.where(look.noised, look.drawn, self._largest + 1), kind="stable")
        self._last, self._parts = order[-1], [order[offset:-1:_PARTS] for offset in range(_PARTS)]

    def _seen(self) -> tuple[Floats, Floats]:
        """Tabulate the probabilities of what was drawn, up to a factor of each kind; those of the
        values of ln γ where effects begin, empty cells first, and the number of each row.
        """
        mass = np.exp(self.log_mass)
        shares = np.zeros((len(mass), self._pmf.shape[1]))
        rows = np.arange(len(mass))[:, None]
        for step, share in ((0, 1 - self.part), (1, self.part)):
            np.add.at(shares, (rows, self.below + step), mass * share)
        like = shares @ self._pmf.T
        like /= like.max(axis=1, keepdims=True)
        self._empty = like[:, 0]
        self._drawn: NDArray[np.float32] = like[:, self._places].astype(np.float32)
        if not self.margins:
            return like, np.bincount(self.kind).astype(np.float64)
        near, taps, _ = self._near(self.start[None])
        rows = np.sum(
            [
                tap[0, :, None] * self._windows[self.kind, self._origin + near[0] + step]
                for tap, step in zip(taps, (-1, 0, 1), strict=True)
            ],
            axis=0,
        )
        return np.column_stack([self._empty[self.kind], rows]), np.ones(self.kind.size)

    @property
    def _windows(self) -> NDArray[np.float32]:
        """`_drawn` at all values of γ, shape `(kinds, locations, γ)`."""
        return np.lib.stride_tricks.sliding_window_view(self._drawn, self._gammas, axis=1)

    def _near(self, u: Floats) -> tuple[Integers, Floats, Floats]:
        """The nearest location of each cell in steps, shape `(chains, k)`, and the part that the
        one before, this, and the next have, with the derivatives, shape `(3, chains, k)`.
        """
        location = np.clip(self._effects.locations(u) / STEP, -_REACH, _REACH)
        near = np.rint(location)
        f = location - near
        taps = np.stack([(0.5 - f) ** 2 / 2, 0.75 - f**2, (0.5 + f) ** 2 / 2])
        return near.astype(np.int64), taps, np.stack([f - 0.5, -2 * f, f + 0.5])

    def _at_locations(self, a: Floats, near: Integers) -> tuple[Floats, Integers, Any, int]:
        """P(drawn | location) of the cells that are not empty at the three locations about each,
        shape `(3, chains, k)`; their places in a table, what it is of, and the number of locations.
        """
        chains, gammas = np.arange(len(a))[:, None], self._gammas
        lowest, number = near.min() - 1, np.ptp(near) + 3
        start = self._origin + lowest
        window = self._drawn[:, start : start + gammas + number - 1]
        padded = np.pad(a[:, 1:].astype(np.float32), ((0, 0), (number - 1, number - 1)))
        turned = np.lib.stride_tricks.sliding_window_view(padded, number, axis=1)[:, :, ::-1]
        table = window @ np.moveaxis(turned, 1, 0).reshape(window.shape[1], -1)
        entries = self.kind * table.shape[1] + chains * number + near - lowest
        entries = entries + np.array([-1, 0, 1])[:, None, None]
        return np.take(table, entries), entries, window, int(number)

    def likelihood(self, a: Floats, u: Floats) -> tuple[Floats, Floats, Floats]:
        if not u.shape[-1]:
            return super().likelihood(a, u)
        near, taps, steep = self._near(u)
        values_at, entries, window, number = self._at_locations(a, near)
        empty = self._empty[self.kind]
        seen = (taps * values_at).sum(axis=0) + a[:, :1] * empty + _TINY
        shape = len(self._drawn), len(a) * number
        pulled = np.bincount(entries.ravel(), (taps / seen).ravel(), math.prod(shape))
        pulled = pulled.reshape(shape).T.astype(np.float32) @ window
        # Sums of what is as far along the lattice from each location.
        step, far = pulled.strides[1], pulled.strides[0]
        along = np.lib.stride_tricks.as_strided(
            pulled, (len(a), number, self._gammas), (number * far, far + step, step)
        ).sum(axis=1)
        slope = 1 - np.column_stack([(empty / seen).sum(axis=1), along])
        loss, of_others = self._effects.loss(u, -(steep * values_at).sum(axis=0) / seen / STEP)
        return loss + a.sum(axis=1) - np.log(seen).sum(axis=1), slope, of_others

    def begin_at(self, chains: HamiltonianChains, rng: np.random.Generator) -> None:
        """Begin other chains where some are on average, and tilt counts to a public sum, half as
        far as draws of them are from it.
        """
        self.start = chains.others.mean(axis=0)
        if self.size is not None:
            counts = self.drawn(chains, rng)[1]
            variance = counts.var(axis=2, ddof=1).sum(axis=1).mean()
            sums = counts.sum(axis=1).mean(axis=1)
            tilt = (self.size - sums.mean()) / max(variance + sums.var(), _ROUNDING) / 2
            log_mass = self.log_mass + tilt * (self.nodes - self.nodes[:, :1])
            self.log_mass = log_mass - log_mass.max(axis=1, keepdims=True)
        self.like, self.number = self._seen()

    def drawn(self, chains: HamiltonianChains, rng: np.random.Generator) -> tuple[Draw, Integers]:
        """Draw where chains are; also all counts that were drawn, shape `(chains, k, times)`."""
        a, times = chains.weights, 1 if self.size is None else _TIMES
        chain = np.arange(len(a))[:, None]
        location = np.full((len(a), self.kind.size), self._origin)
        if self.margins:
            near, taps, _ = self._near(chains.others)
            values_at = self._at_locations(a, near)[0]
            log_p = np.log(taps * (values_at + a[:, :1] * self._empty[self.kind]) + _TINY)
            location = location + near - 1 + one_of(np.moveaxis(log_p, 0, -1), rng)
        # Each time another part of the law, which makes every draw one from the whole law.
        parts = (np.arange(times) + rng.integers(times, size=(*location.shape, 1))) % times
        levels = (parts + rng.random(parts.shape)) / times
        row, (chain_of, kind, start) = rows_of(chain, self.kind, location)
        masses = np.column_stack(
            [a[chain_of, 0] * self._empty[kind], a[chain_of, 1:] * self._windows[kind, start]]
        )
        gamma = picked(masses, row[..., None], levels)
        point = np.where(gamma > 0, self._places[location[..., None] + gamma - 1], 0)
        row, (kind, point_of) = rows_of(self.kind[:, None], point)
        node = picked(self._count_laws(kind, point_of), row, rng.random(row.shape))
        entries = self.kind[:, None], node
        counts = self.begin[entries] + rng.random(node.shape) * self._number[entries]
        counts = counts.astype(np.int64)
        all_counts, log_weight = counts, np.zeros(len(a))
        if self.size is None:
            counts, point = counts[..., 0], point[..., 0]
        else:
            counts, point, log_weight = self._of_sum(a, location[:, self._last], counts, point, rng)
        scale = 1 / (1 + self._shapes[point] / self._means[point])
        draw = Draw(
            counts,
            (self._shapes[point] + counts) * scale,
            scale,
            a[:, 0] / a.sum(axis=1),
            _spread(a[:, 1:]),
            np.exp(self._effects.log_tau(chains.others)) if self.margins else np.empty((len(a), 0)),
            log_weight,
        )
        return draw, all_counts

    def _count_laws(self, kind: Integers, point: Integers) -> Floats:
        """Masses of nodes, up to a factor of each kind, shape `(..., m)`."""
        below, upper_share = self.below[kind], self.part[kind]
        masses = (
            share * self._pmf[point[..., None], below + step]
            for step, share in ((0, 1 - upper_share), (1, upper_share))
        )
        return np.asarray(np.exp(self.log_mass[kind]) * sum(masses) + _TINY)

    def _of_sum(
        self,
        a: Floats,
        location: Integers,
        counts: Integers,
        point: Integers,
        rng: np.random.Generator,
    ) -> tuple[Integers, Integers, Floats]:
        """Counts that add to the public sum, their points, and the logarithms of the weights of
        states. Counts and points were drawn several times, shape `(chains, k, times)`, beside the
        location of the last cell.
        """
        chain, last = np.arange(len(a)), self._last
        kind = self.kind[last]
        points = self._places[location[:, None] + np.arange(self._gammas)]
        points = np.column_stack([np.zeros_like(location), points])
        masses = a[..., None] * self._count_laws(np.full(points.shape, kind), points) + _LEAST
        sums = [counts[:, batch].sum(axis=1) for batch in self._parts]
        left = self.size - sum(each[:, at] for each, at in zip(sums, _CHOICES, strict=True))
        begin, number = self.begin[kind], self._number[kind]
        node = np.maximum(np.searchsorted(begin[number > 0], left, side="right") - 1, 0)
        inside = (begin[node] <= left) & (left < begin[node] + number[node])
        law = masses.sum(axis=1)
        log_p = np.log(law / law.sum(axis=1, keepdims=True))[chain[:, None], node]
        others = self._log_number[kind][node] + self._taken[kind][node]
        log_p = np.where(inside, log_p - others, _IMPOSSIBLE)
        choice = one_of(log_p, rng)
        counts_drawn, points_drawn = np.empty_like(counts[..., 0]), np.empty_like(point[..., 0])
        counts_drawn[:, last] = np.clip(left[chain, choice], 0, self._largest)
        points_drawn[:, last] = points[
            chain, one_of(np.log(masses[chain, :, node[chain, choice]]), rng)
        ]
        for batch, at in zip(self._parts, _CHOICES, strict=True):
            entries = chain[:, None], batch, at[choice][:, None]
            counts_drawn[:, batch], points_drawn[:, batch] = counts[entries], point[entries]
        return counts_drawn, points_drawn, special.logsumexp(log_p, axis=1)


def _class_of(counts: ArrayLike) -> Floats:
    """The classes of counts, not rounded."""
    counts = np.asarray(counts, dtype=np.float64)
    beyond = np.log(np.maximum(counts, _DENSE) / _DENSE) / _GROWTH
    return np.minimum(counts, _DENSE) + beyond


def _spread(weights: Floats) -> Floats:
    """Standard deviation of ln γ of the cells that are not empty; shape `(chains,)`."""
    weights = weights / weights.sum(axis=1, keepdims=True)
    ln_gamma = STEP * np.arange(weights.shape[1])
    mean = weights @ ln_gamma
    return np.sqrt(weights @ ln_gamma**2 - mean**2)
