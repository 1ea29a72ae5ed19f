"""In every encoding a line of bytes is a line of text, and no record moves those of others."""

import csv
import pkgutil
import re
from encodings import __path__ as where_encodings_are
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

import opendp_bayes as ob
from opendp_bayes_office.commands.app import app
from opendp_bayes_office.files import csv_text as text, files
from opendp_bayes_office.files.csv_text import copy_records, decoded, header_of
from opendp_bayes_office.files.encodings import HIDDEN
from tests.helpers.byte_sequences import MARKED, SLOW, tried
from tests.helpers.command_line import run
from tests.helpers.sources import SOURCES
from tests.helpers.sweeps import slow, some_of

EXACT = ("--epsilon", 10000, "-o", "-")
COLUMN = ("--column", "vote", "--categories", "a,b", "--unknown", "DROP")
#: All encodings of Python that are not in the list.
_PYTHONS = {module.name.replace("_", "-") for module in pkgutil.iter_modules(where_encodings_are)}
REFUSED = sorted(_PYTHONS - {*HIDDEN, "aliases", "iso8859-1", "utf-8-sig"})
QUESTION = """\
title = "Votes"
encoding = "{}"
[privacy]
epsilon = 10000.0
[columns.vote]
categories = ["a", "b"]
nulls = "b"
unknown = "b"
[[results]]
column = "vote"
"""
OWNER = """\
path = "votes.csv"
encoding = "{}"
epsilon_at_most = 20000.0
[privacy]
[columns.vote]
categories = ["a", "b"]
[ledger]
path = "votes.ledger"
total = {{ epsilon = 30000.0 }}
"""


def asked(encoding: str) -> str:
    Path("question.toml").write_text(QUESTION.format(encoding))
    return "question.toml"


