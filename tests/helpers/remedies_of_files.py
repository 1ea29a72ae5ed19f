"""Rows of the page of messages about files: what gets each message, and what its row says to do."""

import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pyreadstat

import opendp_bayes as ob
from opendp_bayes.results.reader import result_from_json
from tests.helpers.command_line import run

ASKED = ("--categories", "a,b", "--epsilon", 1)
VOTES = "vote,town\n" + "a,x\nb,y\n" * 30
SPECIFICATION = """\
title = "Votes"
{head}
[privacy]
epsilon = 1.0
[columns.vote]
{column}
[[results]]
column = "vote"
"""


def new(name: str) -> str:
    """A name that no file of an earlier call has."""
    for path in (Path(name), Path(name).with_suffix(".json")):
        path.unlink(missing_ok=True)
    return name


def file(name: str, content: str | bytes = VOTES) -> str:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def release(*given: object) -> Any:
    """What is released with these options."""
    return result_from_json(run("release", *given, *ASKED, "-o", "-"))


def refused(*given: object) -> str:
    return run("release", *given, *ASKED, "-o", "-", code=2)


def specified(column: str = 'categories = ["a", "b"]', head: str = "") -> str:
    return file("asked.toml", SPECIFICATION.format(column=column, head=head))


def ran(question: str, data: str = "votes.csv", *, code: int = 0) -> Any:
    said = run("run", question, data, "-o", "-", code=code)
    return said if code else result_from_json(said)


def workbook(*sheets: str, heading: str = "vote") -> str:
    book = openpyxl.Workbook()
    for at, name in enumerate(sheets):
        sheet = book.create_sheet(name, at)
        for value in (heading, "a", "b"):
            sheet.append([value])
    del book["Sheet"]
    book.save("votes.xlsx")
    return "votes.xlsx"


def coded() -> str:
    """A file of codes with value labels."""
    labels = {"vote": {1: "a", 2: "b"}}
    frame = pd.DataFrame({"vote": [1.0, 2.0] * 30})
    pyreadstat.write_sav(frame, "votes.sav", variable_value_labels=labels)
    return "votes.sav"


def far(row: int) -> str:
    """A workbook with a cell so far below the table."""
    name = workbook("Data")
    whole = {part: zipfile.ZipFile(name).read(part) for part in zipfile.ZipFile(name).namelist()}
    with zipfile.ZipFile(name, "w") as archive:
        for part, text in whole.items():
            cell = f'<row r="{row}"><c r="A{row}"><v>1</v></c></row></sheetData>'.encode()
            archive.writestr(part, text.replace(b"</sheetData>", cell))
    return name


def released(name: str) -> str:
    release_of = run("release", file("votes.csv"), "--column", "vote", *ASKED, "-o", "-")
    return file(name, release_of)


def page() -> str:
    run("report", specified(), file("votes.csv"), "-o", new("page.html"))
    return "page.html"


def deep(levels: int) -> Any:
    text = Path(released("r.json")).read_text()
    return ob.Release.from_json('{"a":' + "[" * levels + "]" * levels + "," + text.lstrip()[1:])


def original() -> Any:
    return ob.Release.from_json(Path(released("r.json")).read_bytes())


def saved(name: str) -> str:
    return run("release", file("votes.csv"), "--column", "vote", *ASKED, "-o", new(name))


def saved_twice(second: str, *, code: int = 0) -> str:
    saved("vote.json")
    return run("release", "votes.csv", "--column", "vote", *ASKED, "-o", second, code=code)


