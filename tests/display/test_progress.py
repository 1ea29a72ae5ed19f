"""What is shown while a posterior takes seconds: on a terminal, in a notebook, nowhere else."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import opendp_bayes as ob
from opendp_bayes.display.progress import waiting
from opendp_bayes.inference.pooling.pooled_groups import PooledGroups
from tests.helpers.releases import changed, release

PAIR = release((120, 80), ("yes", "no"), ob.LaplaceParameters(10.0, total="private"))
LEARNED = changed(PAIR, learned_prior=True)


@contextmanager
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """A block whose standard error is a terminal, with a function for what it shows at the end."""
    ours, theirs = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with open(theirs, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)

        def shown() -> str:
            stream.flush()
            return os.read(ours, 1 << 20).decode()

        yield shown
    os.close(ours)


@pytest.fixture
def _no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learned posterior that takes no time: it is not what is looked at."""
    made = ob.noise_aware_posterior(PAIR)
    monkeypatch.setattr("opendp_bayes.inference.noise_aware.noise_aware_posterior", lambda of: made)


@pytest.mark.usefixtures("_no_search")
def test_a_terminal_shows_what_is_done_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with on_a_terminal(monkeypatch) as shown:
        assert changed(LEARNED).posterior.mean().sum() == pytest.approx(1)
        text = shown()
    assert "Learning the prior" in text
    assert "0:00:00" in text
    assert text.rstrip().endswith("\x1b[2K"), "the line is empty again"


@pytest.mark.usefixtures("_no_search")
def test_what_is_quick_and_what_nobody_sees_shows_nothing(monkeypatch, capfd):
    assert changed(LEARNED).posterior is not None  # standard error is no terminal
    assert capfd.readouterr() == ("", "")
    with on_a_terminal(monkeypatch) as shown:
        assert changed(PAIR).posterior is not None
        sys.stderr.write("end\n")
        assert shown() == "end\r\n"


def test_a_survey_and_pooled_groups_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    @contextmanager
    def noted(what: str) -> Iterator[None]:
        said.append(what)
        yield

    def reached(*_: object) -> None:
        raise InterruptedError

    monkeypatch.setattr("opendp_bayes.results.pooled_release.waiting", noted)
    monkeypatch.setattr("opendp_bayes.surveys.survey.waiting", noted)
    monkeypatch.setattr(PooledGroups, "draws", reached)
    monkeypatch.setattr("opendp_bayes.surveys.survey.combine_tables", lambda *of, **named: 0)
    assert ob.Survey(("vote",), (PAIR,)).posterior == 0
    cells = {"categories": (("a", 1), ("a", 2), ("b", 1), ("b", 2)), "axes": ("x", "y")}
    table = changed(PAIR, noisy_counts=(1,) * 4, prior=(1.0,) * 4, **cells)
    with pytest.raises(InterruptedError):
        table.pooled("x")
    assert said == ["Computing the posterior of all tables", "Estimating the groups together"]


def test_one_within_another_shows_nothing_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with on_a_terminal(monkeypatch) as shown:
        with waiting("Outer"), waiting("Inner"):
            time.sleep(0.3)  # three times as long as until it is drawn again
        with waiting("[bold]Second[/bold]"):
            time.sleep(0.3)
        text = shown()
    assert "Outer" in text
    assert "Inner" not in text
    assert "[bold]Second[/bold]" in text


def test_without_rich_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with on_a_terminal(monkeypatch) as shown:
        with waiting("Outer"):
            sys.stderr.write("end\n")
        assert shown() == "end\r\n"
