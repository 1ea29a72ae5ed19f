"""The exact privacy loss of a mechanism and its profile, certified: the worst over all pairs of
neighbours, from their probabilities.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from opendp_bayes.accounting import enumeration, two_categories
from opendp_bayes.accounting.divergences import (
    FINE_ORDERS_LESS_ONE,
    Pairs,
    concentrated,
    extremes,
    hockey_stick,
)
from opendp_bayes.accounting.noise import (
    NoisePairs,
    knorm_error,
    knorm_step,
    laplace_error,
    laplace_shift,
)
from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.validation import SCALES, Floats, as_distance, as_prior, as_size
from opendp_bayes.mechanisms.exponential import PosteriorExponential
from opendp_bayes.mechanisms.hellinger_exponential import HellingerExponential
from opendp_bayes.mechanisms.knorm_parameters import KNormParameters
from opendp_bayes.mechanisms.laplace_parameters import LaplaceParameters
from opendp_bayes.mechanisms.permute_and_flip import LAW_ERROR, PermuteAndFlip
from opendp_bayes.mechanisms.privacy_loss import NO_LOSS, PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.smooth_hellinger_exponential import SmoothHellingerExponential

#: Where a privacy map comes from: the probabilities themselves where that is feasible, or the
#: closed form that is proved.
Accounting = Literal["exact", "proven"]
#: Probabilities to compare, above which constructors and the calibration use the proven bound: a
#: second or two.
FEASIBLE_WORK = 20_000_000
#: Above this `exact_loss` uses it too.
LARGEST_WORK = 10_000_000_000
#: Up to this many, the Rényi divergences of neighbours are computed; beyond, the range alone bounds
#: the concentrated loss.
_RENYI_WORK = 2_000_000
#: Groups of records are examined as long as the work for all of them is below this, and there are
#: at most so many records in them.
_GROUP_WORK = 5_000_000
_LARGEST_GROUP = 8
_LARGEST_SHIFT = 256  # of Laplace noise, in records, whose profile is computed
_EXPONENTIAL: tuple[type, ...] = (HellingerExponential, SmoothHellingerExponential)
#: Exactly these: a subclass, or a mechanism from elsewhere, may have another law than its `log_pmf`
#: says.
_ACCOUNTED: tuple[type, ...] = (*_EXPONENTIAL, PermuteAndFlip, LaplaceParameters, KNormParameters)
_ROUNDING = 1 + Fraction(1, 2**32)  # of a sum of at most 2^20 positive terms


@dataclass(frozen=True)
class WorstPair:
    """Two data sets at the distance in question whose outputs have the largest log-ratio of
    probabilities, and that log-ratio, not rounded.
    """

    first: tuple[int, ...]
    second: tuple[int, ...]
    epsilon: float


def exact_loss(
    mechanism: Mechanism, *, size: int | None, prior: ArrayLike, d_in: int = 1
) -> PrivacyLoss:
    """Certified upper bounds on the privacy loss of a mechanism, from its probabilities for every
    pair of data sets at distance `d_in`.

    Parameters
    ----------
    mechanism : a mechanism value.
    size : the public number of records, or None where it is private.
    prior : the prior concentration, shape `(k,)`.
    d_in : records changed, or added and removed.

    `method` of the result says how it was obtained: `"exact"`; `"windowed"`, where outcomes too far
    away to differ were lumped together; or `"proven"`, the closed-form bound, where there are too
    many probabilities or the mechanism is not one that can be accounted for exactly. Groups of
    records beyond the largest that is examined are bounded by the sum over smaller groups.

    Raises `ValueError`/`TypeError` for arguments that are not valid or do not fit the mechanism.

    Source: `docs/proofs.md`, "Exact accounting".

    >>> from opendp_bayes import SmoothHellingerExponential, exact_loss
    >>> loss = exact_loss(SmoothHellingerExponential(scale=4.0), size=100, prior=[1.0, 1.0])
    >>> round(loss.epsilon, 4), loss.method
    (0.3999, 'windowed')
    """
    size, prior, d_in = checked(mechanism, size, prior, d_in)
    return _loss(mechanism, size, prior, d_in, LARGEST_WORK, True)


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
    """What the constructors use: `exact_loss` where it takes at most a few seconds, otherwise the
    proven bound.

    With `delta > 0`, `epsilon` and `delta` of the result hold together. Without `renyi`, `rho`
    follows from the range alone, which takes less time.
    """
    size, prior, d_in = checked(mechanism, size, prior, d_in)
    if accounting == "proven" or not is_accounted(mechanism):
        return mechanism.proven_loss(d_in, size=size, prior=np.array(prior), delta=delta)
    loss = _loss(mechanism, size, prior, d_in, FEASIBLE_WORK, renyi)
    if not delta or d_in == 0:
        return loss
    epsilon = PrivacyProfile(mechanism, size, prior, d_in).epsilon(delta)
    proven = mechanism.proven_loss(d_in, size=size, prior=np.array(prior), delta=delta)
    if proven.epsilon < epsilon:
        return replace(loss, epsilon=proven.epsilon, delta=proven.delta, method=proven.method)
    return loss if epsilon >= loss.epsilon else replace(loss, epsilon=epsilon, delta=delta)


def privacy_profile(
    mechanism: Mechanism, *, size: int | None, prior: ArrayLike, d_in: int = 1
) -> "PrivacyProfile":
    """The privacy profile of a mechanism: a function from ε to a certified δ such that the release
    is (ε, δ)-private; arguments of `exact_loss`.

    >>> from opendp_bayes import HellingerExponential, privacy_profile
    >>> profile = privacy_profile(HellingerExponential(scale=0.5), size=10, prior=[1.0, 1.0])
    >>> round(profile(0.25), 4), round(profile.epsilon(0.1), 4)
    (0.1505, 0.5101)
    """
    size, prior, d_in = checked(mechanism, size, prior, d_in)
    return PrivacyProfile(mechanism, size, prior, d_in)


@dataclass(frozen=True)
class PrivacyProfile:
    """`profile(epsilon)` is a certified δ, `profile.epsilon(delta)` a certified ε; `loss` holds the
    pure bounds. Made by `privacy_profile`.
    """

    mechanism: Mechanism
    size: int | None
    prior: tuple[float, ...]
    d_in: int

    @property
    def loss(self) -> PrivacyLoss:
        """The bounds without δ: beyond `loss.epsilon` the profile is zero."""
        return _loss(self.mechanism, self.size, self.prior, self.d_in, FEASIBLE_WORK, False)

    @property
    def method(self) -> str:
        """How δ is obtained: `"exact"` or `"windowed"`, or `"proven"` where it follows from the
        bounds in `loss` alone.
        """
        return "proven" if self._pairs is None else self._pairs[0].method

    def __call__(self, epsilon: ArrayLike) -> float | Floats:
        """δ at one ε >= 0, or at an array of them, of the same shape. Raises `ValueError` for a
        negative or undefined ε.
        """
        epsilons = np.asarray(epsilon, dtype=np.float64)
        if np.any(np.isnan(epsilons)) or np.any(epsilons < 0):
            raise ValueError(f"epsilon={epsilon!r}: must be at least 0.")
        deltas = np.array([_delta(self, float(value)) for value in epsilons.ravel()]).reshape(
            epsilons.shape
        )
        return float(deltas) if deltas.ndim == 0 else deltas

    def epsilon(self, delta: float) -> float:
        """An ε, the smallest up to 1e-11 of `loss.epsilon`, whose δ is at most `delta`, from 0 to
        1; infinite if there is none.
        """
        if not 0 <= delta <= 1:
            raise ValueError(f"delta={delta!r}: must be between 0 and 1.")
        largest = self.loss.epsilon
        if delta == 0 or _delta(self, 0.0) <= delta:
            return largest if delta == 0 else 0.0
        if not math.isfinite(largest):
            return math.inf

        def excess(epsilon: float) -> float:
            return math.log(max(_delta(self, epsilon), 1e-320)) - math.log(delta)

        low = largest  # where the profile is zero or small; the root is bracketed by 0 and this
        if excess(low) > 0:
            return largest
        step = 1e-11 * largest
        epsilon = float(brentq(excess, 0.0, low, xtol=step, rtol=1e-13, maxiter=200))
        while _delta(self, epsilon) > delta:
            epsilon = min(epsilon + step, largest)
        return epsilon

    @property
    def _pairs(self) -> list[Pairs] | None:
        return _all_pairs(self.mechanism, self.size, self.prior, self.d_in)


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


def _delta_of(pairs: Pairs, epsilon: float) -> float:
    """Errors of at most e in the log-probabilities: `P <= exp(e) P'` and `ln P/Q <= ln P'/Q' + 2
    e`, so `delta <= exp(e) delta'(epsilon - 2 e)`.
    """
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


def is_accounted(mechanism: Mechanism) -> bool:
    """Whether the loss of the mechanism can be computed; otherwise its `proven_loss` is all there
    is.
    """
    return type(mechanism) in _ACCOUNTED


def worst_pair(mechanism: Mechanism, *, size: int, prior: ArrayLike) -> WorstPair | None:
    """Neighbours with the largest exact ε, or None where the loss is not computed from the
    probabilities of pairs of data sets.
    """
    _, concentration, _ = checked(mechanism, size, prior, 1)
    pairs = _pairs(mechanism, size, concentration, 1, LARGEST_WORK)
    if pairs is None or isinstance(pairs, NoisePairs):
        return None
    return _examine(mechanism, size, concentration, 1, False).worst


def checked(
    mechanism: Mechanism, size: int | None, prior: ArrayLike, d_in: int
) -> tuple[int | None, tuple[float, ...], int]:
    """The arguments, validated, in a hashable form."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"mechanism={mechanism!r}: must be a mechanism value, such as"
            " LaplaceParameters(scale=1.0)."
        )
    if type(mechanism).__hash__ is None:
        raise TypeError(
            f"mechanism={mechanism!r}: must be hashable; give its class @dataclass(frozen=True)."
        )
    array = as_prior(prior)
    size = None if size is None else as_size(size)
    replace(mechanism, scale=SCALES[0]).check(
        size=size, prior=array
    )  # a loss may be asked for at a scale that no release should use
    return size, tuple(array.tolist()), as_distance(d_in)