# --- the list
@pytest.mark.parametrize("encoding", ["hz", "utf_7", "cp037", "ISO-2022-JP", "unicode-escape", ""])
@pytest.mark.parametrize(
    "command",
    [
        "release votes.csv --column vote --categories a,b --epsilon 1 --encoding",
        "release - --column vote --categories a,b --epsilon 1 --encoding",
        "init votes.csv --header --encoding",
        "run question.toml votes.csv",
        "run question.toml --dry-run",
        "run question.toml votes.csv --dry-run",
        "report question.toml votes.csv -o page.html",
        "report question.toml votes.csv --synthetic copies",
        "run plain.toml owner.toml",
        "run plain.toml owner.toml --dry-run",
        "release owner.toml --column vote --epsilon 1",
    ],
)
@pytest.mark.usefixtures("sixty_votes", "_plain_terminal")
def test_other_encodings_are_refused_with_the_list_before_data_are_read(
    command: str, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(files, "decoded", read)
    asked(encoding)
    Path("owner.toml").write_text(OWNER.format(encoding))
    Path("plain.toml").write_text(QUESTION.replace('encoding = "{}"\n', ""))
    given = [encoding] if command.endswith("--encoding") else []
    message = run(*command.split(), *given, code=2)
    assert f"{encoding!r}: is not an encoding that is read; must be one in which every" in message
    assert all(known in message for known in ("utf-8, ", "utf-16-le, ", "latin-1, ", "johab."))
    assert not Path("votes.ledger").exists()


@pytest.mark.filterwarnings("ignore:invalid escape:DeprecationWarning")
def test_each_of_the_others_is_refused_for_a_reason() -> None:
    """Negative control: in all but one, sequences of bytes hide an end of a line or become it."""
    unnoticed = []
    for encoding in REFUSED:
        try:
            "a".encode(encoding)
        except (LookupError, UnicodeError):
            continue  # of bytes, or of another system
        if not {"\n", '"', "a"} & tried(encoding).hidden:
            unnoticed.append(encoding)
    assert unnoticed == ["charmap"]
    assert len(REFUSED) > 30


@pytest.mark.parametrize("encoding", some_of(sorted({*HIDDEN} - {*MARKED, *SLOW}), 40))
def test_no_bytes_but_their_own_are_ends_of_lines_quotes_or_separators(encoding: str) -> None:
    assert tried(encoding).hidden == set(HIDDEN[encoding])
    assert not set('\n\r",\t') & set(HIDDEN[encoding])


@pytest.mark.parametrize("encoding", SLOW)
def test_nor_are_any_of_those_with_many_characters(encoding: str) -> None:
    """The page of encodings tries all of them, too (`test_encodings.py` of the office)."""
    assert tried(encoding, 499).hidden == set(HIDDEN[encoding])


# --- lines
def lines_of(content: bytes, encoding: str, path: Path) -> list[str] | None:
    """The lines of a text as they are read, None for one that is refused."""
    path.write_bytes(content)
    copy = path.with_suffix(".copy")
    try:
        with (
            path.open("rb") as stream,
            decoded(stream, encoding) as file,
            copy.open("wb") as written,
        ):
            header = header_of(file)
            written.write(f"{header}\n".encode())
            copy_records(file, written, ",", trim=False)
    except (UnicodeError, csv.Error):
        return None
    return copy.read_bytes().decode().split("\n")


def ends(encoding: str) -> tuple[bytes, bytes]:
    """The mark that an encoding needs, and an end of a line."""
    mark = "\ufeff".encode(f"{encoding}-le") if encoding in MARKED else b""
    return mark, "\n".encode(f"{encoding}-le" if mark else encoding)


SEVERAL_BYTES = [name for name in HIDDEN if name.startswith("utf-") and name not in MARKED]
SEVERAL_BYTES += list(HIDDEN)[list(HIDDEN).index("gb2312") :]
#: Bytes that begin, go on and end characters, or are ends of lines, in one encoding or another.
HOSTILE = (
    b"\x00\n\r\x0b\x0c\x1c,|a~\\{\x1b\x0e09\x80\x81\x85\x8f\xa1\xa2\xa4\xd4\xd8\xdc\xe0\xef\xfe\xff"
)


def records(random: Random, encoding: str, end: bytes) -> list[bytes]:
    """Records of letters around bytes of any kind, as lines of bytes."""
    letters = "ab".encode(encoding)
    made: list[bytes] = []
    while len(made) < 3:
        hostile = bytes(random.choices(HOSTILE, k=random.choice((0, 0, 0, 1, 2, 4))))
        made += [record for record in (letters + hostile + letters).split(end) if record]
    return made


@pytest.mark.parametrize("encoding", some_of(["latin-1", "cp1252", *SEVERAL_BYTES], 10))
def test_a_text_is_refused_or_is_its_lines_one_by_one(encoding: str, tmp_path: Path) -> None:
    """Whatever bytes records are, each is read as it is alone, or one of them is refused alone."""
    random, path = Random(1), tmp_path / "text.csv"
    end = "\n".encode(encoding)
    head = "a,b".encode(encoding) + end
    read = 0
    for _ in range(40):
        made = records(random, encoding, end)
        alone = [lines_of(head + record + end, encoding, path) for record in made]
        together = lines_of(head + b"".join(record + end for record in made), encoding, path)
        if None in alone:
            assert together is None
        else:
            assert together == ["a,b", *(line for of in alone for line in (of or [])[1:-1]), ""]
            read += 1
    assert read > 1


@pytest.mark.parametrize(
    ("encoding", "record"),
    [
        ("utf-7", b"x+AAo-x+AAo-x,a"),
        ("hz", b"x,a~"),
        ("cp037", "x%x%x,a".encode("cp037").replace("%".encode("cp037"), b"\x25")),
        ("unicode-escape", rb"x\nx\nx,a"),
        ("raw-unicode-escape", rb"x\u000ax\u000ax,a"),
    ],
)
def test_in_others_a_record_is_none_or_more_than_one(encoding: str, record: bytes) -> None:
    """Negative control."""
    end = "\n".encode(encoding)
    lines = (b"1,a".decode().encode(encoding) + end) * 3
    assert len((lines + record + end + lines).decode(encoding).split("\n")) != 8


# --- what that is in counts
def release_of(path, content, *options, code=0):
    """The counts of a file, or the message where it is refused."""
    path.write_bytes(content)
    said = run("release", path, *COLUMN, *options, *EXACT, code=code)
    return said if code else ob.Release.from_json(said).counts


def wide(encoding: str, odd: tuple[int, ...]) -> bytes:
    """4000 records in units of several bytes, those of these numbers with a byte too many."""
    lines = ["id,vote", *(f"{number},{'ab'[number % 2]}" for number in range(4000))]
    made = [f"{line}\n".encode(encoding) for line in lines]
    for number in odd:
        made[number + 1] = b"x" + made[number + 1]
    return b"".join(made)


@pytest.mark.parametrize(
    ("encoding", "kind"),
    [
        *(("utf-16-le", "file"), ("utf-16-be", "standard input")),
        *slow([("utf-16-le", "standard input"), ("utf-16-be", "file")]),
    ],
)
def test_two_records_with_a_byte_too_many_do_not_hide_those_between_them(encoding, kind, tmp_path):
    path, given = tmp_path / "votes.csv", ("--encoding", encoding)
    for marked in (False, True):
        mark = "\ufeff".encode(encoding) if marked else b""
        named = ("--encoding", "utf-16") if marked else given
        assert release_of(path, mark + wide(encoding, ()), *named) == (2000, 2000)
        for odd in ((1000, 2999), (-1, 500), (3999,)):
            content = mark + wide(encoding, odd)
            if kind == "file":
                message = str(release_of(path, content, *named, code=2))
            else:
                options = ["release", "-", *COLUMN, *named, *map(str, EXACT)]
                message = CliRunner().invoke(app, options, input=content).stderr
            assert f"is not text in {named[1]}" in message


def test_without_a_look_at_their_bytes_half_of_the_records_are_one(tmp_path, monkeypatch):
    """Negative control: the text is valid, but of its lines only those outside of the two end."""
    monkeypatch.setattr(text, "_UNITS", {})
    path = tmp_path / "votes.csv"
    for odd, counts in (((1000, 2999), (1000, 1001)), ((1000, 1500), (1750, 1750))):
        assert release_of(path, wide("utf-16-le", odd), "--encoding", "utf-16-le") == counts


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_text_without_a_mark_needs_the_order_of_its_bytes(encoding: str, tmp_path: Path) -> None:
    path, content = tmp_path / "votes.csv", wide(f"{encoding}-le", ())
    message = release_of(path, content, "--encoding", encoding, code=2)
    assert f"is not text in {encoding}" in message
    assert release_of(path, content, "--encoding", f"{encoding}-le") == (2000, 2000)


#: 2000 rows of one person in UTF-8, of which the other values differ.
ROWS = "".join(f"Ё|{number}|a\n" for number in range(2000))
ONE = ("--identifier", "id", "--rows-per-identifier", 1)


@pytest.mark.parametrize("encoding", ["shift-jis", "cp932", "gbk", "big5", "johab", "gb18030"])
def test_a_separator_that_may_be_hidden_is_refused(encoding: str, tmp_path: Path) -> None:
    """With another one the text is refused, or read as it is."""
    path, content = tmp_path / "votes.csv", f"id|number|vote\n{ROWS}".encode()
    options = ("--separator", "|", "--encoding", encoding)
    message = str(release_of(path, content, *ONE, *options, code=2))
    assert f"separator='|': may be part of another character in {encoding}, where" in message
    assert "must be ',' or tab there" in message
    assert release_of(path, content, *ONE, "--separator", "|") == (1, 0)
    comma = content.replace(b"|", b",")
    is_text = encoding in ("gbk", "johab", "gb18030")
    found = release_of(path, comma, *ONE, "--encoding", encoding, code=0 if is_text else 2)
    assert found == (1, 0) if is_text else f"is not text in {encoding}" in str(found)


def test_one_person_would_have_2000_identifiers_and_no_code_splits_lines() -> None:
    """Negative control."""
    lines = ROWS.encode().decode("shift-jis").split("\n")[:-1]
    assert len({line.split("|")[0] for line in lines}) == 2000
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES}
    assert [path.name for path, text in texts.items() if "splitlines" in text] == []
    reading = next(text for of, text in texts.items() if of.parts[-2:] == ("files", "csv_text.py"))
    opened = re.findall(r"(?:\.open|TextIOWrapper)\(.*\)", reading)
    assert len(opened) > 0
    assert [call for call in opened if "newline=" not in call and '"rb"' not in call] == []


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16", "cp932"])
def test_only_a_line_feed_ends_a_line(encoding: str, tmp_path: Path) -> None:
    """And none of the other characters at which Python splits lines."""
    ends = [
        end
        for end in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\r"
        if encoding != "cp932" or end < "\x7f"
    ]
    ends = [end for end in ends if encoding != "latin-1" or end < "\u0100"]
    lines = ["id,vote", *(f"{end}x{end}y{end},a" for end in ends), "2,b"]
    content = "\n".join([*lines, ""]).encode(encoding)
    named = ("--encoding", encoding)
    assert release_of(tmp_path / "votes.csv", content, *named) == (len(ends), 1)
