"""The spaces between frame and release: their identity, which OpenDP compares, and members."""

from dataclasses import fields, replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from opendp_bayes.trusted.boundary import ContractError
from opendp_bayes.trusted.spaces import CountsSpace, PosteriorSpace

COUNTS = [
    CountsSpace(("a", "b"), None),
    CountsSpace(("a", "b"), 5),
    CountsSpace(("a", "b"), 6),
    CountsSpace(("b", "a"), 5),
    CountsSpace(("a", "b", "c"), 5),
    CountsSpace(("a, 'b", "c"), 5),
    CountsSpace((0, 1), 5),
    CountsSpace((False, True), 5),
    CountsSpace(("0", "1"), 5),
    CountsSpace(("a", "b"), 5, axes=("x", "y")),
    CountsSpace(("a", "b"), 5, axes=("y", "x")),
    CountsSpace.of_groups(("a",), ("b", "c"), 5),
    CountsSpace.of_groups(("a", "b"), ("c",), 5),
    CountsSpace.of_groups((None, "b"), ("c",), 5),
    CountsSpace.of_groups(("None", "b"), ("c",), 5),
    CountsSpace(("Cell(group='a', label='b')", "Cell(group='a', label='c')", "NoGroup()"), 5),
]
POSTERIORS = [
    PosteriorSpace(("a", "b"), 5, (1.0, 1.0)),
    PosteriorSpace(("a", "b"), 5, (1.0, float(np.nextafter(1.0, 2.0)))),
    PosteriorSpace(("a", "b"), 5, (0.1, 0.2)),
    PosteriorSpace(("a", "b"), 5, (0.2, 0.1)),
    PosteriorSpace(("a", "b"), None, (1.0, 1.0)),
    PosteriorSpace(("a", "b", "c"), 5, (1.0, 1.0, 1.0)),
]


def test_spaces_are_equal_where_they_and_their_metrics_are_the_same():
    for one, other in combinations([*COUNTS, *POSTERIORS], 2):
        assert one.identifier != other.identifier
        assert one.domain != other.domain
    for space in (*COUNTS, *POSTERIORS):
        twin = replace(space)
        assert twin.domain == space.domain
        assert twin.metric == space.metric
        assert space.domain.descriptor == space
    assert COUNTS[0].metric != COUNTS[1].metric
    assert COUNTS[1].metric == COUNTS[2].metric
    said = r"input_metric=CountsDistance\(add/remove\): must be the metric.*\(change-one\)"
    with pytest.raises(ValueError, match=said):
        COUNTS[1].check_metric(COUNTS[0].metric)


def test_every_field_is_in_the_identifier():
    """A field added later must be there as well, or spaces that differ in it would chain."""
    other = {"categories": ("x", "y"), "size": 99, "prior": (3.0, 4.0), "axes": ("column",)}
    other |= {"by": ("g",), "nulls": ("none",), "unknown": ("other",)}
    for space in (COUNTS[1], POSTERIORS[0]):
        assert {field.name for field in fields(space)} <= set(other)
        for field in fields(space):
            assert replace(space, **{field.name: other[field.name]}).identifier != space.identifier


@given(
    counts=st.lists(st.integers(0, 10**11), min_size=3, max_size=3),
    prior=st.lists(st.floats(1e-9, 1e6), min_size=3, max_size=3),
)
def test_counts_come_back_from_a_concentration_exactly(counts, prior):
    space = PosteriorSpace(("a", "b", "c"), sum(counts) or None, tuple(prior))
    assert space.counts(space.prior_array + np.array(counts)).tolist() == counts


FULL = {"wrong length": np.array([1, 2, 2]), "matrix": np.array([[2, 3]])}
FULL |= {"negative": np.array([-1, 6]), "fraction": np.array([2.5, 2.5])}
FULL |= {"NaN": np.array([np.nan, 5.0]), "infinite": np.array([np.inf, 5.0])}
FULL |= {"bool": np.array([True, False]), "text": "23", "nothing": None}
FULL |= {"ragged": [[1], [2, 3]], "smaller sum": np.array([2, 2]), "larger sum": np.array([3, 3])}


@pytest.mark.parametrize("name", FULL)
def test_concentrations_and_arrays_that_are_not_members(name):
    space = CountsSpace(("a", "b"), 5)
    message = (
        "the number of records is not size=5"
        if "sum" in name
        else "the input must hold 2 non-negative whole numbers"
    )
    assert space.is_member(np.array([2, 3]))
    assert not space.is_member(FULL[name])
    assert not space.domain.member(FULL[name])
    with pytest.raises(ContractError, match=message):
        space.counts(FULL[name])
    space = PosteriorSpace(("a", "b"), 5, (1.0, 1.0))
    value = (
        FULL[name] + 1.0
        if isinstance(FULL[name], np.ndarray) and FULL[name].dtype != bool
        else FULL[name]
    )
    assert not space.is_member(value)
    assert not space.domain.member(value)
    with pytest.raises(ContractError, match=r"the input must|records is not size=5"):
        space.counts(value)
    space = PosteriorSpace(("a", "b"), None, (1.0, 1.0))
    assert space.is_member(np.array([1.0, 3.0]))
    assert not space.is_member(np.array([1, 3]))
    assert not space.is_member(np.array([0.0, 3.0]))
