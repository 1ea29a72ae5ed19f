"""Pages of reports on two real surveys, and what is on a page."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
from statsmodels.datasets import anes96, fair

import opendp_bayes as ob
from opendp_bayes_office.report.report_document import Report
from opendp_bayes_office.report.specification_text import read_specification
from tests.helpers.asked_of_files import survey_of

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
    """The tables of a page, what their pictures draw, and its text by section."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.articles: list[str] = []
        self.drawn: list[list[list[list[dict[str, str]]]]] = []
        self.axes: list[list[tuple[float, Any]]] = []
        self.text: dict[str, str] = {}
        self.document = ""
        self._section, self._article, self._tags, self._at = "", "", [], ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag not in ("meta", "br", "wbr"):
            self._tags.append(tag)
        if tag in ("section", "script"):
            self._section = given["id"]
        if tag == "article":
            self._article = given["id"]
        if tag == "table":
            self.tables.append([])
            self.drawn.append([])
            self.articles.append(self._article)
        if tag == "tr":
            self.tables[-1].append([])
            self.drawn[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag == "svg":
            (self.drawn[-1][-1] if given["class"] == "drawn" else self.axes).append([])
        if tag in ("rect", "circle"):
            self.drawn[-1][-1][-1].append(given)
        if tag == "text":
            self._at = given["x"]

    def handle_endtag(self, tag):
        self._tags.pop()

    def handle_data(self, data):
        if self._section == "releases":
            self.document += data
        elif self._tags[-1:] == ["text"]:
            is_number = re.fullmatch(r"[\d.]+", data)  # or the name of a category
            self.axes[-1].append((float(self._at[:-1]), float(data) if is_number else data))
        elif {"td", "th"} & set(self._tags):
            self.tables[-1][-1][-1] += data
        elif "style" not in self._tags:
            self.text[self._section] = self.text.get(self._section, "") + data


def made(text: str, frame: pl.DataFrame, directory: Path) -> Report:
    frame.write_parquet(directory / "data.parquet")
    asked = read_specification(text)
    survey = survey_of(directory / "data.parquet", asked)
    software = {"opendp-bayes": ob.__version__}
    return Report(asked, survey.release(), software)


def of_election(directory: Path) -> Report:
    answers = anes96.load_pandas().data
    vote = pl.Series([VOTES[int(code)] for code in answers["vote"]], dtype=pl.Enum(VOTES))
    frame = pl.DataFrame({"vote": vote, "party": [int(code) for code in answers["PID"]]})
    return made(ELECTION, frame, directory)


def of_marriages(directory: Path) -> Report:
    answers = fair.load_pandas().data
    affair = [bool(number > 0) for number in answers["affairs"]]
    religious = [int(code) for code in answers["religious"]]
    frame = pl.DataFrame({"affair": affair, "religious": religious})
    return made(MARRIAGES, frame, directory)
