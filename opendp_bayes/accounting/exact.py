"""The exact privacy loss of a mechanism and its profile, certified: the worst over all pairs of
neighbours, from their probabilities.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from opendp_bayes.accounting.divergences import (
    FINE_ORDERS_LESS_ONE,
    Pairs,
    WorstPair,
    concentrated,
    extremes,
    largest_concentrated,
)
from opendp_bayes.accounting.exponential import large_simplex
from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.accounting.noise import NoisePairs
from opendp_bayes.accounting.pairs import WORST_OF_NOISE, largest_group, pairs_of, work_of
from opendp_bayes.mathematics.rounding import round_up, sqrt_up
from opendp_bayes.mechanisms.laws import AdditiveNoise, ExponentialWeights
from opendp_bayes.mechanisms.neighbours import ONE_RECORD, Distance
from opendp_bayes.mechanisms.privacy_loss import NO_LOSS, PrivacyLoss
from opendp_bayes.mechanisms.protocol import Mechanism
from opendp_bayes.mechanisms.setting import Setting

#: Probabilities to compare, above which `exact_loss` uses the proven bound.
LARGEST_WORK = 10_000_000_000
#: Up to this many, the Rényi divergences of neighbours are computed; beyond, the range alone bounds
#: the concentrated loss.
_RENYI_WORK = 2_000_000


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
    found = loss_within(setting, Distance.of(d_in), LARGEST_WORK, True)
    return replace(found)  # a value that nobody can change for others


def worst_pair(setting: Setting) -> WorstPair | None:
    """Neighbours with the largest exact ε, or None where the loss is not computed from the
    probabilities of pairs of data sets.
    """
    return next(iter(bad_pairs(setting)), None)


def bad_pairs(setting: Setting) -> tuple[WorstPair, ...]:
    """Neighbours with the largest exact ε, and where there are many candidates some of the next
    worst, unlike each other; empty where `worst_pair` is None.
    """
    pairs = pairs_of(setting, ONE_RECORD, LARGEST_WORK)
    if pairs is None or isinstance(pairs, WORST_OF_NOISE):
        return ()
    return _examine(setting, 1, False)[1]


@lru_cache(maxsize=1024)
@np.errstate(under="ignore")  # how numpy treats it is no matter of the caller's
def loss_within(
    setting: Setting, distance: Distance, largest_work: int, renyi: bool
) -> PrivacyLoss:
    """Bound the loss as `exact_loss` does, within so much work; without `renyi`, ρ follows from the
    range.
    """
    distance = distance.within(setting.size)  # no two data sets are further apart
    d_in = distance.records
    if d_in == 0:
        return NO_LOSS
    proven = setting.proven_loss(distance)
    first = pairs_of(setting, ONE_RECORD, largest_work)
    if first is None:
        return proven
    if isinstance(first, WORST_OF_NOISE):
        return _loss_of_noise(proven, setting, distance, largest_work, renyi)
    group = min(d_in, largest_group(setting))
    renyi = renyi and work_of(setting.size, setting.prior) <= _RENYI_WORK
    found = [_examine(setting, distance, renyi)[0] for distance in range(1, group + 1)]
    number, rest = divmod(d_in, group)
    epsilon = min(_repeated([f.epsilon for f in found], number, rest), proven.epsilon)
    spread = min(_repeated([f.range for f in found], number, rest), proven.range)
    rho = max(f.rho for f in found)
    if d_in > group:  # its square root satisfies the triangle inequality, as the other two do
        roots = [sqrt_up(Fraction(f.rho)) for f in found]
        rho = round_up(Fraction(_repeated(roots, number, rest)) ** 2)
    rho = min(rho, round_up(Fraction(spread) ** 2 / 8), proven.rho)
    return PrivacyLoss(epsilon=min(epsilon, spread), range=spread, rho=rho, method=first.method)


def _repeated(values: Sequence[float], number: int, rest: int) -> float:
    """`number` times the largest value, plus the largest up to the rest: the triangle inequality
    over intermediate data sets.
    """
    return round_up(number * Fraction(max(values)) + (Fraction(max(values[:rest])) if rest else 0))


def _loss_of_noise(
    proven: PrivacyLoss, setting: Setting, distance: Distance, largest_work: int, renyi: bool
) -> PrivacyLoss:
    """The closed forms of ε and of the range are attained; ρ is the supremum of Rényi divergences,
    which add over independent coordinates. The closed form of ρ of Gaussian noise is attained too.
    Laplace noise has the largest ρ where the records are in as few counts as can be
    (`docs/research/proofs.md`, "Moves of several counts").
    """
    pieces = distance.pieces if isinstance(setting.law, AdditiveNoise) else ((distance.records, 1),)
    each = [pairs_of(setting, Distance.of(moved), largest_work) for moved, _ in pieces]
    if None in each:
        return proven
    if not renyi or any(isinstance(pairs, GaussianPair) for pairs in each):
        return replace(proven, method="exact")
    parts = [
        number * Fraction(_concentrated_of(cast(NoisePairs, pairs)))
        for (_, number), pairs in zip(pieces, each, strict=True)
    ]
    return replace(proven, rho=min(proven.rho, round_up(sum(parts, Fraction(0)))), method="exact")


def _concentrated_of(pairs: NoisePairs) -> float:
    """ρ of independent coordinates that move alike."""
    one = NoisePairs(pairs.law, pairs.log_error)
    block = next(one.blocks())
    of_one = concentrated(block, one.log_error, extremes(block)[1], FINE_ORDERS_LESS_ONE)
    return pairs.copies * float(np.max(of_one))


@lru_cache(maxsize=1024)
def _examine(
    setting: Setting, distance: int, renyi: bool
) -> tuple[PrivacyLoss, tuple[WorstPair, ...]]:
    """The largest losses over all pairs at exactly this distance, and the worst pairs."""
    pairs = cast(Pairs, pairs_of(setting, Distance.of(distance), LARGEST_WORK))
    size, prior, law = setting.size, setting.prior, setting.law
    error = Fraction(pairs.log_error)
    large = not renyi and distance == 1 and work_of(size, prior) > _RENYI_WORK
    if large and isinstance(law, ExponentialWeights) and len(prior) > 2:
        # Only additive noise can have a private number of records. Comparing all candidates for
        # all pairs would take too long.
        found = large_simplex.worst_pair(law, cast(int, size), prior)
        spread, worst, rho = found.spread, found.pairs, math.inf
        error += Fraction(large_simplex.SUM_ERROR)
    else:
        spread, worst, rho = _compared(pairs, renyi)
    certified_range = round_up(Fraction(spread) + 4 * error)
    loss = PrivacyLoss(
        epsilon=round_up(Fraction(worst[0].epsilon if worst else 0.0) + 2 * error),
        range=certified_range,
        rho=min(rho, round_up(Fraction(certified_range) ** 2 / 8)),
    )
    return loss, worst


def _compared(pairs: Pairs, renyi: bool) -> tuple[float, tuple[WorstPair, ...], float]:
    """The largest range of log-ratios, the worst pair, and with `renyi` the largest concentrated
    loss, of all pairs.
    """
    worst: WorstPair | None = None
    spread = rho = 0.0
    for block in pairs.blocks():
        smallest, largest = extremes(block)
        losses = np.maximum(largest, -smallest)
        at = int(np.argmax(losses))
        if worst is None or losses[at] > worst.epsilon:
            sets = tuple(block.first[at].tolist()), tuple(block.second[at].tolist())
            worst = WorstPair(*sets, float(losses[at]))
        spread = max(spread, float(np.max(largest - smallest)))
        if renyi:
            rho = largest_concentrated(block, pairs.log_error, rho)
    return spread, () if worst is None else (worst,), rho if renyi else math.inf
