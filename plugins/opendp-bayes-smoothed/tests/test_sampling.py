"""The enclosures of the exact samplers: rounded outwards, with what lies beyond the last weight."""

from fractions import Fraction
from math import comb

import pytest

from opendp_bayes_smoothed.sampling import _cumulative


@pytest.mark.parametrize("bits", [4, 8, 16, 64])
@pytest.mark.parametrize(("a", "b", "s"), [(5, 7, 6), (40, 60, 50), (300, 500, 200), (9, 900, 90)])
def test_cumulative_bounds_are_rounded_outwards(a: int, b: int, s: int, bits: int) -> None:
    """Against hypergeometric probabilities in integers, relative to the one at the mode."""
    low, high = max(0, s - b), min(a, s)
    mode = (s + 1) * (a + 1) // (a + b + 2)
    ways = {k: comb(a, k) * comb(b, s - k) for k in range(low, high + 1)}
    first, below, above = _cumulative(
        low,
        high,
        mode,
        lambda k: ((a - k) * (s - k), (k + 1) * (b - s + k + 1)),
        bits,
    )
    unit = Fraction(2**bits, ways[mode])
    for place, (least, most) in enumerate(zip(below[:-1], above[:-1], strict=True)):
        known = sum(ways[k] for k in range(first, first + place))
        assert least <= known * unit
        assert sum(ways[k] for k in range(low, first + place)) * unit <= most
    assert below[-1] <= sum(ways.values()) * unit <= above[-1]
