"""Give the tests of the commands one terminal."""

import pytest


@pytest.fixture(autouse=True)
def _plain_terminal(coarse_errors: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same output wherever the tests run, in which no error is measured."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "150")


@pytest.fixture
def _unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing after the header of standard input may be read."""

    def read(*_: object) -> None:
        raise AssertionError("the records are read")

    monkeypatch.setattr("shutil.copyfileobj", read)
