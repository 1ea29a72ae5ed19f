"""Releases of joint tables: JSON, frames, tables and pictures."""

import json
from itertools import product

import jsonschema
import matplotlib.pyplot as plt
import pytest

import opendp_bayes as ob
from tests.helpers.releases import changed, guarantee

CELLS = tuple(product(["north", "so$_uth$"], ["yes", "no", 3]))
TABLE = ob.Release(
    (30, 20, 10, 15, 22, 3), CELLS, (1.0,) * 6, ob.KNormParameters(1.0), guarantee(100),
    ("region", "vote"),
)  # fmt: skip
SOME = changed(
    TABLE, noisy_counts=(40, 20, 40), categories=(*CELLS[1:3], CELLS[3]), prior=(1.0,) * 3
)

pytestmark = pytest.mark.usefixtures("pictures")


# --- JSON
@pytest.mark.parametrize("release", [TABLE, SOME])
def test_json_both_ways(release: ob.Release) -> None:
    document = json.loads(release.to_json())
    assert document["version"] == 3
    assert document["axes"] == ["region", "vote"]
    assert document["categories"] == [list(cell) for cell in release.categories]
    jsonschema.validate(document, ob.Release.json_schema())
    again = ob.Release.from_json(release.to_json())
    assert again == release
    assert again.posterior.marginal("vote").mean() == pytest.approx(
        release.posterior.marginal("vote").mean()
    )


def test_a_release_of_one_column_has_no_axes_in_its_document() -> None:
    one = changed(TABLE, axes=(), categories=tuple("abcdef"))
    assert "axes" not in json.loads(one.to_json())
    assert ob.Release.from_json(one.to_json()) == one


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("axes", ["region"], r"axes=\['region'\]: must be different"),
        ("axes", ["region", "region"], "axes=.*: must be different"),
        ("axes", [], "category is one value"),
        ("axes", [1, 2], "is not a release in JSON"),
        ("categories", list("abcdef"), "category a list with a"),
        ("categories", [["a", "b"]] * 6, "must be all different"),
        ("categories", [["a", str(i), "c"] for i in range(6)], "a value of each"),
        ("categories", [["a", None]] * 6, "is not a release in JSON"),
    ],
)
def test_documents_that_are_no_table_are_refused(field: str, value: object, match: str) -> None:
    document = json.loads(TABLE.to_json())
    with pytest.raises(ValueError, match=match):
        ob.Release.from_json(json.dumps({**document, field: value}))


def test_labels_of_different_types_are_different() -> None:
    document = json.loads(TABLE.to_json())
    labels = [["a", 1], ["a", True], ["a", "1"], ["b", 1], ["b", True], ["b", "1"]]
    read = ob.Release.from_json(json.dumps({**document, "categories": labels}))
    assert list(map(list, read.categories)) == labels


# --- frames and tables
def test_a_frame_has_a_column_for_each_variable() -> None:
    frame = TABLE.to_frame()
    assert frame.columns[:4] == ["region", "vote", "mean", "std"]
    assert frame["vote"].to_list() == ["yes", "no", "3"] * 2
    assert frame["mean"].to_numpy() == pytest.approx(TABLE.posterior.mean())
    named = changed(TABLE, axes=("mean", "mean_")).to_frame()
    assert named.columns[:4] == ["mean_", "mean__", "mean", "std"]
    assert named["mean_"].to_list() == [str(cell[0]) for cell in CELLS]


def test_a_sheet_has_a_column_for_each_variable() -> None:
    table = TABLE.sheet().tables[0]
    assert table.headings[:3] == ["region", "vote", "Released\ncount"]
    assert [row[:3] for row in table.rows][:2] == [("north", "yes", "30"), ("north", "no", "20")]


# --- pictures
def rows_of(ax: plt.Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_a_table_of_three_variables_has_a_row_for_each_cell() -> None:
    three = ob.Release(
        tuple(range(5, 17)), tuple(product("ab", "cde", "fg")), (1.0,) * 12,
        ob.KNormParameters(1.0), guarantee(126), ("x", "y", "z"),
    )  # fmt: skip
    ax = three.plot()
    assert rows_of(ax)[:2] == ["a, c, f", "a, c, g"]
    (drawn,) = ax.containers
    assert drawn.lines[0].get_xdata() == pytest.approx(three.posterior.mean())


def test_a_word_that_is_a_little_longer_than_a_line_of_a_label_stays_whole() -> None:
    labels = ["administrator", "extremely conservative", "incomprehensibilities"]
    table = ob.Release(
        (5,) * 6, tuple(product("ab", labels)), (1.0,) * 6, ob.KNormParameters(1.0), guarantee(30),
        ("x", "y"),
    )  # fmt: skip
    shown = [label.get_text() for label in table.plot().get_xticklabels()]
    assert shown == ["administrator", "extremely\nconservative", "incomprehens\nibilities"]


def test_axes_have_the_order_of_the_question() -> None:
    """Three of them, not in that of the alphabet: in labels, frames, sheets and pictures."""
    axes = ("vote", "town", "age")
    cells = tuple(product(["yes", "no"], ["y", "x"], [3, 1]))
    drawn = (80, 70, 60, 50, 40, 30, 20, 10)
    made = ob.Release(drawn, cells, (1.0,) * 8, ob.LaplaceParameters(0.01), guarantee(360), axes)
    values = [[str(cell[at]) for cell in cells] for at in range(3)]
    assert {name: list(map(str, of)) for name, of in made.values_of_axes.items()} == dict(
        zip(axes, values, strict=True)
    )
    frame = made.to_frame()
    assert frame.columns[:4] == [*axes, "mean"]
    assert [frame[name].to_list() for name in axes] == values
    (table,) = made.sheet().tables
    assert table.headings[:3] == list(axes)
    assert [list(row[:3]) for row in table.rows] == list(map(list, zip(*values, strict=True)))
    ax = made.plot()
    assert rows_of(ax)[:3] == ["yes, y, 3", "yes, y, 1", "yes, x, 3"]
