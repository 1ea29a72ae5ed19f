"""`opendp-bayes plan`, in process through typer's runner."""

import re

import pytest

from tests.helpers.command_line import run


def test_a_plan_is_shown_as_a_table() -> None:
    shown = run("plan", "--size", 100, "--prior", "1,1", "--epsilon", 1, "--proportions", "0.2,0.8")
    for line in (
        r"Plan for ε = 1\n",
        r"100 records, a public number, prior \(1, 1\)\. Neighbours differ by 1 record changed\.",
        r"LaplaceParameters \(discrete, remainder\) +1 +1( +0\.\d+){6}",
        r"Error, balanced +Error, skewed +Error, edge +Error, stated +Width, balanced",
        r"HellingerExponential \(local\) +1\.\d+ +1 ",
        (
            r"Recommended: LaplaceParameters\(scale=1, noise='discrete', total='remainder'\) has an"
            r" expected Hellinger error of 0\.\d+ at the\s+stated"
        ),
    ):
        assert re.search(line, shown), f"{line} is not in\n{shown}"


def test_what_cannot_be_used_is_listed_with_the_reason_and_what_is_simulated_is_marked() -> None:
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


def test_an_epsilon_without_noise_has_no_error_to_compare() -> None:
    shown = run("plan", "--size", 9, "--prior", "1,1", "--epsilon", 1e300)
    assert re.search(
        r"Recommended: LaplaceParameters\(.*\) has an\s+expected Hellinger error of 0 on average.*"
        r" is within 1 % of it \(0\)",
        shown,
        re.S,
    )


def test_names_and_reasons_are_whole_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
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
