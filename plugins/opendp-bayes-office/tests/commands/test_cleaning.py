"""What the owner of a file says of its values: blanks, texts that stand for none, empty lines."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes_office.commands.app import app
from opendp_bayes_office.commands.options import has_labels
from opendp_bayes_office.files.files import EXTENSIONS
from opendp_bayes_office.files.tables import LABELLED
from opendp_bayes_office.report.field_errors import SpecificationError
from opendp_bayes_office.report.specification import Column, Specification
from opendp_bayes_office.report.specification_text import read_specification
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


def test_blanks_around_values_and_names_are_left_out(tmp_path: Path) -> None:
    asked = csv_of(tmp_path, "id, vote", "1, yes", "2,yes ", '3, "no" ', "4,  ", "5,\u00a0no\t")
    assert asked.counts("trim = true", LABELS) == {"yes": 2, "no": 2, "none": 1, "other": 0}
    assert "column" in asked.run("", LABELS, code=2), "without that, the name begins with a blank"
    asked.column = " vote"
    assert asked.counts("", LABELS) == {"yes": 0, "no": 0, "none": 0, "other": 5}


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


def test_whole_numbers_are_texts_of_csv(tmp_path: Path) -> None:
    asked = csv_of(tmp_path, "vote,x", "1,", "2,", "9,", ",")
    of = "categories = [1, 2]\nnulls = 9\nunknown = 2"
    assert asked.counts("", of) == {"1": 1, "2": 1, "9": 2}
    message = asked.run("", "categories = [2026-05-01]", code=2)
    assert "2026" in message


def test_a_code_is_no_category_as_well(tmp_path: Path) -> None:
    asked = csv_of(tmp_path, "vote", "yes")
    message = asked.run("", 'categories = ["yes", "NA"]\nnull_values = ["NA"]', code=2)
    assert "columns.vote.categories: 'NA' is also in null_values" in message


SAID = (
    "Blanks around texts are left out.",
    "What reads 'NA' or '-99' is no value.",
    "In vote, what reads '?' is no value.",
    "Rows above the names: 1.",
    "Rows below the names that are no records: 2.",
)
FILE = 'trim = true\nnull_values = ["NA", "-99"]\nrows_above = 1\nskip_rows = 2'


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
    counts = {"yes": 1, "no": 1, "none": 3, "other": 0}
    assert dict(zip(release.categories, release.counts, strict=True)) == counts
    shown = said(*how)
    assert all(sentence in shown for sentence in SAID)
    if command == "run":
        asked.question.write_text(HEAD.format(file="trim = false") + RESULT.format(column="vote"))
        message = run(*how, code=2)
        assert "trim=False: is for the owner" in message


def test_a_specification_says_nothing_of_it_unless_asked() -> None:
    text = HEAD.format(file="") + f"[columns.vote]\n{LABELS}\n" + RESULT.format(column="vote")
    found: Specification = read_specification(text)
    assert (found.trim, found.null_values) == (False, [])


@pytest.mark.parametrize("unknown", ["other", "DROP"])
def test_what_reads_like_the_label_of_nulls_is_counted_there(tmp_path: Path, unknown: str) -> None:
    asked = csv_of(tmp_path, "vote,x", "yes,", "NA,", ",", "z,")
    of = f'categories = ["yes", "no"]\nnulls = "NA"\nunknown = "{unknown}"'
    counts = {"yes": 1, "no": 0, "NA": 2} | ({"other": 1} if unknown == "other" else {})
    assert asked.counts("", of) == counts
    assert "without a value are counted as “NA”" in said("run", asked.question, asked.path)
    options = ("--column", "vote", "--categories", "yes,no", "--nulls", "NA", "--epsilon", 1e5)
    how = ("release", asked.path, *options, "--unknown", unknown)
    release = ob.Release.from_json(run(*how, "-o", "-"))
    assert dict(zip(release.categories, release.counts, strict=True)) == counts
    assert "without a value are counted as “NA”" in said(*how)


def test_so_it_is_for_groups(tmp_path: Path) -> None:
    asked = csv_of(tmp_path, "vote,town", "yes,n", "yes,NA", "yes,", "yes,z")
    columns = f'[columns.vote]\n{LABELS}\n[columns.town]\ncategories = ["n"]\nnulls = "NA"\n'
    asked.question.write_text(
        HEAD.format(file="") + columns + '[[results]]\ncolumn = "vote"\nby = "town"\n'
    )
    found = ob.Release.from_json(run("run", asked.question, asked.path, "-o", "-"))
    assert (found.groups, [of[0] for of in found.counts]) == (("n", "NA"), [1, 2])


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


def test_the_owner_alone_says_what_is_recoded(tmp_path: Path) -> None:
    asked = csv_of(tmp_path, "vote", "yes", "Y", "no", "N")
    owner = tmp_path / "owner.toml"
    of = 'categories = ["yes", "no"]\nnulls = "none"\nrecode = { "Y" = "yes", "N" = "no" }'
    owner.write_text(OWNER.format(path="votes.csv", file="", column="vote", of=of))
    for own, counts in (
        ("", {"yes": 2, "no": 2, "none": 0, "other": 0}),
        ('categories = ["yes"]', {"yes": 2, "none": 0, "other": 2}),
    ):
        asked.question.write_text(
            HEAD.format(file="") + f"[columns.vote]\n{own}\n" + RESULT.format(column="vote")
        )
        found = run("run", asked.question, owner, "-o", "-")
        release = ob.Release.from_json(found)
        assert dict(zip(release.categories, release.counts, strict=True)) == counts
    asked.question.write_text(
        HEAD.format(file="")
        + '[columns.vote]\nrecode = { "N" = "yes" }\n'
        + RESULT.format(column="vote")
    )
    assert "for the owner of the data to state" in run("run", asked.question, owner, code=2)


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


@pytest.mark.parametrize("field", NAMED)
def test_a_value_with_blanks_around_it_is_refused_where_they_are_left_out(field, tmp_path):
    column = NAMED[field].format('" yes"')

    def document(trim: str) -> str:
        delta = "delta = 1e-8\n" if field == "always" else ""
        return (
            f"title = 'T'\n{trim}[privacy]\nepsilon = 1.0\n{delta}[columns.vote]\n{column}\n"
            f"[[results]]\ncolumn = 'vote'\n"
        )

    with pytest.raises(SpecificationError, match=r"' yes': .*blanks around it"):
        read_specification(document("trim = true\n"))
    assert read_specification(document(""))


@pytest.mark.parametrize("field", ["categories", "always", "recode"])
@pytest.mark.parametrize("where", ["of all", "of the column"])
def test_a_code_for_no_value_is_nothing_else(field: str, where: str, tmp_path: Path) -> None:
    column, delta = NAMED[field].format('"yes"'), "delta = 1e-8\n" if field == "always" else ""
    codes = 'null_values = ["yes"]\n'
    of_all, of_column = (codes, "") if where == "of all" else ("", codes)
    with pytest.raises(SpecificationError, match="'yes' is also in null_values"):
        read_specification(
            f"title = 'T'\n{of_all}[privacy]\nepsilon = 1.0\n{delta}[columns.vote]\n{of_column}"
            f"{column}\n[[results]]\ncolumn = 'vote'\n"
        )


def test_blanks_around_labels_of_options_are_left_out_in_every_list(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("vote,region\nyes,n\nno,s\n,n\nelse,n\n")
    asked = ("--column", "vote", "--categories", " yes , no ", "--nulls", " none ")
    made = json.loads(
        run("release", path, *asked, "--unknown", " rest ", "--epsilon", "1e5", "-o", "-")
    )
    assert made["categories"] == ["yes", "no", "none", "rest"]
    grouped = ("--by", "region= n , s ", "--unknown", "DROP", "--epsilon", "1e5", "-o", "-")
    assert '" n' not in run("release", path, *asked, *grouped)


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize(
    ("listed", "are_codes"),
    [([], False), (["1", "-2", "3.0"], True), (["1", "refused"], False), (["yes"], False)],
)
def test_codes_are_read_as_their_labels_unless_codes_are_listed(extension, listed, are_codes):
    wanted = EXTENSIONS[extension] in LABELLED and not are_codes
    assert has_labels(Path(f"data{extension}"), listed) == wanted
    assert has_labels(Path(f"DATA{extension.upper()}"), listed) == wanted
