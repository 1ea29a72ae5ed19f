"""`opendp-bayes ledger`, and `--ledger` of the commands that release."""

import itertools
from pathlib import Path

import pytest

import opendp_bayes as ob
from opendp_bayes.trusted.account import Loss
from tests.helpers.command_line import run

#: What becomes of a release, and how it is called.
STATES = {"spent": "release", "refused": "not spent", "failed": "failed", "open": "no end"}

RELEASE = ("release", "votes.csv", "--column", "vote", "--categories", "yes,no", "--ledger", "b")
SPECIFICATION = """
title = "The vote"
[privacy]
epsilon = 0.75
[columns.vote]
categories = ["yes", "no"]
[[results]]
column = "vote"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text("vote,party\n" + "yes,a\nno,b\n" * 30)
    Path("s.toml").write_text(SPECIFICATION)
    return tmp_path


def remaining(name: str = "census") -> float:
    return ob.Ledger("b", dataset=name).remaining.epsilon


def test_keeps_account_of_releases_and_reports():
    run("ledger", "b", "--dataset", "census", "--epsilon", 2)
    release = ob.Release.from_json(run(*RELEASE, "--epsilon", 1, "-o", "-"))
    assert remaining() == 2 - release.epsilon
    run("report", "s.toml", "votes.csv", "-o", "p.html", "--ledger", "b")
    assert remaining() == 0.25
    assert [entry.note for entry in ob.Ledger("b").account.entries] == ["", "vote", "The vote"]


def test_a_run_is_entered_with_what_it_bought():
    """Without a discovery that is no δ, whatever the budget has."""
    Path("s.toml").write_text(SPECIFICATION.replace("epsilon = 0.75", "rho = 0.3\ndelta = 1e-6"))
    run("ledger", "b", "--dataset", "census", "--rho", 1, "--delta", 1e-5)
    run("run", "s.toml", "votes.csv", "-o", "votes.json", "--ledger", "b")
    remaining = ob.Ledger("b", dataset="census").remaining
    assert remaining.delta == 1e-5
    assert remaining.rho == pytest.approx(0.7)


@pytest.mark.parametrize("discovered", list(itertools.product([False, True], repeat=2)))
def test_a_run_has_bought_delta_if_any_of_its_results_has(discovered: tuple[bool, bool]) -> None:
    budget = SPECIFICATION.split("[columns", maxsplit=1)[0]
    budget = budget.replace("epsilon = 0.75", "rho = 20\ndelta = 1e-6")
    for column, is_discovered in zip(("vote", "party"), discovered, strict=True):
        labels = '"discover"' if is_discovered else '["yes", "no"]'
        budget += f'[columns.{column}]\ncategories = {labels}\n[[results]]\ncolumn = "{column}"\n'
    Path("s.toml").write_text(budget)
    run("ledger", "b", "--rho", 20, "--delta", 1e-5)
    run("run", "s.toml", "votes.csv", "-o", "votes.json", "--ledger", "b")
    assert (ob.Ledger("b").spent.delta > 0) is any(discovered)


@pytest.mark.usefixtures("_unread")
@pytest.mark.parametrize(
    "command", [(*RELEASE, "--epsilon", 1), ("report", "s.toml", "votes.csv", "--ledger", "b")]
)
def test_refuses_before_the_records_are_read(command):
    run("ledger", "b", "--epsilon", 0.5)
    message = run(*command, code=2)
    assert "for 'b' of its total of ε = 0.5" in message
    assert "ask for at most epsilon=0.5." in message
    assert not Path("report.html").exists()
    assert remaining("b") == 0.5


def test_another_process_cannot_spend_it_meanwhile(monkeypatch):
    from opendp_bayes_office.files.files import Source

    run("ledger", "b", "--epsilon", 1)
    complete, refused = Source.complete, []

    def meanwhile(self: Source) -> None:
        with (
            pytest.raises(ob.LedgerError, match="would exceed") as caught,
            ob.Ledger("b").entered(ob.Ledger("b").total, "contributions: 1"),
        ):
            raise AssertionError
        refused.append(caught.value)
        complete(self)

    monkeypatch.setattr(Source, "complete", meanwhile)
    run(*RELEASE, "--epsilon", 1)
    assert len(refused) == 1
    assert remaining("b") == 0.0


def test_shows_every_data_set():
    run("ledger", "b", "--dataset", "census", "--epsilon", 2)
    run(*RELEASE, "--epsilon", 1)
    run("ledger", "b", "--dataset", "panel", "--rho", 1, "--delta", 1e-6)
    shown = run("ledger", "b")
    first, second, third = (line.split() for line in shown.splitlines() if " 20" in line)
    assert [first[0], *first[3:]] == ["census", "total:", "ε", "=", "2", "ε", "=", "2"]
    assert second[3:] == ["release", "vote", "ε", "=", "1", "ε", "=", "1"]
    assert [third[0], *third[3:]] == [
        *("panel", "total:", "ρ", "=", "1,", "δ", "=", "1e-06", "ρ", "=", "1,", "δ", "=", "1e-06")
    ]
    assert "census: ε = 1 of ε = 2 is spent, ε = 1 is left, for contributions: 1." in shown
    assert "panel: ρ = 0 of ρ = 1, δ = 1e-06 is spent, ρ = 1, δ = 1e-06 is left." in shown
    assert "panel" not in run("ledger", "b", "--dataset", "census")


def test_a_loss_is_shown_where_it_counts_and_what_became_of_it():
    book, kept = ob.Ledger("b", epsilon=9), []
    for state in STATES:
        entered = book.entered(Loss(epsilon=0.25), "contributions: 1", dry=state == "refused")
        intent = entered.__enter__()
        intent.is_reading = state != "refused"
        kept += [entered] * (state == "open")
        if state == "failed":
            error = ValueError()
            assert not entered.__exit__(ValueError, error, None)
        elif state != "open":
            entered.__exit__(None, None, None)
    _, *lines = (line for line in run("ledger", "b").splitlines() if " 20" in line)
    for (state, said), line, entry in zip(
        STATES.items(), lines, book.account.entries[1:], strict=True
    ):
        assert entry.state == state
        assert said in line
        assert ("ε = 0.25" in line) == entry.is_paid == (state != "refused")
    kept[0].__exit__(None, None, None)


def test_sets_and_changes_totals():
    assert "ε = 2 is left" in run("ledger", "b", "--epsilon", 2)
    assert "ε = 3, δ = 0.001 is left" in run("ledger", "b", "--epsilon", 3, "--delta", 0.001)
    assert "epsilon=None: must be given, because" in run("ledger", "b", "--rho", 3, code=2)
    assert "delta=0.1: goes with epsilon" in run("ledger", "b", "--delta", 0.1, code=2)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("ledger", "none"), "none: cannot be used (No such file or directory), so nothing is"),
        ((*RELEASE, "--epsilon", 1), "b: cannot be used (No such file or directory), so nothing"),
        (("ledger", "votes.csv"), "ledger votes.csv: is no ledger; name a file that ob.Ledger or"),
        (("ledger", "votes.csv", "--epsilon", 1), "ledger votes.csv: is no ledger; name"),
    ],
)
def test_refuses(command, message):
    assert message in run(*command, code=2)
    assert not Path("b").exists()


def test_refuses_a_data_set_that_is_not_there():
    run("ledger", "b", "--dataset", "census", "--epsilon", 2)
    shown = run("ledger", "b", "--dataset", "x", code=2)
    assert "has no data set 'x', but 'census'. Check the name" in shown
    run("ledger", "b", "--dataset", "panel", "--epsilon", 2)
    shown = run(*RELEASE, "--epsilon", 1, code=2)
    assert "keeps 2 data sets, 'census', 'panel'; say which: by --dataset, as `dataset` in" in shown
    shown = run(*RELEASE, "--epsilon", 1, "--dataset", "panel")
    assert "ε = 1" in shown
    assert "panel: ε = 1 of ε = 2 is spent" in run("ledger", "b", "--dataset", "panel")
    message = run(*RELEASE[:-2], "--epsilon", 1, "--dataset", "x", code=2)
    assert "--dataset x: is a data set of a ledger" in message
