"""What the owner of a file says of its values: blanks, texts that stand for none, empty lines."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes_office.commands.app import app
from opendp_bayes_office.commands.options import has_labels
from opendp_bayes_office.files.files import EXTENSIONS
from opendp_bayes_office.files.tables import LABELLED
from opendp_bayes_office.report.specification import Column
from tests.helpers.command_line import run

RESULT = '[[results]]\ncolumn = "{column}"\n'
HEAD = 'title = "Votes"\n{file}\n[privacy]\nepsilon = 100000.0\n'
OWNER = """
path = "{path}"
epsilon_at_most = 100000.0
{file}
[privacy]
[columns."{column}"]
{of}
[ledger]
path = "{path}.ledger"
total = {{ epsilon = 300000.0 }}
"""


class BoundQuery:
    """A file, and how it is asked for, with the facts of its reading where they are stated."""

    def __init__(self, path: Path, column: str = "vote") -> None:
        self.path, self.column = path, column
        self.question = path.with_suffix(".toml")

    def run(self, file: str, of: str, *, code: int = 0) -> str:
        table = f'[columns."{self.column}"]\n{of}\n'
        result = RESULT.format(column=self.column)
        self.question.write_text(HEAD.format(file=file) + table + result)
        return run("run", self.question, self.path, "-o", "-", code=code)

    def counts(self, file: str, of: str) -> dict[Any, int]:
        release = ob.Release.from_json(self.run(file, of))
        return dict(zip(release.categories, release.counts, strict=True))


def csv_of(path: Path, *lines: str) -> BoundQuery:
    file = path / "votes.csv"
    file.write_text("\n".join([*lines, ""]))
    return BoundQuery(file)


LABELS = 'categories = ["yes", "no"]\nnulls = "none"'


@pytest.mark.parametrize(
    ("file", "of"),
    [
        ('null_values = ["NA", "-99"]', ""),
        ('null_values = ["NA", -99]', ""),
        ('null_values = ["NA"]', 'null_values = ["-99"]'),
        ("", 'null_values = ["NA", "-99"]'),
    ],
)
def test_texts_that_stand_for_no_value_are_nulls(tmp_path: Path, file: str, of: str) -> None:
    asked = csv_of(tmp_path, "vote,x", "yes,", '"NA",', "-99,", "na,", ",", "no,")
    counts = {"yes": 1, "no": 1, "none": 3, "other": 1}
    assert asked.counts(file, f"{LABELS}\n{of}") == counts
    assert asked.counts("", LABELS) == {"yes": 1, "no": 1, "none": 1, "other": 3}


SAID = (
    "Blanks around texts are left out.",
    "What reads 'NA' or '-99' is no value.",
    "In vote, what reads '?' is no value.",
    "Rows above the names: 1.",
    "Rows below the names that are no records: 2.",
    "Empty lines are records without a value.",
)
FILE = (
    'trim = true\nnull_values = ["NA", "-99"]\nblank_lines = "null"\nrows_above = 1\nskip_rows = 2'
)


def said(*arguments: object) -> str:
    """Everything that a command writes, on either output, in one line."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


@pytest.mark.parametrize("command", ["run", "release"])
def test_the_owner_states_it_and_nobody_else(tmp_path: Path, command: str) -> None:
    rows = "title", "vote", "unit", "source", " yes", "?", "", "NA", "-99", "no"
    asked = csv_of(tmp_path, *rows)
    of, facts = f'{LABELS}\nnull_values = ["?"]', tmp_path / "data.toml"
    facts.write_text(OWNER.format(path=asked.path.name, column="vote", file=FILE, of=of))
    asked.question.write_text(HEAD.format(file="") + RESULT.format(column="vote"))
    how = (
        ("run", asked.question, facts)
        if command == "run"
        else ("release", facts, "--column", "vote", "--epsilon", 1e5)
    )
    release = ob.Release.from_json(run(*how, "-o", "-"))
    counts = {"yes": 1, "no": 1, "none": 4, "other": 0}
    assert dict(zip(release.categories, release.counts, strict=True)) == counts
    shown = said(*how)
    assert all(sentence in shown for sentence in SAID)
    if command == "run":
        asked.question.write_text(HEAD.format(file="trim = false") + RESULT.format(column="vote"))
        message = run(*how, code=2)
        assert "trim=False: is for the owner" in message


RECODED = 'recode = { "Y" = "yes", "y" = "yes", "-9" = "none" }'


def test_other_spellings_are_counted_where_the_specification_says(tmp_path: Path) -> None:
    asked = csv_of(tmp_path, "vote", "yes", "Y", "y", "-9", "no", "x")
    counts = {"yes": 3, "no": 1, "none": 1, "other": 1}
    assert asked.counts("", f"{LABELS}\n{RECODED}") == counts
    dropped = 'categories = ["yes", "no"]\nunknown = "DROP"\nrecode = { "Y" = "no" }'
    assert asked.counts("", dropped) == {"yes": 1, "no": 2}
    refused = asked.run("", f'{LABELS}\nrecode = {{ "Y" = "maybe" }}', code=2)
    assert "recode" in refused
    assert "'maybe'" in refused


# --- Blanks around values, and values that are two things

#: By the field, what a specification says that names a value there.
NAMED = {
    "categories": "categories = [{}]",
    "always": 'categories = "discover"\nalways = [{}]',
    "recode": 'categories = ["a"]\nrecode = {{ {} = "a" }}',
    "null_values": 'categories = ["a"]\nnull_values = [{}]',
    "nulls": 'categories = ["a"]\nnulls = {}',
    "unknown": 'categories = ["a"]\nunknown = {}',
}


def test_every_field_of_a_column_that_names_values_is_here() -> None:
    of_values = {
        name
        for name in Column.__struct_fields__
        if name != "labels"  # what the report calls them
    }
    assert of_values == set(NAMED)


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize(
    ("listed", "are_codes"),
    [([], False), (["1", "-2", "3.0"], True), (["1", "refused"], False), (["yes"], False)],
)
def test_codes_are_read_as_their_labels_unless_codes_are_listed(extension, listed, are_codes):
    wanted = EXTENSIONS[extension] in LABELLED and not are_codes
    assert has_labels(Path(f"data{extension}"), listed) == wanted
    assert has_labels(Path(f"DATA{extension.upper()}"), listed) == wanted
