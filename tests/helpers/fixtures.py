"""Fixtures for more than one folder of tests."""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest


@pytest.fixture(autouse=True, scope="session")
def _commands_are_made_once() -> Iterator[None]:
    """Let the runner of typer make the commands of an app once, and not for each that is run."""
    import typer.testing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(typer.testing._get_command))
        yield


@pytest.fixture
def pictures() -> None:
    """Draw into memory."""
    import matplotlib as mpl

    mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_pictures() -> Iterator[None]:
    """Close every picture after a test: matplotlib warns of many that are open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def _plain_terminal(
    coarse_errors: None, short_chains: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same output wherever the tests run, in which no error and no chain is measured."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "150")


@pytest.fixture
def sixty_votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with `votes.csv`: 40 votes for a and 20 for b, half in each town."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{'aab'[i % 3]},{'xy'[i % 2]}" for i in range(60)]
    Path("votes.csv").write_text("\n".join(["vote,town", *rows, ""]))
    return tmp_path
