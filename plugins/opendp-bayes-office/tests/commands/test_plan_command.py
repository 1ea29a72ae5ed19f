"""`opendp-bayes plan`, in process through typer's runner."""

import re

import pytest

from tests.helpers.command_line import run


def test_names_reasons_and_what_is_simulated_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = run(
        "plan", "--guess-size", 500, "--prior", "1,1,1,1", "--rho", 0.1, "--contributions", 2
    )
    assert (
        "A private number of records, guessed to be 500, prior (1, 1, 1, 1). Neighbours differ by 2"
        " records added or removed." in shown
    )
    assert (
        "PermuteAndFlip cannot be used. PermuteAndFlip: its candidates are the posteriors of `size`"
        " records" in shown
    )
    assert re.search(r"LaplaceParameters \(discrete, private\)( +[\d.]+){3} +0\.\d{4}\*", shown)
    assert "* marks what is simulated." in " ".join(shown.split())
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("plan", "--guess-size", 30, "--prior", "1,1", "--epsilon", 1)
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert re.search(r"^LaplaceParameters +1 +1 ", shown, re.M)
    assert shown.count("HellingerExponential:") == 2, (
        "once for the smooth one, and once for both kinds of the other"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--size 9 --prior 1,1", r"epsilon=None, .*rho=None: .*rho alone"),
        ("--size 9 --prior 1,1 --epsilon -1", r"epsilon=-1.0: .*greater than 0"),
        ("--prior 1,1 --epsilon 1", r"size=None, guess_size=None: .*one of"),
        ("--size 9 --guess-size 9 --prior 1,1 --epsilon 1", r"size=9, guess_size=9: .*one"),
        ("--guess-size 0 --prior 1,1 --epsilon 1", r"guess_size=0: must be between 1"),
        ("--size 9 --prior 1 --epsilon 1", r"prior=\[1.0\]: "),
        ("--size 9 --prior 1,1 --epsilon 1 --proportions 1", r"proportions=\[1.0\]: .*2 numbers"),
        ("--size 9 --prior 1,1 --epsilon 1 --proportions a,b", "--proportions a,b: must be"),
        ("--size 9 --prior 1,1 --epsilon 1e-30", r"mechanisms: none .*LaplaceParameters\(.*every"),
    ],
)
def test_wrong_options_end_in_one_line_and_exit_code_2(options: str, message: str) -> None:
    shown = run("plan", *options.split(), code=2)
    assert len(shown.splitlines()) == 1
    with pytest.raises(ValueError, match=message):
        raise ValueError(shown)
