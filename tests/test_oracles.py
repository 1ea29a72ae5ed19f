"""What the oracles themselves promise."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers import oracles


@pytest.mark.parametrize("number", [np.int64, np.uint8, float], ids=lambda kind: kind.__name__)
def test_data_sets_hold_python_s_integers_whoever_asked_first(number: Callable[[int], Any]) -> None:
    """An integer of numpy overflows where Python's does not, and is none in JSON."""
    oracles.data_sets.cache_clear()
    for arguments in ((number(4), number(3)), (4, 3)):
        found = oracles.data_sets(*arguments)
        assert len(found) == 15
        assert {type(count) for counts in found for count in counts} == {int}
