"""Categories that nobody listed, asked for by specifications, owners' files and options."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes_office.report.field_errors import SpecificationError
from opendp_bayes_office.report.specification_text import read_owner_file, read_specification
from tests.helpers.command_line import run
from tests.helpers.pages_of_reports import Page

CODES = ["A01"] * 300 + ["B02"] * 200 + ["b02"] * 50 + [f"rare {n}" for n in range(50)]
ALONE = "Ada Lovelace of 12 St James Square"
OWNER = """\
path = "codes.csv"
epsilon_at_most = 50.0
delta_at_most = 1e-6
[privacy]
unit = "one patient"
[columns.code]
categories = ["A01", "Z99"]
discover = true
[columns.name]
[columns.town]
categories = ["here", "there"]
[ledger]
path = "codes.ledger"
total = { epsilon = 100.0, delta = 1e-5 }
"""


def asked(
    column: str = 'categories = "discover"',
    result: str = "rest = 0.2",
    privacy: str = "epsilon = 40.0\ndelta = 1e-7",
    name: str = "code",
    top: str = "",
) -> str:
    return (
        f'title = "Codes"\n{top}\n[privacy]\n{privacy}\n[columns.{name}]\n{column}\n[[results]]\n'
        f'column = "{name}"\n{result}\n'
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with data, a question and the owner's file."""
    monkeypatch.chdir(tmp_path)
    names = [ALONE, *(f"person {n}" for n in range(1, len(CODES)))]
    towns = [["here", "there"][n % 2] for n in range(len(CODES))]
    people = [n // 2 for n in range(len(CODES))]
    frame = pl.DataFrame({"code": CODES, "name": names, "town": towns, "person": people})
    frame.write_csv("codes.csv")
    frame.with_columns(number=pl.lit(7), weight=pl.lit(0.5)).write_parquet("codes.parquet")
    Path("asked.toml").write_text(asked())
    Path("data.toml").write_text(OWNER)
    return tmp_path


def released(*arguments: object) -> Any:
    return ob.DiscoveredRelease.from_json(run(*arguments, "-o", "-"))


# --- specifications
def test_a_specification_discovers_categories_and_counts_people(place: Path) -> None:
    release = released("run", "asked.toml", "codes.csv")
    assert release.categories == ("A01", "B02", "b02")
    assert release.counts == (300, 200, 50)  # within the noise of this ε, of less than 1e-12
    assert release.rest.noisy_count == pytest.approx(50, abs=6)
    assert (release.epsilon, release.delta) == (pytest.approx(40.0), pytest.approx(1e-7))
    assert ALONE not in release.to_json()
    privacy = 'epsilon = 40.0\ndelta = 1e-7\nidentifier = "person"\nrows_per_identifier = 1'
    Path("asked.toml").write_text(asked(privacy=privacy))
    release = released("run", "asked.toml", "codes.csv")
    assert release.people
    assert release.counts == (150, 100, 25)


def test_labels_are_recoded_listed_and_nulls_have_theirs(place: Path) -> None:
    column = (
        'categories = "discover"\nalways = ["Z99"]\nrecode = { b02 = "B02" }\n'
        'null_values = ["A01"]\nnulls = "none"'
    )
    Path("asked.toml").write_text(asked(column))
    release = released("run", "asked.toml", "codes.csv")
    assert release.categories == ("Z99", "none", "B02")
    assert release.counts == (0, 300, 250)
    assert release.listed == 2


def test_a_report_has_discovered_results_beside_others(place: Path) -> None:
    more = '[columns.town]\ncategories = ["here", "there"]\n[[results]]\ncolumn = "town"\nshare = 2'
    Path("asked.toml").write_text(f"{asked()}\n{more}\n")
    assert "a report of 2 results" in run("report", "asked.toml", "codes.csv", "-o", "page.html")
    page = Path("page.html").read_text()
    assert "and everything else" in page
    shown = run("show", "page.json")
    assert "Noisy" in shown
    run("report", "page.json", "-o", "again.html")
    assert Path("again.html").read_text() == page


def test_a_dry_run_shows_which_counts_will_be_shown(place: Path) -> None:
    release = released("run", "asked.toml", "codes.csv")
    law = release.discovery.law
    for data in ([], ["codes.csv"]):
        shown = run("run", "asked.toml", *data, "--dry-run").split("\n")
        row = next(line for line in shown if line.startswith("code"))
        counts = [str(law.least_shown(share)) for share in (0.5, 0.95, 0.99)]
        assert row.split()[-3:] == counts


BY_TOWN = 'by = "town"\n[columns.town]\ncategories = ["here"]'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (asked('categories = "discover"\nlabels = ["a"]'), "columns.code.labels: must be one for"),
        (asked('categories = "discover"\nunknown = "x"'), "columns.code.unknown: is for"),
        (asked('categories = "found"'), r"columns.code.categories='found': .*'discover'"),
        (asked('categories = ["a"]\nalways = ["b"]', ""), "columns.code.always: goes with"),
        (asked('categories = ["a"]'), r"results\[0\].rest: goes with categories to discover"),
        (asked(result="prior = 2"), r"results\[0\].prior: .*that are listed"),
        (asked(result='ordered = ["code"]'), r"results\[0\].ordered: is for categories that are"),
        (asked(result="merge = 2"), r"results\[0\].merge: .*that are listed"),
        (asked(result="rest = 1.0"), r"results\[0\].rest=1.0: must be"),
        (asked(top="joint = true"), r"results\[0\].column: is for categories that are listed"),
        (asked(result=BY_TOWN), r"results\[0\].by: is for categories that are listed"),
    ],
)
def test_what_does_not_go_with_discovery_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        read_specification(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (asked(result='mechanism = "laplace"'), "mechanism='laplace': must be one of"),
        (asked(name="weight"), "column 'weight' of codes.parquet has type Float64; must be text"),
        (asked(privacy="epsilon = 1.0"), "must have a δ"),
    ],
)
def test_what_does_not_fit_the_data_is_refused_before_they_are_read(place, text, message):
    Path("asked.toml").write_text(text)
    said = " ".join(run("run", "asked.toml", "codes.parquet", code=2).split())
    assert message in said


