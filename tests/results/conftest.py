"""Most results here are of the same few releases."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _quick(computed_once: None) -> None:
    """For every module of the folder."""
