"""Texts given to `from_json` and `show` by mistake: what they are, and what reads them."""

import opendp_bayes as ob
from opendp_bayes.release_format.kind_of_text import _READERS
from opendp_bayes_office.report.report_document import Report
from tests.helpers.command_line import run

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


def test_show_names_the_file_beside_a_page(tmp_path):
    page = tmp_path / "report.html"
    page.write_text("<!doctype html>")
    message = run("show", page, code=2)
    assert f"FILE {page}: text: is a page in HTML." in message
    assert "in the file of its name that ends in .json" in message
    page.write_bytes('{"a": 1}'.encode("utf-16"))
    assert "report.html: is not text in UTF-8" in run("show", page, code=2)