@dataclass(frozen=True)
class _Findings:
    epsilon: float
    range: float
    rho: float
    worst: WorstPair | None


@lru_cache(maxsize=1024)
def _loss(
    mechanism: Mechanism,
    size: int | None,
    prior: tuple[float, ...],
    d_in: int,
    largest_work: int,
    renyi: bool,
) -> PrivacyLoss:
    if size is not None:
        d_in = min(d_in, size)  # no two data sets are further apart
    if d_in == 0:
        return NO_LOSS
    proven = mechanism.proven_loss(d_in, size=size, prior=np.array(prior))
    first = _pairs(mechanism, size, prior, 1, largest_work)
    if first is None:
        return proven
    if isinstance(first, NoisePairs):
        return _loss_of_noise(
            proven, _pairs(mechanism, size, prior, d_in, largest_work) if renyi else None
        )
    public = cast(int, size)  # only additive noise can have a private one
    group = min(d_in, _largest_group(public, prior))
    renyi = renyi and _work(public, prior) <= _RENYI_WORK
    found = [
        _examine(mechanism, public, prior, distance, renyi and distance == 1)
        for distance in range(1, group + 1)
    ]
    number, rest = divmod(d_in, group)
    epsilon = min(_repeated([f.epsilon for f in found], number, rest), proven.epsilon)
    spread = min(_repeated([f.range for f in found], number, rest), proven.range)
    # The square root of a concentrated loss satisfies the triangle inequality, as the other two do.
    steps = round_up(d_in**2 * Fraction(found[0].rho))
    rho = min(steps, round_up(Fraction(spread) ** 2 / 8), proven.rho)
    return PrivacyLoss(epsilon=min(epsilon, spread), range=spread, rho=rho, method=first.method)


