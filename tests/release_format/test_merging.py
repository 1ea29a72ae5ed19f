"""Merged categories: their places, the labels they stand for, and names of neighbours."""

from typing import Any

import pytest

from opendp_bayes.release_format.merging import merged_parts, merged_places, neighbours


def test_places_and_parts_in_the_order_of_each() -> None:
    merge = {"ca": ["c", "a"], "b": ["b"]}
    assert merged_places(merge, ["a", "b", "c"]).tolist() == [0, 1, 0]
    assert merged_parts(merge) == (("c", "a"), ("b",))
    cells = {1: [["x", 1], ("y", 2)], 2: [("x", 2), ["y", 1]]}
    labels = [("x", 1), ("x", 2), ("y", 1), ("y", 2)]
    assert merged_places(cells, labels).tolist() == [0, 1, 1, 0]
    assert merged_parts(cells)[0] == (("x", 1), ("y", 2))


def test_labels_that_python_calls_equal_are_told_apart() -> None:
    assert merged_places({"yes": [True], "one": [1, "1"]}, [1, True, "1"]).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("merge", "error", "message"),
    [
        ("ab", TypeError, r"merge='ab': .*mapping from each"),
        ({"x": "ab", "y": ["c"]}, TypeError, "mapping from each new label"),
        ({None: ["a"], "y": ["b", "c"]}, TypeError, "label None must be a"),
        ({"x": [], "y": ["a", "b", "c"]}, ValueError, r"merge\['x'\]=\[\]: must name"),
        ({"x": ["a", "d"], "y": ["b", "c"]}, ValueError, "'d' is not a category"),
        ({"x": ["a", {}], "y": ["b", "c"]}, ValueError, "{} is not a category"),
        ({"x": ["a", "b"], "y": ["b", "c"]}, ValueError, "'b' is in 'x' already"),
        ({"x": ["a"], "y": ["b"]}, ValueError, "leaves out 'c', and every category"),
    ],
)
def test_refusals(merge: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        merged_places(merge, ["a", "b", "c"])


def test_neighbours_keep_the_order_and_the_rest() -> None:
    found = neighbours([18, 19, 20, 21, 22], 2)
    assert list(found.items()) == [("18 to 19", [18, 19]), ("20 to 21", [20, 21]), ("22", [22])]
    assert neighbours(["a", "b"], 5) == {"a to b": ["a", "b"]}
    with pytest.raises(ValueError, match=r"would have one name, among .*'1 to 2 to 3'"):
        neighbours(["1 to 2", "3", "1", "2 to 3"], 2)
