"""The page of a report: what it says and draws follows from the releases."""

import html
import re

import polars as pl
import pytest

from opendp_bayes_office.report.page import rendered
from opendp_bayes_office.report.report_document import Report
from tests.helpers.pages_of_reports import Page, made, of_election


@pytest.fixture(scope="module")
def election(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return of_election(tmp_path_factory.mktemp("election"))


def test_texts_are_no_markup(election: Report) -> None:
    page = rendered(election)
    assert "<h1>Votes &amp; &lt;parties&gt;</h1>" in page
    assert "<parties>" not in page.split("<script")[0]
    assert "<script" not in re.sub(r'<script type="application/json".*', "", page, flags=re.DOTALL)
    assert "http" not in html.unescape(page.split("</style>")[1].split("<script")[0])


ANSWERS = """
title = "Answers"
privacy = { epsilon = 20000.0 }
[columns.vote]
categories = ["yes", "no"]
nulls = "no answer"
[columns.town]
categories = ["a", "b"]
[[results]]
column = "vote"
[[results]]
column = "vote"
by = "town"
"""


@pytest.mark.parametrize("nulls", ["no answer", "no", "DROP"])
@pytest.mark.parametrize("unknown", ["other", "no"])
def test_shares_are_of_answers_where_nulls_have_a_label_of_their_own(nulls, unknown, tmp_path):
    """Of every label for nulls with every label for other values."""
    votes = ["yes", "yes", "yes", "no", None, "may be", "may be", "may be"]
    frame = pl.DataFrame({"vote": votes * 250, "town": ["a", "b"] * 1000})
    policies = f'nulls = "{nulls}"\nunknown = "{unknown}"'
    asked = ANSWERS.replace('nulls = "no answer"', policies)
    page = Page(rendered(made(asked, frame, tmp_path)))
    counts = {"yes": 3, "no": 1, "no answer": 0, "other": 0}
    counts[unknown] += 3
    if nulls != "DROP":
        counts[nulls] += 1
    answers = counts["yes"] + counts["no"]
    whole = sum(counts.values())
    for row in page.tables[0][1:]:
        label = row[-5].removesuffix(" of all records")
        is_answer = label in ("yes", "no") and nulls == "no answer"
        expected = 100 * counts[label] / (answers if is_answer else whole)
        assert float(row[-3].removesuffix(" %")) == pytest.approx(expected, abs=0.3)
