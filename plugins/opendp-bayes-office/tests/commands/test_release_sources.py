"""What `opendp-bayes release` reads: groups, identifiers, separators, compressed files."""

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes.queries.posterior_query import PosteriorQuery
from opendp_bayes_office.commands.app import app
from opendp_bayes_office.files.files import Source
from tests.helpers.command_line import run

# Noise of scale 2e-3 at most differs from 0 with probability below e^-499.
EXACT = ("--epsilon", "10000", "-o", "-")
COLUMN = ("--column", "vote", "--categories", "a,b", "--unknown", "DROP")
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


DROP = ("--unknown", "DROP")


#: The same question as a specification.
OF_PERSONS = """
title = "Votes"
[privacy]
epsilon = 10000.0
unit = "one person"
identifier = "person"
rows_per_identifier = 1
[columns.vote]
categories = ["a", "b"]
[[results]]
column = "vote"
"""


@pytest.mark.parametrize("kind", [pl.UInt64, pl.Int128, pl.UInt128, pl.Int64])
def test_identifiers_of_any_integers_are_persons_of_their_own(tmp_path: Path, kind: Any) -> None:
    """Beyond Int64 all would be one null: one person more changed which row was kept."""
    first = 2**63 - 20 if kind == pl.Int64 else 2**63
    people = pl.Series("person", list(range(first, first + 20)), dtype=kind)
    path, question = tmp_path / "votes.arrow", tmp_path / "votes.toml"
    pl.DataFrame([people, pl.Series("vote", ["a"] * 20)]).write_ipc(path)
    question.write_text(OF_PERSONS)
    limit = ("--identifier", "person", "--rows-per-identifier", 1)
    for text in (
        run("release", path, *COLUMN, *limit, *EXACT),
        run("run", question, path, "-o", "-"),
    ):
        release = ob.Release.from_json(text)
        assert (release.d_in, release.counts[0]) == (1, 20)


@pytest.mark.parametrize("steps", ["", "trim = true\n", 'null_values = ["-9"]\n'])
def test_an_identifier_is_a_person_after_the_steps_that_are_for_it(steps: str, tmp_path: Path):
    """A code for no value is a person all the same."""
    people = ["a", "b", " b ", "c", "-9", ""]
    path, question = tmp_path / "votes.csv", tmp_path / "votes.toml"
    lines = ["person,vote", *(f'"{one}",a' for one in people * 9), ""]
    path.write_text("\n".join(lines))
    question.write_text(OF_PERSONS.replace("[privacy]", f"{steps}[privacy]"))
    release = ob.Release.from_json(run("run", question, path, "-o", "-"))
    expected = {one.strip() if "trim" in steps else one for one in people}
    assert sum(release.counts) == len(expected)


@pytest.mark.parametrize("content", [TEXT, gzip.compress(TEXT.encode())], ids=["plain", "gzip"])
def test_standard_input_is_csv_and_leaves_no_file(tmp_path, monkeypatch, content):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = CliRunner().invoke(app, ["release", "-", *COLUMN, *EXACT], input=content)
    assert result.exit_code == 0, result.output
    assert ob.Release.from_json(result.stdout).counts == (8, 4)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "wrong",
    [
        *("--contributions 0", "--by vote", "--separator ;", "--separator ;;", "--prior 1,2"),
        *("--encoding morse", "--unknown B", "--by nope=a"),
        "--identifier nope --rows-per-identifier 1",
    ],
)
@pytest.mark.usefixtures("_unread")
def test_wrong_options_are_found_at_the_header_of_standard_input(wrong: str) -> None:
    options = [*COLUMN[:4], *wrong.split(), *EXACT]
    result = CliRunner().invoke(app, ["release", "-", *options], input=TEXT)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("opendp-bayes: ")


# --- encodings
ACCENTS = "person,vöte\n" + "1,Élan\n2,Dole\n3,Élan\n4,\n5,Élan" + "\n6,Dole" * 3000
OF_ACCENTS = ("--column", "vöte", "--categories", "Élan,Dole", *EXACT)


def named(path: Path, content: bytes, kind: str) -> Path:
    file = path / f"votes.csv{kind}"
    file.write_bytes(gzip.compress(content) if kind else content)
    return file


