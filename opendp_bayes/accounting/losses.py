"""The privacy loss of a mechanism at a distance, certified: from its own probabilities for the
worst pairs where that is feasible, otherwise the bound that is proved; with δ, the privacy profile.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, SupportsIndex, cast

import numpy as np
import scipy
from numpy.typing import ArrayLike

from opendp_bayes.accounting.divergences import (
    FINE_ORDERS_LESS_ONE,
    ROUNDING,
    WorstPair,
    concentrated,
    delta_from_rho,
    extremes,
    hockey_stick,
    largest_concentrated,
)
from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.accounting.noise import NoisePairs
from opendp_bayes.accounting.pairs import (
    FEASIBLE_WORK,
    Pairs,
    all_pairs,
    largest_group,
    pairs_of,
    work_of,
)
from opendp_bayes.mathematics.rounding import round_up, sqrt_up
from opendp_bayes.mathematics.validation import Floats, as_number, as_numbers
from opendp_bayes.mechanisms.laws import AdditiveNoise
from opendp_bayes.mechanisms.neighbours import ONE_RECORD, Distance
from opendp_bayes.mechanisms.privacy_loss import NO_LOSS, PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.setting import Setting

#: Where a privacy map comes from: the probabilities themselves where that is feasible, or the
#: closed form that is proved.
Accounting = Literal["exact", "proven"]
#: Probabilities to compare, above which `exact_loss` uses the proven bound.
LARGEST_WORK = 10_000_000_000
#: Up to this many, the Rényi divergences of neighbours are computed; beyond, the range alone bounds
#: the concentrated loss.
_RENYI_WORK = 2_000_000


def loss_of(
    setting: Setting,
    d_in: SupportsIndex | Distance,
    *,
    delta: float = 0.0,
    accounting: Accounting = "exact",
    renyi: bool = True,
    largest_work: int = FEASIBLE_WORK,
) -> PrivacyLoss:
    """Return the loss of a setting at a distance, which maps state, Contexts debit and calibrations
    compare: computed where that takes at most so much work, otherwise the proven bound.

    With `delta > 0`, `epsilon` and `delta` of the result hold together, where `delta` makes the
    ε smaller. Without `renyi`, `rho` follows from the range alone, which takes less time.
    """
    distance, exact = Distance.of(d_in), accounting == "exact"
    if exact:
        distance = distance.within(setting.size)  # no two data sets are further apart
    loss = (
        _loss_of_pairs(setting, distance, largest_work, renyi)
        if exact and setting.is_accounted
        else setting.proven_loss(distance)
    )
    if delta and distance.records and not (exact and setting.spends_no_delta):
        proven = setting.proven_loss(distance, delta)
        epsilon = curve_of(setting, distance, accounting).epsilon(delta)
        if epsilon < min(loss.epsilon, proven.epsilon):
            return replace(loss, epsilon=epsilon, delta=delta)
        if proven.epsilon < loss.epsilon or math.isinf(loss.epsilon):
            return replace(loss, epsilon=proven.epsilon, delta=proven.delta, method=proven.method)
    return replace(loss)  # a value that nobody can change for others


def exact_loss(
    mechanism: Mechanism, *, size: int | None, prior: ArrayLike, d_in: int | Distance = 1
) -> PrivacyLoss:
    """Certified upper bounds on the privacy loss of a mechanism, from its probabilities for every
    pair of data sets at distance `d_in`.

    `method` of the result says how it was obtained: `"exact"`; `"windowed"`, where outcomes too far
    away to differ were lumped together; or `"proven"`, the closed-form bound, where there are too
    many probabilities or the mechanism is not one that can be accounted for exactly. Groups of
    records beyond the largest that is examined are bounded by the sum over smaller groups.

    Source: `docs/research/proofs.md`, "Exact accounting".

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism value.
    size : int or None
        The public number of records, or None where it is private.
    prior : array_like
        The prior concentration, shape `(k,)`.
    d_in : int or Distance, default 1
        Records changed, or added and removed; or a `Distance` of the counts.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid or do not fit the mechanism.

    Examples
    --------
    >>> from opendp_bayes import exact_loss
    >>> from opendp_bayes.mechanisms import SmoothHellingerExponential
    >>> loss = exact_loss(SmoothHellingerExponential(scale=4.0), size=100, prior=[1.0, 1.0])
    >>> round(loss.epsilon, 4), loss.method
    (0.3999, 'windowed')
    """
    setting = Setting.of(mechanism, size, prior)
    return loss_of(setting, d_in, largest_work=LARGEST_WORK)


def worst_pair(setting: Setting) -> WorstPair | None:
    """Neighbours with the largest exact ε, or None where the loss is not computed from the
    probabilities of pairs of data sets.
    """
    pairs = pairs_of(setting, ONE_RECORD, LARGEST_WORK)
    if pairs is None or setting.adds_noise:
        return None
    return _examine(setting, 1, False)[1]


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
    return PrivacyProfile(curve_of(Setting.of(mechanism, size, prior), Distance.of(d_in)))


@dataclass(frozen=True)
class PrivacyProfile:
    """`profile(epsilon)` is a certified δ, `profile.epsilon(delta)` a certified ε; `loss` holds the
    pure bounds. Made by `privacy_profile`.
    """

    _curve: "Curve"

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
        deltas = np.vectorize(self._curve.delta, otypes=[np.float64])(epsilons)
        return float(deltas) if deltas.ndim == 0 else deltas

    def epsilon(self, delta: float) -> float:
        """An ε, the smallest up to a part of 1e-11 of itself, whose δ is at most `delta`, from 0 to
        1; infinite if there is none.
        """
        delta = as_number(delta, "delta")
        if not 0 <= delta <= 1:
            raise ValueError(f"delta={delta!r}: must be between 0 and 1.")
        return self._curve.epsilon(delta)


@dataclass(frozen=True, eq=False)
class Curve:
    """The profile of a setting at a distance, which is asked once: the bounds without δ, and the
    pairs of distributions that δ is computed from, None where it follows from the bounds alone.
    """

    setting: Setting
    distance: Distance
    loss: PrivacyLoss
    pairs: list[Pairs | GaussianPair] | None = field(repr=False)

    @lru_cache(maxsize=4096)  # noqa: B019 - of a curve that `curve_of` keeps
    def delta(self, epsilon: float) -> float:
        """A certified δ at one ε."""
        if self.distance.records == 0 or epsilon >= self.loss.epsilon:
            return 0.0
        bound = min(delta_from_bounds(self.loss, epsilon), delta_from_rho(self.loss.rho, epsilon))
        if self.pairs is None:
            return bound
        return min(bound, max(_delta_of(pairs, epsilon) for pairs in self.pairs))

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
def curve_of(setting: Setting, distance: Distance, accounting: Accounting = "exact") -> Curve:
    """The curve of a setting at a distance."""
    loss = loss_of(setting, distance, accounting=accounting, renyi=False)
    pairs = all_pairs(setting, distance) if accounting == "exact" else None
    return Curve(setting, distance, loss, pairs)


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
    scaled = Fraction(largest) * Fraction(math.exp(2 * error)) * ROUNDING
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
        return min(1.0, pure * float(ROUNDING))
    spread = math.exp(loss.range / 2) * -math.expm1((epsilon - loss.range) / 2)
    return min(1.0, min(pure, spread**2 / math.expm1(loss.range)) * float(ROUNDING))


# --- Without δ, from pairs of distributions


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")  # how numpy treats it is no matter of the caller's
def _loss_of_pairs(
    setting: Setting, distance: Distance, largest_work: int, renyi: bool
) -> PrivacyLoss:
    """Bound the loss without δ as `exact_loss` says, within so much work; without `renyi`, ρ
    follows from the range.
    """
    d_in = distance.records
    if d_in == 0:
        return NO_LOSS
    proven = setting.proven_loss(distance)
    first = pairs_of(setting, ONE_RECORD, largest_work)
    if first is None:
        return proven
    if setting.adds_noise:
        return _loss_of_noise(proven, setting, distance, largest_work, renyi)
    group = min(d_in, largest_group(setting))
    renyi = renyi and work_of(setting.size, setting.prior) <= _RENYI_WORK
    losses = [_examine(setting, distance, renyi)[0] for distance in range(1, group + 1)]
    number, remainder = divmod(d_in, group)
    epsilon = min(_repeated([f.epsilon for f in losses], number, remainder), proven.epsilon)
    spread = min(_repeated([f.range for f in losses], number, remainder), proven.range)
    rho = max(f.rho for f in losses)
    if d_in > group:  # its square root satisfies the triangle inequality, as the other two do
        roots = [sqrt_up(Fraction(f.rho)) for f in losses]
        rho = round_up(Fraction(_repeated(roots, number, remainder)) ** 2)
    rho = min(rho, round_up(Fraction(spread) ** 2 / 8), proven.rho)
    return PrivacyLoss(epsilon=min(epsilon, spread), range=spread, rho=rho, method=first.method)


def _repeated(values: Sequence[float], number: int, remainder: int) -> float:
    """`number` times the largest value, plus the largest up to the rest: the triangle inequality
    over intermediate data sets.
    """
    return round_up(
        number * Fraction(max(values)) + (Fraction(max(values[:remainder])) if remainder else 0)
    )


def _loss_of_noise(
    proven: PrivacyLoss, setting: Setting, distance: Distance, largest_work: int, renyi: bool
) -> PrivacyLoss:
    """The closed forms of ε and of the range are attained; ρ is the supremum of Rényi divergences,
    which add over independent coordinates. The closed form of ρ of Gaussian noise is attained too.
    Laplace noise has the largest ρ where the records are in as few counts as can be
    (`docs/research/proofs.md`, "Moves of several counts").
    """
    pieces = distance.pieces if isinstance(setting.law, AdditiveNoise) else ((distance.records, 1),)
    pairs_of_pieces = [pairs_of(setting, Distance.of(moved), largest_work) for moved, _ in pieces]
    if None in pairs_of_pieces:
        return proven
    if not renyi or any(isinstance(pairs, GaussianPair) for pairs in pairs_of_pieces):
        return replace(proven, method="exact")
    parts = [
        number * Fraction(_concentrated_of(cast(NoisePairs, pairs)))
        for (_, number), pairs in zip(pieces, pairs_of_pieces, strict=True)
    ]
    return replace(proven, rho=min(proven.rho, round_up(sum(parts, Fraction(0)))), method="exact")


def _concentrated_of(pairs: NoisePairs) -> float:
    """ρ of independent coordinates that move alike."""
    block = next(replace(pairs, copies=1).blocks())
    largest = concentrated(block, pairs.log_error, extremes(block)[1], FINE_ORDERS_LESS_ONE)
    return pairs.copies * float(np.max(largest))


@lru_cache(maxsize=1024)
def _examine(setting: Setting, distance: int, renyi: bool) -> tuple[PrivacyLoss, WorstPair]:
    """The largest losses over all pairs at exactly this distance, and the worst pair."""
    pairs = cast(Pairs, pairs_of(setting, Distance.of(distance), LARGEST_WORK))
    error, worst = Fraction(pairs.log_error), WorstPair((), (), -1.0)
    spread = rho = 0.0
    for block in pairs.blocks():
        smallest, largest = extremes(block)
        losses = np.maximum(largest, -smallest)
        at = int(np.argmax(losses))
        if losses[at] > worst.epsilon:
            first, second = tuple(block.first[at].tolist()), tuple(block.second[at].tolist())
            worst = WorstPair(first, second, float(losses[at]))
        spread = max(spread, float(np.max(largest - smallest)))
        if renyi:
            rho = largest_concentrated(block, pairs.log_error, rho)
    certified_range = round_up(Fraction(spread) + 4 * error)
    by_range = round_up(Fraction(certified_range) ** 2 / 8)
    loss = PrivacyLoss(
        epsilon=round_up(Fraction(worst.epsilon) + 2 * error),
        range=certified_range,
        rho=min(rho, by_range) if renyi else by_range,
    )
    return loss, worst
