"""Give the tests of the commands one terminal."""

import pytest


@pytest.fixture(autouse=True)
def _plain(_plain_terminal: None) -> None:
    """Every test of a command has a plain terminal."""


@pytest.fixture
def _unreleased(monkeypatch: pytest.MonkeyPatch) -> None:
    """No survey may be released."""

    def released(*_: object) -> None:
        raise AssertionError("released")

    monkeypatch.setattr("opendp_bayes.surveys.survey_query.SurveyQuery.release", released)


@pytest.fixture
def _unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing after the header of standard input may be read."""

    def read(*_: object) -> None:
        raise AssertionError("the records are read")

    monkeypatch.setattr("shutil.copyfileobj", read)