# --- what a stranger may discover
def answered(text: str, owner: str = OWNER) -> Any:
    return read_specification(text, owner=read_owner_file(owner))


def test_a_stranger_discovers_what_the_owner_lets_be_discovered(place: Path) -> None:
    release = released("run", "asked.toml", "data.toml")
    assert release.categories == ("A01", "B02", "b02")
    owner = OWNER.replace("discover = true", 'discover = true\nrecode = { b02 = "B02" }')
    assert answered(asked(), owner).columns["code"].recode == {"b02": "B02"}
    with pytest.raises(SpecificationError, match=r"columns.code.nulls='Z99': is for the owner"):
        answered(asked('categories = "discover"\nnulls = "Z99"'))
    assert answered(asked("", "")).columns["code"].categories == ["A01", "Z99"]


@pytest.mark.parametrize("name", ["name", "town"])
def test_without_the_owners_word_nothing_is_discovered(place: Path, name: str) -> None:
    with pytest.raises(SpecificationError, match=f"columns.{name}.categories='discover': may not"):
        answered(asked(name=name))
    Path("asked.toml").write_text(asked(name=name))
    said = run("run", "asked.toml", "data.toml", code=2)
    assert ALONE not in said
    assert not Path("codes.ledger").exists()  # refused before the data are opened


def test_a_column_is_discovered_and_its_labels_named_by_the_owner_alone() -> None:
    with pytest.raises(SpecificationError, match=r"columns.person='person': may not"):
        answered(asked(name="person"))
    allowed = answered(asked('categories = "discover"\nalways = ["Z99"]'))
    assert allowed.columns["code"].always == ["Z99"]
    assert answered(asked()).columns["code"].always == []
    of_somebody = asked(f'categories = "discover"\nalways = ["{ALONE}"]')
    with pytest.raises(SpecificationError, match=r"columns.code.always: .* not among"):
        answered(of_somebody)
    none = OWNER.replace('categories = ["A01", "Z99"]\n', "")
    with pytest.raises(SpecificationError, match=r"columns.code.always: 'Z99' .*not among"):
        answered(asked('categories = "discover"\nalways = ["Z99"]'), none)


