"""The posterior of counts on a tree, exactly: laws of sums go up, what all others say comes down.

Node v has the weight `f_v(s_v)` of its count. Up, `m_v = f_v (m_a * m_b)` for its children a and b;
down, `o_a(x) = sum_y m_b(y) f_v(x + y) o_v(x + y)`. The law of a node is `m o`
(`docs/research/computation.md`). Both are laws of sums of two counts (`log_sums`), whose smallest
probabilities are as exact as the largest.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft, special
from scipy.special import logsumexp

from opendp_bayes.inference.laws.dirichlet_multinomial import picked
from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.levels.tree import Weights
from opendp_bayes.surveys.levels.windows import fitted, starting_windows

#: A transform's entries below this share of the largest have lost too many digits.
_KEPT = np.log(1e-9)
#: The tilted mean may be this many deviations, or records, away from where it should be.
_OFF, _NEAREST = 0.5, 0.3
#: Tilts that are taken, and the steepest of them.
_MOST_TILTS, _STEEPEST = 400, 1e3


def log_sums(
    first_logs: Floats, second_logs: Floats, first: Integers, number: int, tilt: Floats
) -> Floats:
    """Logarithms of `sum_i exp(one[i] + other[s - i])` for `number` sums s from `first` on.

    Shape `(rows, number)`, -inf for impossible sums. A Fourier transform of weights that are
    multiplied by `exp(t i)` knows the sums near its tilted mean to most digits; as many tilts t are
    taken as it needs to have every sum near one of them (Wilson and Keich, "Accurate pairwise
    convolutions of non-negative vectors via FFT", 2016). Sums in a valley between others are near
    none, and their terms are added up.

    Parameters
    ----------
    one, other : ndarray
        Logarithms of weights, shapes `(rows, m)` and `(rows, n)`; -inf only at the ends.
    first : ndarray of int
        The first sum of each row, shape `(rows,)`.
    tilt : ndarray
        About the tilt at which the sums are in the middle, shape `(rows,)`; a starting point.
    """
    lowest, highest = (
        _end(first_logs, entries) + _end(second_logs, entries) for entries in (0, -1)
    )
    sums = first[:, None] + np.arange(number)
    wanted = (sums >= lowest[:, None]) & (sums <= highest[:, None])
    log_weights, quality = np.full(sums.shape, -np.inf), np.full(sums.shape, -np.inf)
    rows = np.flatnonzero(wanted.any(axis=1))
    near = np.maximum(first, lowest), np.minimum(first + number - 1, highest)
    goal = (near[0] + near[1]) / 2
    length = fft.next_fast_len(first_logs.shape[1] + second_logs.shape[1] - 1, real=True)
    for _ in range(_MOST_TILTS):
        if not rows.size:
            return log_weights
        tilted = _tilted(
            first_logs[rows], second_logs[rows], goal[rows], tilt[rows], lowest[rows], highest[rows]
        )
        tilts, weights, other_weights, log_scale = tilted
        product = fft.irfft(fft.rfft(weights, length) * fft.rfft(other_weights, length), length)
        entries = np.clip(sums[rows], 0, length - 1)
        here = np.take_along_axis(product, entries, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(here)
        logs = np.where(wanted[rows] & (here > 0), logs, -np.inf)
        share = logs - np.log(product.max(axis=1))[:, None]
        better = share > quality[rows]
        values = logs + log_scale[:, None] - tilts[:, None] * entries
        log_weights[rows] = np.where(better, values, log_weights[rows])
        quality[rows] = np.maximum(share, quality[rows])
        tilt[rows] = tilts
        missing = wanted[rows] & (quality[rows] < _KEPT)
        middle = np.clip(np.floor(goal[rows]).astype(np.int64) - first[rows], 0, number - 1)
        at_goal = missing[np.arange(rows.size), middle]  # where the tilt went
        for position in np.flatnonzero(at_goal):
            row, open_ = rows[position], np.flatnonzero(missing[position])
            nearest = np.argsort(np.abs(open_ - middle[position]))
            some = open_[nearest[: _AT_A_TIME // first_logs.shape[1] + 1]]
            log_weights[row, some] = _one_by_one(first_logs[row], second_logs[row], sums[row, some])
            quality[row, some], missing[position, some] = 0.0, False
        goal[rows] = _next_goal(missing, sums[rows], goal[rows])
        rows = rows[missing.any(axis=1)]
    return log_weights


def _one_by_one(first_logs: Floats, second_logs: Floats, sums: Integers) -> Floats:
    """Logarithms of some sums of one row by their definition."""
    second_counts = sums[:, None] - np.arange(first_logs.size)
    inside = (second_counts >= 0) & (second_counts < second_logs.size)
    terms = np.where(inside, first_logs + second_logs[np.where(inside, second_counts, 0)], -np.inf)
    return np.asarray(logsumexp(terms, axis=1))


def _end(weights: Floats, side: int) -> Integers:
    """The first or the last place of each row that has a weight."""
    seen = np.isfinite(weights)
    if side == 0:
        return np.argmax(seen, axis=1)
    return weights.shape[1] - 1 - np.argmax(seen[:, ::-1], axis=1)


def _next_goal(missing: Integers, sums: Integers, goal: Floats) -> Floats:
    """The sum nearest to the last goal of those that are not known yet."""
    away = np.where(missing, np.abs(sums - goal[:, None]), np.inf)
    nearest = away.argmin(axis=1)[:, None]
    return np.asarray(np.take_along_axis(sums, nearest, axis=1)[:, 0], dtype=np.float64)


def _tilted(
    first_logs: Floats,
    second_logs: Floats,
    goal: Floats,
    start: Floats,
    lowest: Integers,
    highest: Integers,
) -> tuple[Floats, Floats, Floats, Floats]:
    """Tilts that put the mean of the sum near a goal, the tilted laws, and their log-scale."""
    inside = np.minimum(_NEAREST, (highest - lowest) / 2)
    goal = np.clip(goal, lowest + inside, highest - inside)
    tilt, log_scale = start.copy(), np.zeros(start.shape)
    laws = np.empty_like(first_logs), np.empty_like(second_logs)

    def beyond(tilts: Floats, rows: Integers) -> tuple[Floats, Floats]:
        mean, variance = -goal[rows], np.zeros(rows.size)
        tilt[rows], log_scale[rows] = tilts, 0.0
        for law, log_weights in zip(laws, (first_logs, second_logs), strict=True):
            counts = np.arange(float(log_weights.shape[1]))
            share = log_weights[rows]
            share += tilts[:, None] * counts
            top = share.max(axis=1)
            share -= top[:, None]
            np.exp(share, out=share)
            total = share.sum(axis=1)
            share /= total[:, None]
            law[rows] = share
            log_scale[rows] += np.log(total) + top
            centre = share @ counts
            mean += centre
            variance += share @ counts**2 - centre**2
        near = np.maximum(_OFF * np.sqrt(np.maximum(variance, 0.0)), _NEAREST)
        return mean / near, variance / near

    increasing_roots(beyond, start, -_STEEPEST, _STEEPEST, 1.0)
    return tilt, *laws, log_scale


#: Where the end of a window is more than `exp(-_ENDS)` as probable as the most probable count, all
#: windows are made to end at `exp(-_AMPLE)`, or to be so many times as wide.
_ENDS, _AMPLE, _NOTHING = 12.0, 18.0, -99.0
_WIDEST, _FLAT = 2, 1e-3
#: Passes after which windows that lose something are made at least twice as wide, and the most.
_FEW_PASSES, _MOST_PASSES = 6, 30
#: Entries of the arrays that are worked on at a time, and of all windows together.
_AT_A_TIME, _LARGEST = 1 << 20, 1 << 26


class TreeCounts:
    """The laws of all counts on a tree given weights of each, and draws of them.

    `highest` is a number that no count exceeds; `near` has the same counts with weights that are a
    little different, so that its windows will do to begin with. Raises `ValueError` where the
    windows of counts have too many entries.
    """

    def __init__(self, weights: Weights, highest: int, near: "TreeCounts | None" = None) -> None:
        self.weights, self.tree, self._highest = weights, weights.tree, highest
        if near is None:
            self._set(*starting_windows(weights, highest))
        else:
            self._set(near.low, near.low + near.sizes - 1)
        for passes in range(_MOST_PASSES + 1):
            self._up()
            self._outside = self._down()
            if passes == _MOST_PASSES or not self._widened(passes >= _FEW_PASSES):
                break

    def _set(self, low: Integers, high: Integers) -> None:
        self.low, self.sizes = low, high - low + 1
        self.start = np.concatenate([[0], np.cumsum(self.sizes)])
        self._windows = Segments(self.start)
        if self.start[-1] > _LARGEST:
            raise ValueError(
                f"releases: the counts that their noise leaves are {self.start[-1]:.2g} in all"
                f" windows, more than {_LARGEST:.2g}. Ask with a larger budget or fewer categories."
            )

    # -- up and down ----------------------------------------------------------------------------

    def _up(self) -> None:
        self._inside = np.empty(self.start[-1])
        self._scale = np.zeros(self.tree.nodes)
        for nodes in self._alike(np.flatnonzero(self.tree.is_leaf)):
            self._keep(nodes, np.zeros((nodes.size, self.sizes[nodes].max())))
        for round_ in self.tree.rounds:
            for nodes in self._alike(round_):
                left, right = self.tree.left[nodes], self.tree.right[nodes]
                first = self.low[nodes] - self.low[left] - self.low[right]
                laws = self._rows(self._inside, left), self._rows(self._inside, right)
                number = int(self.sizes[nodes].max())
                self._keep(nodes, log_sums(*laws, first, number, np.zeros(nodes.size)))

    def _keep(self, nodes: Integers, log_sum: Floats) -> None:
        """Keep laws with the weights of their own nodes."""
        counts = self.low[nodes, None] + np.arange(log_sum.shape[1])
        log_sum = log_sum + self.weights.log_weight(nodes, counts)
        log_sum = np.where(self._used(nodes, log_sum.shape[1]), log_sum, -np.inf)
        top = log_sum.max(axis=1)
        children = self.tree.left[nodes], self.tree.right[nodes]
        inner = children[0] >= 0
        self._scale[nodes] = top + np.where(inner, sum(self._scale[c] for c in children), 0.0)
        self._put(self._inside, nodes, log_sum - top[:, None])

    def _down(self) -> Floats:
        """Hand down, for each count, the logarithms of what all others say of it."""
        outside, self._lost = np.zeros(self.start[-1]), np.zeros(self.tree.nodes)
        for round_ in reversed(self.tree.rounds):
            for nodes in self._alike(round_):
                above = self._rows(outside, nodes)
                for children, messages in self._handed(nodes, above):
                    self._lost[children] = messages.max(axis=1)
                    self._put(outside, children, messages - self._lost[children, None])
        return outside

    def _handed(self, nodes: Integers, above: Floats) -> Iterator[tuple[Integers, Floats]]:
        """Hand down what is said of sums, and what their own nodes say: each child, and what its
        parent and its sibling say of it.
        """
        counts = self.low[nodes, None] + np.arange(above.shape[1])
        above = above + self.weights.log_weight(nodes, counts)
        pair = self.tree.left[nodes], self.tree.right[nodes]
        for child, sibling in (pair, pair[::-1]):
            sibling_laws = self._rows(self._inside, sibling)[:, ::-1]
            first = (
                self.low[child] - self.low[nodes] + self.low[sibling] + sibling_laws.shape[1] - 1
            )
            number = int(self.sizes[child].max())
            yield child, log_sums(above, sibling_laws, first, number, np.zeros(nodes.size))

    def _widened(self, doubled: bool) -> bool:
        """Make windows wider that lose something, and no less than `doubled` where that is asked;
        False where there is none.
        """
        law = self._inside + self._outside
        law -= self._windows.largest(law)[self._windows.owner]
        law = np.maximum(law, _NOTHING)
        low, high = self.low, self.low + self.sizes - 1
        begin, end, next_ = self.start[:-1], self.start[1:] - 1, np.minimum(self.sizes - 1, 1)
        first = np.where(low > 0, law[begin], _NOTHING)
        last = np.where(high < self._highest, law[end], _NOTHING)
        if self.weights.size is not None:
            first[-1] = last[-1] = _NOTHING
        if max(first.max(), last.max()) <= -_ENDS:
            return False
        lower = np.maximum(low - self._missing(first, law[begin + next_], doubled), 0)
        upper = np.minimum(high + self._missing(last, law[end - next_], doubled), self._highest)
        lower, upper = fitted(self.tree, lower, upper)
        if np.all(lower >= low) and np.all(upper <= high):
            return False
        self._set(np.minimum(lower, low), np.maximum(upper, high))
        return True

    def _missing(self, end: Floats, next_: Floats, doubled: bool) -> Integers:
        """Counts that windows lack beyond an end, by the slope of the laws there."""
        slope = np.maximum(next_ - end, _FLAT)
        least = np.where(end > -_ENDS, self.sizes, 0) if doubled else 0
        most = _WIDEST * self.sizes
        return np.ceil(np.clip((end + _AMPLE) / slope, least, most)).astype(np.int64)

    # -- ragged arrays --------------------------------------------------------------------------

    def _alike(self, nodes: Integers) -> Iterator[Integers]:
        """Nodes in parts, whose windows and those of their children have similar sizes."""
        children = np.stack([self.tree.left[nodes], self.tree.right[nodes]])
        sizes = np.where(children >= 0, self.sizes[children], 0).sum(axis=0) + self.sizes[nodes]
        order = np.argsort(sizes, kind="stable")
        nodes, sizes = nodes[order], sizes[order]
        kind = np.floor(4 * np.log2(sizes + 8))
        begin = 0
        while begin < nodes.size:
            same = np.searchsorted(kind, kind[begin], side="right")
            end = min(same, begin + max(int(_AT_A_TIME / sizes[same - 1]), 1))
            yield np.sort(nodes[begin:end])
            begin = end

    def _used(self, nodes: Integers, width: int) -> NDArray[np.bool_]:
        return np.asarray(np.arange(width) < self.sizes[nodes, None])

    def _rows(self, values: Floats, nodes: Integers) -> Floats:
        """Values of some nodes side by side, -inf beyond their windows."""
        width = int(self.sizes[nodes].max())
        places = np.minimum(self.start[nodes, None] + np.arange(width), values.size - 1)
        return np.where(self._used(nodes, width), values[places], -np.inf)

    def _put(self, values: Floats, nodes: Integers, rows: Floats) -> None:
        used = self._used(nodes, rows.shape[1])
        places = self.start[nodes, None] + np.arange(rows.shape[1])
        values[places[used]] = rows[used]

    # -- answers --------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        """`ln P(drawn)`, with a public or a private number of records."""
        root = self._inside[self.start[-2] :]
        return float(special.logsumexp(root) + self._scale[-1]) + self.weights.log_constant

    @cached_property
    def masses(self) -> Floats:
        """Probabilities of the counts of every window, one node after another."""
        return self._windows.shares(self._inside + self._outside)

    def laws(self, nodes: Integers) -> tuple[Integers, Integers, Floats]:
        """Numbers of rows, counts and probabilities of some nodes, one after another."""
        windows, entries = self._windows.chosen(nodes)
        counts = entries + (self.low - self.start[:-1])[nodes][windows.owner]
        return windows.owner, counts, self.masses[entries]

    def shares_of(self, nodes: Integers) -> tuple[Floats, Floats]:
        """The `shares` of some nodes, in the order of `laws`."""
        _, entries = self._windows.chosen(nodes)
        first, second = self.shares
        return first[entries], second[entries]

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Mean and mean square of the probability of every node given its count, logarithms in the
        order of `masses`.
        """
        owner = self._windows.owner
        counts = np.arange(owner.size) - self.start[owner] + self.low[owner]
        above, below = self.weights.above[owner] + counts, self.weights.below[owner] + counts
        first = self._carried(np.log(above), np.log(below))
        return first, self._carried(np.log(above * (above + 1)), np.log(below * (below + 1)))

    def _carried(self, above: Floats, below: Floats) -> Floats:
        """Expected products of `above / below'` over a node and those that it is a part of, given
        its count, `below'` being that of its parent; logarithms.
        """
        products = np.zeros(self.start[-1])
        for round_ in reversed(self.tree.rounds):
            for nodes in self._alike(round_):
                message = self._rows(self._outside + products - below, nodes)
                for children, handed in self._handed(nodes, message):
                    base = self._rows(self._outside, children)
                    with np.errstate(invalid="ignore"):
                        share = (
                            handed - self._lost[children, None] - base + self._rows(above, children)
                        )
                    self._put(products, children, np.where(np.isfinite(base), share, 0.0))
        return products

    # -- draws ----------------------------------------------------------------------------------

    def draw_root(self, draws: int, rng: np.random.Generator) -> Integers:
        """Draws of the number of records, shape `(draws,)`."""
        root = self.tree.nodes - 1
        _, counts, masses = self.laws(np.array([root]))
        return rng.choice(counts, draws, p=masses / masses.sum())

    def split(self, nodes: Integers, counts: Integers, rng: np.random.Generator) -> None:
        """Draw the two parts of sums: fill in rows of `counts`, shape `(nodes, draws)`, for the
        children of some nodes, none of which is above another, whose rows are known.
        """
        for some in self._alike(nodes):
            sums = counts[some]
            first = int(sums.min())
            key = np.arange(some.size)[:, None] * (int(sums.max()) - first + 1) + sums - first
            pairs, pair_of = np.unique(key, return_inverse=True)
            row, sum_ = np.divmod(pairs, int(sums.max()) - first + 1)
            left_counts = self._parts(some[row], sum_ + first, pair_of.ravel(), rng)
            counts[self.tree.left[some]] = left_counts.reshape(sums.shape)
            counts[self.tree.right[some]] = sums - counts[self.tree.left[some]]

    def _parts(
        self, nodes: Integers, sums: Integers, pair_of: Integers, rng: np.random.Generator
    ) -> Integers:
        """The left part of each sum in `pair_of`, of nodes and sums that are all different."""
        left, right = self.tree.left[nodes], self.tree.right[nodes]
        counts, level = np.empty(pair_of.size, dtype=np.int64), rng.random(pair_of.size)
        order = np.argsort(pair_of, kind="stable")
        step = max(int(_AT_A_TIME / self.sizes[left].max()), 1)
        for begin in range(0, nodes.size, step):
            end = min(begin + step, nodes.size)
            left_nodes, right_nodes, total = left[begin:end], right[begin:end], sums[begin:end]
            logs = self._rows(self._inside, left_nodes)
            most = total - self.low[left_nodes] - self.low[right_nodes]
            right_counts = most[:, None] - np.arange(logs.shape[1])
            inside = (right_counts >= 0) & (right_counts < self.sizes[right_nodes, None])
            places = self.start[right_nodes, None] + np.where(inside, right_counts, 0)
            logs = np.where(inside, logs + self._inside[places], -np.inf)
            weights = np.exp(logs - logs.max(axis=1)[:, None])
            bounds = np.searchsorted(pair_of[order], [begin, end])
            some = order[bounds[0] : bounds[1]]
            rows = pair_of[some] - begin
            index = picked(weights, rows, level[some] * (1 - 1e-12))
            counts[some] = self.low[left_nodes[rows]] + np.minimum(
                index, self.sizes[left_nodes[rows]] - 1
            )
        return counts
