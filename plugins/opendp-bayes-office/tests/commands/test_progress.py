"""What is shown on a terminal while the command computes."""

import os
import select
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from opendp_bayes_office.commands.output import waiting


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
            parts = []
            while select.select([ours], [], [], 0.5)[0]:  # what was written may come in parts
                parts.append(os.read(ours, 1 << 20))
            return b"".join(parts).decode()

        yield shown
    os.close(ours)


def test_a_terminal_shows_what_is_done_and_clears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with on_a_terminal(monkeypatch) as shown:
        with waiting("[bold]Computing[/bold]"):
            time.sleep(0.3)  # three times as long as until it is drawn again
        text = shown()
    assert "[bold]Computing[/bold]" in text
    assert "0:00:00" in text
    assert text.rstrip().endswith("\x1b[2K"), "the line is empty again"


def test_nothing_is_shown_where_nobody_looks_on(capfd: pytest.CaptureFixture[str]) -> None:
    with waiting("Computing"):
        time.sleep(0.3)
    assert capfd.readouterr() == ("", "")
