r"""Discrete Gaussian noise: the privacy profile of the worst neighbours, certified.

One count that moves by `D` has the log-ratio `L(s) = D (2 s + D) / (2 t^2)` at noise s, whose law
is `P(s) ∝ exp(-s^2 / (2 t^2))` with `t = scale`. Two counts that move by d each have that of their
sum: `D = 2 d`, `t^2 = 2 scale^2`, and a weight for even and one for odd s (`docs/proofs.md`,
"Gaussian noise").
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from scipy.special import erfcx, ndtr

from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.integer_noise import log_theta

#: Up to this t sums are taken term by term; beyond, integrals bound them.
_LARGEST_TABLE = 1e5
#: Noise beyond this many t adds less than exp(-40) of a sum, which is bounded and added.
_REACH = 9.0
#: Relative error of a computed δ: of exponents below 745, and of sums of up to 2^21 positive terms.
_RELATIVE_ERROR = Fraction(1, 2**32)
#: Relative error of the two probabilities whose difference is taken.
_CANCELLED = 2.0**-40
#: More than what is lost in numbers too small for a float.
_UNDERFLOW = Fraction(1, 2**1000)


@dataclass(frozen=True)
class GaussianPair:
    """`moved` counts, 1 or 2, with noise of `scale` each, that move by `distance` each: the worst
    neighbours, and no others have a larger δ at any ε.
    """

    scale: float
    distance: int
    moved: int
    method: str = "exact"

    def delta(self, epsilon: float) -> float:
        """A certified upper bound on `E[(1 - exp(epsilon - L))+]`, for epsilon >= 0."""
        crossing = Fraction(epsilon) * self._variance / self._shift - Fraction(self._shift) / 2
        value = (
            self._sum(crossing) if self._variance <= _LARGEST_TABLE**2 else self._integral(crossing)
        )
        return min(1.0, round_up(Fraction(value) * (1 + _RELATIVE_ERROR) + _UNDERFLOW))

    @property
    def _shift(self) -> int:
        return self.moved * self.distance

    @cached_property
    def _variance(self) -> Fraction:
        return self.moved * Fraction(self.scale) ** 2

    def _log_mass(self, s: Floats) -> Floats:
        log_p = -(s**2) / float(2 * self._variance) - self.moved * log_theta(self.scale, 0.0)
        if self.moved == 2:
            # Of z and z' with the sum s, z^2 + z'^2 = (s^2 + u^2) / 2 with u as even or odd as s.
            even, odd = (log_theta(self.scale / math.sqrt(2), shift) for shift in (0.0, 0.5))
            log_p += np.where(s % 2 == 0, even, odd)
        return log_p

    def _sum(self, crossing: Fraction) -> float:
        """Sum over the s beyond the crossing, where L exceeds ε, as far as they matter."""
        t, rate = math.sqrt(self._variance), float(self._shift / self._variance)
        reach = math.ceil(_REACH * t) + 1
        first = math.floor(crossing) + 1
        start = max(first, -reach)
        last = max(start, 0) + reach
        if last > 2**53:  # the noise that is needed has no probability left
            return 0.0
        s = np.arange(start, last, dtype=np.float64)
        excess = -np.expm1(-(float(start - crossing) + np.arange(s.size)) * rate)
        below = self._tail(reach) if first < start else 0.0
        return float(np.sum(np.exp(self._log_mass(s)) * excess)) + self._tail(last) + below

    def _tail(self, first: int) -> float:
        """A bound on the probability of `first > 0` and beyond, among even and among odd s."""
        nearest = np.exp(self._log_mass(np.array([first, first + 1], dtype=np.float64)))
        return float(nearest.sum()) * (1 + float(self._variance) / first)

    def _integral(self, crossing: Fraction) -> float:
        """A sum of a function that rises to one peak and falls is at most its integral and the
        peak.
        """
        t = math.sqrt(self._variance)
        a, mu = float(crossing) / t, float(self._shift) / t
        # P above a, and exp(epsilon) Q; the two densities are equal there.
        upper, lower = ndtr(-a), math.exp(-(a**2) / 2) * erfcx((a + mu) / math.sqrt(2)) / 2
        # The function is at most the density, and at most that times mu (x - a), largest at:
        at = (a + math.sqrt(a**2 + 4)) / 2
        peak = min(math.exp(-(max(a, 0.0) ** 2) / 2), math.exp(-(at**2) / 2) * mu * (at - a))
        integral = min(upper - lower + upper * _CANCELLED, mu * _expected_excess(a))
        return float(integral + peak / (t * math.sqrt(2 * math.pi)))


def _expected_excess(a: float) -> float:
    """`E[(X - a)+]` of a standard normal X. As `1 - exp(-y) <= y`, it bounds the integral with
    nothing cancelled where mu is small.
    """
    density, root = math.exp(-(a**2) / 2), math.sqrt(2 * math.pi)
    if a > 0:
        return float(density * (1 / root - a * erfcx(a / math.sqrt(2)) / 2))
    return float(density / root - a * ndtr(-a))
