"""The smoothed privacy map of a release: a δ for every ε, and an ε for every δ.

Of every database the smallest of what is known: the profile of the sampling, that of the noised
histogram, and what differential privacy promises. The smoothed δ averages these minima, so it is at
most each of them averaged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from functools import lru_cache
from typing import Any

import numpy as np

from opendp_bayes.extend import upper_end
from opendp_bayes_smoothed.arguments import as_epsilon, exp_up
from opendp_bayes_smoothed.draws import draw_of
from opendp_bayes_smoothed.expectation import databases, log_largest_expectation
from opendp_bayes_smoothed.mechanisms import NoisySamplingHistogram, SamplingHistogram
from opendp_bayes_smoothed.noise import log_noised_profiles
from opendp_bayes_smoothed.profile import log_profiles
from opendp_bayes_smoothed.smoothed_dp import smallest_epsilon


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
class SmoothedLoss:
    """The distance of the smoothed measure: for every ε the smoothed δ of a release, and for every
    δ the ε.

    Holds for data whose records are independent, each drawn from some distribution of `guarantee`,
    and for one record changed. Databases `d_in > 1` changes away are not what Π describes: for
    them it says what differential privacy promises. `composed` adds up several releases.
    """

    guarantee: SmoothedDP
    mechanism: SamplingHistogram | NoisySamplingHistogram
    d_in: int = 1

    @property
    def pure_epsilon(self) -> float:
        """The release is `(pure_epsilon, 0)`-differentially private for any data."""
        size, prior = self.guarantee.size, np.ones(len(self.guarantee.vertices[0]))
        return self.mechanism.proven_loss(self.d_in, size=size, prior=prior).epsilon

    def delta(self, epsilon: float) -> float:
        """Return the smoothed δ, an upper bound; 0 from `pure_epsilon` on.

        Parameters
        ----------
        epsilon : float
            At least 0.

        Raises
        ------
        ValueError, TypeError
            For another ε, and for too many records, as `smoothed_delta`.
        """
        epsilon = as_epsilon(epsilon)
        promised = self.promised_delta(epsilon)
        if promised == 0 or self.d_in > 1:
            return promised
        return exp_up(_log_delta(self.guarantee, self.mechanism, epsilon, math.log(promised)))

    def promised_delta(self, epsilon: float) -> float:
        """Return the δ of differential privacy, whatever the data are.

        A pure loss p is `(ε, (e^p - e^ε) / (e^p + 1))` for an ε below it
        (`docs/smoothed.md`, "Differential privacy").

        Parameters
        ----------
        epsilon : float
            Float At least 0.
        """
        pure = self.pure_epsilon
        if epsilon >= pure:
            return 0.0
        noise = 1.0
        if pure < 700:
            gap = math.exp(epsilon) * math.expm1(pure - epsilon)
            noise = upper_end(gap / (math.exp(pure) + 1), 2.0**-40)
        return min(noise, self.mechanism.drawn(self.d_in, self.guarantee.size))

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε with a smoothed δ of at most `delta`, to a relative 2^-20 and
        rounded up; infinity if there is none.

        Parameters
        ----------
        delta : float
            Float Greater than 0 and at most 1.
        """
        return smallest_epsilon(self.delta, delta, self.pure_epsilon)

    def statement(self, epsilons: Sequence[float] = (0.5, 1.0, 2.0, 4.0)) -> str:
        """Return the smoothed promise in words, to publish beside the release, which states what
        differential privacy promises.

        Parameters
        ----------
        epsilons : Sequence[float], optional
            Sequence of float Where δ is stated, rounded up.
        """
        up = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float
        deltas = "; ".join(f"{up(self.delta(e)):.3g} at ε = {e:g}" for e in epsilons)
        corners = "; ".join(
            "(" + ", ".join(f"{p:.4g}" for p in row) + ")" for row in self.guarantee.vertices
        )
        return (
            f"Smoothed differential privacy: δ is at most {deltas}, on average over data sets of"
            f" {self.guarantee.size} independent records, each from some distribution in the convex"
            f" hull of {corners}, in the order of the categories. It says nothing of one data set,"
            " nor where this does not describe the data."
        )

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


@lru_cache(maxsize=256)
def _log_delta(
    guarantee: SmoothedDP,
    mechanism: SamplingHistogram | NoisySamplingHistogram,
    epsilon: float,
    log_promised: float,
) -> float:
    corners, size = np.array(guarantee.vertices), guarantee.size
    samples, k = mechanism.samples(size), corners.shape[1]
    histograms = databases(size, corners)
    logs = log_profiles(draw_of(mechanism.replacement), samples, histograms, epsilon)
    logs = np.minimum(logs, log_promised + 2.0**-50)
    if isinstance(mechanism, NoisySamplingHistogram):
        tight = log_noised_profiles(size, samples, k, mechanism.scale, epsilon)
        logs = logs if tight is None else np.minimum(logs, tight)
    return min(log_promised + 2.0**-50, log_largest_expectation(logs, histograms, corners))
