"""Inversion of a law that is known by enclosures, bit by bit."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import pytest
from flint import arb, ctx, fmpq

from opendp_bayes.samplers import inversion

#: Of the values 0, 1 and 2: quarters of the uniform numbers where they begin and end.
ENDS = (0, 1, 2, 4)


def drawing(*numbers: int, monkeypatch: pytest.MonkeyPatch, bits: Sequence[int]) -> None:
    """Random bits are these numbers, one after the other, and so many are asked for."""
    left, asked = list(numbers), list(bits)

    def randbits(count: int) -> int:
        assert count == asked.pop(0)
        return left.pop(0)

    monkeypatch.setattr(inversion, "randbits", randbits)


def within(error: int, bits: int) -> tuple[int, list[int], list[int]]:
    """Sums in units of `2^-bits`, known to `error` units; nothing lies before the first."""
    exact = [end << (bits - 2) for end in ENDS]
    return (0, [max(end - error, 0) for end in exact], [0, *(end + error for end in exact[1:])])


@pytest.mark.parametrize("number", range(16))
def test_exact_sums(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    drawing(number, monkeypatch=monkeypatch, bits=[4])
    assert inversion.by_inversion(lambda bits: within(0, bits), 4) == [0, 1, 2, 2][number // 4]


@pytest.mark.parametrize(
    ("numbers", "value"),
    [((3, 0), 0), ((3, 9), 0), ((4, 9), 1), ((3, 15, 0x80), 0), ((4, 0, 0x80), 1)],
)
def test_a_doubt_is_settled_by_further_bits(numbers, value, monkeypatch):
    """Next to the end of the first value 4 bits do not tell, nor do 8 where they are next to it."""
    drawing(*numbers, monkeypatch=monkeypatch, bits=[4, 4, 8])
    precisions = []

    def cumulative(bits: int) -> tuple[int, list[int], list[int]]:
        precisions.append(bits)
        return within(1, bits)

    assert inversion.by_inversion(cumulative, 4) == value
    assert precisions == [4, 8, 16][: len(numbers)]


def test_what_lies_before_the_first_value_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing(0, 0, monkeypatch=monkeypatch, bits=[4, 4])

    def cumulative(bits: int) -> tuple[int, list[int], list[int]]:
        first, below, above = within(0, bits)
        return (2, below[2:], above[2:]) if bits == 4 else (first, below, above)

    assert inversion.by_inversion(cumulative, 4) == 0


FALLING = product((Fraction(0), Fraction(1, 3), Fraction(7, 2), Fraction(60)), (64, 128, 1000))
GROWING = product((-1e-300, -0.1, -1, -Fraction(1, 3), -50, -1000), (64, 256, 320))


@pytest.mark.parametrize(("x", "bits"), [*FALLING, *GROWING])
def test_an_enclosure_of_an_exponential(x: Fraction | float, bits: int) -> None:
    """By ball arithmetic of many more digits, and to a few units."""
    exact = Fraction(x)
    low, high = inversion.exp_enclosure(exact, bits)
    with ctx.workprec(bits + 4000):
        truth = (-arb(fmpq(exact.numerator, exact.denominator))).exp() * arb(2) ** bits
        assert low <= truth <= high
    assert 0 <= high - low <= 4
    assert inversion.exp_enclosure(Fraction(65), 64) == (0, 1)
    assert inversion.exp_enclosure(Fraction(64), 64)[1] == 1
