"""Pairs of distributions that stand for the keys of one person, by the law of a threshold.

A key that nobody else holds is shown or is not: `chance_to_show` bounds how often. A key that
others hold moves by so many records, and `excess` bounds the divergence of several such keys
(`docs/research/proofs.md`, "Keys that nobody listed"). Numbers are whole multiples of `2^-POINT`,
rounded to the safe side.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from opendp_bayes.accounting.gaussian import GaussianPair
from opendp_bayes.mathematics.rounding import round_down
from opendp_bayes.samplers.inversion import exp_enclosure
from opendp_bayes.unlisted.thresholds import (
    BITS,
    FINE,
    GaussianThreshold,
    LaplaceThreshold,
    OptimalThreshold,
    Threshold,
)

POINT = 256
ONE = 1 << POINT
#: Losses of several keys together that are told apart.
MOST_OUTCOMES = 20_000
#: An ε beyond this is taken for it, which is on the safe side; the second where an error of 2^-107
#: at most grows by its exponential.
_LARGEST_EPSILON, _LARGEST_OF_ROUNDED = 1000, 40
#: Ratios that differ by a smaller part are taken for the smallest of them.
_CLOSE_BITS = 52
#: More than the error of a probability that is a difference of chances.
_UNKNOWN = 1 << POINT - 248

#: Masses under P, rounded up, and under P', rounded down, of outcomes of one loss each.
Outcomes = list[tuple[int, int]]


def scaled_up(value: Fraction) -> int:
    """The value in units of `2^-POINT`, rounded up."""
    return math.ceil(value * ONE)


def power(base: int, exponent: int) -> int:
    """The power of a number from 0 to 1, in units of `2^-POINT`, rounded down."""
    result = ONE
    while exponent:
        if exponent % 2:
            result = result * base >> POINT
        base, exponent = base * base >> POINT, exponent // 2
    return result


@lru_cache(maxsize=4096)
def chance_to_show(law: Threshold, records: int) -> Fraction:
    """An upper bound on the probability that a key of so many records is shown, at most 1."""
    if isinstance(law, OptimalThreshold):
        return Fraction(sum(law.weights[:records]), 1 << BITS)
    first = law.threshold - records
    if isinstance(law, GaussianThreshold):
        return min(GaussianPair(law.scale, 1, 1).tail(first)[1], Fraction(1))
    assert isinstance(law, LaplaceThreshold)  # noqa: S101 (there is no other)
    rate = 1 / Fraction(law.scale)
    least, most = exp_enclosure(rate, POINT)
    if first >= 0:
        return Fraction(exp_enclosure(first * rate, POINT)[1], ONE + least)
    return 1 - Fraction(exp_enclosure((1 - first) * rate, POINT)[0], ONE + most)


def hidden(law: Threshold, records: int, keys: int) -> int:
    """A lower bound on the probability that none of `keys` keys of `records` each is shown, in
    units of `2^-POINT`.
    """
    return power(ONE - scaled_up(chance_to_show(law, records)), keys)


def count_outcomes(law: Threshold, records: int, up: int, down: int) -> int:
    """Count the losses that `excess` tells apart, of `up` keys that rise and `down` that fall."""
    if isinstance(law, GaussianThreshold):
        return 1
    rising, falling = (len(_key(law, records, rises)[0]) for rises in (True, False))
    if isinstance(law, LaplaceThreshold):
        up, down = up + down, 0
    return math.comb(up + rising - 1, up) * math.comb(down + falling - 1, down)


def excess(
    law: Threshold, records: int, up: int, down: int, epsilon: float, keep: int, left: int
) -> Fraction:
    """An upper bound on `Σ (keep P - exp(epsilon) left P')+` of `up` keys that rise by `records`
    each and `down` that fall by as many; `keep` and `left` are from 1 to ONE, in units of
    `2^-POINT`.
    """
    if isinstance(law, GaussianThreshold):
        return Fraction(keep, ONE) * _gaussian_excess(
            law.scale, records, up + down, epsilon, keep, left
        )
    if isinstance(law, LaplaceThreshold):
        up, down = up + down, 0  # as bad in both directions
    never, never_falling = (_key(law, records, rises)[1] for rises in (True, False))
    rounding = 0
    if isinstance(law, OptimalThreshold) and records > 1:
        # A bound on the total variation between the two laws that `_bounds` tells apart.
        rounding = len(law.weights) << POINT - BITS + 1
    epsilon = min(epsilon, _LARGEST_OF_ROUNDED if rounding else _LARGEST_EPSILON)
    factor = exp_enclosure(-Fraction(epsilon), POINT)[0] * left >> POINT
    seen = power(ONE - never, up) * power(ONE - never_falling, down) >> POINT
    total = (ONE - seen) * keep + (up + down) * rounding * (keep + factor)
    downward = _together(law, records, False, down)
    for p, q in _together(law, records, True, up):
        for p_down, q_down in downward:
            both, neither = -(-p * p_down >> POINT), q * q_down >> POINT
            total += max(0, keep * both - factor * neither)
    return Fraction(total, ONE * ONE)


def _gaussian_excess(
    scale: float, records: int, keys: int, epsilon: float, keep: int, left: int
) -> Fraction:
    """δ at `epsilon + ln left - ln keep`, rounded down; without keys the loss is 0."""
    ratio = Fraction(left, keep)
    if not keys:
        growth = exp_enclosure(-Fraction(min(epsilon, _LARGEST_EPSILON)), POINT)[0]
        return max(Fraction(0), 1 - ratio * Fraction(growth, ONE))
    # Of a ratio near 1 the logarithm keeps its digits as that of one more.
    near = float(ratio - 1)
    log_ratio = math.log1p(near) if abs(near) < 0.5 else math.log(left) - math.log(keep)
    shifted = Fraction(epsilon) + Fraction(log_ratio) - abs(Fraction(log_ratio)) / 2**40
    return Fraction(GaussianPair.of(scale, records, keys).delta(round_down(shifted)))


@lru_cache(maxsize=8)
def _together(law: Threshold, records: int, rises: bool, keys: int) -> tuple[tuple[int, int], ...]:
    """The outcomes of several independent keys, those of equal loss at once."""
    *others, last = _key(law, records, rises)[0]
    partly = [(keys, ONE, ONE)]  # keys that are left, and the masses of the others
    for outcome in others:
        powers = _powers(outcome, keys)
        partly = [
            (
                unset - number,
                math.comb(unset, number) * -(-p * p_power >> POINT),
                math.comb(unset, number) * (q * q_power >> POINT),
            )
            for unset, p, q in partly
            for number, (p_power, q_power) in enumerate(powers[: unset + 1])
        ]
    powers = _powers(last, keys)
    return tuple(
        (-(-p * powers[unset][0] >> POINT), q * powers[unset][1] >> POINT) for unset, p, q in partly
    )


def _powers(outcome: tuple[int, int], most: int) -> Outcomes:
    """Powers of both masses, from the 0th on, each rounded as its mass is."""
    powers = [(ONE, ONE)]
    for _ in range(most):
        p, q = powers[-1]
        powers.append((-(-p * outcome[0] >> POINT), q * outcome[1] >> POINT))
    return powers


@lru_cache(maxsize=64)
def _key(law: Threshold, records: int, rises: bool) -> tuple[Outcomes, int]:
    """The outcomes of one key that others hold, and the mass under P of those that P' has not."""
    if isinstance(law, LaplaceThreshold):
        return _laplace(1 / Fraction(law.scale), records), 0
    assert isinstance(law, OptimalThreshold)  # noqa: S101 (there is no other)
    most, least = _bounds(law, records)
    none = [0] * records
    if rises:
        return _by_loss(zip([*most, *none], [*none, *least], strict=True))
    return _by_loss(zip([*none, *most], [*least, *none], strict=True))


