"""Sheets of results: their text, and their HTML for notebooks."""

import ast
from dataclasses import replace
from html.parser import HTMLParser
from itertools import permutations
from pathlib import Path

import pytest

import opendp_bayes as ob
from opendp_bayes.display.sheet import Sheet, labelled_frame
from opendp_bayes.display.tables import Table
from opendp_bayes.results.release import GroupedRelease
from tests.helpers.releases import guarantee, release

PACKAGE = Path(ob.__file__).parent
ROWS = (("first", "a", "1"), ("first", "[b]<c>", "20"))
SHEET = Sheet((Table(("Group", "Thing", "per\ncent"), ROWS, 2),), ("A note.", "By f(x)."), "Title")


def test_text_shows_everything_and_labels_write_nothing_else() -> None:
    assert str(SHEET).splitlines() == [
        "Title",
        "Group  Thing   per cent",
        "first  a              1",
        "first  [b]<c>        20",
        "A note.",
        "By f(x).",
    ]
    made = release((7, 0, 3), ("\x1b[2Jyes", "no\u202e", 3))
    shown = replace(made.sheet(), title="a\x1b[31mb").text(80)
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    for text in ("a\ufffd[31mb", r"'\x1b[2Jyes'", r"'no\u202e'"):
        assert text in shown


@pytest.mark.parametrize("names", list(permutations(["mean", "mean_", "mean__"])))
def test_columns_of_any_names_are_all_there(names: tuple[str, ...]) -> None:
    labels = {name: [name, str(number)] for number, name in enumerate(names)}
    frame = labelled_frame(labels, {"mean": [0.5, 0.25]})
    assert frame["mean"].to_list() == [0.5, 0.25]
    assert [column.to_list() for column in frame.drop("mean")] == list(labels.values())
    assert all(column.startswith(name) for column, name in zip(frame.columns, names, strict=False))
    assert set("".join(frame.columns)) == set("mean_")


@pytest.mark.parametrize("name", ["tables", "renderings"])
def test_what_shows_a_sheet_knows_no_result(name: str) -> None:
    tree = ast.parse((PACKAGE / "display" / f"{name}.py").read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {module for module in imported if str(module).startswith("opendp_bayes")}
    assert ours <= {f"opendp_bayes.display.{of}" for of in ("tables", "wording")}


def test_says_where_intervals_are_about_those_of_the_prior() -> None:
    of_groups = ("north", "south"), ((5, 1), (2, 4)), ("yes", "no"), (1.0, 1.0)
    noise = ob.LaplaceParameters(1.0, total="private")
    groups = GroupedRelease(*of_groups, noise, guarantee(None))
    said = "are about as wide as the prior's own"
    hidden = replace(groups, mechanism=ob.LaplaceParameters(1e4, total="private"))
    assert f"The intervals {said}" in str(hidden.sheet())
    assert f"The intervals {said}" in str(hidden["north"].sheet())
    for narrow in (groups.sheet(), groups["north"].sheet()):
        assert said not in str(narrow)
    one = replace(hidden, noisy_counts=((5, 1), (200000, 400000)))
    assert f"The intervals of 1 of the 2 groups {said}" in str(one.sheet())


LABELS = "<script>alert('a & b')</script>", True, 3
RELEASE = ob.Release((12, 3, 5), LABELS, (1.0, 0.5, 2.0), ob.LaplaceParameters(2.0), guarantee(20))

NOISE, LOSS = ob.LaplaceParameters(2.0, total="private"), ob.PrivacyLoss(0.5, 0.125, 1.0)
OF_GROUPS = ("<north>", None), ((12, 3), (0, 5)), ("a & b", 3), (1.0, 0.5)
GROUPED = GroupedRelease(*OF_GROUPS, NOISE, guarantee(None, LOSS))


class Page(HTMLParser):
    """The cells of every row and the text below; checks that tags are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.scopes: list[str] = []
        self.rows: list[list[str]] = []
        self.paragraph = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "th":
            self.scopes.append(dict(attrs)["scope"] or "")
        if tag == "br":
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "table" in self.open:
            self.rows[-1][-1] += data
        else:
            self.paragraph += data


def test_nothing_comes_from_elsewhere_and_every_header_says_what_it_heads() -> None:
    text = RELEASE._repr_html_()
    page = Page(text)
    assert page.rows[1][0] == "<script>alert('a & b')</script>"
    assert page.tags == {"div", "table", "thead", "tbody", "tr", "th", "td", "br"}
    assert page.attributes == {"style", "scope"}
    assert "url(" not in text
    assert "http" not in text
    assert Page(RELEASE._repr_html_()).scopes == ["col"] * 5 + ["row"] * 3
    assert Page(GROUPED._repr_html_()).scopes == ["col"] * 5 + ["row"] * 4
