"""Pages of reports, and of releases without a specification."""

import html
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes_office.report.page import rendered
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.command_line import run
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


FRAME = pl.DataFrame({"vote": ["yes", "no", None, "?"] * 100, "town": ["a", "b"] * 200})


def text_of(page: str) -> str:
    """What a page says, without its data and markup."""
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", shown).split())


def test_counts_of_an_unstated_privacy_have_no_page(tmp_path, monkeypatch):
    counts = ob.noisy_counts([10, 20], ["a", "b"], mechanism="laplace_parameters", scale=2.0)
    monkeypatch.chdir(tmp_path)
    Path("counts.json").write_text(counts.to_json())
    message = run("report", "counts.json", code=2)
    assert "counts.json: has noisy counts whose privacy is not stated" in message
    assert "a" in run("show", "counts.json")


def test_a_first_release_becomes_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("votes.csv")
    shown = run("release", "votes.csv", "--column", "vote", "--categories", "yes,no", "--rho", 1)
    remedy = re.search(r"opendp-bayes (report .*)", shown)
    assert remedy, shown
    assert run(*remedy[1].split()) == "votes-vote.html: a report of 1 result.\n"
    assert "votes-vote" in text_of(Path("votes-vote.html").read_text())


JOINT = """
title = "Ages"
joint = true
privacy = { epsilon = 100.0 }
[columns.age]
categories = ["young", "old", "oldest"]
nulls = "oldest"
[columns.town]
categories = ["a", "b"]
nulls = "b"
[[results]]
column = "age"
ordered = ["age"]
share = 1e-6
[[results]]
column = ["age", "town"]
"""


def test_results_that_are_estimated_together_have_the_quartiles_and_notes_of_all(tmp_path):
    """What the question of the column alone could tell is that every age is possible."""
    frame = pl.DataFrame(
        {"age": ["young", "old", "old", "oldest"] * 500, "town": ["a", "b"] * 1000}
    )
    asked = JOINT
    page = rendered(made(asked, frame, tmp_path))
    assert "Median: old, and with probability 95\N{NO-BREAK SPACE}% between old and old." in page
    assert "Prior: learned from" not in page
    apart = rendered(made(asked.replace("joint = true\n", ""), frame, tmp_path))
    assert (
        "Median: old, and with probability 95\N{NO-BREAK SPACE}% between old and old." not in apart
    )
    assert "Prior: learned from" in apart


def test_groups_that_are_estimated_together_have_no_notes_of_each_by_itself(tmp_path):
    frame = pl.DataFrame({"vote": ["yes"], "town": ["a"]})
    asked = ANSWERS.replace('[[results]]\ncolumn = "vote"\n[[', "[[").replace("20000.0", "0.5")
    report = made(asked + "pooled = true\n", frame, tmp_path)
    release = replace(report.survey.releases[0], noisy_counts=((500, 300, 0, 0), (0, 0, 0, 0)))
    pooled = replace(report, survey=ob.Survey(report.survey.names, (release,)))
    alone = replace(pooled, specification=read_specification(asked))
    noted = ["The intervals of 1 of the 2 groups" in rendered(one) for one in (alone, pooled)]
    assert noted == [True, False]


@pytest.mark.parametrize("rest", [False, True])
def test_a_page_of_discovered_categories_says_of_what_its_shares_are(rest, tmp_path):
    asked = 'title = "Codes"\nprivacy = { epsilon = 100.0, delta = 1e-6 }\n'
    asked += '[columns.code]\ncategories = "discover"\n[[results]]\ncolumn = "code"\n'
    frame = pl.DataFrame({"code": ["a"] * 300 + ["b"] * 100})
    page = rendered(made(asked + "rest = 0.5\n" * rest, frame, tmp_path))
    assert ("Shares are of the records in the categories that are shown." in page) != rest
    assert "Every value that occurred got a noisy count" in page
    assert "Mean and interval are of the true number" not in page