def _bounds(law: OptimalThreshold, records: int) -> tuple[list[int], list[int]]:
    """Upper and lower bounds on the probabilities of `W = 1, ..., N`: of the weights themselves, or
    for a move of several records, of the log-concave law from which they were rounded.
    """
    if records == 1:
        exact = [weight << POINT - BITS for weight in law.weights]
        return exact, exact
    ends = [0, *(chance >> FINE - POINT for chance in law.chances)]
    masses = [after - before for before, after in pairwise(ends)]
    return [mass + _UNKNOWN for mass in masses], [max(0, mass - _UNKNOWN) for mass in masses]


def _by_loss(outcomes: Iterable[tuple[int, int]]) -> tuple[Outcomes, int]:
    """Outcomes with ratios that differ by rounding alone together, with their smallest ratio."""
    pairs = list(outcomes)
    never = sum(p for p, q in pairs if not q)
    ratios = sorted(((q << POINT) // p, p) for p, q in pairs if p and q)
    merged: list[tuple[int, int]] = []  # smallest ratio, mass
    for ratio, p in ratios:
        if merged and ratio - merged[-1][0] <= merged[-1][0] >> _CLOSE_BITS:
            merged[-1] = merged[-1][0], merged[-1][1] + p
        else:
            merged.append((ratio, p))
    return [(p, p * ratio >> POINT) for ratio, p in merged] or [(0, 0)], never


def group_delta(epsilon: Fraction, delta: Fraction, records: int) -> Fraction:
    """An upper bound on `delta (e^(records epsilon) - 1) / (e^epsilon - 1)`, at most 1."""
    if records == 1:
        return delta
    if records * epsilon > _LARGEST_EPSILON:
        return Fraction(1)
    most = exp_enclosure(-records * epsilon, POINT)[1] - ONE
    return min(Fraction(1), delta * most / (exp_enclosure(-epsilon, POINT)[0] - ONE))


def _laplace(rate: Fraction, records: int) -> Outcomes:
    """The outcomes of discrete Laplace noise moved by so many records, by their losses."""
    decays = [exp_enclosure(rate * number, POINT) for number in range(records + 1)]
    least, most = decays[1]
    outcomes = []
    for lost in range(records + 1):  # the noise is -lost; at the ends, or what is beyond
        inner = 0 < lost < records
        p = decays[lost][1] * (ONE - least if inner else ONE)
        q = decays[records - lost][0] * (ONE - most if inner else ONE)
        outcomes.append((p // (ONE + least) + 1, q // (ONE + most)))
    return outcomes
