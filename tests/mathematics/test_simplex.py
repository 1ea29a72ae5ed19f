"""The enumeration of candidates."""

from math import comb

import numpy as np
import pytest

from opendp_bayes.mathematics.simplex import (
    candidate,
    candidate_sums,
    candidates,
    check_enumerable,
    number_of_candidates,
)
from tests.helpers import oracles

SHAPES = [(0, 2), (1, 2), (7, 2), (100, 2), (0, 3), (1, 3), (9, 3), (6, 4), (4, 6)]


@pytest.mark.parametrize(("size", "k"), SHAPES)
def test_candidates_are_all_histograms_in_order_with_their_sums(size: int, k: int) -> None:
    result = candidates(size, k)
    assert result.dtype == np.int64
    assert [tuple(row) for row in result.tolist()] == list(oracles.data_sets(size, k))
    assert len(result) == number_of_candidates(size, k) == comb(size + k - 1, k - 1)
    tables = list(np.random.default_rng(size + k).normal(size=(k, size + 1)))
    brute = [
        sum(table[y] for table, y in zip(tables, row, strict=True))
        for row in oracles.data_sets(size, k)
    ]
    np.testing.assert_allclose(candidate_sums(tables), brute, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(("size", "k"), SHAPES)
def test_unranking_agrees_with_the_enumeration(size: int, k: int) -> None:
    assert [
        candidate(index, size, k) for index in range(number_of_candidates(size, k))
    ] == candidates(size, k).tolist()


@pytest.mark.parametrize(("size", "k"), [(100_000, 2), (1412, 3), (179, 4), (1, 1_000_000)])
def test_enumerable_up_to_the_limits(size: int, k: int) -> None:
    check_enumerable(size, k)


def test_refuses_numbers_beyond_the_limit_and_the_floats() -> None:
    """C(n + k - 1, k - 1) can exceed the largest float, and take all time."""
    with pytest.raises(
        ValueError, match=r"size=100001: .* needs size <= 100000\. .* LaplaceParameters"
    ):
        check_enumerable(100_001, 2)
    with pytest.raises(
        ValueError, match=r"size=1000000000000, 1000000 categories: .* 1000000 of them"
    ):
        check_enumerable(10**12, 10**6)


@pytest.mark.parametrize(("size", "k"), [(1413, 3), (1000, 4), (180, 4)])
def test_refuses_more_categories_beyond_the_limit(size: int, k: int) -> None:
    said = rf"size={size}, {k} categories: .* C\(size \+ k - 1, k - 1\) candidates needs at most"
    with pytest.raises(ValueError, match=said + r" 1000000 of them\."):
        check_enumerable(size, k)
