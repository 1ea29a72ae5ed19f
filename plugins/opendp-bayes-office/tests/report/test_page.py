"""The page of a report: what it says and draws follows from the releases."""

import html
import re
from itertools import product
from pathlib import Path
from typing import get_args

import polars as pl
import pytest

from opendp_bayes_office.report.language import Tag, language_of
from opendp_bayes_office.report.page import LEVEL, rendered
from opendp_bayes_office.report.report_document import Report
from tests.helpers.pages_of_reports import Page, made, of_election, of_marriages
from tests.helpers.sweeps import some_of


@pytest.fixture(scope="module")
def election(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return of_election(tmp_path_factory.mktemp("election"))


@pytest.fixture(scope="module")
def marriages(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return of_marriages(tmp_path_factory.mktemp("marriages"))


def test_every_row_is_that_of_the_table_of_the_releases(election: Report) -> None:
    page = Page(rendered(election))
    table = election.survey.to_frame(LEVEL)
    rows = [row for shown in page.tables[:3] for row in shown[1:]]
    assert len(rows) == table.height
    for row, stated in zip(rows, table.iter_rows(named=True), strict=True):
        *_, _, mean, interval, count = row
        assert float(mean.removesuffix(" %")) == pytest.approx(100 * stated["mean"], abs=0.6)
        low, high = map(float, interval.removesuffix(" %").split(" to "))
        ends = (100 * stated["lower"], 100 * stated["upper"])
        assert (low, high) == pytest.approx(ends, abs=0.6)
        assert int(count) == stated["count"]


def test_pictures_show_the_intervals_on_one_scale(election: Report) -> None:
    page = Page(rendered(election))
    drawn = [row for row in page.drawn[1][1:] if row]
    table = election.survey.to_frame(LEVEL)
    numbers = table.filter(table["question"] == "party")
    for (shapes,), lower, upper in zip(drawn, numbers["lower"], numbers["upper"], strict=True):
        reach = next(one for one in shapes if one["class"] == "reach")
        end = 100 / numbers["upper"].max()
        assert float(reach["x"][:-1]) == pytest.approx(lower * end, abs=0.01)
        assert float(reach["width"][:-1]) == pytest.approx((upper - lower) * end, abs=0.01)


def test_labels_are_those_of_the_specification(election: Report, marriages: Report) -> None:
    page = Page(rendered(election))
    assert [row[0] for row in page.tables[1][1:]] == ["D++", "D+", "D", "I", "R", "R+", "R++"]
    assert [row[0] for row in page.tables[2][1:] if row[0]] == ["Clinton", "Dole"]
    cells = [row[0] for row in Page(rendered(marriages)).tables[1][1:]]
    assert cells[:2] == ["1 × yes", "1 × no"]


def test_the_promise_and_the_cost_are_of_all_results(election: Report, marriages: Report) -> None:
    said = Page(rendered(election)).text["promise"]
    assert "one person's answers" in said
    assert "ε = 1" in said
    assert "differ by 1 record changed. The number of records, 944, is public." in said
    said = " ".join(Page(rendered(marriages)).text["promise"].split())
    assert "ρ = 0.05" in said
    assert "The number of records is private" in said
    losses = [row[2] for row in Page(rendered(election)).tables[3][1:]]
    assert sum(map(float, losses[:-1])) == pytest.approx(float(losses[-1]), rel=1e-3)


def test_texts_are_no_markup(election: Report) -> None:
    page = rendered(election)
    assert "<h1>Votes &amp; &lt;parties&gt;</h1>" in page
    assert "<parties>" not in page.split("<script")[0]
    assert "<script" not in re.sub(r'<script type="application/json".*', "", page, flags=re.DOTALL)
    assert "http" not in html.unescape(page.split("</style>")[1].split("<script")[0])


def test_the_page_holds_the_report(election: Report, tmp_path: Path) -> None:
    found = Report.read(Page(rendered(election)).document, "again")
    assert found == election
    assert rendered(found) == rendered(election)


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


@pytest.mark.parametrize("set_to", ["", "percent = false", 'among = "all"'])
def test_shares_are_of_those_who_answered_with_the_missing_beside_them(set_to, tmp_path):
    frame = pl.DataFrame(
        {"vote": ["yes", "yes", "yes", "no", None] * 400, "town": ["a", "b"] * 1000}
    )
    page = Page(rendered(made(set_to + ANSWERS, frame, tmp_path)))
    whole = 'among = "all"' in set_to
    expected = [60, 20, 20, 0] if whole else [75, 25, 20, 0]
    unit, scale = ("", 0.01) if "percent" in set_to else (" %", 1)
    assert page.tables[0][0][2] == "Share"
    for table in page.tables[:2]:
        shares = [float(row[-3].removesuffix(unit)) for row in table[1:5]]
        assert shares == pytest.approx([scale * share for share in expected], abs=0.2 * scale)
        note = "" if whole else " of all records"
        assert [row[-5] for row in table[3:5]] == [f"no answer{note}", f"other{note}"]


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


@pytest.mark.parametrize(
    ("tag", "percent"), some_of(product(get_args(Tag), [True, False]), len(get_args(Tag)))
)
def test_every_share_of_a_page_has_its_unit_and_its_decimal_mark(tag, percent, tmp_path):
    """Where the scale of the pictures ends, the shares, and both ends of the intervals."""
    frame = pl.DataFrame({"vote": ["yes", "no", None] * 5, "town": ["a", "b", "b"] * 5})
    few = ANSWERS.replace("20000.0", "2.0")
    page = Page(rendered(made(("" if percent else "percent = false") + few, frame, tmp_path), tag))
    number = rf"\d+(?:{re.escape(language_of(tag).decimal)}\d+)?"
    with_unit = number + (" %" if percent else "")
    for heading, *rows in page.tables[:2]:
        assert re.fullmatch(rf"0 \D+ {with_unit}", heading[-4])
        for *_, share, interval, _ in rows:
            assert re.fullmatch(with_unit, share)
            assert re.fullmatch(rf"{number} \D+ {with_unit}", interval)


ORDERED = """
title = "Ages"
privacy = { epsilon = 50.0 }
[columns.age]
categories = ["18-39", "40-64", "65+"]
labels = ["young", "middle", "old"]
nulls = "unknown"
[[results]]
column = "age"
ordered = ["age"]
[[results]]
column = "age"
title = "Not in order"
"""


def test_ordered_categories_have_quartiles_that_leave_out_who_gave_no_answer(tmp_path):
    counts = {"18-39": 600, "40-64": 300, "65+": 100, None: 3000}
    frame = pl.DataFrame({"age": [age for age, number in counts.items() for _ in range(number)]})
    report = made(ORDERED, frame, tmp_path)
    page = Page(rendered(report))
    said = " ".join(" ".join(page.text.values()).split())
    assert said.count("Median: young") == 1
    assert "Lower quartile: young" in said
    assert "Upper quartile: middle, and with probability 95 % between middle and middle." in said
    median = report.survey.releases[0].posterior.quantiles([0.5])[0.5]
    assert median.category == "18-39"
