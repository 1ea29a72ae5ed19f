"""What is chosen among mechanisms, and what chains find, is used here, not measured."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _quick(coarse_errors: None, short_chains: None) -> None:
    """For every module of the folder."""