def _repeated(values: Sequence[float], number: int, rest: int) -> float:
    """`number` times the largest value, plus the largest up to the rest: the triangle inequality
    over intermediate data sets.
    """
    return round_up(number * Fraction(max(values)) + (Fraction(max(values[:rest])) if rest else 0))


def _loss_of_noise(proven: PrivacyLoss, pairs: Pairs | None) -> PrivacyLoss:
    """The closed forms of ε and of the range are attained; ρ is the supremum of Rényi divergences,
    which add over independent coordinates.
    """
    if not isinstance(pairs, NoisePairs):
        return replace(proven, method="exact")
    one = NoisePairs(pairs.law, pairs.log_error)
    block = next(one.blocks())
    rho = pairs.copies * float(
        np.max(concentrated(block, one.log_error, extremes(block)[1], FINE_ORDERS_LESS_ONE))
    )
    return replace(proven, rho=min(proven.rho, rho), method="exact")


@lru_cache(maxsize=1024)
def _examine(
    mechanism: Mechanism, size: int, prior: tuple[float, ...], distance: int, renyi: bool
) -> _Findings:
    """The largest losses over all pairs at exactly this distance."""
    pairs = cast(Pairs, _pairs(mechanism, size, prior, distance, LARGEST_WORK))
    epsilon, spread, rho, worst = 0.0, 0.0, 0.0, None
    for block in pairs.blocks():
        smallest, largest = extremes(block)
        losses = np.maximum(largest, -smallest)
        at = int(np.argmax(losses))
        if worst is None or losses[at] > epsilon:
            epsilon = float(losses[at])
            worst = WorstPair(
                tuple(block.first[at].tolist()), tuple(block.second[at].tolist()), epsilon
            )
        spread = max(spread, float(np.max(largest - smallest)))
        if renyi and (np.max(largest - smallest) + 4 * pairs.log_error) ** 2 / 8 > rho:
            rho = max(rho, float(np.max(concentrated(block, pairs.log_error, losses))))
    error = Fraction(pairs.log_error)
    certified_range = round_up(Fraction(spread) + 4 * error)
    of_range = round_up(Fraction(certified_range) ** 2 / 8)
    return _Findings(
        epsilon=round_up(Fraction(epsilon) + 2 * error),
        range=certified_range,
        rho=min(rho, of_range) if renyi else of_range,
        worst=worst,
    )


