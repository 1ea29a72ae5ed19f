"""Give the tests of the commands one terminal."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
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


@pytest.fixture
def _unreleased(monkeypatch: pytest.MonkeyPatch) -> None:
    """No survey may be released."""

    def released(*_: object) -> None:
        raise AssertionError("released")

    monkeypatch.setattr("opendp_bayes.framework.survey_query.SurveyQuery.release", released)


@pytest.fixture
def _unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing after the header of standard input may be read."""

    def read(*_: object) -> None:
        raise AssertionError("the records are read")

    monkeypatch.setattr("shutil.copyfileobj", read)
