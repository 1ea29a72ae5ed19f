"""Different records of the same probabilities, each released with its own noise:
Dirichlet-multinomial counts in several data sets. Where their numbers of records are public, by
Fourier transforms of several axes under a tilt of each, which Newton's steps find; where two are
private, by an integral over the share of the first release, each point with a tilt of its own.

A category whose releases have the counts x_r, with the sum s, has the weight
`Γ(prior + s) prod_r f_r(drawn_r - x_r) / x_r!`. The weight of the counts of all categories is the
product of these and of `prod_r n_r! / Γ(A + n)`, for the numbers of records n_r with the sum n and
the sum A of the prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy import special

from opendp_bayes.inference.convolution.dense_tables import Axes, Convolved, JointLaw, moments
from opendp_bayes.inference.convolution.noisy_data_sets import (
    NoisyDataSet,
    Window,
    counts_of,
    table_of,
    widened,
)
from opendp_bayes.inference.engines import ByDraws, IndependentDraws
from opendp_bayes.inference.laws.beta_mixture import BetaMixtures, varied
from opendp_bayes.inference.laws.count_laws import CountLaws, grouped
from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.validation import Floats, Integers
from opendp_bayes.mechanisms.integer_noise import typical_std

#: Draws behind what is told of merged categories, and of some among themselves.
_DRAWS = 40_000
#: Newton's steps to a tilt, how far one may go and how far the mean may stay from the sum, in
#: standard deviations.
_MOST_TILTS, _FARTHEST, _OFF = 200, 2.0, 0.3
#: The share of one release in a private number of records is taken at points about so many of its
#: standard deviations apart, as far as `exp(-_FAR)` of the largest weight, and nearer until the
#: weights of every other one and of those between are the same but for this.
_STEP, _FAR, _APART = 0.8, 12.0, 0.02
#: How near its slope a tilt is before the last of Newton's steps.
_SOLVED = 1e-6
#: Logarithms below this are left out, so that no product is too small for a float that is quick;
#: a sum above `_HELD` has lost nothing that counts to them.
_LOWEST, _HELD = -340.0, 1e-130


class DifferentRecords(ByDraws):
    """The counts of all records together, and the probabilities, given those of each release with
    noise.

    The numbers of records of all releases are public, or those of two are private. Raises
    `ValueError` where the tables are too large, or the draws too far from any counts.
    """

    def __init__(self, data_sets: Sequence[NoisyDataSet], prior: Floats) -> None:
        self.prior = prior
        sizes = [data_set.size for data_set in data_sets if data_set.size is not None]
        if sizes:
            self._parts, self._shares = [of_public(data_sets, sizes, prior)], np.ones(1)
        else:
            self._parts, self._shares = of_private(data_sets[0], data_sets[1], prior)

    @cached_property
    def _laws(self) -> list[JointLaw]:
        """For every category, of all parts; the weights sum to 1."""
        parts = zip(*(part.joint_laws() for part in self._parts), strict=True)
        return [JointLaw.joined(part, self._shares) for part in parts]

    @cached_property
    def probabilities(self) -> BetaMixtures:
        """The marginals of the probabilities of all categories."""
        mixtures = []
        for alpha, law in zip(self.prior.tolist(), self._laws, strict=True):
            others = float(self.prior.sum()) - alpha
            a, b = varied(alpha + law.counts, others + law.left, law.variance)
            row = np.zeros(a.size, dtype=np.int64)
            mixtures.append(grouped(a, b, law.weights, a - alpha, b - others, row)[0])
        return BetaMixtures.joined(mixtures)

    @cached_property
    def counts(self) -> CountLaws:
        """The marginals of the counts of all categories."""
        laws = [CountLaws.of_rows(law.counts[:, None], law.weights) for law in self._laws]
        return CountLaws.joined(laws)

    @cached_property
    def records(self) -> CountLaws:
        """The law of the number of all records."""
        laws = [part.number_law() for part in self._parts]
        rows = np.concatenate([numbers for numbers, _ in laws])[:, None]
        pairs = zip(laws, self._shares, strict=True)
        return CountLaws.of_rows(rows, np.concatenate([share * law for (_, law), share in pairs]))

    @cached_property
    def drawn(self) -> IndependentDraws:
        """Draws behind what is told of merged categories, and of some among themselves."""
        drawn = self.sample(_DRAWS, np.random.default_rng(0))
        return IndependentDraws(drawn, prior=self.prior)

    def sample(self, draws: int, rng: np.random.Generator) -> Integers:
        """Independent draws of the counts, shape `(draws, k)`."""
        pairs = zip(self._parts, rng.multinomial(draws, self._shares).tolist(), strict=True)
        drawn = np.concatenate([part.sample(number, rng) for part, number in pairs if number])
        return drawn if len(self._parts) == 1 else rng.permutation(drawn)


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
    data_sets, widths = (first, second), []
    for data_set in data_sets:
        number = float(np.maximum(data_set.noisy.drawn, 0).sum()) + 1
        variance = prior.size * typical_std(data_set.noisy.noise) ** 2
        widths.append((number, 1 / number + variance / (number**2 + variance)))
    (first_number, first_width), (second_number, second_width) = widths
    start = np.log(first_number / second_number)
    step = _STEP * np.sqrt(first_width + second_width)
    parts: dict[float, tuple[Convolved, float]] = {}
    while True:
        best = -np.inf
        for direction in (-1, 1):
            number, height = 0, np.inf
            while height > best - _FAR:
                if (away := number * step) not in parts:
                    log_shares = -np.logaddexp(0, [-start - away, start + away])
                    convolved = _Shared(data_sets, prior, log_shares).convolved()
                    parts[away] = convolved, convolved.log_evidence + float(log_shares.sum())
                height = parts[away][1]
                best, number = max(best, height), number + direction
        probable = [away for away, (_, height) in parts.items() if height > best - _FAR]
        shares = special.softmax([parts[away][1] for away in probable])
        if abs(shares @ np.cos(np.pi / step * np.array(probable))) < _APART:
            return [parts[away][0] for away in probable], shares
        step /= 2


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

    def convolved(self) -> Convolved:
        """Convolve with the tilt that is the slope of the weight where the number of records is on
        average.
        """
        prior = list(enumerate(self.prior.tolist()))
        windows = [
            [data_set.window(category) for data_set in self.data_sets] for category, _ in prior
        ]
        guess = sum(
            data_set.middle(category) for category, _ in prior for data_set in self.data_sets
        )
        tilt = np.minimum(self._slope(np.array([float(guess)])), 0.0)
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
            tilt = self._solved(counts, logs, tilt)

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

    def _solved(self, counts: list[list[Integers]], logs: list[Floats], start: Floats) -> Floats:
        """The tilt, none of which is above 0, where weights fall too slowly to bear it."""

        def beyond(tilt: Floats, _: Integers) -> tuple[Floats, Floats]:
            mean, variance = moments(counts, logs, tilt)
            bend = special.polygamma(1, mean + 2) - special.polygamma(1, self.prior.sum() + mean)
            return tilt - self._slope(mean), 1 - bend * variance[0]

        steepest = min(float(self._slope(np.zeros(1))[0]), 0.0)
        return increasing_roots(beyond, np.maximum(start, steepest), steepest, 0.0, _SOLVED)

    def _slope(self, number: Floats) -> Floats:
        """Slope of the logarithm of the weight of a number of records."""
        return special.digamma(number + 2) - special.digamma(self.prior.sum() + number)

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
