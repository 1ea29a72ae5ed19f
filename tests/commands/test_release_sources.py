"""What `opendp-bayes release` reads, and of whom: groups, identifiers, separators, standard input
and compressed files.
"""

import gzip
import shutil
import subprocess
from pathlib import Path

import pytest
from command_line import run
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes.commands.app import app

# Noise of scale 2e-3 at most differs from 0 with probability below e^-499.
EXACT = ("--epsilon", "10000", "--json")
COLUMN = ("--column", "vote", "--categories", "a,b")
# Each of 4 people has the rows a, a, b, nothing and z; 2 live in x, 1 in y and 1 in z.
ROWS = [
    f"{person},{vote},{town}"
    for person, town in enumerate("xxyz")
    for vote in ("a", "a", "b", "", "z")
]
TEXT = "\n".join(["person,vote,town", *ROWS, ""])


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text(TEXT)
    return path


def test_a_posterior_for_each_group(votes: Path) -> None:
    groups = ("--group-by", "town", "--groups", "x,y,nowhere")
    released = ob.GroupedRelease.from_json(run("release", votes, *COLUMN, *groups, *EXACT))
    assert released.groups == ("x", "y", "nowhere")
    assert released.counts == ((4, 2), (2, 1), (0, 0))
    shown = run("release", votes, *COLUMN, *groups, *EXACT[:2])
    assert "vote by town" in shown
    assert (
        "Rows without a value or with a value that is not a category or of no group were left"
        in " ".join(shown.split())
    )


TABLE = ("--column", "vote", "--column", "town")
OF_TABLE = ("--categories", "vote=a,b", "--categories", "town=x,y")


def test_a_joint_table(votes: Path) -> None:
    release = ob.Release.from_json(run("release", votes, *TABLE, *OF_TABLE, *EXACT))
    assert release.axes == ("vote", "town")
    assert release.categories == (("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"))
    assert release.counts == (4, 2, 2, 1)
    shown = run("release", votes, *TABLE, *OF_TABLE, "--epsilon", 1)
    assert "vote × town" in shown
    assert "Rows without a value or with a value that is not a category were left out." in shown


def test_a_joint_table_with_buckets(votes: Path) -> None:
    public = ("--size", 20, "--nulls", "vote=b", "--nulls", "town=?", "--unknown", "vote=b")
    release = ob.Release.from_json(
        run("release", votes, *TABLE, *OF_TABLE, *public, "--unknown", "town=?", *EXACT)
    )
    assert release.axes == ("vote", "town")
    assert dict(zip(release.categories, release.counts, strict=True)) == {
        ("a", "x"): 4,
        ("a", "y"): 2,
        ("a", "?"): 2,
        ("b", "x"): 6,
        ("b", "y"): 3,
        ("b", "?"): 3,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((*TABLE, "--categories", "a,b"), "--categories a,b: must be given once for each column"),
        ((*TABLE, *OF_TABLE, "--categories", "vote=c"), "--categories vote=c: must be given once"),
        ((*TABLE, *OF_TABLE[:2]), "--categories: is missing; column 'town'"),
        ((*TABLE, "--column", "vote"), "--column vote: is named twice"),
        ((*COLUMN, "--group-by", "vote"), "--column vote: is named twice"),
        ((*COLUMN, "--nulls", "a", "--nulls", "b"), "--nulls: is given more than once"),
    ],
)
def test_wrong_options_of_a_joint_table(
    votes: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in run("release", votes, *options, *EXACT, code=2)


def test_rows_of_an_identifier_are_limited_after_those_that_are_not_counted_are_gone(
    votes: Path,
) -> None:
    limit = ("--identifier", "person", "--rows-per-identifier")
    release = ob.Release.from_json(run("release", votes, *COLUMN, *limit, 3, *EXACT))
    assert release.counts == (8, 4), "three rows of each count, and none takes their place"
    assert (release.relation, release.d_in) == ("add/remove", 3)
    assert release.promise.truncated
    release = ob.Release.from_json(
        run("release", votes, *COLUMN, *limit, 2, "--contributions", 2, *EXACT)
    )
    assert sum(release.counts) == 8
    assert release.d_in == 4


def test_groups_of_limited_identifiers(votes: Path) -> None:
    options = ("--identifier", "person", "--rows-per-identifier", 3)
    groups = ("--group-by", "town", "--groups", "x,z")
    released = ob.GroupedRelease.from_json(
        run("release", votes, *COLUMN, *options, *groups, *EXACT)
    )
    assert released.counts == ((4, 2), (2, 1))
    assert released.d_in == 3


@pytest.mark.parametrize(
    ("name", "separator", "options"),
    [
        ("votes.csv", ";", ("--separator", ";")),
        ("votes.csv", "\t", ("--separator", "tab")),
        ("votes.csv", "\t", ("--separator", "\\t")),
        ("votes.tsv", "\t", ()),
        ("votes.tsv", "|", ("--separator", "|")),
    ],
)
def test_separators(tmp_path: Path, name: str, separator: str, options: tuple[str, ...]) -> None:
    path = tmp_path / name
    path.write_text(TEXT.replace(",", separator))
    release = ob.Release.from_json(run("release", path, *COLUMN, *options, *EXACT))
    assert release.counts == (8, 4)


@pytest.mark.parametrize("separator", ["", ";;", "é", '"', "\n"])
def test_a_separator_is_one_character(votes: Path, separator: str) -> None:
    message = run("release", votes, *COLUMN, "--separator", separator, *EXACT, code=2)
    assert "must be one ASCII character that is no quote" in message


def test_the_wrong_separator_is_suspected(votes: Path) -> None:
    message = run("release", votes, *COLUMN, "--separator", ";", *EXACT, code=2)
    assert "check the spelling, the header and the separator (';')" in message


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    assert ob.Release.from_json(run("release", path, *COLUMN, *EXACT)).counts == (8, 4)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="needs the program zstd")
def test_zstandard(votes: Path) -> None:
    subprocess.run(["zstd", "-q", votes], check=True)  # noqa: S607
    path = votes.with_suffix(".csv.zst")
    assert ob.Release.from_json(run("release", path, *COLUMN, *EXACT)).counts == (8, 4)


