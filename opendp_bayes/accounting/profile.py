"""The privacy profile of a mechanism, certified: δ at every ε, from the probabilities of pairs; and
the loss that constructors and calibrations use, with or without δ.
"""

import math
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from opendp_bayes.accounting.divergences import Pairs, hockey_stick
from opendp_bayes.accounting.exact import (
    FEASIBLE_WORK,
    all_pairs,
    checked,
    is_accounted,
    loss_within,
)
from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.validation import Floats
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism

#: Where a privacy map comes from: the probabilities themselves where that is feasible, or the
#: closed form that is proved.
Accounting = Literal["exact", "proven"]
#: Of a sum of at most 2^20 positive terms.
_ROUNDING = 1 + Fraction(1, 2**32)


def feasible_loss(
    mechanism: Mechanism,
    *,
    size: int | None,
    prior: ArrayLike,
    d_in: int,
    delta: float = 0.0,
    accounting: Accounting = "exact",
    renyi: bool = True,
) -> PrivacyLoss:
    """Return the loss that the constructors use: `exact_loss` where it takes at most a few seconds,
    otherwise the proven bound.

    With `delta > 0`, `epsilon` and `delta` of the result hold together. Without `renyi`, `rho`
    follows from the range alone, which takes less time.
    """
    mechanism, size, prior, d_in = checked(mechanism, size, prior, d_in)
    if accounting == "proven" or not is_accounted(mechanism):
        return mechanism.proven_loss(d_in, size=size, prior=np.array(prior), delta=delta)
    loss = loss_within(mechanism, size, prior, d_in, FEASIBLE_WORK, renyi)
    if not delta or d_in == 0:
        return replace(loss)  # a value that nobody can change for others
    epsilon = PrivacyProfile(mechanism, size, prior, d_in).epsilon(delta)
    proven = mechanism.proven_loss(d_in, size=size, prior=np.array(prior), delta=delta)
    if proven.epsilon < epsilon:
        return replace(loss, epsilon=proven.epsilon, delta=proven.delta, method=proven.method)
    if epsilon >= loss.epsilon:
        return replace(loss)
    return replace(loss, epsilon=epsilon, delta=delta)


def privacy_profile(
    mechanism: Mechanism, *, size: int | None, prior: ArrayLike, d_in: int = 1
) -> "PrivacyProfile":
    """Return the privacy profile of a mechanism: a function from ε to a certified δ such that the
    release is (ε, δ)-private.

    Parameters
    ----------
    mechanism : a mechanism value.
    size : the public number of records, or None where it is private (add/remove neighbours).
    prior : the prior concentration, a positive number for every category, shape `(k,)`.
    d_in : records changed, or added and removed; a whole number of at least 0.

    Raises `ValueError`/`TypeError` for arguments that are not valid or do not fit the mechanism.

    >>> from opendp_bayes import HellingerExponential, privacy_profile
    >>> profile = privacy_profile(HellingerExponential(scale=0.5), size=10, prior=[1.0, 1.0])
    >>> round(profile(0.25), 4), round(profile.epsilon(0.1), 4)
    (0.1505, 0.5101)
    """
    mechanism, size, prior, d_in = checked(mechanism, size, prior, d_in)
    return PrivacyProfile(mechanism, size, prior, d_in)


