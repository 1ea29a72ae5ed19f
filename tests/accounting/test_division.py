"""Parts of a budget: never more than the whole, and hardly less."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opendp_bayes.accounting.division import divided, sum_up

LIMITS = st.floats(1e-9, 1e9) | st.sampled_from([0.0, 5e-324, 1.0, 0.1, 1.7976931348623157e308])
WEIGHTS = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40)


@given(LIMITS, WEIGHTS)
def test_parts_do_not_exceed_the_whole(limit, weights):
    parts = divided(limit, weights)
    assert sum_up(parts) <= limit
    assert sum(map(Fraction, parts)) <= Fraction(limit)
    for part, weight in zip(parts, weights, strict=True):
        exact = Fraction(limit) * Fraction(weight) / sum(map(Fraction, weights))
        assert Fraction(part) <= exact
        assert Fraction(part) >= exact * (1 - (len(parts) + 1) * Fraction(1, 1 << 52)) - Fraction(
            5e-324
        )


@pytest.mark.parametrize("limit", [1.0, 1.0000001, 1.3, 1.9])
@pytest.mark.parametrize("number", [3, 5, 21])
def test_where_every_addition_rounds_up_by_as_much_as_it_can(limit, number):
    """Parts too small to change the sum otherwise: no more than that is kept back."""
    parts = divided(limit, [1.0, *[1e-20] * (number - 1)])
    assert sum_up(parts) <= limit
    lost = 1 - sum(map(Fraction, parts)) / Fraction(limit)
    assert lost <= (number - 1) * Fraction(1, 1 << 52)


def test_nearest_parts_would_exceed_it():
    """Negative control: what the rounding is for."""
    limit, weights = 1.0, [1.0, 2.0, 3.3]
    nearest = [limit * weight / sum(weights) for weight in weights]
    counterexamples = [
        n for n in range(2, 100) if sum(Fraction(0.3 / n) for _ in range(n)) > Fraction(0.3)
    ]
    assert counterexamples
    assert all(sum_up(divided(0.3, [1.0] * n)) <= 0.3 for n in counterexamples)
    assert divided(limit, weights) == pytest.approx(nearest, rel=1e-14)


def test_one_part_is_the_whole_and_halves_are_halves():
    assert divided(0.3, [7.0]) == (0.3,)
    assert divided(1.0, [1.0, 1.0]) == (0.5, 0.5)


def test_sums_round_up():
    assert Fraction(sum_up([0.1, 0.2])) >= Fraction(0.1) + Fraction(0.2)
    assert sum_up([1.0, 1e-30]) == math.nextafter(1.0, 2.0)
    assert sum_up([1.0, math.inf]) == math.inf
