"""What completes a count to a private number of records, where the sum of the others is smooth."""

from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from opendp_bayes.inference.convolution.completions import Law, ListedTotals
from opendp_bayes.inference.laws.count_cells import NOTHING
from opendp_bayes.mathematics.validation import Floats, Integers

#: Knots of interpolated sums, in deviations of what is smooth, at most; sums below `exp(-_DEPTH)`
#: of the largest are left out.
_KNOTS, _DEPTH = 0.2, 30.0
#: How near logarithms of sums by knots twice as far apart have to be; so many knots are enough.
_SAME, _MOST = 1e-4, 1 << 11
#: Values at 0, 1, 2 and 3 to the coefficients of the cubic through them.
_THROUGH_FOUR = np.linalg.inv(np.vander(np.arange(4.0), increasing=True))


@dataclass(frozen=True, eq=False)
class SmoothTotals:
    """Listed totals for one category, whose rest is smooth: what they come to, interpolated;
    `even`, as good and mostly fewer, are a small part of their deviation apart.

    Of the count, from `lowest` to `highest`: the logarithm of the sum over the totals, and the mean
    and the variance of its probability given the count, over `alpha + count`; `cubics`, shape
    `(4, 3, pieces)`, are their coefficients from each of the first knots on, `step` apart.
    """

    listed: ListedTotals
    even: ListedTotals
    lowest: float
    highest: float
    step: int
    cubics: Floats

    @classmethod
    def of(
        cls,
        listed: ListedTotals,
        even: ListedTotals,
        own: Law,
        rest: Law,
        alpha: float,
        others: float,
    ) -> "SmoothTotals":
        """For a category with the prior `Beta(alpha, others)`: knots twice as far apart have
        to say the same of the sums. The numbers of records can weigh much more unevenly than the
        rest varies.
        """
        step = max(int(min(_KNOTS * rest.deviation, (own.highest - own.lowest) / 3)), 1)
        made = cls._of(listed, even, own, rest, (alpha, others), step)
        while made.step > 1 and made.cubics.shape[2] < _MOST:
            finer = cls._of(listed, even, own, rest, (alpha, others), (made.step + 1) // 2)
            knots = np.arange(made.lowest, made.highest + 1, finer.step)
            off = np.abs(made.at(knots, 0) - finer.at(knots, 0)).max()
            made = finer
            if off <= _SAME:
                break
        return made

    @classmethod
    def _of(
        cls,
        listed: ListedTotals,
        even: ListedTotals,
        own: Law,
        rest: Law,
        priors: tuple[float, float],
        step: int,
    ) -> "SmoothTotals":
        """With knots so far apart."""
        alpha, others = priors
        counts = np.arange(own.lowest, own.highest + step, step)
        totals = even.totals[0]
        logs = even.log_weights + rest.log_density(totals - counts[:, None])
        top = logs.max(axis=1)
        kept = top > top.max() - _DEPTH
        counts, logs, top = counts[kept], logs[kept], top[kept]
        weights = np.exp(logs - top[:, None])
        log_sums = np.log(weights.sum(axis=1)) + top
        weights /= weights.sum(axis=1)[:, None]
        a, total = alpha + counts, alpha + others + totals
        inverse = weights @ (1 / total)
        away = 1 / total - inverse[:, None]
        within = weights @ (1 / total / (total + 1)) - a * (weights @ (1 / total**2 / (total + 1)))
        values = np.stack([log_sums, inverse, within + a * (weights * away**2).sum(axis=1)], axis=1)
        # Where there are fewer than four knots, every count is one.
        values = np.pad(values, ((0, max(4 - len(values), 0)), (0, 0)), mode="edge")
        cubics = np.tensordot(_THROUGH_FOUR, sliding_window_view(values, 4, axis=0), (1, 2))
        return cls(listed, even, counts[0], counts[-1], step, cubics.swapaxes(1, 2).copy())

    @property
    def some(self) -> Floats:
        """The ends and the middle of the totals."""
        return self.listed.some

    def log_sums(self, rest: Law, row: Integers, counts: Floats) -> Floats:
        """Logarithms of the sums of the weights of what completes the counts."""
        del rest, row
        inside = (counts >= self.lowest) & (counts <= self.highest)
        return np.where(inside, self.at(counts, 0), NOTHING)

    def at(self, counts: Floats, function: int) -> Floats:
        """One of the three functions at counts, by the cubics through their nearest four knots."""
        place = (counts - self.lowest) / self.step
        last = self.cubics.shape[2] - 1
        base = np.minimum(np.maximum(place - 1, 0), last).astype(np.int64)
        away = place - base
        constant, linear, square, cube = self.cubics[:, function, :]
        return ((cube[base] * away + square[base]) * away + linear[base]) * away + constant[base]
