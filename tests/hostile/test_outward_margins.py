"""The last bits of losses of keys are at least those of exact arithmetic."""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import mpmath
import pytest

from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.unlisted import threshold_pairs as pairs
from opendp_bayes.unlisted.threshold_losses import delta_of_several, new_shown
from opendp_bayes.unlisted.thresholds import BITS, LaplaceThreshold, OptimalThreshold
from tests.helpers import listed_keys

#: Bits of what is taken for exact: far beyond those of the code.
PRECISION = 600
LAPLACE = [LaplaceThreshold(1.0, 9), LaplaceThreshold(2.3, 4), LaplaceThreshold(0.7, 1)]
OPTIMAL = [OptimalThreshold(1.0, 1e-3), OptimalThreshold(0.3, 0.05), OptimalThreshold(2.0, 1e-3)]


def exp(value: Fraction) -> mpmath.mpf:
    """The exponential of a fraction."""
    return mpmath.exp(mpmath.mpf(value.numerator) / value.denominator)


@pytest.fixture(autouse=True)
def _precisely() -> Iterator[None]:
    with mpmath.workprec(PRECISION):
        yield


def as_number(value: Fraction | int) -> mpmath.mpf:
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


@cache
def masses(law: OptimalThreshold, records: int, *, rises: bool) -> list[tuple[int, int]]:
    """Of one key that moves, both probabilities in units of 2^-BITS, by the weights drawn."""
    none = [0] * records
    here, there = [*law.weights, *none], [*none, *law.weights]
    if rises:
        return list(zip(here, there, strict=True))
    return list(zip(there, here, strict=True))


def exact_excess(law, records, up, down, epsilon, keep, left):
    """`Σ (keep P - exp(epsilon) left P')+` over all outcomes of all keys."""
    keys = [masses(law, records, rises=True)] * up + [masses(law, records, rises=False)] * down
    factor, total = exp(Fraction(epsilon)), mpmath.mpf(0)
    for outcome in product(*keys):
        p = math.prod(of for of, _ in outcome)
        q = math.prod(of for _, of in outcome)
        excess = as_number(keep) * p - factor * left * q
        total += max(excess, mpmath.mpf(0))
    return total / mpmath.mpf(2) ** (BITS * (up + down) + pairs.POINT)


@pytest.mark.parametrize("law", OPTIMAL, ids=str)
@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("moved", [(1, 0), (0, 1)])
def test_the_excess_of_keys_is_that_of_the_weights_that_are_drawn(law, records, moved):
    """Also where nothing is above ε but what rounding the weights has put there."""
    one = law.epsilon * records
    for epsilon in (0.0, one / 2, math.nextafter(one, 0), one, math.nextafter(one, 9)):
        for keep, left in ((pairs.ONE, pairs.ONE), (pairs.ONE, pairs.ONE - 12345)):
            found = pairs.excess(law, records, *moved, epsilon, keep, left)
            assert as_number(found) >= exact_excess(law, records, *moved, epsilon, keep, left)


@pytest.mark.parametrize("base", [0, 1, 3, pairs.ONE // 3, pairs.ONE - 7, pairs.ONE])
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 64])
def test_powers_are_lower_bounds(base: int, exponent: int) -> None:
    found = pairs.power(base, exponent)
    assert found * pairs.ONE ** max(exponent - 1, 0) <= base**exponent or not exponent
    assert Fraction(found, pairs.ONE) <= Fraction(base, pairs.ONE) ** exponent
    for number, (p, q) in enumerate(pairs._powers((base, base), 5)):
        exact = Fraction(base, pairs.ONE) ** number
        assert Fraction(q, pairs.ONE) <= exact <= Fraction(p, pairs.ONE)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(2, 3), Fraction(0), Fraction(1)])
def test_a_scaled_number_is_an_upper_bound(value: Fraction) -> None:
    assert value <= Fraction(pairs.scaled_up(value), pairs.ONE) < value + Fraction(1, pairs.ONE)


def laplace_tail(law: LaplaceThreshold, records: int) -> mpmath.mpf:
    """The probability that `records` and discrete Laplace noise reach the threshold."""
    decay = exp(-1 / Fraction(law.scale))
    first = law.threshold - records
    if first >= 0:
        return decay**first / (1 + decay)
    return 1 - decay ** (1 - first) / (1 + decay)


@pytest.mark.parametrize("law", LAPLACE, ids=str)
@pytest.mark.parametrize("records", [1, 2, 5, 12])
def test_the_chance_to_show_is_an_upper_bound_and_hardly_more(law, records):
    found, exact = as_number(pairs.chance_to_show(law, records)), laplace_tail(law, records)
    assert exact <= found <= exact + mpmath.mpf(2) ** -240
    for keys in (1, 2, 9):
        none = mpmath.mpf(pairs.hidden(law, records, keys)) / pairs.ONE
        assert none <= (1 - exact) ** keys


@pytest.mark.parametrize("law", LAPLACE, ids=str)
@pytest.mark.parametrize("records", [1, 2, 3, 4])
def test_a_new_key_of_any_records_is_shown_at_most_so_often(law, records):
    for largest in range(1, records + 1):
        none = min(
            math.prod((1 - laplace_tail(law, of) for of in parts), start=mpmath.mpf(1))
            for parts in listed_keys.partitions(records, largest)
        )
        moved = Distance.limited(records, largest=largest)
        assert as_number(new_shown(law, moved)) >= 1 - none


@pytest.mark.parametrize("law", LAPLACE, ids=str)
@pytest.mark.parametrize("records", [1, 2, 3])
def test_outcomes_of_laplace_noise_have_at_least_their_mass(law, records):
    decay = exp(-1 / Fraction(law.scale))
    for kept, (p, q) in enumerate(pairs._laplace(1 / Fraction(law.scale), records)):
        inner = 1 - decay if 0 < kept < records else 1
        assert mpmath.mpf(p) / pairs.ONE >= decay**kept * inner / (1 + decay)
        assert mpmath.mpf(q) / pairs.ONE <= decay ** (records - kept) * inner / (1 + decay)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("records", [1, 2, 3, 7])
def test_the_delta_of_several_records_is_an_upper_bound(epsilon: Fraction, records: int) -> None:
    apart = Distance.limited(records, largest=1)
    for delta in (Fraction(1, 10**30), Fraction(1, 10**6), Fraction(1, 3)):
        grown = (exp(records * epsilon) - 1) / (exp(epsilon) - 1) * as_number(delta)
        found = as_number(pairs.group_delta(epsilon, delta, records))
        assert found >= min(grown, mpmath.mpf(1)) - (0 if records > 1 else mpmath.mpf(2) ** -500)
        several = as_number(Fraction(delta_of_several(epsilon, delta, apart)))
        assert several >= 1 - (1 - as_number(delta)) ** records - mpmath.mpf(2) ** -500
