"""`opendp-bayes synthesize`: from a specification and data to synthetic records."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from opendp_bayes.commands.output import NewFile
from opendp_bayes.report.report_document import Report
from tests.helpers.command_line import run

SPECIFICATION = """\
title = "Votes"
[privacy]
epsilon = 20000.0
[columns.vote]
categories = ["a", "b"]
nulls = "b"
unknown = "b"
[columns.town]
categories = ["x", "y"]
nulls = "y"
unknown = "y"
[[results]]
column = ["vote", "town"]
[[results]]
column = "vote"
"""
MAKE = ("synthesize", "votes.toml", "votes.csv", "-o", "made", "--copies", "2")


@pytest.fixture
def place(sixty_votes: Path) -> Path:
    """A working directory with a specification and data."""
    Path("votes.toml").write_text(SPECIFICATION)
    return sixty_votes


def rows_of(path: Path) -> list[tuple[str, str]]:
    return sorted(pl.read_parquet(path).rows())


def test_copies_and_the_releases_behind_them_are_written(place: Path) -> None:
    assert run(*MAKE) == "made: 2 copies of population records.\n"
    names = {path.name for path in Path("made").iterdir()}
    assert names == {"population-1.parquet", "population-2.parquet", "releases.json"}
    # Noise of scale 5e-4 at most differs from 0 with probability below e^-1999.
    for path in Path("made").glob("*.parquet"):
        assert rows_of(path) == sorted(("aab"[i % 3], "xy"[i % 2]) for i in range(60))
    assert pl.read_parquet_schema("made/population-1.parquet")["vote"] == pl.Enum(["a", "b"])
    report = Report.from_json(Path("made/releases.json").read_bytes())
    assert report.specification.joint
    assert len(report.releases) == 2
    shown = run("report", "made/releases.json", "-o", "page.html")
    assert shown == "page.html: a report of 2 results.\n"


def test_rows_of_each_identifier_are_drawn_once_for_all_tables(place: Path) -> None:
    """Two of three rows of each person, with hardly any noise. Tables of rows drawn twice would
    agree with a probability below .2, that 8 of 20 people leave out the row that voted b.
    """
    limited = 'epsilon = 20000.0\nidentifier = "person"\nrows_per_identifier = 2'
    Path("votes.toml").write_text(SPECIFICATION.replace("epsilon = 20000.0", limited))
    rows = [("aab"[i // 20], "xy"[i % 2], i % 20) for i in range(60)]
    pl.DataFrame(rows, ["vote", "town", "person"], orient="row").write_csv("votes.csv")
    run(*MAKE)
    survey = Report.from_json(Path("made/releases.json").read_bytes()).releases
    table, votes = (np.array(release.drawn) for release in survey)
    assert table.sum() == 40
    assert np.array_equal(table.reshape(2, 2).sum(axis=1), votes)
    assert run("report", "made/releases.json", "-o", "page.html")
    page = Path("page.html").read_text()
    assert "At most 2 records of each person, the same for every result, are counted" in page


def test_more_copies_of_an_earlier_run_cost_nothing(place: Path) -> None:
    run(*MAKE)
    more = ("synthesize", "made/releases.json", "-o", "more")
    options = ("--kind", "predictive", "--rows", "9", "--format", "csv", "--copies", "1")
    assert run(*more, *options) == "more: 1 copy of predictive records.\n"
    assert [path.name for path in Path("more").iterdir()] == ["predictive-1.csv"]
    first = pl.read_csv("more/predictive-1.csv")
    assert (first.columns, first.height) == (["vote", "town"], 9)
    again = [first]
    for number in range(2):  # no seed: all three the same with probability below 1e-6
        run("synthesize", "made/releases.json", "-o", f"again{number}", *options)
        again.append(pl.read_csv(f"again{number}/predictive-1.csv"))
    assert not all(frame.equals(first) for frame in again)


@pytest.mark.usefixtures("_unreleased")
@pytest.mark.parametrize(
    ("arguments", "change", "message"),
    [
        ("votes.toml votes.csv --copies 0", ("", ""), "--copies 0: must be at least 1"),
        ("votes.toml votes.csv --rows 5", ("", ""), "--rows 5: must be .* for --kind predictive"),
        ("votes.toml votes.csv --kind predictive --rows 0", ("", ""), "--rows 0: must be at leas"),
        ("votes.toml", ("", ""), "DATA: is missing; name the file with the data after"),
        ("made.json --ledger l", ("", ""), "--ledger l: is for data; more copies of an earlier"),
        ("votes.csv", ("", ""), r"votes\.csv: text: is not a report in JSON"),
        (
            "votes.toml votes.csv",
            ('column = "vote"', 'column = "vote"\nby = "town"'),
            r"line 16: results\[1\]\.by: does not go with joint; ask for the joint table, as in"
            r" column = \['town', 'vote'\]",
        ),
        (
            "votes.toml votes.csv",
            ('column = "vote"', 'column = "vote"\nprior = 0.5'),
            r"line 16: results\[1\]\.prior: does not go with joint, which learns one",
        ),
        (
            "votes.toml votes.csv",
            ('column = "vote"', 'column = ["vote", "town"]\ntitle = "again"'),
            r"results\[1\]\.column: is in another result; joint takes every table once",
        ),
        (
            "votes.toml votes.csv",
            ('nulls = "b"\n', ""),
            r"columns\.vote: must have nulls: the tables are of the same records, so those without",
        ),
        (
            "votes.toml votes.csv",
            (
                'epsilon = 20000.0\n[columns.vote]\ncategories = ["a", "b"]',
                'epsilon = 1.0\nsize = 60\n[columns.vote]\ncategories = ["a", "b"]',
            ),
            r"results\[1\]\.mechanism='hellinger_exponential': must add noise to the counts",
        ),
        (
            "votes.toml votes.csv",
            ('["x", "y"]', str([*map(str, range(1500)), "x", "y"]).replace("'", '"')),
            r"joint: tied together they need a table of 3004 cells, .* leave out 'vote × town'",
        ),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_released(
    place: Path, arguments: str, change: tuple[str, str], message: str
) -> None:
    text = SPECIFICATION.replace(*change)
    if "hellinger" in message:
        text += 'mechanism = "hellinger_exponential"\n'
    Path("votes.toml").write_text(text)
    shown = run("synthesize", *arguments.split(), "-o", "made", code=2)
    assert len(shown.splitlines()) == 1
    assert re.search(message, shown), shown
    assert not Path("made").exists(), "nothing is left"


def test_places_that_are_taken_or_cannot_be_written(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--output no/made: cannot be made" in run(*MAKE[:4], "no/made", code=2)
    run(*MAKE)
    assert "--output made: exists already; name a new folder." in run(*MAKE, code=2)

    def full(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    shown = run(*MAKE[:4], "other", code=3)
    assert "other: cannot be written (No space left on device)." in shown
    assert "The releases are in other/releases.json." in shown
    assert Path("other/releases.json").exists()
    monkeypatch.setattr(NewFile, "write", full)
    shown = run(*MAKE[:4], "third", code=3)
    assert re.search(r"it is in \S+, and `opendp-bayes show` prints it", shown), shown
    assert not Path("third").exists()


def test_a_report_by_groups_has_no_copies(place: Path) -> None:
    grouped = SPECIFICATION.replace('column = "vote"', 'column = "vote"\nby = "town"')
    Path("votes.toml").write_text(grouped)
    run("report", "votes.toml", "votes.csv", "-o", "votes.html")
    shown = run("synthesize", "votes.json", "-o", "made", code=2)
    assert "'vote by town' is by groups, or of a table that is there already" in shown
    assert not Path("made").exists()


def test_more_copies_than_draws_are_refused_and_the_releases_kept(place: Path) -> None:
    """How many draws there are is known only after the releases were made and paid for."""
    shown = run(*MAKE[:5], "--copies", "1000000000", code=3)
    assert re.search(r"--copies 1000000000: must be at most \d+, the draws there are", shown), shown
    assert "The releases are in made/releases.json." in shown
    again = run("synthesize", "made/releases.json", "-o", "new", "--copies", "1000000000", code=2)
    assert "--copies 1000000000: must be at most" in again
    assert not Path("new").exists()