@dataclass(frozen=True)
class PrivacyProfile:
    """`profile(epsilon)` is a certified δ, `profile.epsilon(delta)` a certified ε; `loss` holds the
    pure bounds. Made by `privacy_profile`.

    Attributes
    ----------
    mechanism, size, prior, d_in : what it is of.
    """

    mechanism: Mechanism
    size: int | None
    prior: tuple[float, ...]
    d_in: int

    @property
    def loss(self) -> PrivacyLoss:
        """The bounds without δ: beyond `loss.epsilon` the profile is zero."""
        own = deepcopy(self.mechanism)  # what caches keep, out of everybody's reach
        return replace(loss_within(own, self.size, self.prior, self.d_in, FEASIBLE_WORK, False))

    @property
    def method(self) -> str:
        """Method by which δ is obtained: `"exact"` or `"windowed"`, or `"proven"` where it follows
        from the bounds in `loss` alone.
        """
        return "proven" if self._pairs is None else self._pairs[0].method

    def __call__(self, epsilon: ArrayLike) -> float | Floats:
        """δ at one ε >= 0, or at an array of them, of the same shape. Raises `ValueError` for a
        negative or undefined ε.
        """
        epsilons = np.asarray(epsilon, dtype=np.float64)
        if np.any(np.isnan(epsilons)) or np.any(epsilons < 0):
            raise ValueError(f"epsilon={epsilon!r}: must be at least 0.")
        own = deepcopy(self)
        deltas = np.array([_delta(own, float(value)) for value in epsilons.ravel()])
        deltas = deltas.reshape(epsilons.shape)
        return float(deltas) if deltas.ndim == 0 else deltas

    def epsilon(self, delta: float) -> float:
        """An ε, the smallest up to 1e-11 of `loss.epsilon`, whose δ is at most `delta`, from 0 to
        1; infinite if there is none.
        """
        if not 0 <= delta <= 1:
            raise ValueError(f"delta={delta!r}: must be between 0 and 1.")
        own, largest = deepcopy(self), self._largest(delta)
        if delta == 0 or _delta(own, 0.0) <= delta:
            return largest if delta == 0 else 0.0
        if not math.isfinite(largest):
            return math.inf

        def excess(epsilon: float) -> float:
            return math.log(max(_delta(own, epsilon), 1e-320)) - math.log(delta)

        low = largest  # where the profile is zero or small; the root is bracketed by 0 and this
        if excess(low) > 0:
            return largest
        step = 1e-11 * largest
        epsilon = float(brentq(excess, 0.0, low, xtol=step, rtol=1e-13, maxiter=200))
        while _delta(own, epsilon) > delta:
            epsilon = min(epsilon + step, largest)
        return epsilon

    def _largest(self, delta: float) -> float:
        """An ε whose δ is at most `delta`, from the proven bounds; infinite if there is none."""
        if math.isfinite(self.loss.epsilon) or delta == 0:
            return self.loss.epsilon
        prior, size = np.array(self.prior), self.size
        d_in = self.d_in if size is None else min(self.d_in, size)
        proven = self.mechanism.proven_loss(d_in, size=size, prior=prior, delta=delta)
        return proven.epsilon if proven.delta <= delta else math.inf

    @property
    def _pairs(self) -> list[Pairs | GaussianPair] | None:
        return all_pairs(deepcopy(self.mechanism), self.size, self.prior, self.d_in)


@lru_cache(maxsize=4096)
def _delta(profile: PrivacyProfile, epsilon: float) -> float:
    loss = profile.loss
    if profile.d_in == 0 or epsilon >= loss.epsilon:
        return 0.0
    bound = delta_from_bounds(loss, epsilon)
    if profile._pairs is None:
        return bound
    exact = max(_delta_of(pairs, epsilon) for pairs in profile._pairs)
    return min(bound, exact)


def _delta_of(pairs: Pairs | GaussianPair, epsilon: float) -> float:
    """Errors of at most e in the log-probabilities: `P <= exp(e) P'` and `ln P/Q <= ln P'/Q' + 2
    e`, so `delta <= exp(e) delta'(epsilon - 2 e)`.
    """
    if isinstance(pairs, GaussianPair):
        return pairs.delta(epsilon)
    error = pairs.log_error
    if error > 100:  # nothing is known of the probabilities
        return 1.0
    largest = max(
        float(np.max(hockey_stick(block, epsilon - 2 * error))) for block in pairs.blocks()
    )
    return min(
        1.0,
        round_up(
            Fraction(largest) * Fraction(math.exp(2 * error)) * _ROUNDING + Fraction(1, 2**1000)
        ),
    )


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
