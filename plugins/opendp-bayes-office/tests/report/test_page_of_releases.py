"""The page of releases that no specification asked for: it states what they do, and no more."""

import re
from pathlib import Path

import polars as pl
import pytest

import opendp_bayes as ob
from tests.helpers.command_line import run

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
