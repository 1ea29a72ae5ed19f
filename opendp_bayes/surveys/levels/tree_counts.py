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

from opendp_bayes.inference.laws.dirichlet_multinomial import picked, rows_of
from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.surveys.levels.tree import Weights
from opendp_bayes.surveys.levels.windows import fitted, starting_windows

#: A transform's entries below this share of the largest have lost too many digits.
_KEPT = 1e-11
#: The tilted mean is so many deviations from where it should be at most, which is so many records
#: from the ends at least; a deviation that is none, and the steepest tilt.
_OFF, _NEAREST, _LEAST, _STEEPEST = 0.5, 0.3, 1e-6, 1e3


def log_sums(first_logs: Floats, second_logs: Floats, first: Integers, sizes: Integers) -> Floats:
    """Logarithms of `sum_i exp(one[i] + other[s - i])` for so many sums s as `sizes` from `first`
    on.

    Shape `(rows, max(sizes))`, -inf for impossible sums. A Fourier transform of weights that are
    multiplied by `exp(t i)` knows the sums near its tilted mean to most digits, so t puts this in
    their middle. Where it loses some, as those in a valley between others, the terms of the row are
    added up: all are positive, so that no digits are lost.

    Parameters
    ----------
    one, other : ndarray
        Logarithms of weights, shapes `(rows, m)` and `(rows, n)`; -inf only at the ends.
    first, sizes : ndarray of int
        The first sum of each row, and their number, shape `(rows,)`.
    """
    both = [(logs, np.arange(float(logs.shape[1]))) for logs in (first_logs, second_logs)]
    possible = [np.isfinite(logs) for logs, _ in both]
    lowest = sum(seen.argmax(axis=1) for seen in possible)
    highest = sum(seen.shape[1] - 1 - seen[:, ::-1].argmax(axis=1) for seen in possible)
    inside = np.minimum(_NEAREST, (highest - lowest) / 2)
    goal = np.clip(first + (sizes - 1) / 2, lowest + inside, highest - inside)
    tilt = np.zeros(first.size)

    def beyond(tilts: Floats, rows: Integers) -> tuple[Floats, Floats]:
        tilt[rows] = tilts
        mean, variance = -goal[rows], np.zeros(rows.size)
        for logs, counts in both:
            shares = special.softmax(logs[rows] + tilts[:, None] * counts, axis=1)
            centre = shares @ counts
            mean += centre
            variance += shares @ counts**2 - centre**2
        near = _OFF * np.sqrt(np.maximum(variance, 0.0)) + _LEAST
        return mean / near, variance / near

    increasing_roots(beyond, tilt, -_STEEPEST, _STEEPEST, 1.0)
    tilted = [logs + tilt[:, None] * counts for logs, counts in both]
    tops = [logs.max(axis=1, keepdims=True) for logs in tilted]
    one, other = (np.exp(logs - top) for logs, top in zip(tilted, tops, strict=True))
    length = one.shape[1] + other.shape[1] - 1
    padded = fft.next_fast_len(length, real=True)
    law = fft.irfft(fft.rfft(one, padded) * fft.rfft(other, padded), padded)[:, :length]
    sums = first[:, None] + np.arange(sizes.max())
    last = np.minimum(highest, first + sizes - 1)
    wanted = (sums >= lowest[:, None]) & (sums <= last[:, None])
    sums = np.clip(sums, 0, length - 1)
    lost = np.take_along_axis(law, sums, axis=1) < _KEPT * law.max(axis=1, keepdims=True)
    for row in np.flatnonzero(np.any(wanted & lost, axis=1)):
        law[row] = np.convolve(one[row], other[row])
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(wanted, np.take_along_axis(law, sums, axis=1), 0.0))
    return np.asarray(logs + sum(tops) - tilt[:, None] * sums)


#: Where the end of a window is more than `exp(-_ENDS)` as probable as the most probable count, all
#: windows are made to end at `exp(-_AMPLE)`, but between so many times as wide.
_ENDS, _AMPLE, _NOTHING = 12.0, 18.0, -99.0
_NARROWEST, _WIDEST, _FLAT, _MOST_PASSES = 0.25, 2, 1e-3, 30
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
            if passes == _MOST_PASSES or not self._widened():
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
                self._keep(nodes, log_sums(*laws, first, self.sizes[nodes]))

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
            yield child, log_sums(above, sibling_laws, first, self.sizes[child])

    def _widened(self) -> bool:
        """Make windows wider that lose something; False where there is none."""
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
        lower = np.maximum(low - self._missing(first, law[begin + next_]), 0)
        upper = np.minimum(high + self._missing(last, law[end - next_]), self._highest)
        lower, upper = fitted(self.tree, lower, upper)
        if np.all(lower >= low) and np.all(upper <= high):
            return False
        self._set(np.minimum(lower, low), np.maximum(upper, high))
        return True

    def _missing(self, end: Floats, next_: Floats) -> Integers:
        """Counts that windows lack beyond an end, by the slope of the laws there."""
        wanted = (end + _AMPLE) / np.maximum(next_ - end, _FLAT)
        least = np.where(end > -_ENDS, _NARROWEST * self.sizes, 0)
        return np.ceil(np.clip(wanted, least, _WIDEST * self.sizes)).astype(np.int64)

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
            pair_of, (node, total) = rows_of(some[:, None], counts[some])
            left_counts = self._parts(node, total, pair_of.ravel(), rng).reshape(pair_of.shape)
            counts[self.tree.left[some]] = left_counts
            counts[self.tree.right[some]] = counts[some] - left_counts

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
            counts[some] = self.low[left_nodes[rows]] + picked(
                weights, rows, level[some] * (1 - 1e-12)
            )
        return counts
