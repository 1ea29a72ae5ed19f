"""Privacy loss of keys that nobody listed, for people and for records (`docs/research/proofs.md`,
"Keys that nobody listed").
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.accounting.profile import least_epsilon
from opendp_bayes.accounting.threshold_pairs import (
    ONE,
    chance_to_show,
    group_delta,
    hidden,
    power,
    scaled_up,
)
from opendp_bayes.accounting.threshold_profile import MOST_KEYS, delta_in_any_directions
from opendp_bayes.mathematics.rounding import round_up, sum_up
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mathematics.validation import as_choice, as_distance
from opendp_bayes.mechanisms.integer_noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    IntegerNoise,
)
from opendp_bayes.mechanisms.privacy_loss import NO_BOUND, NO_LOSS, PrivacyLoss
from opendp_bayes.mechanisms.thresholds import (
    Discovery,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
    Threshold,
)

#: Neighbours: `"people"`, so many keys' counts move by one record each; `"records"`, counts of any
#: keys move by so many records in all; both in any directions.
Moved = Literal["people", "records"]


def loss_of_discovery(
    discovery: Discovery, d_in: int, moved: Moved, *, concentrated: bool, delta: float = 0.0
) -> PrivacyLoss:
    """Return a certified privacy loss of keys that are discovered, which never falls with `d_in`.

    Parameters
    ----------
    discovery : the threshold law, and the noise of what is hidden and of counts within keys.
    d_in : whole number of at least 0.
    moved : `"people"`, where the counts of `d_in` keys move by one record each: those of one person
        who comes or goes, or the keys of before and after of one whose records are replaced; or
        `"records"`, where counts of any keys move by `d_in` records in all.
    concentrated : whether the loss is (ρ, δ) of approximate zero-concentrated privacy, which the
        Gaussian law has, or (ε, δ).
    delta : of the Gaussian law under (ε, δ), at which ε is found; infinite where no ε has it. The
        other laws have a δ of their own.

    Raises `ValueError`/`TypeError` for arguments that are not valid. Proofs:
    `docs/research/proofs.md`, "Keys that nobody listed" and "Approximate concentrated privacy".
    """
    d_in, moved = as_distance(d_in), as_choice(moved, "moved", ("people", "records"))
    if not 0 <= delta <= 1:
        raise ValueError(f"delta={told(delta)}: must be between 0 and 1.")
    if d_in == 0:
        return NO_LOSS
    moved = "people" if d_in == 1 else moved  # one record is in one key
    return _loss(discovery, d_in, moved, concentrated, delta)


@lru_cache(maxsize=4096)
def _loss(
    discovery: Discovery, d_in: int, moved: Moved, concentrated: bool, delta: float
) -> PrivacyLoss:
    law = discovery.law
    if isinstance(law, GaussianThreshold):
        one = _gaussian_loss(law, d_in, moved, concentrated, delta)
    elif concentrated:
        return NO_BOUND
    elif isinstance(law, LaplaceThreshold):
        one = _of_several(1 / Fraction(law.scale), chance_to_show(law, 1), d_in, moved)
    else:
        assert isinstance(law, OptimalThreshold)  # noqa: S101 (there is no other)
        return _optimal_loss(discovery, law, d_in, moved)
    for noise in (discovery.rest, discovery.within):
        if noise is not None:
            other = _noise_loss(noise, d_in)
            one = replace(
                one, epsilon=sum_up((one.epsilon, other.epsilon)), rho=sum_up((one.rho, other.rho))
            )
    return one


def _noise_loss(noise: IntegerNoise, d_in: int) -> PrivacyLoss:
    """The loss of noised numbers that move by `d_in` in all."""
    scale = Fraction(noise.scale)
    rho = round_up(Fraction(d_in**2) / (2 * scale**2))
    epsilon = round_up(d_in / scale) if isinstance(noise, DiscreteLaplace) else math.inf
    return PrivacyLoss(epsilon, rho, math.inf)


def _optimal_loss(
    discovery: Discovery, law: OptimalThreshold, d_in: int, moved: Moved
) -> PrivacyLoss:
    """The loss of the optimal law. A key that is shown has counts within, a hidden one is a part of
    the rest, and no key is both (`docs/research/proofs.md`, "What the hidden keys hold together,
    and what is counted within a key").
    """
    noises = (discovery.within, discovery.rest)
    if any(isinstance(noise, DiscreteGaussian) for noise in noises):
        return NO_BOUND
    of_within, of_rest = (Fraction(0) if one is None else 1 / Fraction(one.scale) for one in noises)
    epsilon = max(Fraction(law.epsilon) + of_within, Fraction(law.decay) + of_rest)
    return _of_several(epsilon, Fraction(law.delta), d_in, moved)


def _of_several(epsilon: Fraction, delta: Fraction, d_in: int, moved: Moved) -> PrivacyLoss:
    """The loss of d_in records, where that of one is (ε, δ)."""
    total = delta_of_several(epsilon, delta, d_in, moved)
    return PrivacyLoss(round_up(d_in * epsilon), math.inf, math.inf, delta=total)


def delta_of_several(epsilon: Fraction, delta: Fraction, d_in: int, moved: Moved) -> float:
    """An upper bound on the δ that goes with `d_in epsilon`, where one record has (ε, δ): of
    independent keys, or of records one after the other (`docs/research/proofs.md`, "Records without
    a person").
    """
    if moved == "records":
        return round_up(group_delta(epsilon, delta, d_in))
    return round_up(Fraction(ONE - power(ONE - scaled_up(delta), d_in), ONE))


def _gaussian_loss(
    law: GaussianThreshold, d_in: int, moved: Moved, concentrated: bool, delta: float
) -> PrivacyLoss:
    new = new_shown(law, d_in, moved)
    if concentrated:
        squared = d_in if moved == "people" else d_in**2
        rho = round_up(Fraction(squared) / (2 * Fraction(law.scale) ** 2))
        return PrivacyLoss(math.inf, rho, math.inf, delta=round_up(new))
    epsilon = math.inf
    if new < delta:
        epsilon = _root(lambda epsilon: gaussian_delta(law, epsilon, d_in, moved), delta)
    method = "exact" if moved == "people" and d_in <= MOST_KEYS else "proven"
    return PrivacyLoss(epsilon, math.inf, math.inf, delta=delta, method=method)


@lru_cache(maxsize=4096)
def new_shown(law: Threshold, d_in: int, moved: Moved) -> Fraction:
    """An upper bound on the probability that a new key is shown, of as many as there can be."""
    none = hidden(law, 1, d_in) if moved == "people" else _least_hidden(law, d_in)
    return Fraction(ONE - none, ONE)


def gaussian_delta(law: GaussianThreshold, epsilon: float, d_in: int, moved: Moved) -> float:
    """A certified δ at ε.

    Of people it is the exact one, up to `MOST_KEYS` keys; of records that a new key is shown, and
    else that of one count that moves by all of them.
    """
    if moved == "people":
        return delta_in_any_directions(law, epsilon, d_in)
    new = new_shown(law, d_in, moved)
    moving = GaussianPair(law.scale, d_in, 1).delta(epsilon)
    return round_up(new + (1 - new) * Fraction(moving))


def _least_hidden(law: Threshold, records: int) -> int:
    """A lower bound on the probability that no new key is shown, however so many records are
    divided among new keys; in units.
    """
    if records > MOST_KEYS:
        return hidden(law, records, records)
    alone = [ONE - scaled_up(chance_to_show(law, s)) for s in range(1, records + 1)]
    least = [ONE]
    for total in range(1, records + 1):
        least.append(min(alone[s - 1] * least[total - s] // ONE for s in range(1, total + 1)))
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
