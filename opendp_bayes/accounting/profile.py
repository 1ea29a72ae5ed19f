"""The privacy profile of a mechanism, certified: δ at every ε, from the probabilities of pairs; and
the loss that constructors and calibrations use, with or without δ.
"""

import math
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike

from opendp_bayes.accounting.divergences import Pairs, hockey_stick
from opendp_bayes.accounting.exact import loss_within
from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.accounting.pairs import FEASIBLE_WORK, all_pairs
from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.validation import Floats, as_number, as_numbers
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.setting import Setting

#: Where a privacy map comes from: the probabilities themselves where that is feasible, or the
#: closed form that is proved.
Accounting = Literal["exact", "proven"]
#: Of a sum of at most 2^20 positive terms.
_ROUNDING = 1 + Fraction(1, 2**32)


def feasible_loss(
    setting: Setting,
    *,
    d_in: int | Distance,
    delta: float = 0.0,
    accounting: Accounting = "exact",
    renyi: bool = True,
) -> PrivacyLoss:
    """Return the loss that the constructors use: `exact_loss` where it takes at most a few seconds,
    otherwise the proven bound.

    With `delta > 0`, `epsilon` and `delta` of the result hold together; it is the loss that a
    calibration to both compares; without a δ for a mechanism that `spends_no_delta`. Without
    `renyi`, `rho` follows from the range alone, which takes less time.
    """
    exact, distance = accounting == "exact" and setting.is_accounted, Distance.of(d_in)
    loss = (
        loss_within(setting, distance, FEASIBLE_WORK, renyi)
        if exact
        else setting.proven_loss(distance)
    )
    if not delta or distance.records == 0 or (exact and spends_no_delta(setting, distance, delta)):
        return replace(loss)  # a value that nobody can change for others
    proven = setting.proven_loss(distance, delta)
    found = (
        curve_of(setting, distance).epsilon(delta) if exact else epsilon_from_bounds(loss, delta)
    )
    if found < min(loss.epsilon, proven.epsilon):
        return replace(loss, epsilon=found, delta=delta)
    if proven.epsilon < loss.epsilon or math.isinf(loss.epsilon):
        return replace(loss, epsilon=proven.epsilon, delta=proven.delta, method=proven.method)
    return replace(loss)


def spends_no_delta(setting: Setting, distance: Distance, delta: float) -> bool:
    """True for an exponential mechanism whose proven bound is the same with δ: the exact profile at
    1e-6 would change the fifth digit of its ε, in a minute.
    """
    if setting.adds_noise:
        return False
    return setting.proven_loss(distance, delta).epsilon == setting.proven_loss(distance).epsilon


def privacy_profile(
    mechanism: Mechanism, *, size: int | None, prior: ArrayLike, d_in: int | Distance = 1
) -> "PrivacyProfile":
    """Return the privacy profile of a mechanism: a function from ε to a certified δ such that the
    release is (ε, δ)-private.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism value.
    size : int or None
        The public number of records, or None where it is private (add/remove neighbours).
    prior : array_like
        The prior concentration, a positive number for every category, shape `(k,)`.
    d_in : int or Distance, default 1
        Records changed, or added and removed, a whole number of at least 0; or a `Distance` of the
        counts.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid or do not fit the mechanism.

    Examples
    --------
    >>> from opendp_bayes import privacy_profile
    >>> from opendp_bayes.mechanisms import HellingerExponential
    >>> profile = privacy_profile(HellingerExponential(scale=0.5), size=10, prior=[1.0, 1.0])
    >>> round(profile(0.25), 4), round(profile.epsilon(0.1), 4)
    (0.1505, 0.5101)
    """
    setting = Setting.of(mechanism, size, prior)
    distance = Distance.of(d_in).stated
    return PrivacyProfile(setting.mechanism, setting.size, setting.prior, distance)