def test_a_copy_can_be_read_by_its_owner_only(tmp_path, monkeypatch):
    modes = []
    complete = Source.complete

    def watched(self: Source) -> None:
        complete(self)
        modes.append((self.path.stat().st_mode & 0o77, self.path.parent.stat().st_mode & 0o77))

    monkeypatch.setattr(Source, "complete", watched)
    run(
        "release", named(tmp_path, ACCENTS.encode("latin-1"), ""), *OF_ACCENTS, "--encoding=latin-1"
    )
    assert [directory for _, directory in modes] == [0]


@pytest.mark.parametrize("kind", ["", ".gz", "standard input"])
@pytest.mark.parametrize("place", ["header", "first record", "last record"])
@pytest.mark.parametrize(
    ("written", "read"), [("latin-1", ()), ("utf-8", ("--encoding", "ascii")), ("cp1252", ())]
)
def test_text_that_is_not_in_the_encoding_is_refused_before_anything_is_released(
    tmp_path: Path,
    place: str,
    kind: str,
    written: str,
    read: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was read with marks in place of the letters, which no category has."""

    def release(self: object) -> None:
        raise AssertionError("released")

    monkeypatch.setattr(PosteriorQuery, "release", release)
    lines = ["person,vote,town", *["7,a,x"] * 5000]
    at = {"header": 0, "first record": 1, "last record": -1}[place]
    lines[at] += "é"
    content = "\n".join(lines).encode(written)
    if kind == "standard input":
        result = CliRunner().invoke(app, ["release", "-", *COLUMN, *EXACT, *read], input=content)
        assert result.exit_code == 2
        message = result.stderr
    else:
        message = run("release", named(tmp_path, content, kind), *COLUMN, *EXACT, *read, code=2)
    assert f"is not text in {read[1] if read else 'utf-8'}. Name the encoding" in message
    assert "--encoding latin-1" in message
    assert not any(data in message for data in ("é", "7,a", "person", "0xe9", "position"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
@pytest.mark.parametrize("place", ["file", "standard input"])
def test_text_that_is_marked_as_utf_16_says_how_to_read_it(tmp_path, encoding, place):
    content = "\ufeff".encode(encoding) if encoding == "utf-16-be" else b""
    content += ACCENTS.encode(encoding)
    given = "-" if place == "standard input" else named(tmp_path, content, "")
    result = CliRunner().invoke(app, ["release", str(given), *OF_ACCENTS], input=content)
    assert result.exit_code == 2
    assert "utf-16 where it was saved as Unicode" in result.stderr


def test_a_file_that_is_damaged_after_its_header(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode() * 50_000)[:-2000])
    assert "data=votes.csv.gz: cannot be read as CSV" in run(
        "release", path, *COLUMN, *EXACT, code=2
    )


LINES = [f"p{number},{'a' if number % 3 else 'b'}" for number in range(3000)]


def with_lines(path: Path, lines: dict[int, str]) -> Path:
    """A file of 3000 records, and others before those of these numbers."""
    made = list(LINES)
    for at, line in sorted(lines.items(), reverse=True):
        made.insert(at, line)
    path.write_text("\n".join(["name,vote", *made, ""]), newline="")
    return path


@pytest.mark.parametrize(
    "lines",
    [
        {10: '"pipe,a', 2000: '"pipe,b'},
        {10: '5" pipe,a', 2000: '6" pipe,b'},
        {10: 'pipe,"a', 2000: '"pipe,b'},
        {10: '"pi"pe",a', 2000: 'x"",b"'},
        {10: 'pi;"pe,a', 2000: 'pi";pe,b'},  # beside what is a separator elsewhere
        {3000: 'pipe,"a'},
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_quotes_that_make_one_record_of_many_are_refused(tmp_path, lines, encoding):
    path = with_lines(tmp_path / "votes.csv", lines)
    path.write_bytes(path.read_text().encode(encoding))
    said = run("release", path, *COLUMN, *EXACT, "--encoding", encoding, code=2)
    assert "data=votes.csv: has a quotation mark that opens inside a value" in said
    assert 'Write a value with a quote in it as "5"" pipe".' in said
    assert "pipe,a" not in said


def test_without_that_one_line_elsewhere_moves_many_records(tmp_path: Path) -> None:
    """The negative control: both files have the same lines."""

    def number(at: int) -> int:
        file = with_lines(tmp_path / f"{at}.csv", {10: '"p,a', at: '"p,b'})
        rows = pl.scan_csv(file, infer_schema=False, truncate_ragged_lines=True).select("vote")
        return rows.collect(engine="streaming").height

    numbers = [number(at) for at in (1000, 2000)]
    assert numbers == [2011, 1011]
