"""Privacy loss of keys that nobody listed, for people and for records (`docs/research/proofs.md`,
"Keys that nobody listed").
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from opendp_bayes.accounting.divergences import delta_from_rho
from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.accounting.losses import least_epsilon
from opendp_bayes.mathematics.rounding import round_up, sum_up
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_number
from opendp_bayes.mechanisms.integer_noise import DiscreteGaussian, DiscreteLaplace
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import NO_BOUND, NO_LOSS, PrivacyLoss
from opendp_bayes.unlisted.threshold_pairs import (
    ONE,
    chance_to_show,
    group_delta,
    hidden,
    power,
    scaled_up,
)
from opendp_bayes.unlisted.threshold_profile import MOST_KEYS, delta_in_any_directions
from opendp_bayes.unlisted.thresholds import (
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
    RestNoise,
    Threshold,
)


def loss_of_discovery(
    discovery: Discovery, d_in: int | Distance, *, concentrated: bool, delta: float = 0.0
) -> PrivacyLoss:
    """Return a certified privacy loss of keys that are discovered, which never falls with `d_in`.

    Proofs: `docs/research/proofs.md`, "Keys that nobody listed" and "Approximate concentrated
    privacy".

    Parameters
    ----------
    discovery : Discovery
        The threshold law, and the noise of what is hidden.
    d_in : int or Distance
        How far the counts of all keys move, in any directions: a whole number of records in all, or
        a `Distance`. Of one person who is counted once in each of m keys it is `Distance.limited(m,
        largest=1)`.
    concentrated : bool
        Whether the loss is (ρ, δ) of approximate zero-concentrated privacy, which the Gaussian law
        has, or (ε, δ).
    delta : float, default 0.0
        Of the Gaussian law under (ε, δ), at which ε is found; infinite where no ε has it. The other
        laws have a δ of their own.

    Raises
    ------
    ValueError, TypeError
        For arguments that are not valid.
    """
    distance = Distance.of(d_in)
    if not 0 <= as_number(delta, "delta") <= 1:
        raise ValueError(f"delta={told(delta)}: must be between 0 and 1.")
    return _loss(discovery, distance, concentrated, delta) if distance.records else NO_LOSS


@lru_cache(maxsize=4096)
def _loss(
    discovery: Discovery, distance: Distance, concentrated: bool, delta: float
) -> PrivacyLoss:
    law = discovery.law
    if isinstance(law, GaussianThreshold):
        loss_of_law = _gaussian_loss(law, distance, concentrated, delta)
    elif concentrated:
        return NO_BOUND
    elif isinstance(law, LaplaceThreshold):
        loss_of_law = _of_several(1 / Fraction(law.scale), chance_to_show(law, 1), distance)
    else:
        assert isinstance(law, OptimalThreshold)  # noqa: S101 (there is no other)
        return _optimal_loss(discovery, law, distance)
    if discovery.rest is None:
        return loss_of_law
    epsilon, rho = _losses_of_one_number(discovery.rest, distance.records)
    return replace(
        loss_of_law,
        epsilon=sum_up((loss_of_law.epsilon, epsilon)),
        rho=sum_up((loss_of_law.rho, rho)),
    )


def _losses_of_one_number(noise: RestNoise, records: int) -> tuple[float, float]:
    """The ε and the ρ of a noised number that moves by so many records."""
    moved = records / Fraction(noise.scale)
    epsilon = round_up(moved) if isinstance(noise, DiscreteLaplace) else math.inf
    return epsilon, round_up(moved**2 / 2)


def _optimal_loss(discovery: Discovery, law: OptimalThreshold, distance: Distance) -> PrivacyLoss:
    """The loss of the optimal law. A hidden key is a part of the rest, and one that is shown is
    none (`docs/research/proofs.md`, "What the hidden keys hold together").
    """
    noise = discovery.rest
    if isinstance(noise, DiscreteGaussian):
        return NO_BOUND
    of_rest = Fraction(0) if noise is None else 1 / Fraction(noise.scale)
    epsilon = max(Fraction(law.epsilon), Fraction(law.decay) + of_rest)
    return _of_several(epsilon, Fraction(law.delta), distance)


def _of_several(epsilon: Fraction, delta: Fraction, distance: Distance) -> PrivacyLoss:
    """The loss of several records, where that of one is (ε, δ)."""
    total = delta_of_several(epsilon, delta, distance)
    return PrivacyLoss(round_up(distance.records * epsilon), math.inf, math.inf, delta=total)


def delta_of_several(epsilon: Fraction, delta: Fraction, distance: Distance) -> float:
    """An upper bound on the δ that goes with ε for each record, where one record has (ε, δ): of
    independent keys, and of the records in a key one after the other (`docs/research/proofs.md`,
    "Records without a person").
    """
    records, largest = distance.records, distance.largest
    if largest == 1:
        return round_up(Fraction(ONE - power(ONE - scaled_up(delta), records), ONE))
    of_keys = Fraction(records, largest) * group_delta(epsilon, delta, largest)
    return round_up(min(of_keys, group_delta(epsilon, delta, records), Fraction(1)))


def _gaussian_loss(
    law: GaussianThreshold, distance: Distance, concentrated: bool, delta: float
) -> PrivacyLoss:
    new = new_shown(law, distance)
    if concentrated:
        rho = round_up(distance.squared / (2 * Fraction(law.scale) ** 2))
        return PrivacyLoss(math.inf, rho, math.inf, delta=round_up(new))
    epsilon = math.inf
    if new < delta:
        epsilon = _root(lambda epsilon: gaussian_delta(law, epsilon, distance), delta)
    method = "exact" if distance.largest == 1 and distance.records <= MOST_KEYS else "proven"
    return PrivacyLoss(epsilon, math.inf, math.inf, delta=delta, method=method)


@lru_cache(maxsize=4096)
def new_shown(law: Threshold, distance: Distance) -> Fraction:
    """An upper bound on the probability that a new key is shown, of as many as there can be."""
    return Fraction(ONE - _least_hidden(law, distance.records, distance.largest), ONE)


def gaussian_delta(law: GaussianThreshold, epsilon: float, distance: Distance) -> float:
    """A certified δ at ε.

    Of keys that move by one record it is the exact one, up to `MOST_KEYS` keys; of others that a
    new key is shown, and else that of all counts that move.
    """
    if distance.largest == 1:
        return delta_in_any_directions(law, epsilon, distance.records)
    new = new_shown(law, distance)
    rho = round_up(distance.squared / (2 * Fraction(law.scale) ** 2))
    moving = GaussianPair.worst(law.scale, distance, 1).delta(epsilon)
    moving = min(moving, delta_from_rho(rho, epsilon))
    return round_up(new + (1 - new) * Fraction(moving))


def _least_hidden(law: Threshold, records: int, largest: int) -> int:
    """A lower bound on the probability that no new key is shown, however so many records are
    divided among new keys, each with at most the `largest` number of them; in units.
    """
    if records > MOST_KEYS or largest == 1:
        return hidden(law, largest, records)
    alone = [ONE - scaled_up(chance_to_show(law, s)) for s in range(1, largest + 1)]
    least = [ONE]
    for total in range(1, records + 1):
        most = min(total, largest)
        least.append(min(alone[s - 1] * least[total - s] // ONE for s in range(1, most + 1)))
    return least[-1]


def _root(profile: Callable[[float], float], delta: float) -> float:
    """The least ε, about, whose profile is at most `delta`; infinite if there is none."""
    if profile(0.0) <= delta:
        return 0.0
    high = 1.0
    while profile(high) > delta:
        high *= 2
        if high > 2.0**40:
            return math.inf
    return least_epsilon(profile, delta, high)
