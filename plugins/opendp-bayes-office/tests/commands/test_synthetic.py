"""`opendp-bayes report --synthetic`: from a specification and data to synthetic records."""

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from opendp_bayes_office.commands import output
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
        ("votes.csv", ("", ""), r"votes\.csv: text: .*not a result"),
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
