"""Texts given to `from_json` and `show` by mistake: what they are, and what reads them."""

from pathlib import Path
from typing import Any

import pytest

import opendp_bayes as ob
from opendp_bayes.release_format.kind_of_text import _READERS
from opendp_bayes_office.report.report_document import Report
from tests.helpers.command_line import run
from tests.helpers.releases import guarantee

READERS = (ob.Release, ob.DiscoveredRelease, ob.Survey, Report)
DOCUMENTS = {
    "opendp-bayes release": (ob.Release, r"is a release; it is read by Release\.from_json"),
    "opendp-bayes discovery": (
        ob.DiscoveredRelease,
        r"is a release of discovered categories; it is read by DiscoveredRelease\.from_json",
    ),
    "opendp-bayes survey": (ob.Survey, r"is a survey; it is read by Survey\.from_json"),
    "opendp-bayes report": (Report, "is a report; it is read by `opendp-bayes show FILE`, and"),
}


def test_every_format_is_asked_about() -> None:
    assert DOCUMENTS.keys() == _READERS.keys()


@pytest.mark.parametrize("reader", READERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_of_another_kind_names_its_reader(reader, name):
    kind, message = DOCUMENTS[name]
    text = f'{{"format": "{name}", "version": 2}}'
    if reader is kind:
        message = "is not a|version=2: this package reads version [13]"
    with pytest.raises(ValueError, match=message):
        reader.from_json(text)


@pytest.mark.parametrize("reader", READERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("votes/r.json", ValueError, r"text='votes/r\.json': .*not JSON; .* Path\('votes"),
        (r"C:\my data\p.html", ValueError, "is a path, not JSON"),
        (Path("r.json"), TypeError, r"what the file holds, .*read_bytes\(\).*, not \w+Path"),
        (1, TypeError, "text: must be str or bytes"),
        ("\n<!doctype html>", ValueError, "text: is a page in HTML"),
        (b"<html>", ValueError, r"in \.json, which `opendp-bayes show`"),
        ('{"a": 1}'.encode("utf-16"), ValueError, r"text: is in UTF-16, .* text\.decode\('utf-16"),
        ("nothing", ValueError, r"text: is not a .*JSON"),
        ("[1.5]", ValueError, r"text: is not a .*JSON"),
        ("1.5", ValueError, r"text: is not a .*JSON"),
        (b"\xff", ValueError, r"text: is not a .*JSON"),
        (b'{"format": "\xff"}', ValueError, r"text: is not a .*JSON"),
        (b'{"format": "a", "version": 3, "x": "\xff"}', ValueError, r"text: is not a .*JSON"),
    ],
)
def test_what_is_no_document_says_what_it_is(reader, text, error, message):
    with pytest.raises(error, match=message):
        reader.from_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "votes.csv\nAda Lovelace,yes\n",
        "votes.csv and a sentence about it.",
        '{"format": "somebody else\'s release", "version": 1}',
        '{"format": "opendp-bayes release"}',
    ],
)
def test_any_other_text_is_left_to_its_reader_and_not_repeated(text):
    """Its version, too, is that of another format."""
    with pytest.raises(ValueError, match="text: is not a release") as raised:
        ob.Release.from_json(text)
    assert "Lovelace" not in str(raised.value)


@pytest.mark.parametrize("reader", READERS, ids=lambda kind: kind.__name__)
def test_a_later_version_asks_for_a_newer_package(reader):
    name = next(name for name, (kind, _) in DOCUMENTS.items() if kind is reader)
    with pytest.raises(ValueError, match=r"version=9: .* `pip install --upgrade"):
        reader.from_json(f'{{"format": "{name}", "version": 9, "new": []}}')


def test_show_names_the_file_beside_a_page(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("<!doctype html>")
    message = run("show", page, code=2)
    assert f"FILE {page}: text: is a page in HTML." in message
    assert "in the file of its name that ends in .json" in message
    page.write_bytes('{"a": 1}'.encode("utf-16"))
    assert "report.html: is not text in UTF-8" in run("show", page, code=2)


@pytest.mark.parametrize("read", ["release", "survey"])
@pytest.mark.parametrize("mark", ["\ufeff", b"\xef\xbb\xbf"])
def test_a_mark_before_utf_8_is_none_of_the_text(read: str, mark: str | bytes) -> None:
    release = ob.Release((3, 5), ("a", "b"), (1.0, 1.0), ob.LaplaceParameters(1.0), guarantee(8))
    whole: Any = release if read == "release" else ob.Survey(("q",), (release,))
    text = whole.to_json()
    marked = mark + (text if isinstance(mark, str) else text.encode())
    assert type(whole).from_json(marked) == whole