@dataclass(frozen=True)
class PrivacyProfile:
    """`profile(epsilon)` is a certified δ, `profile.epsilon(delta)` a certified ε; `loss` holds the
    pure bounds. Made by `privacy_profile`.

    Attributes
    ----------
    mechanism, size, prior, d_in : Mechanism, int or None, tuple, int or Distance
        What it is of.
    """

    mechanism: Mechanism
    size: int | None
    prior: tuple[float, ...]
    d_in: int | Distance

    @property
    def loss(self) -> PrivacyLoss:
        """The bounds without δ: beyond `loss.epsilon` the profile is zero."""
        return replace(self._curve.loss)

    @property
    def method(self) -> str:
        """Method by which δ is obtained: `"exact"` or `"windowed"`, or `"proven"` where it follows
        from the bounds in `loss` alone.
        """
        pairs = self._curve.pairs
        return "proven" if pairs is None else pairs[0].method

    def __call__(self, epsilon: ArrayLike) -> float | Floats:
        """δ at one ε >= 0, or at an array of them, of the same shape. Raises `ValueError` for a
        negative or undefined ε.
        """
        epsilons = as_numbers(epsilon, "epsilon")
        if np.any(np.isnan(epsilons)) or np.any(epsilons < 0):
            raise ValueError(f"epsilon={epsilon!r}: must be at least 0.")
        curve = self._curve
        deltas = np.array([curve.delta(float(value)) for value in epsilons.ravel()])
        deltas = deltas.reshape(epsilons.shape)
        return float(deltas) if deltas.ndim == 0 else deltas

    def epsilon(self, delta: float) -> float:
        """An ε, the smallest up to a part of 1e-11 of itself, whose δ is at most `delta`, from 0 to
        1; infinite if there is none.
        """
        delta = as_number(delta, "delta")
        if not 0 <= delta <= 1:
            raise ValueError(f"delta={delta!r}: must be between 0 and 1.")
        return self._curve.epsilon(delta)

    @property
    def _curve(self) -> "Curve":
        """The curve of a setting that caches keep, out of everybody's reach."""
        setting = Setting(deepcopy(self.mechanism), self.size, self.prior)
        return curve_of(setting, Distance.of(self.d_in))


@dataclass(frozen=True, eq=False)
class Curve:
    """The profile of a setting at a distance, which is asked once: the bounds without δ, and the
    pairs of distributions that δ is computed from, None where it follows from the bounds alone.
    """

    setting: Setting
    distance: Distance
    loss: PrivacyLoss
    pairs: list[Pairs | GaussianPair] | None

    @lru_cache(maxsize=4096)  # noqa: B019 - of a curve that `curve_of` keeps
    def delta(self, epsilon: float) -> float:
        """A certified δ at one ε."""
        if self.distance.records == 0 or epsilon >= self.loss.epsilon:
            return 0.0
        bound = min(delta_from_bounds(self.loss, epsilon), delta_from_rho(self.loss.rho, epsilon))
        if self.pairs is None:
            return bound
        return min(bound, max(_delta_of(one, epsilon) for one in self.pairs))

    def epsilon(self, delta: float) -> float:
        """An ε whose δ is at most `delta`, as `PrivacyProfile.epsilon` says."""
        largest = self.loss.epsilon
        if delta == 0:
            return largest
        if self.delta(0.0) <= delta:
            return 0.0
        if math.isinf(largest):
            distance = self.distance.within(self.setting.size)
            proven = self.setting.proven_loss(distance, delta)
            largest = proven.epsilon if proven.delta <= delta else math.inf
        if math.isinf(largest) or self.delta(largest) > delta:
            return largest
        return least_epsilon(self.delta, delta, largest)


