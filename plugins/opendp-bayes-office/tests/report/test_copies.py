"""What a report says of its synthetic records: numbers, places in the pictures, and order."""

import re
from typing import Any

import pytest

from opendp_bayes_office.report.copies import _above, copies_section


def row(table: str, *, measured: bool = True, of: float = 1.0, combined: Any = 0.011) -> Any:
    """A row of `agreement_of_copies` with differences that are `of` times larger."""
    return {
        "table": table,
        "measured": measured,
        "cells": 4,
        "copies": 20,
        "std": 0.0123,
        "combined_std": combined,
        "difference": 0.002 * of,
        "largest_difference": 0.01 * of,
        "std_of_largest": 0.02,
        "difference_of_one": 0.009 * of,
        "largest_of_one": 0.04 * of,
    }


def test_numbers_have_two_digits_of_the_smallest_deviation_and_pictures_one_scale() -> None:
    section = copies_section([row("vote"), row("vote × age", of=4, combined=None)])
    assert section is not None
    assert (section.number, section.implied) == (20, ())
    assert section.ticks == (("0", 0), ("0.025", 50), ("0.05", 100))
    first, second = section.measured
    assert (first.std, first.combined, first.difference) == ("0.012", "0.011", "0.002")
    assert (first.largest, first.one) == ("0.010", "0.009")
    assert second.combined == ""
    # Of a scale that ends at .05.
    assert (first.bar, first.at, first.width) == pytest.approx((24.6, 4, 16))
    assert (second.bar, second.at, second.width) == pytest.approx((24.6, 16, 64))


def test_tables_that_no_result_has_are_apart_and_the_worst_come_first() -> None:
    several = [row(f"pair {number}", measured=False, of=1 + number) for number in range(30)]
    section = copies_section([*several, row("vote")])
    assert section is not None
    assert [one.name for one in section.measured] == ["vote"]
    assert [one.name for one in section.implied] == [f"pair {29 - number}" for number in range(20)]
    assert section.most_implied == 20


def test_a_certainty_has_a_picture_too() -> None:
    """A column with one category: its share is 1."""
    sure = {name: 0.0 if isinstance(of, float) else of for name, of in row("x").items()}
    section = copies_section([sure, {**sure, "table": "y", "measured": False}])
    assert section is not None
    assert section.measured[0].std == "0.000"
    assert copies_section([]) is None


@pytest.mark.parametrize("highest", [3e-7, 0.0011, 0.01, 0.0201, 0.4, 0.99])
def test_a_scale_ends_near_the_highest(highest: float) -> None:
    assert highest <= _above(highest) * (1 + 1e-9)
    assert _above(highest) <= 2.5 * highest
    assert re.fullmatch(r"[125]e-0\d", f"{_above(highest):.0e}") or _above(highest) == 1
