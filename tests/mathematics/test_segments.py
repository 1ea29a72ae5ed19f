"""Sums over consecutive parts, against loops."""

import numpy as np
import pytest
from scipy import special

from opendp_bayes.mathematics.segments import Segments


@pytest.fixture
def parts():
    return Segments(np.array([0, 3, 4, 9]))


@pytest.mark.parametrize("shape", [(9,), (2, 9)])
def test_sums_and_largest_along_the_last_axis(shape, parts):
    values = np.random.default_rng(0).normal(size=shape)
    each = np.split(values, parts.start[1:-1], axis=-1)
    assert parts.sums(values) == pytest.approx(np.stack([x.sum(axis=-1) for x in each], axis=-1))
    assert np.array_equal(parts.largest(values), np.stack([x.max(axis=-1) for x in each], axis=-1))


def test_parts_of_owners_also_where_logarithms_would_overflow(parts):
    values = np.random.default_rng(1).normal(size=9) * 2000
    values[3] = -np.inf
    shares = parts.shares(np.where(np.isfinite(values), values, 3.0))
    assert parts.sums(shares) == pytest.approx(1)
    assert shares[4:] == pytest.approx(special.softmax(values[4:]))
    made = Segments.of(np.array([7, 7, 7, 2, 5, 5, 5, 5, 5]))
    assert np.array_equal(made.start, parts.start)
    assert made.owner.tolist() == [0, 0, 0, 1, 2, 2, 2, 2, 2]
    some, place = parts.chosen(np.array([2, 1, 2]))
    assert some.sizes.tolist() == [5, 1, 5]
    assert place.tolist() == [4, 5, 6, 7, 8, 3, 4, 5, 6, 7, 8]