LATIN = "vote,town\n" + "a,é\nb,y\n" * 30
VOTE = ("--column", "vote")
HIDDEN = ("--encoding", "shift-jis", "--separator", "|")
Call = Callable[[], Any]
FILES: dict[str, tuple[Call, Call]] = {
    "which must name the columns": (
        lambda: "".join(
            refused(table, "--column", "vot") for table in (file("votes.csv"), workbook("Data"))
        ),
        lambda: [
            release(file("votes.csv"), *VOTE),
            release(file("votes.csv", VOTES.replace(",", ";")), *VOTE, "--separator", ";"),
            release(workbook("Data"), *VOTE),
        ],
    ),
    "has the sheets": (
        lambda: refused(workbook("Data", "Notes"), *VOTE),
        lambda: [
            release(workbook("Data", "Notes"), *VOTE, "--sheet", "Data"),
            ran(specified(head='sheet = "Data"'), workbook("Data", "Notes")),
        ],
    ),
    "is larger than a sheet that is read": (
        lambda: refused(far(3_000_000), *VOTE),
        lambda: [release(far(4), *VOTE), release(file("votes.csv"), *VOTE)],
    ),
    "is not text in": (
        lambda: refused(file("votes.csv", LATIN.encode("latin-1")), *VOTE),
        lambda: [
            release(file("votes.csv", LATIN.encode(of)), *VOTE, "--encoding", of)
            for of in ("latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be")
        ],
    ),
    "two of its columns have one name": (
        lambda: refused(file("votes.csv", VOTES.replace("town", "vote")), *VOTE),
        lambda: release(file("votes.csv"), *VOTE),
    ),
    "is a code that the file calls": (
        lambda: ran(specified("categories = [1, 2]", "labels = true"), coded(), code=2),
        lambda: ran(specified(head="labels = true"), coded()),
    ),
    "is also in null_values": (
        lambda: ran(specified('categories = ["a", "b"]\nnull_values = ["b"]'), code=2),
        lambda: [
            ran(specified(), file("votes.csv")),
            ran(specified('categories = ["a", "c"]\nnull_values = ["b"]'), file("votes.csv")),
        ],
    ),
    "is not an encoding that is read": (
        lambda: refused(file("votes.csv"), *VOTE, "--encoding", "utf-7"),
        lambda: [release(file("votes.csv"), *VOTE, "--encoding", of) for of in ("utf-8", "ascii")],
    ),
    "may be part of another character in": (
        lambda: refused(file("votes.csv", VOTES.replace(",", "|")), *VOTE, *HIDDEN),
        lambda: [
            release(file("votes.csv"), *VOTE, *HIDDEN[:2]),
            release(file("votes.csv", VOTES.replace(",", "\t")), *VOTE, *HIDDEN[:3], "\t"),
            release(file("votes.csv", VOTES.replace(",", "|")), *VOTE, *HIDDEN[2:]),
        ],
    ),
    "has a quotation mark that opens inside a value": (
        lambda: refused(file("votes.csv", VOTES + 'a,5" pipe\n'), *VOTE),
        lambda: release(file("votes.csv", VOTES + 'a,"5"" pipe"\n'), *VOTE),
    ),
    "objects or lists too deep in each other": (lambda: deep(5000), original),
    "exists already, and may hold a release that has used budget": (
        lambda: saved_twice("vote.json", code=2),
        lambda: saved_twice("other.json"),
    ),
    "its first line may be data": (
        lambda: run("init", file("votes.csv"), code=2),
        lambda: [run("init", "votes.csv", *VOTE), run("init", "votes.csv", "--header")],
    ),
    "is not a field": (
        lambda: ran(specified('categorys = ["a", "b"]'), file("votes.csv"), code=2),
        lambda: ran(specified(), file("votes.csv")),
    ),
    "holds results, not what is asked for": (
        lambda: ran(released("r.json"), code=2),
        lambda: ran(specified(), file("votes.csv")),
    ),
    "the file that ends in .json, beside the page": (
        lambda: run("show", page(), code=2),
        lambda: page() and run("show", "page.json"),
    ),
    "one from before 1.0.0 wrote": (
        lambda: result_from_json(older()),
        lambda: result_from_json(
            older().replace('"drawn"', '"noisy_counts"').replace('"version":2', '"version":3')
        ),
    ),
    "is damaged": (
        lambda: ob.Ledger(damaged()),
        lambda: ob.Ledger("c.ledger", epsilon=0.5).remaining,
    ),
}  # fmt: skip


def older() -> str:
    """A document as a trial version wrote it."""
    text = release(file("votes.csv"), "--column", "vote").to_json()
    found = text.replace('"noisy_counts"', '"drawn"').replace('"version":3', '"version":2')
    assert '"drawn"' in found
    assert '"version":2' in found
    return found


def damaged() -> str:
    ob.Ledger("b.ledger", epsilon=1.0)
    with closing(sqlite3.connect("b.ledger")) as database, database:
        database.execute("update entry set value = 'x'")
    return "b.ledger"


_COMMAND = "../plugins/opendp-bayes-office/tests/commands"
#: Rows that no test carries out, and why; where another test gets the message, it is named.
NOT_DONE = {
    "Quantiles of categories that have a trend": "inference/test_ordered.py",
    "was replaced since the release was entered": "hostile/test_meddled_ledgers.py: of two at once",
    "was opened by another process": "hostile/test_handed_contexts.py: of a fork",
    "is no file of Parquet or Arrow": ".ci/run, in an environment of the library alone",
    "a newer one wrote": "there is no newer version",
    "but nothing could be made of it": "queries/test_posterior_query.py: a fault of this package",
    "stopped; nothing was released": f"{_COMMAND}/test_output.py: of Ctrl-C",
    "the release was made and has used its budget": f"{_COMMAND}/test_output.py: of a full disk",
    "pooled: the draws of kappa and m are worth": "inference/test_pooled_groups.py: of minutes",
}
