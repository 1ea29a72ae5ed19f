"""The category that is most probably the most frequent, as a report names it."""

import re
from pathlib import Path

import pytest

from opendp_bayes_office.report.most_frequent import most_frequent
from opendp_bayes_office.report.page import rendered
from opendp_bayes_office.report.report_document import Report
from tests.helpers.pages_of_reports import VOTES, Page, of_election, of_marriages


@pytest.fixture(scope="module")
def of_votes(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return of_election(tmp_path_factory.mktemp("votes"))


def test_the_most_frequent_category_is_named_with_its_probability(of_votes: Report) -> None:
    """An independent count of draws; at most five standard errors of both apart."""
    found = list(most_frequent(of_votes, 0))
    draws = of_votes.releases[0].posterior.sample(20_000, random_state=7)
    share = float((draws[:, 0] > draws[:, 1]).mean())
    name, text = re.fullmatch(r"Most frequent: (.*), with probability (.*)\.", found[0]).groups()  # type: ignore[union-attr]
    assert name == ("Clinton" if share > 0.5 else "Dole")
    stated = 1.0 if text == "above 0.99" else float(text)
    assert abs(stated - max(share, 1 - share)) < 0.06
    assert found[0] in Page(rendered(of_votes)).text["results"]

    (of_groups,) = most_frequent(of_votes, 2)
    groups = re.findall(r"(Clinton|Dole): (\S+) \((?:above )?([\d.]+)\)", of_groups)
    assert [group for group, *_ in groups] == VOTES
    for group, label, probability in groups:
        posterior = of_votes.releases[2][group].posterior
        first = posterior.sample(20_000, random_state=7).argmax(axis=1)
        place = ["D++", "D+", "D", "I", "R", "R+", "R++"].index(label)
        assert abs(float(probability) - (first == place).mean()) < 0.06


def test_nothing_is_said_of_the_most_frequent_cell(tmp_path: Path) -> None:
    marriages = of_marriages(tmp_path)
    (_,) = most_frequent(marriages, 0)
    assert list(most_frequent(marriages, 1)) == []
