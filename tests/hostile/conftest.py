"""The choice among mechanisms is used here, not measured; posteriors are of few releases."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _quick(coarse_errors: None, computed_once: None) -> None:
    """For every module of the folder."""