def _all_pairs(
    mechanism: Mechanism, size: int | None, prior: tuple[float, ...], d_in: int
) -> list[Pairs] | None:
    """The pairs for every distance up to `d_in`, or None if they cannot all be examined."""
    if size is not None:
        d_in = min(d_in, size)
    first = _pairs(mechanism, size, prior, d_in, FEASIBLE_WORK)
    if first is None or d_in == 0:
        return None
    if isinstance(first, NoisePairs):
        return [first]  # the largest distance is the worst
    if d_in > _largest_group(cast(int, size), prior):
        return None
    found = [
        _pairs(mechanism, size, prior, distance, FEASIBLE_WORK) for distance in range(1, d_in + 1)
    ]
    return [pairs for pairs in found if pairs is not None]


def _work(size: int, prior: tuple[float, ...], distance: int = 1) -> int:
    return (
        two_categories.work(size, (prior[0], prior[1]))
        if len(prior) == 2
        else enumeration.work(size, prior, distance)
    )


def _largest_group(size: int, prior: tuple[float, ...]) -> int:
    """The largest distance for which all pairs are examined, from 1 to `_LARGEST_GROUP`."""
    group, total = 1, _work(size, prior)
    while (
        group < _LARGEST_GROUP and (total := total + _work(size, prior, group + 1)) <= _GROUP_WORK
    ):
        group += 1
    return group


@lru_cache(maxsize=256)
def _pairs(
    mechanism: Mechanism,
    size: int | None,
    prior: tuple[float, ...],
    distance: int,
    largest_work: int,
) -> Pairs | None:
    """The pairs to examine for data sets at exactly this distance, or None where only the proven
    bound is to be had.
    """
    k = len(prior)
    if type(mechanism) is LaplaceParameters:
        moved = 1 if size is None or (mechanism.total == "remainder" and k == 2) else 2
        if distance > _LARGEST_SHIFT:
            return None
        error = moved * laplace_error(distance, mechanism.scale)
        return NoisePairs(
            laplace_shift(distance, mechanism.scale, mechanism.noise), error, copies=moved
        )
    if type(mechanism) is KNormParameters:
        return (
            NoisePairs(knorm_step(k, mechanism.scale), knorm_error(k, mechanism.scale))
            if distance == 1
            else None
        )
    kind: type = type(mechanism)
    if kind is PermuteAndFlip and size is not None:
        if enumeration.work(size, prior, distance) > largest_work:
            return None
        return enumeration.EnumeratedPairs(
            mechanism, size, prior, distance, LAW_ERROR + 2.0**-50 / mechanism.scale
        )
    if size is None or not isinstance(mechanism, PosteriorExponential) or kind not in _EXPONENTIAL:
        return None
    if _work(size, prior, distance) > largest_work:
        return None
    error = mechanism.log_error(size, np.array(prior))
    if k == 2:
        two = (prior[0], prior[1])
        widths = mechanism._widths(size, np.array(prior))
        symmetric = prior[0] == prior[1]
        # Tabulated distances have a larger error than the sampler's, and sums over a window that of
        # so many roundings.
        tabulated = 2 * float(np.max(1 / widths)) * 2 * two_categories.TABLE_ERROR + 2.0**-51 * (
            size + 2
        )
        return two_categories.TwoCategoryPairs(
            size, two, widths, distance, error + tabulated, symmetric
        )
    return enumeration.EnumeratedPairs(mechanism, size, prior, distance, error)
