"""Results of a report whose categories were discovered: their tables, and what is said of them."""

import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser

import numpy as np
import pytest

from opendp_bayes import PrivacyGuarantee, PrivacyLoss
from opendp_bayes.mechanisms.integer_noise import DiscreteLaplace
from opendp_bayes.unlisted.discovered import DiscoveredRelease
from opendp_bayes.unlisted.thresholds import Discovery, OptimalThreshold
from opendp_bayes_office.report.discoveries import discovered, notes_of
from opendp_bayes_office.report.page import rendered
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification_text import read_specification

LAW = OptimalThreshold(1.0, 1e-8, 0.75)
SPECIFICATION = """
title = "Codes"
[privacy]
epsilon = 1.0
delta = 1e-8
unit = "one patient"
[columns.code]
categories = "discover"
[[results]]
column = "code"
"""
HOSTILE = {
    "<script>alert(1)</script>": "<script>alert(1)</script>",
    "</script><b>&amp;": "</script><b>&amp;",
    "a\x00\x1b[31mred": "'a\\x00\\x1b[31mred'",
    "left\u202eright\u2066": "'left\\u202eright\\u2066'",
    " blanks ": "' blanks '",
    "long " * 50_000: None,
    "line\nbreak": "'line\\nbreak'",
    "": "''",
}


def made(counts, rest=None, listed=0, people=False):
    noise = None if rest is None else DiscreteLaplace(5.0)
    loss = PrivacyLoss(epsilon=1.0, rho=np.inf, range=np.inf, delta=1e-8)
    return DiscoveredRelease(
        column="code",
        categories=tuple(counts),
        drawn=tuple(counts.values()),
        listed=listed,
        discovery=Discovery(LAW if noise else OptimalThreshold(1.0, 1e-8), noise),
        drawn_rest=rest,
        guarantee=PrivacyGuarantee(None, 1, loss, "Approximate(MaxDivergence)"),
        people=people,
    )


@cache
def few():
    return made({"none": 0, "A01": 900, "B02": 60, "C03": 25}, rest=480, listed=1)


def page(release):
    return rendered(Report(read_specification(SPECIFICATION), (release,), {"OpenDP": "0.16.0"}))


