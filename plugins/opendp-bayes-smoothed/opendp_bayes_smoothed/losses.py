"""The smoothed privacy map of a release: a δ for every ε, and an ε for every δ.

Of every database the smallest of what is known: the profile of the sampling, that of what is
released of the sample, and what differential privacy promises. The smoothed δ averages these
minima, so it is at most each of them averaged.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from opendp_bayes import Mechanism
from opendp_bayes.mathematics.rounding import round_down, round_up, upper_end
from opendp_bayes_smoothed.arguments import as_epsilon, exp_up
from opendp_bayes_smoothed.draws import DRAWS, Floats, Replacement
from opendp_bayes_smoothed.expectation import databases, log_largest_expectation
from opendp_bayes_smoothed.kernels import average_laws, noised_laws
from opendp_bayes_smoothed.mechanisms import NoisySamplingHistogram, SamplingHistogram
from opendp_bayes_smoothed.smoothed_dp import smallest_epsilon
from opendp_bayes_smoothed.tables import log_profiles

#: The map states the δ that a mechanism has, whatever it is.
ANY_DELTA = math.nextafter(1.0, 0.0)
#: Steps that ε is divided into between several releases.
_STEPS = 16


@dataclass(frozen=True)
class SmoothedDP:
    """Identity of a smoothed privacy measure: the number of records, and the vertices of the convex
    hull of Π.
    """

    size: int
    vertices: tuple[tuple[float, ...], ...]

    @property
    def identifier(self) -> str:
        return f"SmoothedDP(size={self.size}, vertices={[list(row) for row in self.vertices]!r})"


@dataclass(frozen=True)
class SampleRelease:
    """One release of a sample, and its loss under differential privacy, whatever the data.

    Attributes
    ----------
    samples : the number of records drawn.
    replacement : `"without"` or `"with"`.
    scale : of the noise on every count of the histogram (Algorithm 4), 0 for none.
    values : what a record of each category counts, if the average is released; else empty.
    pure_epsilon, drawn : the release is `(pure_epsilon, 0)`- and `(0, drawn)`-differentially
        private.
    """

    samples: int
    replacement: Replacement = "without"
    scale: float = 0.0
    values: tuple[float, ...] = ()
    pure_epsilon: float = math.inf
    drawn: float = 1.0

    def log_bound(self, epsilon: float) -> float:
        """Logarithm of the δ of differential privacy: `(pure_epsilon, 0)` is `(ε, (e^p - e^ε) /
        (e^p + 1))` for an ε below p (`docs/research/smoothed.md`, "Differential privacy").
        """
        pure = self.pure_epsilon
        if epsilon >= pure:
            return -math.inf
        noise = 1.0
        if pure < 700:
            gap = math.exp(epsilon) * math.expm1(pure - epsilon)
            noise = upper_end(gap / (math.exp(pure) + 1), 2.0**-40)
        return math.log(min(noise, self.drawn)) + 2.0**-50 if min(noise, self.drawn) else -math.inf

    def log_profiles(self, size: int, k: int, epsilon: float) -> Floats:
        """`ln δ_ε(x)` for each of `candidates(size, k)`, rounded up, and at most the bound of
        differential privacy.
        """
        draw, histograms = DRAWS[self.replacement], databases(size, k)
        logs = np.minimum(
            log_profiles(draw, self.samples, histograms, epsilon), self.log_bound(epsilon)
        )
        laws = None
        if self.scale:
            laws = noised_laws(size, self.samples, k, self.scale)
        elif self.values:
            laws = average_laws(size, self.samples, self.values, self.replacement)
        return logs if laws is None else np.minimum(logs, laws.log_profiles(epsilon))


@lru_cache(maxsize=256)
def _log_delta(
    release: SampleRelease, size: int, rows: tuple[tuple[float, ...], ...], epsilon: float
) -> float:
    corners = np.array(rows)
    logs = release.log_profiles(size, corners.shape[1], epsilon)
    expected = log_largest_expectation(logs, databases(size, corners.shape[1]), corners)
    return min(expected, release.log_bound(epsilon))


@dataclass(frozen=True)
class SmoothedLoss:
    """The distance of the smoothed measure: for every ε the smoothed δ of a release, and for every
    δ the ε.

    Holds for data whose records are independent, each drawn from some distribution of `guarantee`,
    and for one record changed. Databases `d_in > 1` changes away are not what Π describes: for
    them it says what differential privacy promises. `+` adds another release about the same data,
    chosen before either is seen (Proposition 5).
    """

    guarantee: SmoothedDP
    releases: tuple[SampleRelease, ...]
    d_in: int = 1

    @property
    def pure_epsilon(self) -> float:
        """The releases together are `(pure_epsilon, 0)`-differentially private for any data; 0 for
        no change.
        """
        if self.d_in == 0:
            return 0.0
        epsilons = [release.pure_epsilon for release in self.releases]
        return (
            math.inf
            if math.inf in epsilons
            else round_up(sum(map(Fraction, epsilons), Fraction(0)))
        )

    def delta(self, epsilon: float) -> float:
        """The smoothed δ at `epsilon`, at least 0: an upper bound. 0 from `pure_epsilon` on.

        For several releases the smallest sum of their δ over ways to divide ε between them in
        sixteenths. Raises `ValueError` where there are too many histograms, as `smoothed_delta`.
        """
        epsilon = as_epsilon(epsilon)
        if epsilon >= self.pure_epsilon:
            return 0.0
        if len(self.releases) == 1:
            return exp_up(self._log_delta(self.releases[0], epsilon))
        return self._divided(epsilon)

    def epsilon(self, delta: float) -> float:
        """The smallest ε with a smoothed δ of at most `delta`, which is between 0 and 1, to a
        relative 2^-20 and rounded up; infinity if there is none.
        """
        if not 0 < delta <= 1:
            raise ValueError(f"delta={delta!r}: must be greater than 0 and at most 1.")
        return smallest_epsilon(lambda epsilon: self.delta(epsilon) <= delta, self.pure_epsilon)

    def _log_delta(self, release: SampleRelease, epsilon: float) -> float:
        bound = release.log_bound(epsilon)
        if bound == -math.inf or self.d_in > 1:
            return bound
        return _log_delta(release, self.guarantee.size, self.guarantee.vertices, epsilon)

    def _divided(self, epsilon: float) -> float:
        shares = [Fraction(min(epsilon, 1e6)) * i / _STEPS for i in range(_STEPS + 1)]
        least = [0.0] * (_STEPS + 1)  # of the releases so far, with at most so many steps
        for release in self.releases:
            own = [exp_up(self._log_delta(release, round_down(share))) for share in shares]
            least = [
                min(
                    round_up(Fraction(own[i]) + Fraction(least[steps - i]))
                    for i in range(steps + 1)
                )
                for steps in range(_STEPS + 1)
            ]
        return min(1.0, least[-1])

    def __add__(self, other: "SmoothedLoss") -> "SmoothedLoss":
        """Both releases together; `ValueError` for another guarantee or another `d_in`."""
        if not isinstance(other, SmoothedLoss):
            return NotImplemented
        if (self.guarantee, self.d_in) != (other.guarantee, other.d_in):
            raise ValueError(
                f"losses: are for {self.guarantee.identifier} at d_in={self.d_in} and"
                f" {other.guarantee.identifier} at d_in={other.d_in}; only those for the same"
                " records, Π and distance add up."
            )
        return replace(self, releases=self.releases + other.releases)

    def _within(self, budget: Any) -> bool:
        if not (isinstance(budget, tuple) and len(budget) == 2):
            raise TypeError(f"budget={budget!r}: must be a pair (ε, δ), such as (1.0, 1e-6).")
        epsilon, delta = (as_epsilon(x, name) for x, name in zip(budget, ("ε", "δ"), strict=True))
        return self.delta(epsilon) <= delta

    def __lt__(self, other: Any) -> bool:
        """True if the loss is at most a budget `(ε, δ)`; this is the comparison that
        `Measurement.check` makes.
        """
        return self._within(other)

    def __gt__(self, other: Any) -> bool:
        return not self._within(other)


def loss_of(
    mechanism: Mechanism,
    guarantee: SmoothedDP,
    *,
    values: tuple[float, ...] = (),
    d_in: int = 1,
) -> SmoothedLoss:
    """The smoothed loss of one release by a mechanism of this package, of the average if there are
    `values`; `ValueError` for another mechanism.
    """
    size, prior = guarantee.size, np.ones(len(guarantee.vertices[0]))
    if isinstance(mechanism, SamplingHistogram):
        loss = mechanism.proven_loss(d_in, size=size, prior=prior, delta=ANY_DELTA)
        replacement, scale, pure, drawn = mechanism.replacement, 0.0, math.inf, loss.delta
    elif isinstance(mechanism, NoisySamplingHistogram):
        loss = mechanism.proven_loss(d_in, size=size, prior=prior)
        replacement, scale, pure = "without", mechanism.scale, loss.epsilon
        drawn = round_up(min(Fraction(1), Fraction(d_in * mechanism.samples(size), size)))
    else:
        raise ValueError(f"mechanism={mechanism!r}: must be of this package, and draw a sample.")
    part = SampleRelease(mechanism.samples(size), replacement, scale, values, pure, drawn)
    return SmoothedLoss(guarantee, (part,), d_in)
