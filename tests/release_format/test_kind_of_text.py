"""Texts given to `from_json` and `show` by mistake: what they are, and what reads them."""

from pathlib import Path

import pytest

import opendp_bayes as ob
from opendp_bayes_office.report.report_document import Report
from tests.helpers.command_line import run
from tests.helpers.releases import guarantee

DOCUMENTS = {
    "opendp-bayes release": ob.Release,
    "opendp-bayes discovery": ob.DiscoveredRelease,
    "opendp-bayes survey": ob.Survey,
    "opendp-bayes report": Report,
}


def test_a_page_given_to_show_is_refused_with_what_to_show(tmp_path) -> None:
    page = tmp_path / "report.html"
    page.write_text("<!doctype html>")
    message = run("show", page, code=2)
    assert f"FILE {page}: text: is not a result in JSON" in message
    assert "the file that ends in .json, beside the page" in message
    page.write_bytes('{"a": 1}'.encode("utf-16"))
    assert "report.html: is not text in UTF-8" in run("show", page, code=2)


READERS = (ob.Release, ob.DiscoveredRelease, ob.Survey, Report)


@pytest.mark.parametrize("reader", READERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_of_another_kind_names_its_reader(reader, name):
    text = f'{{"format": "{name}", "version": 2}}'
    message = f"format='{name}': must be 'opendp-bayes .*Others are read by from_json of Release"
    if reader is DOCUMENTS[name]:
        message = "is not a|version=2: this package reads version [13]"
    with pytest.raises(ValueError, match=message):
        reader.from_json(text)


@pytest.mark.parametrize("reader", READERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("votes/r.json", ValueError, r"text: is not a result in JSON: .*\('r\.json'\)\.read_bytes"),
        (Path("r.json"), TypeError, r"what the file holds, .*read_bytes\(\).*, not \w+Path"),
        (1, TypeError, "text: must be str or bytes"),
        ("\n<!doctype html>", ValueError, "of a report the file that ends in .json"),
        ('{"a": 1}'.encode("utf-16"), ValueError, r"text: is not a result in JSON: .* in UTF-8"),
        ("nothing", ValueError, r"text: is not a .*JSON"),
        ("[1.5]", ValueError, r"text: is not a .*JSON"),
        ("1.5", ValueError, r"text: is not a .*JSON"),
        (b"\xff", ValueError, r"text: is not a .*JSON"),
        (b'{"format": "\xff"}', ValueError, r"text: is not a .*JSON"),
        ('{"format": 3}', ValueError, r"text: is not a .*JSON"),
        (b'{"format": "a", "version": 3, "x": 1}', ValueError, "format='a': must be 'opendp"),
    ],
)
def test_what_is_no_document_says_what_it_is(reader, text, error, message):
    with pytest.raises(error, match=message):
        reader.from_json(text)


@pytest.mark.parametrize("reader", READERS, ids=lambda kind: kind.__name__)
def test_a_later_version_asks_for_a_newer_package(reader):
    name = next(name for name, kind in DOCUMENTS.items() if kind is reader)
    with pytest.raises(ValueError, match=r"version=9: .* `pip install --upgrade"):
        reader.from_json(f'{{"format": "{name}", "version": 9, "new": []}}')


@pytest.mark.parametrize("mark", ["\ufeff", b"\xef\xbb\xbf"])
def test_a_mark_before_utf_8_is_none_of_the_text(mark: str | bytes) -> None:
    release = ob.Release((3, 5), ("a", "b"), (1.0, 1.0), ob.LaplaceParameters(1.0), guarantee(8))
    marked = mark + (release.to_json() if isinstance(mark, str) else release.to_json().encode())
    assert ob.Release.from_json(marked) == release
