"""The counts of different records of the same probabilities, in parts that are convolved: tilted by
Newton's steps where the numbers of records are public; where two are private, an integral over the
share of the first release, each node with tilts of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy
from scipy import special

from opendp_bayes.inference.convolution.dense_tables import Axes, Convolved, moments
from opendp_bayes.inference.convolution.noisy_data_sets import (
    NoisyDataSet,
    Window,
    counts_of,
    table_of,
    widened,
)
from opendp_bayes.mathematics.validation import Floats, Integers

#: Newton's steps to a tilt, how far one may go and how far the mean may stay from the sum, in
#: standard deviations.
_MOST_TILTS, _FARTHEST, _OFF = 200, 2.0, 0.3
#: The share of one release in a private number of records is taken at points so many of its
#: standard deviations apart, as far as `exp(-_FAR)` of the largest weight, at most so many.
_STEP, _FAR, _MOST_POINTS = 1.2, 16.0, 1000
#: The next tilt puts the number of records so many standard deviations beyond what the last serves;
#: this is tried so often, each time nearer.
_BEYOND, _MOST_TRIES = 3.0, 30
#: Logarithms below this are left out, so that no product is too small for a float that is quick;
#: a sum above `_HELD` has lost nothing that counts to them.
_LOWEST, _HELD = -340.0, 1e-130
#: No tilt is steeper.
_STEEPEST = 60.0


def of_public(data_sets: Sequence[NoisyDataSet], sizes: list[int], prior: Floats) -> Convolved:
    """The counts, given the numbers of records."""
    wanted, concentration = np.array(sizes, dtype=float), float(prior.sum())
    tilt = np.log(np.maximum(wanted, 1) / (wanted.sum() + concentration))
    windows = [
        [data_set.window(category) for data_set in data_sets] for category in range(prior.size)
    ]
    logs: list[Floats] = [np.zeros(0)] * prior.size
    windows_before: list[list[Window]] = [[]] * prior.size
    for _ in range(_MOST_TILTS):
        for category, alpha in enumerate(prior.tolist()):
            windows[category], _ = widened(data_sets, category, alpha, tilt, windows[category])
            if windows[category] != windows_before[category]:
                logs[category] = table_of(data_sets, category, alpha, windows[category])
                windows_before[category] = windows[category]
        counts = [counts_of(row) for row in windows]
        mean, covariance = moments(counts, logs, tilt)
        off = (wanted - mean) / np.sqrt(np.maximum(np.diag(covariance), 1e-6))
        if np.all(np.abs(off) < _OFF):
            break
        # Sums of data sets with the same probabilities go together, almost as one.
        step = np.linalg.solve(covariance + 1e-6 * np.eye(off.size), wanted - mean)
        tilt = tilt + step / max(1.0, np.abs(step).max(), np.abs(off).max() / _FARTHEST)
    return Convolved(counts, logs, tilt, concentration, partial(_at, sizes))


def _at(sizes: list[int], numbers: Axes) -> Floats:
    """Logarithms of weights that are 1 at these numbers of records and 0 at others."""
    right = [number == size for number, size in zip(numbers, sizes, strict=True)]
    return np.where(np.logical_and.reduce(np.broadcast_arrays(*right)), 0.0, -np.inf)


def of_private(
    first: NoisyDataSet, second: NoisyDataSet, prior: Floats
) -> tuple[list[Convolved], Floats]:
    """Parts of given shares p of the first release in all records, which are independent of each
    other: `n_1! n_2! / (n + 1)!` is the integral of `p^n_1 (1 - p)^n_2` over p.
    """
    guesses = [float(np.maximum(data_set.noisy.drawn, 0).sum()) + 1 for data_set in (first, second)]
    start = np.log(guesses[0] / guesses[1])
    reach = sum(float(data_set.noisy.noise.reach(_FAR)) for data_set in (first, second))
    parts: list[Convolved] = []
    heights: list[float] = []
    # The narrowest that the share can be, given the largest number of records.
    step = _STEP * 2 / np.sqrt(sum(guesses) + reach * np.sqrt(prior.size) + 4)

    def at(number: int) -> float:
        logit = start + step * number
        logs = -np.logaddexp(0, [-logit, logit])
        new = _Shared((first, second), prior, logs).parts()
        more = [convolved.log_evidence + float(logs.sum()) for convolved in new]
        parts.extend(new)
        heights.extend(more)
        return float(special.logsumexp(more))

    best = at(0)
    for direction in (-1, 1):
        number, height = direction, np.inf
        while height > best - _FAR and abs(number) < _MOST_POINTS:
            height = at(number)
            best, number = max(best, height), number + direction
    weights = np.array(heights)
    probable = np.flatnonzero(weights > weights.max() - _FAR)
    return [parts[number] for number in probable.tolist()], special.softmax(weights[probable])


@dataclass(frozen=True, eq=False)
class _Shared:
    """The counts of two data sets together, given the share of the first in all records.

    The number n of records has the weight `(n + 1)! / Γ(A + n)`, A the sum of the prior. Where that
    falls steeply, the numbers that matter are far from those of the weights of the counts alone,
    which are tilted to put the sum there.

    `log_shares` are the logarithms of the shares of both.
    """

    data_sets: tuple[NoisyDataSet, NoisyDataSet]
    prior: Floats
    log_shares: Floats

    def parts(self) -> list[Convolved]:
        """Convolve with as many tilts as it takes to hold all numbers of records that matter."""
        parts = [self._tilted(None)]
        best = parts[0].log_evidence
        for upwards in (False, True):
            current = parts[0]
            while (beside := self._beside(current, upwards, best)) is not None:
                parts.append(current := beside)
                best = max(best, current.log_evidence)
        return parts

    def _beside(self, current: Convolved, upwards: bool, best: float) -> Convolved | None:
        """Numbers of records that the tilt of a part does not serve, above or below it; None where
        they do not matter, or no tilt serves them better.
        """
        end = current.served[upwards]
        if (
            current.log_weight_of(end) < best - _FAR
            or end == 0
            or (upwards and current.tilt[0] >= 0)
        ):
            return None
        away = _BEYOND * float(current.deviations[0])
        for turn in range(_MOST_TRIES):
            share = 0.5**turn
            goal = end + away * share if upwards else end - min(away, end) * share
            tilted = self._tilted(goal)
            least, most = tilted.served
            if upwards and least <= end + 1 and most > end:
                return tilted.between(end + 1, np.inf)
            if not upwards and most >= end - 1 and least < end:
                return tilted.between(0, end - 1)
        return None

    def _tilted(self, goal: float | None) -> Convolved:
        """Convolve with the tilt that puts the number of records on average at the goal, or without
        a goal where its weight has the slope of the tilt.
        """
        prior = list(enumerate(self.prior.tolist()))
        windows = [
            [data_set.window(category) for data_set in self.data_sets] for category, _ in prior
        ]
        guess = sum(
            data_set.middle(category) for category, _ in prior for data_set in self.data_sets
        )
        tilt = np.minimum([self._slope(guess)], 0.0)
        windows_before: list[list[Window]] = []
        counts: list[list[Integers]] = []
        logs: list[Floats] = []
        while True:
            widened_windows = [
                widened(self.data_sets, category, alpha, self.log_shares + tilt, windows[category])
                for category, alpha in prior
            ]
            windows = [row for row, _ in widened_windows]
            if windows == windows_before:
                return Convolved(counts, logs, tilt, float(self.prior.sum()), self._log_weight)
            windows_before, counts, logs = windows, [], []
            for category, alpha in prior:
                sums, log_table = self._table(
                    category, alpha, windows[category], widened_windows[category][1], tilt
                )
                counts.append([sums])
                logs.append(log_table)
            tilt = np.array([self._solved(counts, logs, goal)])

    def _table(
        self, category: int, alpha: float, windows: list[Window], peak: float, tilt: Floats
    ) -> tuple[Integers, Floats]:
        """The sums of a category's counts, and the logarithms of their weights."""
        first_counts, second_counts = counts_of(windows)
        sides = zip(self.data_sets, self.log_shares, (first_counts, second_counts), strict=True)
        left, right = (
            data_set.log_weights(category, counts) + log_share * counts
            for data_set, log_share, counts in sides
        )
        # What is far from the peak has a slope of its own, and next to nothing may be a peak.
        weights = log_convolved(
            left, right, float(special.digamma(max(alpha + peak, 1.0)) + tilt[0])
        )
        sums = first_counts[0] + second_counts[0] + np.arange(weights.size)
        return sums, weights + special.gammaln(alpha + sums)

    def _solved(
        self, counts: list[list[Integers]], logs: list[Floats], goal: float | None
    ) -> float:
        """The tilt, none of which is above 0, where weights fall too slowly to bear it."""

        def mean(tilt: float) -> float:
            return float(moments(counts, logs, np.array([tilt]))[0][0])

        def off(tilt: float) -> float:
            return tilt - self._slope(mean(tilt)) if goal is None else mean(tilt) - goal

        if goal is None:
            steepest = self._slope(0.0)
        else:
            steepest = -1.0
            while off(steepest) > 0 and steepest > -_STEEPEST:
                steepest *= 2
        if steepest >= 0 or off(0.0) <= 0:
            return 0.0
        return steepest if off(steepest) >= 0 else float(scipy.optimize.brentq(off, steepest, 0.0))

    def _slope(self, number: float) -> float:
        """Slope of the logarithm of the weight of a number of records."""
        return float(special.digamma(number + 2) - special.digamma(self.prior.sum() + number))

    def _log_weight(self, numbers: Axes) -> Floats:
        """Logarithms of the weights of numbers of records."""
        log_weight = special.gammaln(numbers[0] + 2.0)
        return np.asarray(log_weight - special.gammaln(self.prior.sum() + numbers[0]))


