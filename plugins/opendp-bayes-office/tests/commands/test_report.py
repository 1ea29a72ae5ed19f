"""`opendp-bayes report`: from a file to a page."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from opendp_bayes.surveys.survey_query import SurveyQuery
from opendp_bayes.trusted.boundary import ReleaseError
from opendp_bayes_office.commands import output
from opendp_bayes_office.report.report_document import Report
from tests.helpers.command_line import run
from tests.helpers.sources import ROOT

SPECIFICATION = """\
title = "Votes"
[privacy]
epsilon = 20000.0
[columns.vote]
categories = ["a", "b"]
[columns.town]
categories = ["x", "y"]
[[results]]
column = "vote"
[[results]]
column = "vote"
by = "town"
[[results]]
column = ["vote", "town"]
"""
MAKE = ("report", "votes.toml", "votes.csv", "-o", "votes.html")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a specification and data."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i // 4},{'aab'[i % 3]},{'xy'[i % 2]}" for i in range(60)]
    Path("votes.csv").write_text("\n".join(["person,vote,town", *rows, ",,", "99,zz,x", ""]))
    Path("votes.toml").write_text(SPECIFICATION)
    return tmp_path


#: What each page has before its first report, of a file of CSV.
START = {
    "README.md": {"FILE": "survey.csv", "C=a,b,c": "vote=yes,no", "D=x,y": "age=young,old"},
    "docs/reports.md": {},
}


@pytest.mark.parametrize("page", START)
def test_from_init_to_a_report_the_commands_of_a_page_run_as_they_stand(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["yes,young", "no,old", "yes,old"] * 20
    Path("survey.csv").write_text("\n".join(["vote,age", *rows, ""]))
    text = (ROOT / page).read_text(encoding="utf-8")
    commands = re.findall(r"^opendp-bayes (init .*)\n(?:opendp-bayes )(report .*)$", text, re.M)
    for command in commands[0]:
        for given, own in START[page].items():
            command = command.replace(given, own)
        shown = run(*shlex.split(command))
    assert "a report of 2 results" in shown


def test_the_specification_of_the_tutorial_makes_its_report(place: Path) -> None:
    """Of a survey with its columns and number of records; the answers are made up."""
    tutorial = ROOT / "docs" / "tutorial.md"
    text = tutorial.read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    Path("survey.toml").write_text(blocks[0])
    parties = re.findall(r'^    "(.*)",$', text.split("parties = [")[1].split("]")[0], re.MULTILINE)
    kinds = {"vote": pl.Enum(["Clinton", "Dole"]), "party": pl.Enum(parties)}
    rows = [(("Clinton", "Dole")[i % 2], parties[i % 7]) for i in range(944)]
    pl.DataFrame(rows, schema=kinds, orient="row").write_parquet("survey.parquet")
    run("report", "survey.toml", "survey.parquet", "-o", "survey.html")
    page = Path("survey.html").read_text()
    for heading in ("Expected vote", "Party", "Expected vote by party"):
        assert f"<h3>{heading}</h3>" in page
    releases = Report.from_json(Path("survey.json").read_bytes()).survey.releases
    assert 0.99 < sum(release.epsilon for release in releases) <= 1.0


FILES, TOP = "votes.toml votes.csv", "[privacy]"
OF_VOTE = '["a", "b"]'


@pytest.mark.usefixtures("_unreleased")
@pytest.mark.parametrize(
    ("arguments", "change", "message"),
    [
        ("votes.toml", ("", ""), "DATA: is missing; name the"),
        ("absent.toml votes.csv", ("", ""), r"absent\.toml: cannot be read \(No"),
        ("votes.toml absent.csv", ("", ""), r"data=absent\.csv: is not a file"),
        (FILES, ("= 20000", "= -2"), r"votes\.toml: privacy\.epsilon"),
        (FILES, ("vote", "vot"), r"column 'vot' is not in the first line"),
        (FILES, (f"categories = {OF_VOTE}", ""), r"vote\.categories: is missing; list all of them"),
        (FILES, ('by = "town"', 'by = "town"\nprior = [1, 2]'), r"prior=\[1.0, 2.0\]: .*3"),
        (FILES, (TOP, f'separator = ";;"\n{TOP}'), r"votes\.toml: separator=';;': .*ASCII"),
        (FILES, (TOP, f'encoding = "morse"\n{TOP}'), r"votes\.toml: encoding='morse': .*not"),
        (
            *(FILES, (TOP, f'encoding = "utf-16"\n{TOP}')),
            r"votes\.csv: .*not text in utf-16.*encoding = 'latin-1'",
        ),
        (FILES, (OF_VOTE, f'{OF_VOTE}\nunmatched = "drop"'), r"vote\.unmatched: is not a field"),
        ("votes.csv", ("", ""), r"votes\.csv: text: .*not a result"),
    ],
)
def test_what_is_wrong_is_found_before_anything_is_released(place, arguments, change, message):
    Path("votes.toml").write_text(SPECIFICATION.replace(*change))
    shown = run("report", *arguments.split(), "-o", "votes.html", code=2)
    assert len(shown.splitlines()) == 1
    assert re.search(message, shown), shown
    assert not [*place.glob("*.html"), *place.glob("*.json")], "nothing is left"


@pytest.mark.parametrize("taken", ["votes.html", "votes.json"])
def test_files_that_exist_are_not_replaced(place: Path, taken: str) -> None:
    Path(taken).write_text("paid for")
    assert f"{taken}: exists already" in run(*MAKE, code=2)
    assert Path(taken).read_text() == "paid for"


def test_a_failure_releases_nothing_and_leaves_nothing(place, monkeypatch):
    def fails(self: SurveyQuery) -> Any:
        raise ReleaseError("reading failed")

    monkeypatch.setattr(SurveyQuery, "release", fails)
    assert "reading failed" in run(*MAKE, code=1)
    assert not [*place.glob("*.html"), *place.glob("*.json")]


def test_a_page_that_cannot_be_written_loses_no_release(place, monkeypatch):
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output.os, "fsync", full)
    message = run(*MAKE, code=3)
    text = re.search(r"it could not be written, so it is here: (\{.*\})", message)
    assert text, message
    assert len(Report.from_json(text[1]).survey.releases) == 3
    assert not [*place.glob("*.html"), *place.glob("*.json")]


def test_where_the_page_alone_cannot_be_written_its_releases_are_named(place, monkeypatch):
    write = output.NewFile.write

    def full(self: output.NewFile, content: bytes) -> None:
        if self.path.suffix == ".html":
            with output.written(self.path):
                raise OSError(28, "No space left on device")
        write(self, content)

    monkeypatch.setattr(output.NewFile, "write", full)
    message = run(*MAKE, code=3)
    assert "votes.html: cannot be written (No space left on device)." in message
    assert "used its budget; it is in votes.json, and `opendp-bayes show` prints it" in message
    monkeypatch.undo()
    monkeypatch.chdir(place)
    run("report", "votes.json", "-o", "votes.html")


def test_the_schema_is_printed_and_init_refuses_a_column_listed_twice(place: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(run("report", "--schema")))
    twice = ("--categories", "vote=a,b", "--categories", "vote=b")
    message = run("init", "votes.csv", *twice, code=2)
    assert "once for each column" in message


@pytest.mark.parametrize("command", ["release", "report"])
def test_no_command_shows_the_first_line(place: Path, command: str) -> None:
    Path("votes.csv").write_text("Jane,HIV\nJohn,none\n")
    options = {
        "release": ("votes.csv", "--column", "vote", "--categories", "a,b", "--epsilon", "1"),
        "report": ("votes.toml", "votes.csv"),
    }[command]
    message = run(command, *options, code=2)
    assert "is not in the first line of votes.csv" in message
    assert "Jane" not in message
    assert "HIV" not in message


def test_where_other_records_are_counted_is_said_before_the_release(place, monkeypatch):
    def fails(self: SurveyQuery) -> Any:
        raise ReleaseError("reading failed")

    monkeypatch.setattr(SurveyQuery, "release", fails)
    asked = SPECIFICATION.replace('["x", "y"]', '["x", "y"]\nunknown = "DROP"')
    asked = asked.replace('["a", "b"]', '["a", "b"]\nnulls = "R&D\'s <none>"')
    Path("votes.toml").write_text(asked)
    lines = run(*MAKE, code=1).splitlines()
    left = "In {}, records without a value are {}, those with any value not listed are {}."
    assert [line.partition(": ")[2] for line in lines[:3]] == [
        left.format("vote", "counted as “R&D's <none>”", "counted as “other”"),
        left.format("town", "in no group", "in no group"),
        left.format("town", "left out", "left out"),
    ]
