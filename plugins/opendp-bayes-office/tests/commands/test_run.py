"""`opendp-bayes run`: a question that travels; and `--dry-run`, which reads no record."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from opendp_bayes.surveys.survey_query import SurveyQuery
from opendp_bayes_office.commands.app import app
from opendp_bayes_office.files.files import Source
from opendp_bayes_office.report.specification_text import tomllib
from tests.helpers.command_line import run

QUESTION = """\
title = "Votes"
[privacy]
epsilon = 20000.0
[columns.vote]
categories = ["a", "b"]
[columns.town]
categories = ["x", "y"]
[[results]]
column = "vote"
mechanism = "laplace_parameters"
[[results]]
column = "vote"
by = "town"
share = 3
"""


@pytest.fixture
def place(sixty_votes: Path) -> Path:
    """A working directory with a question, in both languages, and data."""
    Path("votes.toml").write_text(QUESTION)
    Path("votes.json").write_text(json.dumps(tomllib.loads(QUESTION)))
    return sixty_votes


REFUSED = [
    ('"epsilon": 20000.0', '"epsilon": -1', r"privacy.epsilon=-1: must be a number > 0"),
    ('"epsilon": 20000.0', '"epsilon": NaN', r"votes.json: privacy.epsilon=nan: must be"),
    ('"epsilon": 20000.0', '"epsilon": 1, "epsilon": 2', r"votes.json: is not JSON: 'epsilon' is"),
    ('"title": "Votes",', '"title": "Votes"', r"votes.json: is not JSON: Expecting ',' delimiter"),
    ('"by": "town"', '"by": "city"', r"votes.json: results[1].by: 'city' is not under columns"),
    ('"share": 3', '"scale": 3', r"votes.json: results[1].scale: is not a field; must be one of"),
    ('"share": 3', '"prior": [1]', r"prior=[1.0]: has shape (1,); must have 3 entries"),
    (
        '["x", "y"]',
        '["x", "y"], "recode": {"z": "w"}',
        "columns.town.recode: {'z': 'w'}: must lead",
    ),
    ('"laplace_parameters"', '"laplace"', r"questions['vote']: mechanism='laplace': is not"),
    ('"laplace_parameters"', '"knorm_parameters"', "is not in the first line of votes.csv"),
]


@pytest.mark.usefixtures("_unreleased")
@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_everything_that_a_specification_refuses_is_refused(place, old, new, message):
    text = Path("votes.json").read_text()
    assert old in text
    if "first line" in message:
        old, new = '"town"', '"city"'
    Path("votes.json").write_text(text.replace(old, new))
    shown = run("run", "votes.json", "votes.csv", "-o", "made.json", code=2)
    assert message in shown
    assert not Path("made.json").exists()


@pytest.mark.parametrize("data", [[], ["votes.csv"]])
@pytest.mark.parametrize("command", ["run", "report"])
def test_a_dry_run_reads_no_record(place, command, data, monkeypatch):
    for of, method in ((SurveyQuery, "release"), (Source, "complete")):
        monkeypatch.setattr(of, method, lambda *_: pytest.fail("records are read"))
    Path("votes.csv").write_bytes(b"vote,town\n" + b"a,x\n" * 100_000 + b"\xff")  # cannot be read
    Path("votes.toml").write_text(QUESTION.replace("20000.0", "1.0"))
    Path("sixty.toml").write_text(QUESTION.replace("20000.0", "1.0\nguess_size = 60"))
    before = sorted(place.iterdir())
    shown = run(command, "sixty.toml", *data, "--dry-run")
    assert sorted(place.iterdir()) == before
    assert "Nothing was spent. No record was read, so" in " ".join(shown.split())
    assert "All results together: ε = 1, for one record." in shown
    rows = [line.split() for line in shown.splitlines() if "Laplace" in line]
    assert [row[2] for row in rows] == ["4", "1.333"] or len(rows) == 2
    assert all(float(row[-1]) > 0 for row in rows)
    unknown = run(command, "votes.toml", *data, "--dry-run")
    assert "guess_size = 1000 under" in unknown


def test_a_column_whose_type_lists_its_categories_needs_the_file(place: Path) -> None:
    frame = pl.DataFrame({"vote": ["a", "b"]}, schema={"vote": pl.Enum(["a", "b"])})
    frame.write_parquet("typed.parquet")
    run("init", "typed.parquet", "-o", "typed.toml")
    message = run("run", "typed.toml", "--dry-run", code=2)
    assert "typed.toml: columns.vote: has the" in message
    assert "ε = 1, for one record" in run("run", "typed.toml", "typed.parquet", "--dry-run")


def test_a_title_of_several_lines_is_one_line_of_a_ledger(place: Path) -> None:
    question = QUESTION.replace('"Votes"', '"Votes\\nand\\ttowns"')
    Path("lines.toml").write_text(question)
    run("ledger", "spent.db", "--epsilon", "9e4")
    run("run", "lines.toml", "votes.csv", "-o", "made.json", "--ledger", "spent.db")
    assert "Votesandtowns" in run("ledger", "spent.db")


def test_a_file_that_is_no_question_is_called_what_it_is(place: Path) -> None:
    run("run", "votes.json", "votes.csv", "-o", "made.json")
    for command in ("run", "report"):
        message = run(command, "votes.csv", "votes.json", code=2)
        assert "votes.csv: is a file with data" in message
        message = run(command, "made.json", "votes.csv", code=2)
        assert "made.json: format='opendp-bayes survey': holds results" in message
    text = QUESTION.replace("20000.0", '1\nidentifier = "who"\nrows_per_identifier = 1')
    Path("who.toml").write_text(text)
    message = run("run", "who.toml", "votes.csv", code=2)
    assert "column 'who' is not in" in message
    Path("empty.csv").write_text("")
    message = run("run", "votes.json", "empty.csv", code=2)
    assert "empty.csv: cannot be read as CSV" in message
    message = run("run", "votes.json", "votes.csv", "-o", ".", code=2)
    assert "--output .: exists already" in message
    message = run("run", "votes.json", "votes.csv", "-o", "no/made.json", code=2)
    assert "--output no/made.json: cannot be written (No such file or directory)" in message


@pytest.mark.parametrize("unknown", ["other", "DROP"])
def test_categories_that_almost_no_record_has_are_told(tmp_path: Path, unknown: str) -> None:
    """Before, that nobody can see it; afterwards, from what was released, that it was so."""
    data, question = tmp_path / "v.csv", tmp_path / "q.toml"
    data.write_text("vote\n" + "Yes\n" * 300)
    listed = ["init", data, "--categories", "vote=yes,no", "--epsilon", 30, "-o", question]
    before = CliRunner().invoke(app, list(map(str, listed))).output
    policy = f'[columns.vote]\nunknown = "{unknown}"'
    question.write_text(question.read_text().replace("[columns.vote]", policy))
    dry = " ".join(run("run", question, data, "--dry-run").split())
    for said in (before, dry):
        assert "No record was read" in said
    page = tmp_path / "page.html"
    told = CliRunner().invoke(app, ["report", str(question), str(data), "-o", str(page)]).output
    shown = " ".join(run("run", question, data).split())
    expected = (
        "records of vote are none of yes, no: check the spelling"
        if unknown == "other"
        else "may be noise alone: if you expect more records, check the spelling"
    )
    for said in (" ".join(told.split()), shown, " ".join(page.read_text().split())):
        assert expected in said


def test_init_says_what_is_missing_before_a_specification_can_run(place: Path) -> None:
    made = CliRunner().invoke(app, ["init", "votes.csv", "--header"])
    assert made.exit_code == 0
    assert "--categories COLUMN=a,b,c" in made.stderr
    Path("empty.toml").write_text(made.stdout)
    message = run("report", "empty.toml", "votes.csv", code=2)
    assert "results: is missing; add it." in message
