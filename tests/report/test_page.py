"""The page of a report, on two real surveys: every number in it, recomputed from its JSON."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from statsmodels.datasets import anes96, fair

import opendp_bayes as ob
from opendp_bayes.commands.answers import survey_of
from opendp_bayes.commands.files import source
from opendp_bayes.report.page import rendered
from opendp_bayes.report.report_document import Report
from opendp_bayes.report.specification_text import read_specification
from opendp_bayes.report.statements import promise

VOTES = ["Clinton", "Dole"]
ELECTION = """
title = "Votes & <parties>"
privacy = { epsilon = 1.0, unit = "one person's answers", size = 944 }
[columns.vote]
nulls = "Dole"
[columns.party]
categories = [0, 1, 2, 3, 4, 5, 6]
labels = ["D++", "D+", "D", "I", "R", "R+", "R++"]
nulls = 3
unknown = 3
[[results]]
column = "vote"
title = "Expected vote"
[[results]]
column = "party"
share = 2
prior = [1, 1, 1, 2, 1, 1, 1]
[[results]]
column = "party"
by = "vote"
"""
MARRIAGES = """
title = "Marriages"
[privacy]
rho = 0.05
[columns.affair]
labels = ["yes", "no"]
categories = [true, false]
[columns.religious]
categories = [1, 2, 3, 4]
[[results]]
column = "affair"
[[results]]
column = ["religious", "affair"]
"""


class Page(HTMLParser):
    """The tables of a page, the places in its pictures, and its text by section."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.styles: list[tuple[str, str]] = []
        self.text: dict[str, str] = {}
        self.document = ""
        self._section, self._tags = "", []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in ("meta", "br"):
            self._tags.append(tag)
        if tag in ("section", "script"):
            self._section = given["id"]
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if "style" in given:
            self.styles.append((given.get("class", "tick"), given["style"]))

    def handle_endtag(self, tag):
        self._tags.pop()

    def handle_data(self, data):
        if self._section == "releases":
            self.document += data
        elif {"td", "th"} & set(self._tags):
            self.tables[-1][-1][-1] += data
        elif "style" not in self._tags:
            self.text[self._section] = self.text.get(self._section, "") + data


def made(text: str, frame: pl.DataFrame, directory: Path) -> Report:
    frame.write_parquet(directory / "data.parquet")
    asked = read_specification(text)
    survey = survey_of(source(directory / "data.parquet", None), asked)
    software = {"opendp-bayes": ob.__version__}
    return Report(asked, survey.release().releases, software)


@pytest.fixture(scope="module")
def election(tmp_path_factory: pytest.TempPathFactory) -> Report:
    answers = anes96.load_pandas().data
    vote = pl.Series([VOTES[int(code)] for code in answers["vote"]], dtype=pl.Enum(VOTES))
    frame = pl.DataFrame({"vote": vote, "party": [int(code) for code in answers["PID"]]})
    return made(ELECTION, frame, tmp_path_factory.mktemp("election"))


@pytest.fixture(scope="module")
def marriages(tmp_path_factory: pytest.TempPathFactory) -> Report:
    answers = fair.load_pandas().data
    affair = [bool(number > 0) for number in answers["affairs"]]
    religious = [int(code) for code in answers["religious"]]
    frame = pl.DataFrame({"affair": affair, "religious": religious})
    return made(MARRIAGES, frame, tmp_path_factory.mktemp("marriages"))


@pytest.fixture(params=["election", "marriages"])
def report(request: pytest.FixtureRequest) -> Report:
    found: Report = request.getfixturevalue(request.param)
    return found


def agrees(text: str, value: float) -> bool:
    """Whether a number is shown with the decimals that it has."""
    return abs(float(text) - value) <= 0.5000001 * 10.0 ** -len(text.partition(".")[2])


def is_bound(text: str, value: float) -> bool:
    """Whether a bound is shown rounded up, in four digits; a float may be off in its last bit."""
    shown = float("inf") if text == "∞" else float(text)
    return value * (1 - 1e-15) <= shown <= value * 1.001 + 1e-300


def read_back(page: Page) -> list[ob.Release | ob.GroupedRelease]:
    """The releases of the page, read by their own readers alone."""
    kinds = {"opendp-bayes release": ob.Release}
    return [
        kinds.get(document["format"], ob.GroupedRelease).from_json(json.dumps(document))
        for document in json.loads(page.document)["releases"]
    ]


def parts(page: Page) -> list[ob.Release]:
    """The releases and those of single groups, in the order of the page."""
    return [
        part
        for release in read_back(page)
        for part in ([release] if isinstance(release, ob.Release) else release.values())
    ]


def test_every_number_of_the_results_follows_from_the_json(report: Report) -> None:
    page = Page(rendered(report))
    *results, _ = page.tables
    assert len(results) == len(parts(page))
    for table, release in zip(results, parts(page), strict=True):
        mean, (lower, upper) = release.posterior.mean(), release.posterior.interval(0.95)
        header, *rows = table
        assert header == ["Category", "Probability", "95 % interval", "Released count"]
        assert len(rows) == release.k
        for i, (_, shown, interval, count) in enumerate(rows):
            low, high = interval.split(" to ")
            assert agrees(shown, mean[i])
            assert agrees(low, lower[i])
            assert agrees(high, upper[i])
            assert int(count) == release.counts[i]


