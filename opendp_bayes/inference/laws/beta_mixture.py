"""Mixtures of Beta distributions: what the probabilities of categories are, given a release; and
the level of intervals that hold for all categories at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from opendp_bayes.mathematics.increasing_roots import increasing_roots
from opendp_bayes.mathematics.log_space import logistic
from opendp_bayes.mathematics.segments import Segments
from opendp_bayes.mathematics.validation import Floats, Integers

#: Components that hold less than this share of the probability are left out.
NEGLIGIBLE = 1e-17
#: Entries of one block of values times components; bounds the memory of an evaluation. And of all
#: blocks, which bounds its time.
_LARGEST_BLOCK, _MOST_ENTRIES = 1 << 20, 1 << 26
#: A component has less than `exp(-_FAR)` beyond what is not looked at.
_FAR = 64.0
_LARGEST_LOGIT = 745.0  # that of the smallest float above 0 is larger than its negative
#: How close the probability of the last place but one is to that of a quantile, relative to it;
#: of the last is off by about the third power.
_TOLERANCE = 2e-4
_SMALLEST = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class BetaMixtures:
    """`m` mixtures `sum_j weights_j Beta(a_j, b_j)`, mixture i from `start_i` to `start_(i+1)`.

    `a`, `b` and `weights` have shape `(c,)`, `start` has shape `(m + 1,)`; the weights of a
    mixture sum to 1. Near 1 everything is computed from `1 - θ`, so that both ends are alike.
    """

    a: Floats
    b: Floats
    weights: Floats
    start: Integers

    @classmethod
    def grouped(
        cls, a: Floats, b: Floats, weights: Floats, group: Integers, owner: Integers | None = None
    ) -> "BetaMixtures":
        """One component for each group of components, with the mean and the variance of the group;
        shapes `(c,)`.

        `owner`, ascending, is the mixture that a component belongs to, by default a single one;
        groups of equal number in two mixtures are two. Groups of one stay what they are; mean and
        variance of every mixture are kept.
        """
        owner = np.zeros(a.shape, dtype=np.int64) if owner is None else owner
        share_of = np.bincount(owner, weights)
        used = np.flatnonzero(weights > NEGLIGIBLE * share_of[owner])
        used = used[np.lexsort((group[used], owner[used]))]
        a, b, group, owner = a[used], b[used], group[used], owner[used]
        weights = weights[used] / share_of[owner]
        begins = (np.diff(owner, prepend=-1) != 0) | (np.diff(group, prepend=group[:1] - 1) != 0)
        first = np.flatnonzero(begins)
        parts = Segments(np.append(first, owner.size))
        total, part_of = a + b, parts.owner
        share = parts.sums(weights)
        mean = parts.sums(weights * (a / total)) / share
        mean_left = parts.sums(weights * (b / total)) / share
        within = (a / total) * (b / total) / (total + 1)
        off = np.where(
            mean[part_of] < 0.5, a / total - mean[part_of], mean_left[part_of] - b / total
        )
        variance = parts.sums(weights * (within + off**2)) / share
        # A variance is as large as a mean allows only where a cell ends at 0 or 1.
        least = 1e-6 * np.minimum(total[first], 1)
        new_a, new_b = cls.parameters(mean, mean_left, variance, least)
        alone = parts.sizes == 1  # not even rounded: a density at 0 is finite for a = 1 only
        return cls(
            np.where(alone, a[first], new_a),
            np.where(alone, b[first], new_b),
            share,
            np.searchsorted(owner[first], np.arange(share_of.size + 1)),
        )

    @staticmethod
    def parameters(
        mean: Floats, rest: Floats, variance: Floats, least: Floats | float = 1e-6
    ) -> tuple[Floats, Floats]:
        """Parameters of the Betas with such means, one minus these, and variances; their sum is at
        least so much, for a variance can be too large for any Beta.

        Examples
        --------
        >>> of_moments = BetaMixtures.parameters
        >>> a, b = of_moments(np.array([0.25]), np.array([0.75]), np.array([0.0375]))
        >>> a.round(6).tolist(), b.round(6).tolist()
        ([1.0], [3.0])
        """
        total = np.maximum(mean * rest / np.maximum(variance, _SMALLEST) - 1, least)
        return np.maximum(mean * total, _SMALLEST), np.maximum(rest * total, _SMALLEST)

    @classmethod
    def single(cls, a: Floats, b: Floats, weights: Floats) -> "BetaMixtures":
        """One mixture."""
        return cls(a, b, weights, np.array([0, a.size]))

    @classmethod
    def joined(cls, mixtures: "Sequence[BetaMixtures]") -> "BetaMixtures":
        """The mixtures of several, in their order."""
        a, b, weights = (
            np.concatenate([getattr(some, field) for some in mixtures])
            for field in ("a", "b", "weights")
        )
        sizes = np.concatenate([np.diff(some.start) for some in mixtures])
        return cls(a, b, weights, np.append(0, np.cumsum(sizes)))

    @property
    def m(self) -> int:
        """Number of mixtures."""
        return self.start.size - 1

    def __getitem__(self, mixture: int) -> "BetaMixtures":
        """One of them."""
        part = slice(int(self.start[mixture]), int(self.start[mixture + 1]))
        return BetaMixtures.single(self.a[part], self.b[part], self.weights[part])

    def chosen(self, mixtures: Integers) -> "BetaMixtures":
        """Some of them, which may repeat."""
        parts, components = self._parts.chosen(mixtures)
        return BetaMixtures(
            self.a[components], self.b[components], self.weights[components], parts.start
        )

    def _some(self, mixtures: Integers) -> "BetaMixtures":
        """Some of them, in their order."""
        return self if mixtures.size == self.m else self.chosen(mixtures)

    @property
    def mirrored(self) -> "BetaMixtures":
        """The laws of one minus each number."""
        return replace(self, a=self.b, b=self.a)

    def mean(self) -> Floats:
        """Expected values, shape `(m,)`."""
        return self._parts.sums(self.weights * (self.a / (self.a + self.b)))

    def variance(self) -> Floats:
        """Variances, those within the components plus those of their means, shape `(m,)`."""
        total, parts = self.a + self.b, self._parts
        share, left = self.a / total, self.b / total
        mean, mean_left = (parts.sums(self.weights * part)[parts.owner] for part in (share, left))
        off = np.where(mean < 0.5, share - mean, mean_left - left)
        return parts.sums(self.weights * (share * left / (total + 1) + off**2))

    def std(self) -> Floats:
        """Standard deviations, shape `(m,)`."""
        return np.sqrt(self.variance())

    def cdf(self, values: ArrayLike) -> Floats:
        """P(θ <= value) at values of shape `(..., m)` or `(..., 1)`; shape `(..., m)`."""
        log_mode = special.xlogy(self.a, mean := self.a / (self.a + self.b))
        log_mode += special.xlog1py(self.b, -mean)

        def cdf(a: Floats, b: Floats, x: Floats) -> Floats:
            # A tail beyond x is at most the likelihood of x over that of the mean.
            below = np.where(x < mean, 0.0, 1.0)
            fallen = log_mode - special.xlogy(a, x) - special.xlog1py(b, -x)
            near = ~(fallen >= _FAR)
            a, b = np.broadcast_to(a, x.shape)[near], np.broadcast_to(b, x.shape)[near]
            below[near] = special.betainc(a, b, x[near])
            return below

        return np.minimum(self._mixed(cdf, np.clip(values, 0.0, 1.0)), 1.0)

    def pdf(self, values: ArrayLike) -> Floats:
        """Densities, 0 outside [0, 1], at values of shape `(..., m)` or `(..., 1)`; shape `(...,
        m)`.
        """
        values = np.asarray(values, dtype=np.float64)
        log_beta = self._log_beta

        def density(a: Floats, b: Floats, x: Floats) -> Floats:
            return np.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - log_beta)

        inside, outside = (values >= 0) & (values <= 1), np.where(np.isnan(values), np.nan, 0.0)
        with np.errstate(over="ignore", divide="ignore"):  # may be infinite at 0 and at 1
            return np.where(inside, self._mixed(density, np.where(inside, values, 0.5)), outside)

    def quantile(self, probabilities: ArrayLike) -> Floats:
        """Inverse of `cdf`, to 1e-10 of the nearer tail, at probabilities of shape `()`, `(..., 1)`
        or `(..., m)`; shape `(..., m)`.
        """
        return self.two_sided_quantile(probabilities)[0]

    def two_sided_quantile(self, probabilities: ArrayLike) -> tuple[Floats, Floats]:
        """Quantiles and one minus the same, both to their own last digits, for probabilities of
        shape `()`, `(..., 1)` or `(..., m)`; shape `(..., m)`.
        """
        wanted = np.asarray(probabilities, dtype=np.float64)
        wanted = np.broadcast_to(wanted, (*wanted.shape[:-1], self.m))
        levels, index = wanted.reshape(wanted.size // max(self.m, 1), self.m), np.arange(self.m)
        at_once, logits = _LARGEST_BLOCK // (self.a.size + 1) + 1, np.empty(levels.shape)
        for start in range(0, len(levels), at_once):
            rows = levels[start : start + at_once]
            above, which = rows > 0.5, np.broadcast_to(index, rows.shape)
            sides = self.chosen(which[~above]), self.mirrored.chosen(which[above])
            quantiles = BetaMixtures.joined(sides)._lower_logit(
                np.concatenate([rows[~above], 1 - rows[above]])
            )
            lower, upper = np.split(quantiles, [sides[0].m])
            logits[start : start + at_once][~above] = lower
            logits[start : start + at_once][above] = -upper
        shaped = logits.reshape(wanted.shape)
        return logistic(shaped), logistic(-shaped)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """The equal-tailed intervals of probability `level`, two arrays of shape `(m,)`, rounded
        outwards: a draw that is rounded to an end is inside.
        """
        return _outwards(*self.quantile([[(1 - level) / 2], [(1 + level) / 2]]))

    def shortest_interval(self, level: float) -> tuple[Floats, Floats]:
        """The shortest intervals of probability `level`, two arrays of shape `(m,)`: those of
        highest density where the density has one mode.
        """
        below, above = np.zeros(self.m), np.full(self.m, 1 - level)
        rows = np.arange(self.m)
        for _ in range(3):
            left = np.linspace(below, above, 9)
            ends = [self.two_sided_quantile(p) for p in (left, np.minimum(left + level, 1))]
            (lower, lower_rest), (upper, upper_rest) = ends
            length = np.where(upper < 0.5, upper - lower, lower_rest - upper_rest)
            best = np.argmin(length, axis=0)
            below = left[np.maximum(best - 1, 0), rows]
            above = left[np.minimum(best + 1, 8), rows]
        return _outwards(lower[best, rows], upper[best, rows])

    @cached_property
    def _parts(self) -> Segments:
        return Segments(self.start)

    @cached_property
    def _log_beta(self) -> Floats:
        return np.asarray(special.betaln(self.a, self.b))

    def _mixed(self, function: special.betainc, values: ArrayLike) -> Floats:
        values = np.asarray(values, dtype=np.float64)
        values = np.broadcast_to(values, (*values.shape[:-1], self.m))
        flat, block = values.reshape(-1, self.m), max(1, _LARGEST_BLOCK // self.a.size)
        if flat.shape[0] * self.a.size > _MOST_ENTRIES:
            raise ValueError(
                f"values: {flat.shape[0]} of each of {self.m} probabilities, which have"
                f" {self.a.size} components together; must be at most"
                f" {_MOST_ENTRIES // self.a.size} at once, or those of fewer probabilities."
            )
        parts = [np.empty((0, self.m))]
        for start in range(0, len(flat), block):
            rows = flat[start : start + block][:, self._parts.owner]
            parts.append(self._parts.sums(function(self.a, self.b, rows) * self.weights))
        return np.concatenate(parts).reshape(values.shape)

    def _lower_logit(self, wanted: Floats) -> Floats:
        """Logits of the quantiles of probabilities up to 1/2, shape `(m,)`, by the logarithm of the
        probability; minus infinity below every float.
        """
        active = np.flatnonzero(wanted > 0)
        logits, goal = np.full(self.m, -np.inf), wanted[active]

        def above(logit: Floats, which: Integers) -> tuple[Floats, Floats]:
            cdf, slope, bend = self._some(active[which])._cdf_and_slopes(logit)
            with np.errstate(all="ignore"):
                value, slope, bend = np.log(cdf / goal[which]), slope / cdf, bend / cdf
                # Halley's step is Newton's with the slope half a step on, about, but no other one.
                half_on = slope - value * (bend / slope - slope) / 2
                return value, np.clip(half_on, slope / 2, 2 * slope)

        start, ends = self._start(wanted)[active], (-_LARGEST_LOGIT, _LARGEST_LOGIT)
        logits[active] = increasing_roots(above, start, *ends, _TOLERANCE)
        return np.where(logits <= 1 - _LARGEST_LOGIT, -np.inf, logits)

    def _start(self, wanted: Floats) -> Floats:
        """Quantiles of one Beta with the same mean and variance for each, as logits."""
        mean, mean_left = self.mean(), self._parts.sums(self.weights * (self.b / (self.a + self.b)))
        with np.errstate(all="ignore"):
            parameters = self.parameters(mean, mean_left, self.variance(), _SMALLEST)
            start = special.logit(special.betaincinv(*parameters, wanted))
        return np.clip(np.nan_to_num(start), -_LARGEST_LOGIT, _LARGEST_LOGIT)

    def _logit_densities(self, logit: Floats) -> Floats:
        """Densities of the logits of all components, shape `(c,)`."""
        log_value, log_rest = -np.logaddexp(0, -logit), -np.logaddexp(0, logit)
        owner = self._parts.owner
        log_density = self.a * log_value[..., owner] + self.b * log_rest[..., owner]
        return np.exp(np.minimum(log_density - self._log_beta, 700))

    def _cdf_and_slopes(self, logit: Floats) -> tuple[Floats, Floats, Floats]:
        """At one logit for each mixture, and two derivatives with respect to the logit."""
        value, left = logistic(logit)[self._parts.owner], logistic(-logit)[self._parts.owner]
        cdf = special.betainc(self.a, self.b, value)
        near = left < 1e-3  # where the value rounds to 1 its complement keeps its digits
        cdf[near] = 1 - special.betainc(self.b[near], self.a[near], left[near])
        slope = self._logit_densities(logit)
        bend = slope * (self.a * left - self.b * value)
        cdf, slope, bend = (self._parts.sums(self.weights * array) for array in (cdf, slope, bend))
        return cdf, slope, bend


def varied(a: Floats, b: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """Betas with the means and variances of `Beta(a, b)` whose b has a variance, `rest`."""
    total = a + b
    share, left = a / total, b / total
    off = rest / total**2
    shift = share * off
    # Of `share left / (total + 1)`, the second derivative with respect to b.
    bend = np.maximum(1 + off * (6 - 3 / np.maximum(left, _SMALLEST)), 0.5)
    spread = share * left / (total + 1) * bend + share**2 * off
    parameters = BetaMixtures.parameters(share + shift, np.maximum(left - shift, _SMALLEST), spread)
    return np.where(off <= 0, a, parameters[0]), np.where(off <= 0, b, parameters[1])


def _outwards(lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    ends = np.nextafter(np.minimum(lower, upper), -1), np.nextafter(np.maximum(lower, upper), 2)
    return np.maximum(ends[0], 0.0), np.minimum(ends[1], 1.0)


#: Halvings of what is not known of the logarithm of a level's rest.
_HALVINGS = 10


def pointwise_level(marginals: BetaMixtures, draws: Floats, level: float) -> float:
    """The level at which equal-tailed intervals hold for all categories at once with probability
    `level`, by draws of shape `(draws, k)` and by bisection.

    At level c, each interval misses with probability `1 - c`, so that the mean number of misses is
    `k (1 - c)`. That one misses at all is less probable by the mean number of misses beyond the
    first of a draw, which is all that draws are needed for.
    """
    k, low, high = draws.shape[1], level, 1 - (1 - level) / draws.shape[1]
    for _ in range(_HALVINGS):
        middle = 1 - float(np.sqrt((1 - low) * (1 - high)))
        lower, upper = marginals.interval(middle)
        misses = ((draws < lower) | (draws > upper)).sum(axis=1)
        one_misses = k * (1 - middle) - np.maximum(misses - 1, 0).mean()
        low, high = (middle, high) if one_misses > 1 - level else (low, middle)
    return high