def log_convolved(left: Floats, right: Floats, rate: float) -> Floats:
    """Logarithms of the convolution of `exp(left)` and `exp(right)`, both concave; none is lost.

    Floats hold the sums that a factor `exp(rate s)` puts near the largest of them. From the ends of
    these on, the factor is taken that makes the sums level there, until all are known.
    """
    log_sums = np.full(left.size + right.size - 1, -np.inf)

    def convolve(rate: float) -> tuple[int, int]:
        """Learn some sums, and return the first and the last of all that are known."""
        left_terms, right_terms = (side + rate * np.arange(side.size) for side in (left, right))
        left_top, right_top = left_terms.max(), right_terms.max()
        first, second = (
            np.where(side > _LOWEST, np.exp(side), 0.0)
            for side in (left_terms - left_top, right_terms - right_top)
        )
        sums = np.convolve(first, second)
        held = np.flatnonzero(sums > _HELD)
        logs = np.log(sums[held]) + left_top + right_top - rate * held
        log_sums[held] = np.maximum(log_sums[held], logs)
        below, above = np.flatnonzero(log_sums > -np.inf)[[0, -1]].tolist()
        return below, above

    ends = convolve(rate)
    if ends[0] == ends[1] and log_sums.size > 1:  # the first slope of a concave side is its largest
        ends = convolve(-float(max(np.diff(side).max(initial=-np.inf) for side in (left, right))))
    for side, outermost in enumerate((0, log_sums.size - 1)):
        end = None
        while end != ends[side] != outermost:
            end = ends[side]
            below = min(end, ends[1] - 1)
            ends = convolve(float(log_sums[below] - log_sums[below + 1]))
    return log_sums