def test_a_compressed_file_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(b"\x1f\x8b nothing")
    assert "cannot be read as CSV" in run("release", path, *COLUMN, *EXACT, code=2)


def test_standard_input_is_csv_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["release", "-", *COLUMN, *EXACT], input=TEXT)
    assert result.exit_code == 0, result.output
    assert ob.Release.from_json(result.stdout).counts == (8, 4)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "wrong",
    [
        "--contributions 0",
        "--groups a",
        "--separator ;",
        "--separator ;;",
        "--prior 1,2,3",
        "--unknown DROP",
        "--group-by nope --groups a",
        "--identifier nope --rows-per-identifier 1",
    ],
)
@pytest.mark.usefixtures("_unread")
def test_wrong_options_are_found_at_the_header_of_standard_input(wrong: str) -> None:
    result = CliRunner().invoke(app, ["release", "-", *COLUMN, *wrong.split(), *EXACT], input=TEXT)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"opendp-bayes: {wrong.split()[0]}") or wrong == "--separator ;"


@pytest.mark.parametrize("records", [1, 10_000])
def test_compressed_standard_input_is_refused(records: int) -> None:
    content = gzip.compress(TEXT.encode() * records)
    result = CliRunner().invoke(app, ["release", "-", *COLUMN, *EXACT], input=content)
    assert result.exit_code == 2
    assert "standard input is compressed. Give the name of the file, or" in result.stderr


def test_a_header_of_several_lines_on_standard_input() -> None:
    text = '\n"vote\nof 1996",town\n' + "a,x\nb,x\na,y\n"
    column = ("--column", "vote\nof 1996", "--categories", "a,b")
    result = CliRunner().invoke(app, ["release", "-", *column, *EXACT], input=text)
    assert result.exit_code == 0, result.output
    assert ob.Release.from_json(result.stdout).counts == (2, 1)


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_standard_input_without_a_header(content: bytes) -> None:
    result = CliRunner().invoke(app, ["release", "-", *COLUMN, *EXACT], input=content)
    assert result.exit_code == 2
    assert "standard input cannot be read as CSV; its first line must name" in result.stderr
    assert "/" not in result.stderr
