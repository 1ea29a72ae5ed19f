r"""Discrete Gaussian noise: the privacy profile of the worst neighbours, certified.

Counts that move by d each, j of them, have the log-ratio `L(s) = D (2 s + D) / (2 t^2)` at the sum
s of their noise, with `D = j d` and `t^2 = j scale^2`. The law of the sum is `P(s) ∝ exp(-s^2 / (2
t^2))` times a weight that depends on s modulo j alone (`docs/research/proofs.md`, "Gaussian
noise").
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from opendp_bayes.accounting.divergences import delta_from_rho
from opendp_bayes.mathematics.log_space import log_sum_exp
from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.integer_noise import log_theta
from opendp_bayes.mechanisms.neighbours import Distance

#: Up to this t sums are taken term by term; beyond, δ follows from ρ.
_LARGEST_TABLE = 1e5
#: Noise beyond this many t adds less than exp(-40) of a sum, which is bounded and added.
_REACH = 9.0
#: From this scale on the weights of all remainders are the same, but for a part of less than 2^-53
#: for each count.
_ALIKE = 2.0
#: Of more counts the remainders of a narrow law are not told apart.
_MOST_APART = 128
#: More than what is lost in numbers too small for a float.
_UNDERFLOW = Fraction(1, 2**1000)


@dataclass(frozen=True)
class GaussianPair:
    """`moved` counts with noise of `scale` each, that move by `distance` each. Those of `worst`
    have no smaller δ at any ε than any neighbours.
    """

    scale: float
    distance: int
    moved: int
    method: str = "exact"

    @classmethod
    def worst(cls, scale: float, distance: Distance, moved: int) -> "GaussianPair":
        """A pair at least as bad as all moves within a distance, up and down where `moved` is 2, or
        in any directions (`docs/research/proofs.md`, "Moves of several counts").
        """
        records, largest = distance.records, distance.largest
        # Counts of which no two can be put together.
        number = max(1, (records + (largest % 2 == 0)) // (largest // 2 + 1))
        if _is_narrow(scale, moved * number) or number * largest**2 >= records**2:
            number, largest = 1, records
        pair = cls(scale, largest, moved * number)
        is_exact = number * largest == records and pair._variance <= _LARGEST_TABLE**2
        return replace(pair, method="exact" if is_exact else "proven")

    @classmethod
    def of(cls, scale: float, distance: int, moved: int) -> "GaussianPair":
        """The pair, or of many counts with narrow noise one that dominates it."""
        if _is_narrow(scale, moved):
            return cls(scale, distance * moved, 1)
        return cls(scale, distance, moved)

    @np.errstate(under="ignore")
    def delta(self, epsilon: float) -> float:
        """A certified upper bound on `E[(1 - exp(epsilon - L))+]`, for any epsilon."""
        if self._variance > _LARGEST_TABLE**2:
            return delta_from_rho(round_up(self._shift**2 / (2 * self._variance)), epsilon)
        crossing = Fraction(epsilon) * self._variance / self._shift - Fraction(self._shift) / 2
        of_weights = 2.0**-52 if self.scale >= _ALIKE else 2.0**-44  # relative, for each count
        value = Fraction(self._sum(crossing)) * (1 + Fraction(self.moved * of_weights))
        return min(1.0, round_up(value + _UNDERFLOW))

    @np.errstate(under="ignore")
    def tail(self, first: int) -> tuple[Fraction, Fraction]:
        """Enclose the probability that the noise of one count is at least `first`."""
        if first <= 0:
            low, high = self.tail(1 - first)
            return 1 - high, 1 - low
        last = first + math.ceil(_REACH * self.scale) + 1
        single = GaussianPair(self.scale, 1, 1)
        log_p = single._log_mass(np.arange(first, last, dtype=np.float64))
        value, error = _summed(log_p, 1.0)
        low, high = Fraction(value) - Fraction(error), Fraction(value) + Fraction(error)
        return max(low, Fraction(0)), high + Fraction(single._tail(last)) + _UNDERFLOW

    @property
    def _shift(self) -> int:
        return self.moved * self.distance

    @cached_property
    def _variance(self) -> Fraction:
        return self.moved * Fraction(self.scale) ** 2

    @property
    def _log_weights(self) -> Floats:
        """`ln P(s) + s^2 / (2 t^2)` by the remainder of s modulo `moved`, or for all alike."""
        if self.scale >= _ALIKE or self.moved == 1:
            return np.array([-log_theta(self.scale * math.sqrt(self.moved), 0.0)])
        return _log_weights(self.scale, self.moved)

    def _log_mass(self, s: Floats) -> Floats:
        weights = self._log_weights
        log_weight = weights[np.mod(s, weights.size).astype(np.int64)]
        return np.asarray(log_weight - s**2 / float(2 * self._variance))

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
        return sum(_summed(self._log_mass(s), excess)) + self._tail(last) + below

    def _tail(self, first: int) -> float:
        """A bound on the probability of `first > 0` and beyond, with every remainder apart."""
        nearest = first + np.arange(self._log_weights.size, dtype=np.float64)
        return float(np.exp(self._log_mass(nearest)).sum()) * (1 + float(self._variance) / first)


def _is_narrow(scale: float, moved: int) -> bool:
    """True if the remainders of so many counts are too many to tell apart."""
    return scale < _ALIKE and moved > _MOST_APART


@lru_cache(maxsize=1024)
def _log_weights(scale: float, moved: int) -> Floats:
    """`GaussianPair._log_weights` of a narrow law: of one count more, the exponents of the others'
    sum and of its own noise are a square around the part of s that is its own.
    """
    log_one = log_theta(scale, 0.0)
    if moved == 1:
        return np.array([-log_one])
    reach = math.ceil(_REACH * scale) + 2
    z, r = np.arange(-reach, reach + 1), np.arange(moved)[:, None]
    apart = -(((z - r / moved) / scale) ** 2) * moved / (2 * (moved - 1))
    others = _log_weights(scale, moved - 1)[(r - z) % (moved - 1)]
    return log_sum_exp(apart + others, axis=1) - log_one


def _summed(log_p: Floats, factors: Floats | float) -> tuple[float, float]:
    """The sum of `exp(log_p) factors`, and a bound on its error: of an addition for each term, and
    of a few dozen roundings of each exponent and factor.
    """
    terms = np.exp(log_p) * factors
    roundings = terms.size + 16 * (8 - log_p)
    return float(np.sum(terms)), float(np.sum(terms * roundings)) * 2.0**-53
