"""A sheet as all renderers show it, and who may know what."""

import ast
from itertools import permutations
from pathlib import Path

import polars as pl
import pytest

import opendp_bayes
from opendp_bayes.display.sheet import Sheet, labelled_frame
from opendp_bayes.display.tables import Table, decimals_of, estimates_table

PACKAGE = Path(opendp_bayes.__file__).parent
ROWS = (("first", "a", "1"), ("first", "[b]<c>", "20"))
SHEET = Sheet((Table(("Group", "Thing", "per\ncent"), ROWS, 2),), ("A note.", "By f(x)."), "Title")


def test_text_shows_everything() -> None:
    assert str(SHEET).splitlines() == [
        "Title",
        "Group  Thing   per cent",
        "first  a              1",
        "first  [b]<c>        20",
        "A note.",
        "By f(x).",
    ]


@pytest.mark.parametrize("names", list(permutations(["mean", "mean_", "mean__"])))
def test_columns_of_any_names_are_all_there(names: tuple[str, ...]) -> None:
    labels = {name: [name, str(number)] for number, name in enumerate(names)}
    frame = labelled_frame(labels, {"mean": [0.5, 0.25]})
    assert frame["mean"].to_list() == [0.5, 0.25]
    assert [column.to_list() for column in frame.drop("mean")] == list(labels.values())
    assert all(column.startswith(name) for column, name in zip(frame.columns, names, strict=False))


def test_a_narrow_text_shows_everything() -> None:
    assert SHEET.text(19).splitlines() == [
        "Title",
        "Group  Thing    per",
        "               cent",
        "first  a          1",
        "first  [b]<c>    20",
        "A note.",
        "By f(x).",
    ]


def test_a_notebook_shows_the_sentences_below() -> None:
    shown = SHEET._repr_html_()
    assert shown.partition("</table></div>")[2].endswith(">Title. A note. By f(x).</div></div>")
    assert "[b]&lt;c&gt;" in shown
    assert shown.count('scope="row"') == len(ROWS)
    assert shown.count("text-align: right") == 1 + len(ROWS)


@pytest.mark.parametrize("render", [str, Sheet._repr_html_])
def test_what_is_missing_leaves_nothing_behind(render: object) -> None:
    shown = render(Sheet((Table(("A", "B"), (("x", "1"),)),)))
    for absent in ("None", "more", "<strong>", "code"):
        assert absent not in shown


def test_a_table_of_estimates_has_labels_counts_and_intervals() -> None:
    """Labels that cannot be seen are in quotes; numbers have the digits that their interval has."""
    numbers = {"mean": [0.25, 0.75], "std": [0.1] * 2, "lower": [0.2, 0.7], "upper": [0.3, 0.81]}
    shares = {"share_lower": [10.0, 20.0], "share_upper": [110.0, 140.0]}
    labels = {"group": [None, "n"], "category": ["a ", "b"]}
    frame = pl.DataFrame({**labels, **numbers, "level": [0.9] * 2, "count": [-3, 5], **shares})
    table = estimates_table(frame, 0.9)
    assert table.headings == [
        *("Group", "Category", "Released\ncount", "Mean", "90 %\ninterval"),
        "Share of shown,\n90 % interval",
    ]
    assert table.texts == 2
    assert table.rows[0] == ("(null)", "'a '", "-3", "0.250", "0.200 to 0.300", "10 to 110")
    counted = frame.select(
        "category", pl.col("mean", "lower", "upper") * 100, share_lower="lower", share_upper="upper"
    )
    in_percent = estimates_table(counted, 0.9, percent=True).rows[1]
    assert in_percent == ("b", "75", "70 to 81", "70.0 to 81.0 %"), "means are of counts there"
    shares = frame.drop("share_lower", "share_upper")
    assert estimates_table(shares, 0.9, percent=True).rows[1][3:] == ("75.0 %", "70.0 to 81.0 %")
    counts = estimates_table(frame.select("category", "count"), 0.9)
    assert (counts.headings, counts.rows[1]) == (["Category", "Released\ncount"], ("b", "5"))


@pytest.mark.parametrize(
    ("ends", "decimals"),
    [(((0.1, 0.4),), 3), (((0.1, 0.10002),), 6), (((0.1, 0.3), (0.2, 0.20002)), 3), ((), 3)],
)
def test_intervals_have_two_digits_or_three(ends, decimals):
    assert decimals_of([a for a, _ in ends], [b for _, b in ends]) == decimals


@pytest.mark.parametrize("name", ["tables", "renderings", "progress"])
def test_what_shows_a_sheet_knows_no_result(name: str) -> None:
    tree = ast.parse((PACKAGE / "display" / f"{name}.py").read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {module for module in imported if str(module).startswith("opendp_bayes")}
    assert ours <= {f"opendp_bayes.display.{of}" for of in ("tables", "wording")}
