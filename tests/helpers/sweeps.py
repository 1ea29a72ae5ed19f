"""How much of a sweep runs every time; the rest of it is for the slow tests."""

from collections.abc import Container, Iterable
from itertools import combinations
from random import Random
from typing import Any

import pytest


def slow(settings: Iterable[Any], but: Container[Any] = ()) -> list[Any]:
    """`settings` for `pytest.mark.parametrize`, all marked as slow but some."""
    every = ((one, one if isinstance(one, tuple) else (one,)) for one in settings)
    return [
        pytest.param(*values, marks=() if one in but else pytest.mark.slow) for one, values in every
    ]


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


def pairs_of(settings: Iterable[Any]) -> list[Any]:
    """`settings` for `pytest.mark.parametrize`, all marked as slow but a few in which every two
    values are together that are together in any: always the one with most such pairs that are new.
    """
    every = list(settings)
    pairs = [set(combinations(enumerate(map(repr, one)), 2)) for one in every]
    left: set[Any] = set().union(*pairs)
    quick = set()
    while left:
        best = max(range(len(every)), key=lambda i: len(pairs[i] & left))
        quick.add(best)
        left -= pairs[best]
    return [
        pytest.param(*one, marks=() if i in quick else pytest.mark.slow)
        for i, one in enumerate(every)
    ]
