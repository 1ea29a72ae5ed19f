"""The page of releases that no specification asked for: it states what they do, and no more."""

import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import opendp.prelude as dp
import polars as pl
import pytest

import opendp_bayes as ob
from opendp_bayes.display.wording import at_most
from opendp_bayes_office.report.language import Language
from opendp_bayes_office.report.page import promise, rendered
from opendp_bayes_office.report.report_document import Report
from tests.helpers.command_line import run
from tests.helpers.contexts import checked_context
from tests.helpers.sweeps import some_of

LOSSES = {"epsilon": {"epsilon": 1.0}, "rho": {"rho": 0.5}}
LOSSES["delta"] = LOSSES["epsilon"] | {"delta": 1e-6}
FRAME = pl.DataFrame({"vote": ["yes", "no", None, "?"] * 100, "town": ["a", "b"] * 200})
LISTED: dict[str, Any] = {"categories": ["yes", "no"], "unknown": "other"}
IN_TOWNS = {"vote": ["yes", "no"], "town": ["a", "b"]}
#: What is asked, by `ob.posterior`.
ASKED: dict[str, tuple[Any, dict[str, Any]]] = {
    "nulls and others": ("vote", {**LISTED, "nulls": "missing"}),
    "nulls left out": ("vote", {**LISTED, "nulls": ob.DROP}),
    "nulls listed": ("vote", {**LISTED, "nulls": "no"}),
    "groups": (
        "vote",
        {"categories": IN_TOWNS, "nulls": "missing", "unknown": ob.DROP, "by": "town"},
    ),
    "cells": (["vote", "town"], {"categories": IN_TOWNS, "nulls": "none", "unknown": ob.DROP}),
}


def context(loss: str = "epsilon", contributions: int = 1) -> Any:
    dp.enable_features("contrib", "honest-but-curious")
    spent = {**LOSSES, "rho and delta": {"rho": 0.5, "delta": 1e-4}}[loss]
    return checked_context(FRAME.lazy(), {"contributions": contributions}, spent)


def text_of(page: str) -> str:
    """What a page says, without its data and markup."""
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", shown).split())


@pytest.mark.parametrize(
    ("asked", "loss", "contributions"), some_of(product(ASKED, LOSSES, [1, 3]), 8)
)
def test_the_page_of_a_release_states_what_it_does(asked, loss, contributions):
    column, options = ASKED[asked]
    release = ob.posterior(context(loss, contributions).query(), column, **options).release()
    report = Report.read(release.to_json(), "A first release")
    assert report.survey.releases == (release,)
    page = rendered(report)
    said = text_of(page)
    assert "<h1>A first release</h1>" in page
    assert f"differ by {contributions} record" in said
    assert "The number of records is private." in said
    assert ("ρ = 0.5" if loss == "rho" else "ε = 1") in said
    assert all(label in said for label in ("yes", "no"))
    # A record without a value may be left out, counted as a listed category, or filled before.
    assert "left out;" not in said
    assert "are left out" not in said
    data = re.search(r'type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert data
    assert Report.read(data[1], "again").survey.releases == (release,)


@pytest.mark.parametrize("loss", ["delta", "rho and delta"])
def test_a_survey_has_a_section_for_each_question(loss: str) -> None:
    """And of a ρ says which ε it implies, with the δ of both."""
    query = context(loss).query()
    questions: dict[str, Any] = {
        "vote": {"column": "vote", **LISTED, "nulls": "missing"},
        "town": ob.discover(query, "town", nulls=ob.DROP),
    }
    survey = ob.survey(query, questions).release()
    report = Report.read(survey.to_json(), "Two questions")
    assert report.survey.names == ("vote", "town")
    said = text_of(rendered(report))
    delta = at_most(survey.loss.delta)
    stated = f"ρ = 0.5, δ = {delta}" if loss == "rho and delta" else "ε = 1, δ = 1e-06"
    assert f"of all results together is at most {stated} ," in said
    assert "plus δ" in said
    epsilon = at_most(survey.loss.rho + 2 * math.sqrt(survey.loss.rho * math.log(1e6)))
    implied = f"(ε = {epsilon}, δ = {at_most(survey.loss.delta + 1e-6)})"
    assert (implied in said) == (loss == "rho and delta")
    assert "and everything else" not in said
    assert report.to_json() == survey.to_json()


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


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("first", ["laplace_parameters", "hellinger_exponential"])
@pytest.mark.parametrize("second", ["laplace_parameters", "hellinger_exponential"])
def test_the_page_of_several_releases_states_the_sum_of_each_part_of_their_losses(
    loss: str, first: str, second: str
) -> None:
    """Also where the first of them spends no δ, or the second does not."""
    laws = {"one": first, "other": second}
    town = {"column": "town", "categories": ["a", "b"], "nulls": "a", "unknown": "b", "size": 400}
    opened = checked_context(FRAME.lazy(), {"changes": 1}, LOSSES[loss])
    asked = {name: {**town, "mechanism": law} for name, law in laws.items()}
    survey = ob.survey(opened.query(), asked).release()
    name, sign = ("rho", "ρ") if loss == "rho" else ("epsilon", "ε")
    said = f"{sign} = {at_most(getattr(survey.loss, name))}"
    if survey.loss.delta:
        said += f", δ = {at_most(survey.loss.delta)}"
    assert promise(Report.read(survey.to_json(), "Both"), Language())["loss"] == said
    assert bool(survey.loss.delta) == (loss == "delta" and "laplace_parameters" in laws.values())