@pytest.mark.parametrize(
    ("privacy", "message"),
    [
        ("epsilon = 60.0\ndelta = 1e-7", "privacy.epsilon=60.0: must be at most 50.0"),
        ("epsilon = 1.0\ndelta = 1e-3", "privacy.delta=0.001: must be at most 1e-06"),
    ],
)
def test_a_stranger_stays_within_the_losses_of_the_owner(privacy: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        answered(asked(privacy=privacy))


# --- options
BUDGET = ("--epsilon", 40, "--delta", "1e-7")


def test_release_discovers_by_options(place: Path) -> None:
    of = ("codes.csv", "--discover", "code", "--always", "Z99,A01", "--rest", 0.2, *BUDGET)
    release = released("release", *of)
    assert release.categories == ("Z99", "A01", "B02", "b02")
    assert release.rest is not None
    shown = run("release", "codes.csv", "--discover", "code", *BUDGET, "-o", "kept.json")
    assert "shown if that was at least" in " ".join(shown.split())
    table = json.loads(run("show", "kept.json", "-o", "-", "--plot", "bars.png"))
    assert [row["category"] for row in table] == ["A01", "B02", "b02"]
    assert [row["noisy_count"] for row in table] == [300, 200, 50]
    assert "A01" in run("show", "kept.json")
    assert Path("bars.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--discover", "code", "--epsilon", 1), "must have a δ"),
        (("--discover", "code", "--column", "code", *BUDGET), "--discover code: does not go with"),
        (("--discover", "code", "--categories", "a", *BUDGET), "--discover code: does not go with"),
        (("--discover", "code", "--by", "town=here", *BUDGET), "--discover code: does not go with"),
        (("--discover", "code", "--unknown", "x", *BUDGET), "columns.code.unknown: is for"),
        (("--discover", "code", "--prior", "2", *BUDGET), "prior: is for categories that are"),
        (("--discover", "code", "--rest", 2, *BUDGET), "rest=2.0: must be"),
        (("--column", "town", "--categories", "here", "--rest", 0.2, *BUDGET), "rest: goes with"),
        (
            ("--column", "town", "--categories", "x", "--always", "y", *BUDGET),
            "columns.town.always: goes",
        ),
        (BUDGET, "--column: is missing; name the column of categories, or --discover one."),
    ],
)
def test_options_that_do_not_fit_are_refused(place, options, message):
    assert message in " ".join(run("release", "codes.csv", *options, code=2).split())


def test_labels_are_kept_as_they_are_and_shown_without_controls(place: Path) -> None:
    pl.DataFrame({"code": ["=1+1"] * 90 + ["\u202eb"] * 90}).write_csv("bad.csv")
    shown = run("release", "bad.csv", "--discover", "code", *BUDGET, "-o", "bad.json")
    assert "\\u202eb" in "".join(shown.split())
    assert "\u202e" not in shown
    assert json.loads(Path("bad.json").read_text())["categories"] == ["=1+1", "\u202eb"]


@pytest.mark.parametrize("of", ["epsilon", "rho"])
def test_a_budget_with_delta_is_entered_and_shown_with_it(of: str, place: Path) -> None:
    Path("asked.toml").write_text(asked(privacy=f"{of} = 40.0\ndelta = 1e-7"))
    run("ledger", "b.ledger", "--dataset", "codes", f"--{of}", 99, "--delta", 1e-3)
    for number, way in enumerate(("run", "report"), start=1):
        output = f"{way}.{'json' if way == 'run' else 'html'}"
        run(way, "asked.toml", "codes.csv", "-o", output, "--ledger", "b.ledger")
        spent = ob.Ledger("b.ledger").spent
        assert (spent.kind, spent.value) == (of, 40.0 * number)
        assert spent.delta == pytest.approx(number * 1e-7)
    said = " ".join(Page(Path("report.html").read_text()).text["promise"].split())
    symbol = {"epsilon": "ε", "rho": "ρ"}[of]
    (delta,) = re.findall(rf"at most {symbol} = 40, δ = (.+?), for", said)
    assert 0 < float(delta) <= 1e-7
