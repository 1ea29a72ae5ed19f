"""Which data sets are neighbours, and what becomes of the number of records."""

import operator
from collections import Counter
from itertools import product
from typing import Any

import pytest

from opendp_bayes.mechanisms.neighbours import Distance, default_total, relation_of


def test_a_public_number_of_records_is_kept() -> None:
    assert (relation_of(0), default_total(0)) == ("change-one", "remainder")
    assert (relation_of(7), default_total(7)) == ("change-one", "remainder")


def test_a_private_number_of_records_changes() -> None:
    assert (relation_of(None), default_total(None)) == ("add/remove", "private")


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        *(((10, 100, 1), (10, 10, 1)), ((10, 7, 10), (7, 7, 2)), ((5, 100, 3), (5, 13, 3))),
        ((5, 100, 9), (5, 25, 5)),
        *((given, (0, 0, 0)) for given in ((5, 0, 9), (0, 9, 9), (5, 9, 0))),
    ],
)
def test_every_bound_is_lowered_to_what_the_others_imply(given: Any, wanted: Any) -> None:
    found = Distance(*given)
    assert (found.records, found.squared, found.largest) == wanted
    assert Distance(*wanted) == found


def test_distances_have_bounds_in_their_order_and_squares_the_largest_of_all() -> None:
    """Against all ways to divide the records."""
    assert Distance.of(4) == Distance(4, 16, 4) == Distance.of(Distance.of(4))
    assert (Distance.of(4).stated, operator.index(Distance(4, 4, 1))) == (4, 4)
    assert Distance(4, 4, 1).stated == Distance(4, 4, 1) != Distance.of(4)
    assert Distance.limited(7, 3).pieces == ((3, 2), (1, 1))
    assert Distance.of(0).pieces == ()
    assert Distance(6, 20, 4).within(3) == Distance(3, 9, 3)
    assert Distance(6, 6, 1).within(3) == Distance(3, 3, 1)
    for wrong in (-1, 1.5, True, "3", None):
        with pytest.raises((TypeError, ValueError), match="d_in="):
            Distance.of(wrong)
    assert Distance(4, 4, 1) <= Distance.of(4)
    assert not Distance.of(4) <= Distance(5, 5, 1)
    assert not Distance(5, 5, 1) <= Distance.of(4)
    assert not Distance(4, 8, 2) <= Distance(4, 6, 2)
    for limits in ((3, 1, 1), (2, 2), (4, 0, 1), (1, 1, 1, 1), (5,)):
        for records in range(7):
            ways = [
                way
                for way in product(*(range(limit + 1) for limit in limits))
                if sum(way) <= records
            ]
            found = Distance.among(records, Counter(limits))
            assert found.records == max(map(sum, ways))
            assert found.squared == max(sum(part**2 for part in way) for way in ways)
            assert found.largest == max(map(max, ways))
