"""`opendp-bayes ledger`, and `--ledger` of the commands that release."""

from pathlib import Path

import pytest

import opendp_bayes as ob
from tests.helpers.command_line import run

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
