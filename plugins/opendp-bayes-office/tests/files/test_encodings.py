"""Names of encodings, the separators that go with them, and the page that says what was tried."""

from encodings.aliases import aliases

import pytest

from opendp_bayes_office.files.encodings import HIDDEN, as_encoding, as_separator
from tests.helpers.byte_sequences import PAGE, SLOW, hexadecimal, row, rows, single, tried
from tests.helpers.sweeps import slow

TEXT = PAGE.read_text(encoding="utf-8")
ROWS, SINGLE = rows(TEXT), single(TEXT)


def test_python_reads_by_the_names_of_the_list_what_its_own_names_are() -> None:
    """Every alias of Python is of the encoding that Python reads by it, or of none."""
    letters = bytes(range(128)) + b"\xa4\xa2"
    for name in map(str.lower, aliases):
        try:
            encoding = as_encoding(name)
            "".encode(name)
        except (LookupError, ValueError):  # one of them has a capital letter, and is not found
            continue
        assert letters.decode(name, "replace") == letters.decode(encoding, "replace")


@pytest.mark.parametrize("encoding", HIDDEN)
def test_separators_that_an_encoding_may_hide_are_refused(encoding: str) -> None:
    for given, character in ((",", ","), ("\t", "\t"), ("tab", "\t"), ("\\t", "\t")):
        assert as_separator(given, encoding) == character
    for character in map(chr, range(128)):
        if character in HIDDEN[encoding]:
            with pytest.raises(ValueError, match=f"part of another character in {encoding}, where"):
                as_separator(character, encoding)
        elif character not in '"\r\n':
            assert as_separator(character, encoding) == character


@pytest.mark.parametrize("given", ["", ";;", "é", '"', "\n", "\r", "\udc80"])
def test_a_separator_is_one_character(given: str) -> None:
    with pytest.raises(ValueError, match=r"one ASCII character .*no quote"):
        as_separator(given, "utf-8")


@pytest.mark.parametrize("encoding", slow(ROWS, but={*ROWS} - {*SLOW}))
def test_the_page_says_what_was_tried(encoding: str) -> None:
    assert ROWS[encoding] == row(encoding), "run python -m tests.helpers.byte_sequences"


def test_every_encoding_is_on_the_page_once_with_its_ranges() -> None:
    assert {tried(encoding).sequences for encoding in SINGLE} == {256}
    assert [one for one in HIDDEN if one in ROWS] == list(ROWS)
    assert sorted([*ROWS, *SINGLE]) == sorted(HIDDEN)
    for encoding, hidden in HIDDEN.items():
        shown = ROWS[encoding].split("|")[-2].strip() if encoding in ROWS else ""
        assert shown == hexadecimal(hidden)
    assert hexadecimal("") == ""
    assert hexadecimal("~") == "7E"
    assert hexadecimal("BA0\\") == "30, 41–42, 5C"


@pytest.mark.parametrize(
    "name", ["", "morse", "rot13", "utf-7", "latin-1-sig", "mbcs", "locale", "os.path", "x" * 5000]
)
def test_other_names_are_refused_with_the_list(name: str) -> None:
    with pytest.raises(ValueError, match="not an encoding that is") as error:
        as_encoding(name)
    assert f": {', '.join(HIDDEN)}. Save the file in UTF-8." in str(error.value)
    assert len(str(error.value)) < 1500
