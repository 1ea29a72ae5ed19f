"""Public votes for the two leading candidates of United States presidential elections: the data of
the paper's figures.
"""

import csv
from importlib.resources import files
from typing import Any


def elections() -> list[dict[str, Any]]:
    """National votes for the two leading candidates, 1920 to 2020, one row a year: `year`,
    `democrat`, `democrat_votes`, `republican`, `republican_votes`.

    National totals as they are commonly printed, after Dave Leip, "Atlas of U.S. Presidential
    Elections", which the paper cites. They are a transcription, not a certified record: sources
    differ by how the votes of minor parties for the same candidate are counted. For 1932 to 2004
    they were compared with a second printed table in thousands of votes: all are within 0.1 % of
    it, but for 1952 (0.4 %). No figure changes visibly.
    """
    return _rows("elections.csv")


def districts() -> list[dict[str, Any]]:
    """Votes of 2020 in districts that choose electors, one row each: `district`, `democrat_votes`,
    `republican_votes`.

    A stand-in for the paper's list of all of them, of which it prints only DC (94.46 %). Here are
    DC, the districts of Maine and Nebraska, and the states with the largest and the smallest
    shares. Every state left out has a share between that of Wyoming and that of Vermont, so the
    convex hull is that of all: its vertices are DC and Nebraska 3. A transcription of commonly
    printed results, not checked against the canvasses.
    """
    return _rows("districts.csv")


def _rows(name: str) -> list[dict[str, Any]]:
    with (files("opendp_bayes_smoothed") / name).open(encoding="utf-8") as file:
        return [
            {key: int(value) if value.isdigit() else value for key, value in row.items()}
            for row in csv.DictReader(file)
        ]
