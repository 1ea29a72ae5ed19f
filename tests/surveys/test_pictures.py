"""The picture of a survey's graph, by what is on it."""

import itertools
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from opendp_bayes.surveys.pictures import plot_graph

BLUE = "#0072b2"

pytestmark = pytest.mark.usefixtures("pictures")


def drawn(variables, tables):
    """The axes, where the variables are, and the colours of lines between two of them."""
    ax = plot_graph(variables, tables, None)
    boxes = [text for text in ax.texts if text.get_bbox_patch() is not None]
    places = {box.get_text().replace("\n", " "): np.array(box.xy) for box in boxes}
    joined = {}
    for line in ax.lines:
        ends = np.column_stack(line.get_data())
        names = [min(places, key=lambda name: np.abs(places[name] - end).sum()) for end in ends]
        joined[frozenset(names)] = to_hex(str(line.get_color()))
    return ax, places, joined


def test_lines_join_what_was_measured_together() -> None:
    tables = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("e",)]
    ax, places, joined = drawn(list("abcde"), tables)
    assert set(places) == set("abcde")
    assert joined == dict.fromkeys(map(frozenset, tables[:4]), BLUE)
    assert "Others are independent given those between them." in ax.texts[-1].get_text()


def test_every_variable_lies_within_the_axes() -> None:
    variables = ["vote", "party identification", "$x$", "age"]
    ax, places, joined = drawn(variables, list(itertools.pairwise(variables)))
    assert len(joined) == 3
    ax.figure.canvas.draw()
    ends = np.array([ax.get_xlim(), ax.get_ylim()])
    for place in places.values():
        assert np.all((ends[:, 0] < place) & (place < ends[:, 1]))


def test_variables_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    for number in (1, 2, 5, 9):
        names = [f"v{at}" for at in range(number)]
        tree = [(names[int(rng.integers(at))], names[at]) for at in range(1, number)]
        _, places, _ = drawn(names, tree or [tuple(names)])
        for one, other in itertools.combinations(places.values(), 2):
            assert np.linalg.norm(one - other) > 0.5


def test_draws_on_given_axes_and_needs_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    given = plt.figure().subplots()
    assert plot_graph(["a"], [("a",)], given) is given
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib: pip install 'opendp-bayes\[plo"):
        plot_graph(["a"], [("a",)], None)
