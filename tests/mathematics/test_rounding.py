"""Directed rounding errs by at most a float, to the safe side; parts never exceed a budget."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from opendp_bayes.mathematics.rounding import (
    divided,
    lower_end,
    round_down,
    round_up,
    sqrt_up,
    sum_up,
    upper_end,
)

fractions = st.builds(Fraction, st.integers(-(10**30), 10**30), st.integers(1, 10**30))
positive = st.floats(min_value=1e-300, max_value=1e300)
small = st.sampled_from([2.0**-53, 2.0**-46, 2.0**-45, 2.0**-10])
LIMITS = st.floats(1e-9, 1e9) | st.sampled_from([0.0, 5e-324, 1.0, 0.1, 1.7976931348623157e308])
WEIGHTS = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40)


@given(fractions)
def test_rounding_is_to_the_next_float_above_or_below(value: Fraction) -> None:
    up, down = round_up(value), round_down(value)
    assert Fraction(down) <= value <= Fraction(up)
    below, above = math.nextafter(up, -math.inf), math.nextafter(down, math.inf)
    assert Fraction(below) < value < Fraction(above)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.5, 0.1, 5e-324, 1.7976931348623157e308])
def test_floats_are_fixed_points(value: float) -> None:
    assert round_up(Fraction(value)) == value == round_down(Fraction(value))


def test_beyond_the_float_range() -> None:
    huge = Fraction(10) ** 400
    assert round_up(huge) == math.inf
    assert round_down(huge) == 1.7976931348623157e308
    assert round_up(-huge) == -1.7976931348623157e308
    assert round_down(-huge) == -math.inf
    assert round_up(1 / huge) == 5e-324
    assert round_down(1 / huge) == 0.0


@given(positive, small, st.fractions(min_value=-1, max_value=1, max_denominator=1000))
def test_ends_enclose_every_value_the_error_allows(truth, error, part):
    """For any float within `error` of the truth, its ends are on the safe sides."""
    exact = Fraction(truth)
    computed = float(exact * (1 + part * Fraction(error)))
    if abs(Fraction(computed) / exact - 1) > Fraction(error):
        return  # the rounding to a float left the enclosure
    assert Fraction(upper_end(computed, error)) >= exact
    assert Fraction(lower_end(computed, error)) <= exact


@given(positive, small)
def test_ends_are_tight_and_rounded_outwards(value: float, error: float) -> None:
    assert upper_end(value, error) <= value * (1 + 2.01 * error + 2.0**-52)
    assert lower_end(value, error) >= value * (1 - 2.01 * error - 2.0**-52)
    assert Fraction(upper_end(value, error)) * (1 - Fraction(error)) >= Fraction(value)
    assert Fraction(lower_end(value, error)) * (1 + Fraction(error)) <= Fraction(value)


@pytest.mark.parametrize("error", [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)])
@pytest.mark.parametrize("truth", [1.0, 3.0, 5 * 2.0**-40])
def test_ends_of_a_large_error_enclose_the_furthest_values(truth: float, error: Fraction) -> None:
    """`value (1 + e)` would be below the truth, and `value (1 - e)` above it, by `e^2`."""
    below, above = (float(Fraction(truth) * (1 + sign * error)) for sign in (-1, 1))
    assert upper_end(below, float(error)) == truth
    assert lower_end(above, float(error)) == truth
    assert below * (1 + float(error)) < truth < above / (1 - float(error))


@given(st.integers(0, 10**40) | st.integers(1, 10**20).map(lambda root: root**2))
def test_a_root_is_rounded_up_and_not_by_two_floats(value: int) -> None:
    root = sqrt_up(value)
    assert Fraction(root) ** 2 >= value
    if value:
        assert Fraction(math.nextafter(math.nextafter(root, 0.0), 0.0)) ** 2 < value


@pytest.mark.parametrize("value", [3, 6, 18, (1 << 106) + 1])
def test_a_root_that_floats_round_down_is_rounded_up(value: int) -> None:
    assert Fraction(math.sqrt(value)) ** 2 < value <= Fraction(sqrt_up(value)) ** 2


# Parts of a budget: never more than the whole, and hardly less.
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


def test_parts_round_up_and_one_part_is_the_whole():
    """Negative control: what the rounding is for."""
    limit, weights = 1.0, [1.0, 2.0, 3.3]
    nearest = [limit * weight / sum(weights) for weight in weights]
    counterexamples = [
        n for n in range(2, 100) if sum(Fraction(0.3 / n) for _ in range(n)) > Fraction(0.3)
    ]
    assert counterexamples
    assert all(sum_up(divided(0.3, [1.0] * n)) <= 0.3 for n in counterexamples)
    assert divided(limit, weights) == pytest.approx(nearest, rel=1e-14)
    assert divided(0.3, [7.0]) == (0.3,)
    assert divided(1.0, [1.0, 1.0]) == (0.5, 0.5)
    assert Fraction(sum_up([0.1, 0.2])) >= Fraction(0.1) + Fraction(0.2)
    assert sum_up([1.0, 1e-30]) == math.nextafter(1.0, 2.0)
    assert sum_up([1.0, math.inf]) == math.inf
