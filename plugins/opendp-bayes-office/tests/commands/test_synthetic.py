"""`opendp-bayes report --synthetic`: from a specification and data to synthetic records."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from opendp_bayes_office.commands import output
from opendp_bayes_office.report.report_document import Report
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
MAKE = ("report", "votes.toml", "votes.csv", "-o", "votes.html", "--copies", "2", "--synthetic")


@pytest.fixture
def place(sixty_votes: Path) -> Path:
    """A working directory with a specification and data."""
    Path("votes.toml").write_text(SPECIFICATION)
    return sixty_votes


def rows_of(path: Path) -> list[tuple[str, str]]:
    return sorted(pl.read_csv(path).rows())


def test_copies_and_the_releases_behind_them_are_written(place: Path) -> None:
    shown = (
        "votes.html: a report of 2 results. votes.json keeps the releases.\n"
        "made: 2 copies of synthetic records.\n"
    )
    assert run(*MAKE, "made") == shown
    names = {path.name for path in Path("made").iterdir()}
    assert names == {"population-1.csv", "population-2.csv"}
    # Noise of scale 5e-4 at most differs from 0 with probability below e^-1999.
    for path in Path("made").glob("*.csv"):
        assert rows_of(path) == sorted(("aab"[i % 3], "xy"[i % 2]) for i in range(60))
    report = Report.from_json(Path("votes.json").read_bytes())
    assert report.specification.joint
    assert len(report.survey.releases) == 2
    assert Path("votes.html").read_text().count("<h2") > 2


def test_labels_come_back_from_the_files_as_they_were_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels = ["NA", "null", "", "1.0", "true", " x ", "=1+1", 'a "b"', "c,d", "2026-05-01"]
    pl.DataFrame({'a b,"c"': labels * 20}).write_csv("odd.csv")
    # An empty text of the data is no value, but a label may be one.
    listed = ", ".join(json.dumps(label) for label in labels)
    column = json.dumps('a b,"c"')
    Path("odd.toml").write_text(
        f'title = "Odd"\n[privacy]\nepsilon = 9.0\n[columns.{column}]\ncategories = [{listed}]\n'
        f'nulls = "NA"\nunknown = "NA"\n[[results]]\ncolumn = {column}\n'
    )
    run("report", "odd.toml", "odd.csv", "-o", "odd.html", "--copies", "2", "--synthetic", "odd")


def test_rows_of_each_identifier_are_drawn_once_for_all_tables(place: Path) -> None:
    """Two of three rows each; drawn twice, tables would agree with a probability below .2."""
    limited = 'epsilon = 20000.0\nidentifier = "person"\nrows_per_identifier = 2'
    Path("votes.toml").write_text(SPECIFICATION.replace("epsilon = 20000.0", limited))
    rows = [("aab"[i // 20], "xy"[i % 2], i % 20) for i in range(60)]
    pl.DataFrame(rows, ["vote", "town", "person"], orient="row").write_csv("votes.csv")
    run(*MAKE, "made")
    survey = Report.from_json(Path("votes.json").read_bytes()).survey.releases
    table, votes = (np.array(release.noisy_counts) for release in survey)
    assert table.sum() == 40
    assert np.array_equal(table.reshape(2, 2).sum(axis=1), votes)
    page = Path("votes.html").read_text()
    assert "The rows of each identifier were limited" in page


def test_more_copies_of_an_earlier_run_cost_nothing(place: Path) -> None:
    Path("votes.toml").write_text(SPECIFICATION.replace("20000.0", "1.0"))
    run(*MAKE, "made")
    again = []
    for number in range(3):  # no seed: all three the same with probability below 1e-6
        more = ("report", "votes.json", "-o", f"{number}.html", "--copies", "1")
        shown = run(*more, "--synthetic", f"again{number}")
        assert f"again{number}: 1 copy of synthetic records." in shown
        assert [path.name for path in Path(f"again{number}").iterdir()] == ["population-1.csv"]
        again.append(rows_of(Path(f"again{number}/population-1.csv")))
    assert not again[0] == again[1] == again[2]


FILES = "votes.toml votes.csv"
MANY = str([*map(str, range(1500)), "x", "y"]).replace("'", '"')
OF_VOTE = '[columns.vote]\ncategories = ["a", "b"]'
WITHOUT_NOISE = f"epsilon = 20000.0\n{OF_VOTE}", f"epsilon = 1.0\nsize = 60\n{OF_VOTE}"
BY = ('column = "vote"', 'column = "vote"\nby = "town"')
PRIOR = ('column = "vote"', 'column = "vote"\nprior = 0.5')


@pytest.mark.usefixtures("_unreleased")
@pytest.mark.parametrize(
    ("arguments", "change", "message"),
    [
        (f"{FILES} --dry-run", ("", ""), "--dry-run: draws nothing that --synthetic"),
        ("votes.toml", ("", ""), "DATA: is missing; name the"),
        ("made.json --ledger l", ("", ""), r"--ledger l: .*report from data"),
        ("votes.csv", ("", ""), r"votes\.csv: text: .*not a release"),
        (FILES, BY, r"results\[1\]\.by: .*joint"),
        (FILES, PRIOR, r"results\[1\]\.prior: .*with joint"),
        (FILES, ('nulls = "b"\n', ""), r"results\[0\]\.column='vote': .*same"),
        (FILES, WITHOUT_NOISE, r"hellinger_exponential'; needs noise"),
        (FILES, ('["x", "y"]', MANY), r"3004 cells, .* out"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_released(place, arguments, change, message):
    text = SPECIFICATION.replace(*change)
    if "hellinger" in message:
        text += 'mechanism = "hellinger_exponential"\n'
    Path("votes.toml").write_text(text)
    shown = run("report", *arguments.split(), "--synthetic", "made", code=2)
    assert len(shown.splitlines()) == 1
    assert re.search(message, shown), shown
    assert not Path("made").exists(), "nothing is left"


def test_copies_need_a_folder(place: Path) -> None:
    shown = run("report", "votes.toml", "votes.csv", "--copies", "5", code=2)
    assert "--copies 5: needs --synthetic, the folder for them." in shown
    assert "--copies" in run(*MAKE[:-2], "0", "--synthetic", "made", code=2)
    assert not Path("made").exists()


def test_places_that_are_taken_or_cannot_be_written(place, monkeypatch):
    run(*MAKE, "made")
    again = ("report", "votes.toml", "votes.csv", "--synthetic")
    assert "--synthetic made: exists already; name a new folder." in run(*again, "made", code=2)

    def full(*arguments: Any, **named: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    shown = run(*again, "other", "-o", "other.html", code=3)
    assert "other: cannot be written (No space left on device)." in shown
    assert "used its budget; it is in other.json, and" in shown
    assert Path("other.json").exists()
    monkeypatch.setattr(output.os, "fsync", full)
    shown = run(*again, "third", "-o", "third.html", code=3)
    assert "it could not be written, so it is here: {" in shown
    assert not Path("third").exists()


def test_a_report_by_groups_has_no_copies(place: Path) -> None:
    grouped = SPECIFICATION.replace('column = "vote"', 'column = "vote"\nby = "town"')
    Path("votes.toml").write_text(grouped)
    run("report", "votes.toml", "votes.csv", "-o", "votes.html")
    shown = run("report", "votes.json", "-o", "new.html", "--synthetic", "made", code=2)
    assert "releases['vote by town']: is of groups" in shown
    assert not Path("made").exists()


def test_more_copies_than_draws_are_refused_and_the_releases_kept(place: Path) -> None:
    """How many draws there are is known only after the releases were made and paid for."""
    many = ("--copies", "1000000000", "--synthetic")
    shown = run(*MAKE[:5], *many, "made", code=3)
    assert re.search(r"copies=1000000000: must be at most \d+, the draws there are", shown), shown
    assert "used its budget; it is in votes.json, and" in shown
    again = run("report", "votes.json", "-o", "new.html", *many, "new", code=2)
    assert "copies=1000000000: must be at most" in again
    assert not Path("new").exists()
