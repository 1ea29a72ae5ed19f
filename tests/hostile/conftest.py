"""What is chosen among mechanisms is released and accounted for here, not measured, and most
posteriors are of the same few releases.
"""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _quick(coarse_errors: None, computed_once: None) -> None:
    """For every module of the folder."""
