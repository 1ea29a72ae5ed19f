"""Every role of a column × every two cleaning steps: records are where the steps put them."""

import html
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import opendp_bayes as ob
from opendp_bayes.results.reader import result_from_json
from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.command_line import run
from tests.helpers.sweeps import pairs_of

#: What the records hold, and how many do.
HELD = {"a": 400, "b": 300, " b ": 200, "c": 150, "-9": 120, "-8": 90, "": 60}
#: The steps: what a specification writes at its top and at the column, and what it says of them.
STEPS: dict[str, tuple[str, str, str]] = {
    "trim": ("trim = true", "", "Blanks around texts are left out."),
    "null_values": ('null_values = ["-9"]', "", "What reads '-9' is no value."),
    "of_columns": ("", 'null_values = ["-8"]', "In v, what reads '-8' is no value."),
    "recode": ("", 'recode = { c = "b" }', "In v, 'c' is counted as 'b'."),
}
PAIRS = list(combinations(STEPS, 2))
PRIVACY = "epsilon = 40.0\ndelta = 1e-7"


def cleaned(value: str, steps: tuple[str, ...]) -> str | None:
    """The value after the steps; None for no value."""
    if "trim" in steps:
        value = value.strip()
    if value == "" or ("null_values" in steps and value == "-9"):
        return None
    if "of_columns" in steps and value == "-8":
        return None
    return "b" if "recode" in steps and value == "c" else value


def counted(steps: tuple[str, ...]) -> Counter[str | None]:
    counts: Counter[str | None] = Counter()
    for value, number in HELD.items():
        counts[cleaned(value, steps)] += number
    return counts


LISTED = 'categories = ["a", "b", "d"]\nnulls = "none"\nunknown = "rest"'
COUNTED = {"a": "a", "b": "b", None: "none"}


def listed(steps: tuple[str, ...]) -> dict[Any, int]:
    """The counts of a column whose categories are listed."""
    counts = dict.fromkeys(("a", "b", "d", "none", "rest"), 0)
    for value, number in counted(steps).items():
        counts[COUNTED.get(value, "rest")] += number
    return counts


def of_one(release: Any) -> dict[Any, int]:
    return dict(zip(release.categories, release.counts, strict=True))


def of_groups(release: Any) -> dict[Any, int]:
    return {group: sum(one.counts) for group, one in release.items()}


def of_cells(release: Any) -> dict[Any, int]:
    sums: Counter[Any] = Counter()
    for (label, _), number in of_one(release).items():
        sums[label] += number
    return dict(sums)


def discovered(steps: tuple[str, ...]) -> dict[Any, int]:
    return {("none" if of is None else of): n for of, n in counted(steps).items() if n}


#: The role: the column's table, the results, what is counted of a release, and what should be.
Wanted = Callable[[tuple[str, ...]], dict[Any, int]]
W = '[columns.w]\ncategories = ["x", "y"]\nnulls = "x"\n'
ROLES: dict[str, tuple[str, str, Callable[[Any], dict[Any, int]], Wanted]] = {
    "category": (LISTED, 'column = "v"', of_one, listed),
    "ordered": (LISTED, 'column = "v"\nordered = ["v"]\nprior = "learned"', of_one, listed),
    "group": (LISTED, 'column = "w"\nby = "v"', of_groups, listed),
    "of a table": (LISTED, 'column = ["v", "w"]', of_cells, listed),
    "discovered": ('categories = "discover"\nnulls = "none"', 'column = "v"', of_one, discovered),
}


@pytest.fixture(scope="module", autouse=True)
def _data(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("data")
    rows = [f'"{value}",x' for value, number in HELD.items() for _ in range(number)]
    (folder / "data.csv").write_text("\n".join(["v,w", *rows, *[""] * 50, ""]))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


def asked(steps: tuple[str, ...], role: str) -> str:
    column, result, *_ = ROLES[role]
    top = "\n".join(STEPS[step][0] for step in steps)
    more = "\n".join(STEPS[step][1] for step in steps)
    return (
        f'title = "t"\n{top}\n[privacy]\n{PRIVACY}\n[columns.v]\n{column}\n{more}\n{W}'
        f"[[results]]\n{result}\n"
    )


@pytest.mark.parametrize(
    ("first", "second", "role"), pairs_of((*steps, role) for steps in PAIRS for role in ROLES)
)
def test_records_are_counted_where_the_steps_put_them(first: str, second: str, role: str) -> None:
    steps = first, second
    text = asked(steps, role)
    Path("s.toml").write_text(text)
    release = result_from_json(run("run", "s.toml", "data.csv", "-o", "-"))
    *_, counts, wanted = ROLES[role]
    assert counts(release) == wanted(steps)
    assert wanted(steps) != wanted(()), "the steps do something"
    specification = read_specification(text)
    said = specification.sentences({"v": specification.columns["v"]})
    assert sorted(said) == sorted(STEPS[step][2] for step in steps)


def test_the_page_says_what_was_done() -> None:
    Path("s.toml").write_text(asked(tuple(STEPS), "category"))
    run("report", "s.toml", "data.csv", "-o", "page.html")
    page = html.unescape(Path("page.html").read_text())
    for *_, sentence in STEPS.values():
        assert sentence in page


IDENTIFIED = '[columns.w]\ncategories = ["x", "y"]\nnulls = "x"\n[[results]]\ncolumn = "w"\n'


@pytest.mark.parametrize("steps", [(), ("trim",), ("null_values",), ("trim", "null_values")])
def test_an_identifier_is_a_person_after_the_steps_that_are_for_it(steps: tuple[str, ...]) -> None:
    """A code for no value is a person all the same."""
    top = "\n".join(STEPS[step][0] for step in steps)
    Path("s.toml").write_text(
        f'title = "t"\n{top}\n[privacy]\nepsilon = 40.0\nidentifier = "v"\n'
        f"rows_per_identifier = 1\n{IDENTIFIED}"
    )
    release = result_from_json(run("run", "s.toml", "data.csv", "-o", "-"))
    assert isinstance(release, ob.Release)
    people = {value.strip() if "trim" in steps else value for value in HELD}
    assert sum(release.counts) == len(people)
