"""How much of a sweep runs every time; the rest of it is for the slow tests."""

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest


def some_of(settings: Iterable[Any], number: int) -> list[Any]:
    """`settings` for `pytest.mark.parametrize`, all but `number` of them marked as slow: those at
    random that have a value which the ones before had not, then any, the same ones in every run.
    """
    every = [one if isinstance(one, tuple) else (one,) for one in settings]
    new, others, seen = [], [], set()
    for i in Random(0).sample(range(len(every)), len(every)):
        values = set(enumerate(map(repr, every[i])))
        (others if values <= seen else new).append(i)
        seen |= values
    quick = {*(new + others)[:number]}
    return [
        pytest.param(*one, marks=() if i in quick else pytest.mark.slow)
        for i, one in enumerate(every)
    ]
