"""The exact privacy loss of a mechanism and its profile, certified: the worst over all pairs of
neighbours, from their probabilities.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.accounting import large_simplex
from opendp_bayes.accounting.divergences import (
    FINE_ORDERS_LESS_ONE,
    Pairs,
    WorstPair,
    concentrated,
    extremes,
    largest_concentrated,
)
from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.accounting.noise import NoisePairs
from opendp_bayes.accounting.pairs import Setting, pairs_of
from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import SCALES, as_distance, as_prior, as_size
from opendp_bayes.mechanisms import registry
from opendp_bayes.mechanisms.laws import ExponentialWeights
from opendp_bayes.mechanisms.privacy_loss import NO_LOSS, PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism, law_of

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


#: One pair that stands for all neighbours.
WORST_OF_NOISE = (NoisePairs, GaussianPair)

M = TypeVar("M", bound=Mechanism)


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
    mechanism, size, prior, d_in = checked(mechanism, size, prior, d_in)
    found = loss_within(mechanism, size, prior, d_in, LARGEST_WORK, True)
    return replace(found)  # a value that nobody can change for others


def is_accounted(mechanism: Mechanism) -> bool:
    """True if the loss of the mechanism can be computed, as for every mechanism built in; of any
    other only its `proven_loss` is known.
    """
    return type(mechanism) in registry.BUILT_IN


def worst_pair(mechanism: Mechanism, *, size: int, prior: ArrayLike) -> WorstPair | None:
    """Neighbours with the largest exact ε, or None where the loss is not computed from the
    probabilities of pairs of data sets.
    """
    return next(iter(bad_pairs(mechanism, size=size, prior=prior)), None)


def bad_pairs(mechanism: Mechanism, *, size: int, prior: ArrayLike) -> tuple[WorstPair, ...]:
    """Neighbours with the largest exact ε, and where there are many candidates some of the next
    worst, unlike each other; empty where `worst_pair` is None.
    """
    mechanism, _, concentration, _ = checked(mechanism, size, prior, 1)
    pairs = _pairs(mechanism, size, concentration, 1, LARGEST_WORK)
    if pairs is None or isinstance(pairs, WORST_OF_NOISE):
        return ()
    return _examine(mechanism, size, concentration, 1, False).worst


def checked(
    mechanism: M, size: int | None, prior: ArrayLike, d_in: int
) -> tuple[M, int | None, tuple[float, ...], int]:
    """The arguments, validated, in a hashable form; the mechanism as a copy, which the caches of
    losses keep and nobody else can change.
    """
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"mechanism={told(mechanism)}: must be a mechanism value, such as"
            " LaplaceParameters(scale=1.0)."
        )
    if type(mechanism).__hash__ is None:
        raise TypeError(
            f"mechanism={told(mechanism)}: must be hashable; give its class"
            " @dataclass(frozen=True)."
        )
    array = as_prior(prior)
    size = None if size is None else as_size(size)
    # A loss may be asked for at a scale that no release should use.
    replace(mechanism, scale=SCALES[0]).check(size=size, prior=array)
    return deepcopy(mechanism), size, tuple(array.tolist()), as_distance(d_in)


@dataclass(frozen=True)
class _Findings:
    epsilon: float
    range: float
    rho: float
    worst: tuple[WorstPair, ...]


@lru_cache(maxsize=1024)
def loss_within(
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
    if isinstance(first, WORST_OF_NOISE):
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


def _loss_of_noise(proven: PrivacyLoss, pairs: Pairs | GaussianPair | None) -> PrivacyLoss:
    """The closed forms of ε and of the range are attained; ρ is the supremum of Rényi divergences,
    which add over independent coordinates. The closed form of ρ of Gaussian noise is attained too.
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
    if not renyi and distance == 1 and _work(size, prior) > _RENYI_WORK:
        law = law_of(mechanism, size, np.array(prior))
        if isinstance(law, ExponentialWeights) and len(prior) > 2:
            return _examine_large(law, size, prior, pairs.log_error)
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
        if renyi:
            rho = largest_concentrated(block, pairs.log_error, rho)
    error = Fraction(pairs.log_error)
    certified_range = round_up(Fraction(spread) + 4 * error)
    of_range = round_up(Fraction(certified_range) ** 2 / 8)
    return _Findings(
        epsilon=round_up(Fraction(epsilon) + 2 * error),
        range=certified_range,
        rho=min(rho, of_range) if renyi else of_range,
        worst=() if worst is None else (worst,),
    )


def _examine_large(
    law: ExponentialWeights, size: int, prior: tuple[float, ...], log_error: float
) -> _Findings:
    """Bound the losses at distance 1 by the worst pair of a search, where comparing all candidates
    for all pairs would take too long.
    """
    found = large_simplex.worst_pair(law, size, prior)
    error = Fraction(log_error) + Fraction(large_simplex.SUM_ERROR)
    spread = round_up(Fraction(found.spread) + 4 * error)
    return _Findings(
        epsilon=round_up(Fraction(found.pairs[0].epsilon) + 2 * error),
        range=spread,
        rho=round_up(Fraction(spread) ** 2 / 8),
        worst=found.pairs,
    )


def all_pairs(
    mechanism: Mechanism, size: int | None, prior: tuple[float, ...], d_in: int
) -> list[Pairs | GaussianPair] | None:
    """The pairs for every distance up to `d_in`, or None if they cannot all be examined."""
    if size is not None:
        d_in = min(d_in, size)
    first = _pairs(mechanism, size, prior, d_in, FEASIBLE_WORK)
    if first is None or d_in == 0:
        return None
    if isinstance(first, WORST_OF_NOISE):
        return [first]  # the largest distance is the worst
    if d_in > _largest_group(cast(int, size), prior):
        return None
    found = [
        _pairs(mechanism, size, prior, distance, FEASIBLE_WORK) for distance in range(1, d_in + 1)
    ]
    return [pairs for pairs in found if pairs is not None]


def _work(size: int, prior: tuple[float, ...], distance: int = 1) -> int:
    return Setting(size, prior, distance).work()


def _largest_group(size: int, prior: tuple[float, ...]) -> int:
    """The largest distance for which all pairs are examined, from 1 to `_LARGEST_GROUP`."""
    group, total = 1, _work(size, prior)
    while (
        group < _LARGEST_GROUP and (total := total + _work(size, prior, group + 1)) <= _GROUP_WORK
    ):
        group += 1
    return group


def _pairs(
    mechanism: Mechanism,
    size: int | None,
    prior: tuple[float, ...],
    distance: int,
    largest_work: int,
) -> Pairs | GaussianPair | None:
    """The pairs to examine for data sets at exactly this distance, or None where only the proven
    bound is to be had.
    """
    law = law_of(mechanism, size, np.array(prior)) if is_accounted(mechanism) else None
    return None if law is None else pairs_of(law, Setting(size, prior, distance), largest_work)