def test_every_place_in_the_pictures_follows_from_the_json(report: Report) -> None:
    html = rendered(report)
    page = Page(html)
    places = [
        (kind, [float(number) for number in re.findall(r"[\d.]+(?=%)", style)])
        for kind, style in page.styles
    ]
    ticks = re.findall(r'left: ([\d.]+)%">([\d.]+)</span>', html)
    for release in parts(page):
        mean, (lower, upper) = release.posterior.mean(), release.posterior.interval(0.95)
        drawn, places = places[: 3 * release.k], places[3 * release.k :]
        number = next((i for i, place in enumerate(places) if place[0] != "tick"), len(places))
        axis, ticks, places = ticks[:number], ticks[number:], places[number:]
        end = float(axis[-1][1])
        assert all(float(at) == pytest.approx(100 * float(text) / end) for at, text in axis)
        for i in range(release.k):
            bar, reach, dot = drawn[3 * i : 3 * i + 3]
            assert [kind for kind, _ in (bar, reach, dot)] == ["bar", "reach", "dot"]
            assert bar[1] == dot[1] == [pytest.approx(100 * mean[i] / end, abs=1e-3)]
            assert reach[1] == [
                pytest.approx(100 * lower[i] / end, abs=1e-3),
                pytest.approx(100 * (upper[i] - lower[i]) / end, abs=3e-3),
            ]
    assert not places


def test_the_ledger_adds_up_and_keeps_the_budget(report: Report) -> None:
    page = Page(rendered(report))
    releases, (_, *rows, total) = read_back(page), page.tables[-1]
    for (_, mechanism, *shown), release in zip(rows, releases, strict=True):
        assert mechanism.startswith(f"{type(release.mechanism).__name__}(scale=")
        losses = (release.epsilon, release.rho, release.delta)
        assert all(map(is_bound, shown, losses)), (shown, losses)
    sums = [sum(getattr(one, name) for one in releases) for name in ("epsilon", "rho", "delta")]
    assert all(map(is_bound, total[2:], sums))
    privacy = report.specification.privacy
    if privacy.epsilon is not None:
        assert 0.999 * privacy.epsilon < sums[0] <= privacy.epsilon
        assert f"ε = {total[2]}" in page.text["promise"]
    else:
        assert 0.999 * privacy.rho < sums[1] <= privacy.rho
        assert f"ρ = {total[3]}" in page.text["promise"]


def test_no_other_number_is_in_the_text(report: Report) -> None:
    """Those of the promise and the methods are the budget and what it implies, its size, the
    neighbours, scales and priors, the level and the versions.
    """
    page = Page(rendered(report))
    document, (*_, total) = json.loads(page.document), page.tables[-1]
    known = {"0", "1", "2", "95", total[2], total[3], promise(report)["factor"]}
    known |= {f"{part.mechanism.scale:.4g}" for part in parts(page)}
    known |= {promise(report)["epsilon"], "06"}  # δ = 1e-06
    known |= {"944"} if report.specification.privacy.size else set()
    for section in ("promise", "methods", "reading", "cost", "data"):
        text = page.text[section]
        for version in document["software"].values():
            text = text.replace(version, "")
        numbers = set(re.findall(r"\d[\d.]*\d|\d", text))
        assert numbers <= known, (section, numbers - known)


def test_the_negative_control_a_number_that_was_changed_is_noticed(election: Report) -> None:
    page = Page(rendered(election))
    shown, mean = page.tables[0][1][1], parts(page)[0].posterior.mean()[0]
    assert agrees(shown, mean)
    assert not agrees(f"{float(shown) + 0.001:.3f}", mean)
    assert not is_bound("0.1999", 0.2)


def test_categories_are_called_what_the_specification_calls_them(
    election: Report, marriages: Report
) -> None:
    page = Page(rendered(election))
    assert [row[0] for row in page.tables[1][1:]] == ["D++", "D+", "D", "I", "R", "R+", "R++"]
    assert "How many records each has is private" in page.text["results"]
    assert "are left out" not in page.text["results"]
    page = Page(rendered(marriages))
    assert page.tables[1][1][0] == "1 × yes"
    assert page.tables[1][-1][0] == "no listed value × no"
    counted = (
        "Records without a value of religious or affair are left out; those with a value of"
        " religious that is no category are counted as “no listed value”."
    )
    assert counted in " ".join(page.text["results"].split())


def test_groups_are_called_by_their_column_and_category(election: Report) -> None:
    html = rendered(election)
    assert re.findall(r"<figcaption><strong>(.*?)</strong></figcaption>", html) == [
        "vote: Clinton",
        "vote: Dole",
    ]
    assert html.count("<figcaption>") == 2, "none is empty"


def test_the_page_says_that_released_counts_were_moved(report: Report) -> None:
    reading = " ".join(Page(rendered(report)).text["reading"].split())
    assert (
        "moved to the nearest that is possible: what came out below zero is shown as 0" in reading
    )


def test_the_page_needs_nothing_and_runs_nothing(report: Report) -> None:
    html = rendered(report)
    assert not re.search(r"(?:src|href|url)\s*[=(]", html)
    assert (html.count("<script"), html.count("</script>")) == (1, 1)
    assert '<script type="application/json"' in html
    assert "<parties>" not in html


def test_json_both_ways(report: Report) -> None:
    again = Report.from_json(report.to_json())
    assert again == report
    assert rendered(again) == rendered(report)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-1], "text: is not a report in JSON"),
        (lambda text: text.replace("opendp-bayes report", "x"), "format='x': must be"),
        (
            lambda text: text.replace('"version":1', '"version":9'),
            "version=9: this package reads",
        ),
        (lambda text: text.replace('"version":1', '"version":0'), "must be .* version 1"),
        (lambda text: text.replace('"releases":[', '"releases":[{},{},{},'), "one for each of"),
    ],
)
def test_json_that_is_no_report(marriages: Report, change, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Report.from_json(change(marriages.to_json()))