class Text(HTMLParser):
    """What a reader sees of a page, and the elements that it is made of."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.texts, self.tags, self.hidden = [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style")

    def handle_data(self, data):
        if not self.hidden and data.strip():
            self.texts.append(data)


def test_the_table_has_the_largest_first_and_everything_else_last():
    release = few()
    table = discovered(release, 0.95)
    assert [row.name for row in table.rows] == ["A01", "B02", "C03", "none"]
    assert [row.count for row in table.rows] == ["900", "60", "25", "0"]
    assert (table.unit, table.left) == ("Records", 0)
    mean, (lower, upper) = release.posterior.mean(), release.posterior.interval(0.95)
    first = table.rows[0]
    assert (first.mean, first.interval) == (f"{mean[1]:.1f}", f"{lower[1]:.0f} to {upper[1]:.0f}")
    low, high = release.rest.interval(0.95)
    assert table.rest.name == "and everything else"
    assert table.rest.interval == f"{low:.0f} to {high:.0f}"
    assert table.rest.count == "480"
    # Shares are of all records, everything else among them.
    shares = [float(row.share) for row in (*table.rows, table.rest)]
    assert sum(shares) == pytest.approx(1, abs=0.001)
    assert shares[0] == pytest.approx(900 / (985 + 480), abs=0.01)


def test_pictures_of_a_result_have_one_scale():
    release = few()
    table = discovered(release, 0.95)
    assert table.ticks == (("0", 0.0), ("500", 50.0), ("1\N{NARROW NO-BREAK SPACE}000", 100.0))
    mean, (lower, upper) = release.posterior.mean(), release.posterior.interval(0.95)
    for row, at in zip(table.rows, (1, 2, 3, 0), strict=True):
        drawn = 1000 * np.array([row.at, row.low, row.low + row.width]) / 100
        assert drawn == pytest.approx([mean[at], lower[at], upper[at]], abs=0.02)
    low, high = release.rest.interval(0.95)
    ends = 10 * table.rest.low, 10 * (table.rest.low + table.rest.width)
    assert ends == pytest.approx((low, high), abs=0.02)


def test_a_scale_ends_at_everything_else_where_that_is_the_largest():
    table = discovered(made({"A01": 60}, rest=73_000), 0.95)
    assert table.ticks[-1][0] == "100\N{NARROW NO-BREAK SPACE}000"
    assert 0 <= table.rows[0].at < 1
    assert 72 < table.rest.at < 74


def test_everything_else_below_zero_is_drawn_at_zero_and_said_as_it_is():
    table = discovered(made({"A01": 60}, rest=-4), 0.95)
    assert table.rest.count == "-4"
    assert (table.rest.at, table.rest.low) == (0, 0)


def test_the_notes_say_what_the_threshold_is_and_what_hidden_categories_may_have():
    said = " ".join(notes_of(few(), 0.95))
    assert f"at least {LAW.threshold}. With {LAW.least_shown(0.5)} records" in said
    assert f"{LAW.least_shown(0.95)} in 95 of 100" in said
    assert "shown whatever their count: none." in said
    most = few().hidden("any other").upper(0.95)
    assert f"A category that is not shown has at most {most} records" in said
    assert "together that are not shown was not asked" not in said
    several = made({"A01": 60}, people=True)
    several = several.with_guarantee(replace(several.guarantee, d_in=3))
    assert "once in each of up to 3 categories" in " ".join(notes_of(several, 0.95))
    of_people = " ".join(notes_of(made({"A01": 60}, people=True), 0.95))
    assert "once in each of up to" not in of_people
    assert "How many people the categories have together that are not shown was not" in of_people


def test_a_page_says_what_was_discovered():
    text = " ".join(" ".join(Text(page(few())).texts).split())
    for said in (
        "ε = 1, δ = 1e-08",
        "Category 0 500",
        "95 % interval Noisy count Share A01",
        "and everything else",
        "Which categories there are was not known",
        "Where nobody could list the categories",
        "The categories of “code” were discovered: every value that occurs got its number of",
        "OptimalThreshold(epsilon=1, delta=1e-08, decay=0.75, threshold=19)",
        "Prior learned from the release",
        "a category of its own",
        "Counts were released under differential privacy with OpenDP 0.16.0.",
    ):
        assert said in text, said
    assert "The mechanism was" not in text


def test_shares_of_what_is_shown_alone_are_called_so():
    text = " ".join(Text(page(made({"A01": 900, "B02": 60}))).texts)
    assert "Share of those shown" in text
    assert "and everything else" not in text


@pytest.mark.filterwarnings("ignore:'code'. many keys have about the same number")
def test_labels_of_anybody_are_shown_as_text():
    release = made(dict(zip(sorted(HOSTILE), range(40, 40 + len(HOSTILE)), strict=True)), rest=9)
    text = page(release)
    seen, harmless = Text(text), Text(page(few()))
    assert seen.tags.count("script") == harmless.tags.count("script") == 1
    assert "b" not in seen.tags
    body = text.partition("<script")[0]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", body)
    for label, shown in HOSTILE.items():
        if shown is not None:
            assert shown in seen.texts, label
    assert "… (250000 characters)" in body
    assert len(body) < 100_000
    # The JSON has every label as it is.
    document = text.partition('id="releases">')[2].partition("</script>")[0]
    again = Report.from_json(document.replace("\\u003c", "<"))
    assert again.releases[0] == release


def test_no_category_shown_is_a_result():
    text = " ".join(Text(page(made({}, rest=480))).texts)
    assert "No category is shown." in text
    assert "and everything else" in text
    assert "No category is shown." in " ".join(Text(page(made({}))).texts)


def test_thousands_of_categories_have_the_first_thousand_rows():
    many = {f"code {n:05}": 40 + n % 700 for n in range(5000)}
    release = made(many, rest=9000)
    table = discovered(release, 0.95)
    assert (len(table.rows), table.left) == (1000, 4000)
    means = [float(row.mean) for row in table.rows]
    assert means == sorted(means, reverse=True)
    assert "and 4000 more, which the data at the end of this page have" in page(release)


def test_a_report_with_a_discovery_is_read_again_and_checked():
    asked = read_specification(SPECIFICATION)
    report = Report(asked, (few(),), {"OpenDP": "0.16.0"})
    assert Report.from_json(report.to_json()) == report
    other = report.to_json().replace(
        '"column":"code","categories":[', '"column":"c","categories":['
    )
    with pytest.raises(ValueError, match=r"releases\[0\]: column='code' is asked"):
        Report.from_json(other)
