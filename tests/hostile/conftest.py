"""What is chosen among mechanisms is released and accounted for here, not measured."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _quick(coarse_errors: None) -> None:
    """For every module of the folder."""
