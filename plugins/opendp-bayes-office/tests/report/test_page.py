"""The page of a report, on two real surveys: every number in it, recomputed from its JSON."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace
from statsmodels.datasets import anes96

import opendp_bayes as ob
from opendp_bayes.results.release import GroupedRelease
from opendp_bayes_office.report.page import _scale, rendered
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.statements import guarantee
from tests.helpers.pages_of_reports import (
    VOTES,
    Page,
    made,
    of_election,
    of_marriages,
)


@pytest.fixture(scope="module")
def election(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return of_election(tmp_path_factory.mktemp("election"))


@pytest.fixture(scope="module")
def marriages(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return of_marriages(tmp_path_factory.mktemp("marriages"))


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


def read_back(page: Page) -> list[ob.Release | GroupedRelease]:
    """The releases of the page, read by their own readers alone."""
    kinds = {"opendp-bayes release": ob.Release}
    return [
        kinds.get(document["format"], GroupedRelease).from_json(json.dumps(document))
        for document in json.loads(page.document)["releases"]
    ]


def parts(page: Page) -> list[ob.Release]:
    """The releases and those of single groups, in the order of the page."""
    return [
        part
        for release in read_back(page)
        for part in ([release] if isinstance(release, ob.Release) else release.values())
    ]


def results_of(page: Page) -> list[list[list[str]]]:
    """The tables of results, without those of what matches no category and of the cost."""
    return page.tables[:-2]


def cells_of(page: Page) -> list[tuple[tuple[str, str, str], list[dict[str, str]]]]:
    """The probability, the interval and the count of every cell of the results, with what its
    picture draws, result by result and row by row; a row may go on in the next table.
    """
    found: dict[str, list[list[Any]]] = {}
    for article, (header, *rows), (_, *drawn) in zip(
        page.articles, results_of(page), page.drawn, strict=False
    ):
        of = found.setdefault(article, [[] for _ in rows])
        for row, (_, *cells), pictures in zip(of, rows, drawn, strict=True):
            if header[2:] == ["Probability", "95 % interval", "Released count"]:
                texts = [(cells[1], cells[2], cells[3])]
            else:
                split = [cell.split() for cell in cells]
                texts = [(mean, ends.replace("–", " to "), count) for mean, count, ends in split]
            row.extend(zip(texts, pictures, strict=True))
    return [cell for rows in found.values() for row in rows for cell in row]


def test_every_number_and_place_of_the_results_follows_from_the_json(report: Report) -> None:
    page = Page(rendered(report))
    shown, ends = cells_of(page), iter(scales(page))
    for released in read_back(page):
        end = next(ends)
        of = released.values() if isinstance(released, GroupedRelease) else [released]
        for release in of:
            mean, (lower, upper) = release.posterior.mean(), release.posterior.interval(0.95)
            cells, shown = shown[: release.k], shown[release.k :]
            for i, ((text, interval, count), (bar, reach, dot)) in enumerate(cells):
                low, high = interval.split(" to ")
                assert agrees(text, mean[i])
                assert agrees(low, lower[i])
                assert agrees(high, upper[i])
                assert int(count) == release.counts[i]
                places = [float(bar["width"][:-1]), float(dot["cx"][:-1])]
                assert places == [pytest.approx(100 * mean[i] / end, abs=1e-3)] * 2
                places = [float(reach["x"][:-1]), float(reach["width"][:-1])]
                expected = [100 * lower[i] / end, 100 * (upper[i] - lower[i]) / end]
                assert places == pytest.approx(expected, abs=1e-3)
    assert not shown, "every cell was compared"


def scales(page: Page) -> list[float]:
    """The end of the scale of each result, after a look at every tick."""
    ends: dict[str, set[float]] = {}
    axes = iter(page.axes)
    for article, (header, *_) in zip(page.articles, results_of(page), strict=False):
        for _ in [1] if header[1] == "" else header[1:]:
            axis = next(axes)
            assert all(at == pytest.approx(100 * value / axis[-1][1]) for at, value in axis)
            ends.setdefault(article, set()).add(axis[-1][1])
    assert not list(axes)
    return [end for (end,) in ends.values()]


@pytest.mark.parametrize("highest", np.geomspace(0.004, 1.0, 50))
def test_a_scale_ends_near_the_longest_interval_and_at_a_tick(highest: float) -> None:
    end, step = _scale(highest)
    assert highest <= end <= 2.5 * highest * (1 + 1e-9)
    assert end / step == pytest.approx(round(end / step))


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
    known = {"0", "1", "2", "95", total[2], total[3], guarantee(report)["factor"]}
    known |= {f"{part.mechanism.scale:.4g}" for part in parts(page)}
    known |= {guarantee(report)["epsilon"], "06"}  # δ = 1e-06
    known |= {"944"} if report.specification.privacy.size else set()
    for section in ("promise", "methods", "reading", "cost", "data"):
        text = page.text[section]
        for version in document["software"].values():
            text = text.replace(version, "")
        numbers = set(re.findall(r"\d[\d.]*\d|\d", text))
        assert numbers <= known, (section, numbers - known)


def test_the_negative_control_a_number_that_was_changed_is_noticed(election: Report) -> None:
    page = Page(rendered(election))
    shown, mean = cells_of(page)[0][0][0], parts(page)[0].posterior.mean()[0]
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
    header, *rows = page.tables[1]
    assert header == ["religious", "yes", "no"]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "no listed value"]


def test_groups_are_called_by_the_labels_of_their_column_everywhere(election: Report) -> None:
    columns = dict(election.specification.columns)
    columns["vote"] = replace(columns["vote"], categories=VOTES, labels=["the one", "the other"])
    specification = replace(election.specification, columns=columns)
    page = rendered(replace(election, specification=specification))
    said, _, embedded = page.partition("<script")
    assert "Clinton" in embedded
    assert not re.search("Clinton|Dole", said)
    assert "the one: " in Page(page).text["results"]


def test_a_table_says_where_records_in_no_category_are(election: Report, marriages: Report) -> None:
    header, *rows = Page(rendered(marriages)).tables[-2]
    assert header == ["Column", "Result", "Without a value", "With another value"]
    assert rows == [
        ["affair", "affair; religious × affair", "left out", "cannot occur"],
        ["religious", "religious × affair", "left out", "counted as “no listed value”"],
    ]
    _, *rows = Page(rendered(election)).tables[-2]
    assert rows == [
        ["vote", "Expected vote", "counted as “Dole”", "cannot occur"],
        ["party", "party; party by vote", "counted as “I”", "counted as “I”"],
        ["vote", "party by vote", "counted as “Dole”", "cannot occur"],
    ]


def test_groups_stand_below_each_other(election: Report) -> None:
    header, *rows = results_of(Page(rendered(election)))[2]
    assert [row[0] for row in rows] == ["Clinton", "Dole"]
    assert header == ["vote", "D++", "D+", "D"]
    header, *rows = results_of(Page(rendered(election)))[3]
    assert [row[0] for row in rows] == ["Clinton", "Dole"]
    assert header == ["vote", "I", "R", "R+", "R++"]


def test_the_page_says_that_released_counts_were_moved(report: Report) -> None:
    reading = " ".join(Page(rendered(report)).text["reading"].split())
    assert (
        "moved to the nearest that is possible: what came out below zero is shown as 0" in reading
    )


def test_the_page_needs_nothing_and_runs_nothing(report: Report) -> None:
    html = rendered(report)
    assert not re.search(r"(?:src|url)\s*[=(]", html)
    places = re.findall(r'href\s*=\s*"(.*?)"', html)
    assert len(places) == html.count("href")
    assert all(place[0] == "#" and f'id="{place[1:]}"' in html for place in places)
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
        (lambda text: text[:-1], "text: is not a report"),
        (lambda text: text.replace("opendp-bayes report", "x"), r"'x' - at `\$\.format`"),
        (
            lambda text: text.replace('"version":1', '"version":9'),
            "version=9: this package reads",
        ),
        (lambda text: text.replace('"version":1', '"version":0'), r"value 0 - at `\$\.version`"),
        (lambda text: text.replace('"releases":[', '"releases":[{},{},{},'), "one for each of"),
    ],
)
def test_json_that_is_no_report(marriages: Report, change, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Report.from_json(change(marriages.to_json()))


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("privacy", {"size": 1000}, r"releases\[0\]: size=None, and 1000"),
        ("privacy", {"contributions": 2}, r"d_in=1, and 2 is asked for"),
        (
            "privacy",
            {"identifier": "who", "rows_per_identifier": 1},
            "truncated=False, and True is asked for",
        ),
        ("privacy", {"rows_per_identifier": 1}, "privacy.*identifier"),
        ("results", {"column": "nothing"}, r"results\.0.*nothing"),
        ("results", {"by": "region"}, "is asked for|columns"),
    ],
)
def test_a_page_says_nothing_that_its_releases_do_not(
    marriages: Report, part: str, change: Any, message: str
) -> None:
    """The number of records, the unit and what was limited are said by the specification."""
    document = json.loads(marriages.to_json())
    changed = document["specification"][part]
    (changed[0] if part == "results" else changed).update(change)
    with pytest.raises(ValueError, match=message):
        Report.from_json(json.dumps(document))


def test_pooled_groups_are_shown_with_their_pooled_estimates(election: Report) -> None:
    asked = election.specification
    *others, by_vote = asked.results
    pooled = replace(by_vote, pooled=True, title="Pooled")
    report = Report(replace(asked, results=[*others, pooled]), election.releases, election.software)
    html = rendered(report)
    assert "The groups were estimated together" in html
    assert "The groups were estimated together" not in rendered(election)
    expected = iter(report.releases[-1].pooled().values())
    shown = cells_of(Page(html))[-14:]
    for part in (shown[:7], shown[7:]):
        one = next(expected)
        assert all(agrees(text[0], mean) for (text, _), mean in zip(part, one.mean(), strict=True))
    alone = cells_of(Page(rendered(election)))[-14:]
    assert [text for text, _ in alone] != [text for text, _ in shown]


def test_few_results_need_no_contents(election: Report, marriages: Report) -> None:
    assert '<nav aria-label="Contents">' in rendered(election)
    assert "<nav" not in rendered(marriages)


TOGETHER = """
title = "Votes and parties"
joint = true
privacy = { epsilon = 1.0, size = 944 }
[columns.vote]
nulls = "Dole"
[columns.party]
categories = [0, 1, 2, 3, 4, 5, 6]
nulls = 3
unknown = 3
[columns.old]
nulls = true
[[results]]
column = ["vote", "party"]
[[results]]
column = ["party", "old"]
[[results]]
column = "vote"
"""


def test_tables_that_are_estimated_together_agree_to_the_last_digit(tmp_path: Path) -> None:
    answers = anes96.load_pandas().data
    vote = pl.Series([VOTES[int(code)] for code in answers["vote"]], dtype=pl.Enum(VOTES))
    party, old = map(int, answers["PID"]), [bool(age > 45) for age in answers["age"]]
    report = made(TOGETHER, pl.DataFrame({"vote": vote, "party": party, "old": old}), tmp_path)
    page = Page(rendered(report))
    several = [
        [[Decimal(cell.split()[0]) for cell in row[1:]] for row in table[1:]]
        for table in results_of(page)[:3]
    ]
    by_vote = [a + b for a, b in zip(*several[:2], strict=True)]  # of seven parties, side by side
    alone = [Decimal(row[2]) for row in results_of(page)[3][1:]]
    assert [sum(row) for row in by_vote] == alone
    assert sum(alone) == 1
    assert [sum(cells) for cells in zip(*by_vote, strict=True)] == [sum(row) for row in several[2]]
    means = report.posterior().marginal("vote", "party").mean()
    shown = np.array([float(share) for row in by_vote for share in row])
    assert np.all(np.abs(shown - means) < 2.0 * 10.0 ** by_vote[0][0].as_tuple().exponent)  # type: ignore[operator]
    text = " ".join(page.text["methods"].split())
    assert "with the cliques vote × party and party × old and a hyper-Dirichlet prior" in text
    assert "It is centred on the assumption that old is independent of vote given party." in text
    assert re.search(
        r"mean width of 0\.\d+ for \w+ × \w+ \(a table would leave about 0\.\d+\)", text
    )
    assert re.search(
        r"R-hat is at most 1\.\d\d, and every count of a table has at least \d+ eff", text
    )
    assert "Prior learned from all tables" in page.tables[-1][1][1]