def least_epsilon(profile: Callable[[float], float], delta: float, largest: float) -> float:
    """An ε, the least up to a part of 1e-11 of itself, whose profile is at most `delta`, as it is
    at `largest`, but not at 0.
    """

    def excess(epsilon: float) -> float:
        # What is within `delta` is on the far side of the root: near 1 a profile is flat in floats.
        value = profile(epsilon)
        logarithm = math.log(max(value, 1e-320)) - math.log(delta)
        return logarithm if value > delta else min(logarithm, -(2.0**-53))

    if excess(largest) > 0:  # `delta` is below the least that the excess tells from 0
        return largest
    # Relative to the root itself: a small ε may have been asked for, and is to be met.
    epsilon = float(
        scipy.optimize.brentq(
            excess, 0.0, largest, xtol=sys.float_info.min, rtol=1e-12, maxiter=200, disp=False
        )
    )
    step = max(1e-11 * epsilon, math.ulp(0.0))
    while profile(epsilon) > delta:
        epsilon, step = min(epsilon + step, largest), 2 * step
    return epsilon


@lru_cache(maxsize=256)
def curve_of(setting: Setting, distance: Distance) -> Curve:
    """The curve of a setting at a distance."""
    loss = loss_within(setting, distance, FEASIBLE_WORK, False)
    return Curve(setting, distance, loss, all_pairs(setting, distance))


def _delta_of(pairs: Pairs | GaussianPair, epsilon: float) -> float:
    """Errors of at most e in the log-probabilities: `P <= exp(e) P'` and `ln P/Q <= ln P'/Q' + 2
    e`, so `delta <= exp(e) delta'(epsilon - 2 e)`.
    """
    if isinstance(pairs, GaussianPair):
        return pairs.delta(epsilon)
    error = pairs.log_error
    if error > 100:  # nothing is known of the probabilities
        return 1.0
    largest = max(float(hockey_stick(block, epsilon - 2 * error).max()) for block in pairs.blocks())
    scaled = Fraction(largest) * Fraction(math.exp(2 * error)) * _ROUNDING
    return min(1.0, round_up(scaled + Fraction(1, 2**1000)))


def delta_from_bounds(loss: PrivacyLoss, epsilon: float) -> float:
    """δ from the bounds on ε and on the range alone: of randomized response, and of the worst law
    with that range.
    """
    if loss.epsilon == math.inf:
        return 1.0
    if epsilon >= loss.epsilon:
        return 0.0
    pure = -math.expm1(epsilon - loss.epsilon) / (1 + math.exp(-loss.epsilon))
    if loss.range > 700 or epsilon >= loss.range:
        return min(1.0, pure * float(_ROUNDING))
    spread = math.exp(loss.range / 2) * -math.expm1((epsilon - loss.range) / 2)
    return min(1.0, min(pure, spread**2 / math.expm1(loss.range)) * float(_ROUNDING))


def delta_from_rho(rho: float, epsilon: float) -> float:
    """δ from the bound on ρ alone: `e^((α - 1) (α ρ - ε)) (1 - 1/α)^α / (α - 1)`, at about the best
    order α of all, each of which gives a bound (Canonne, Kamath and Steinke, Proposition 12).
    """
    if not 0 < rho < math.inf:
        return float(rho > 0)
    low, high = 1.01, (epsilon + 1) / (2 * rho) + 2
    while high - low > 2.0**-20 * high:  # the logarithm of the bound is convex in the order
        middle = (low + high) / 2
        slope = (2 * middle - 1) * rho - epsilon + math.log1p(-1 / middle)
        low, high = (middle, high) if slope < 0 else (low, middle)
    log_delta = (high - 1) * (high * rho - epsilon) + high * math.log1p(-1 / high)
    log_delta -= math.log(high - 1)
    return 1.0 if log_delta >= 0 else math.exp(log_delta) * float(_ROUNDING) + 2.0**-1000


def epsilon_from_bounds(loss: PrivacyLoss, delta: float) -> float:
    """The smallest ε, up to a part of 1e-11 of itself, whose `delta_from_bounds` is at most
    `delta`; infinite if there is none.
    """
    if math.isinf(loss.epsilon):
        return math.inf
    if delta_from_bounds(loss, 0.0) <= delta:
        return 0.0
    low, high = 0.0, loss.epsilon
    while high - low > 1e-11 * high and low < (middle := low + (high - low) / 2) < high:
        low, high = (low, middle) if delta_from_bounds(loss, middle) <= delta else (middle, high)
    return high
