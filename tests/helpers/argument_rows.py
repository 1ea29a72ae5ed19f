"""A row of `test_every_argument.py`: one call, and one argument of it with another value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

LARGER, SMALLER, DIFFERENT, REFUSED = "larger", "smaller", "different", "refused"


@dataclass(frozen=True)
class Row:
    """`of(function(**base))` with `argument` at `other` is `then`, or the same for a reason."""

    function: Callable[..., Any]
    base: dict[str, Any]
    argument: str
    other: Any
    then: str
    of: Callable[[Any], Any]

    def result(self, **changed: Any) -> Any:
        found = self.of(self.function(**{**self.base, **changed}))
        return found.tolist() if isinstance(found, np.ndarray) else found

    def __str__(self) -> str:
        return f"{self.function.__qualname__}-{self.argument}"


def vary(argument: str, other: Any, then: str, of: Any = None, **base: Any) -> tuple[Any, ...]:
    return argument, other, then, of, base


def rows(function: Any, base: dict[str, Any], of: Any, *varied: Any, **then: Any) -> list[Row]:
    """`base` and `of` serve rows without their own; `larger={"size": 9}` is a row that varies."""
    plain = [vary(*row, way) for way, changed in then.items() for row in changed.items()]
    return [
        Row(function, {**base, **own}, argument, other, then, own_of or of)
        for argument, other, then, own_of, own in (*varied, *plain)
    ]


def of_methods(value: Any, table: dict[str, tuple[Any, ...]]) -> list[Row]:
    """Rows of a value's methods: other arguments, `of`, what is varied, last the directions."""
    return [
        row
        for name, (base, of, *varied, directions) in table.items()
        for method in [getattr(type(value), name)]
        for row in rows(method, {"self": value, **base}, of, *varied, **directions)
    ]


#: Results of base calls, and of the same calls again, which rows of one function share; with the
#: calls, so that nothing else takes the place in memory by which they are known.
_BEFORE: dict[Any, tuple[Row, Any]] = {}


def _before(row: Row, time: int) -> Any:
    """The result of the base call of a row, from the first or the second time it was made."""
    call = (row.function, row.of, *((name, id(value)) for name, value in row.base.items()), time)
    if call not in _BEFORE:
        _BEFORE[call] = row, row.result()
    return _BEFORE[call][1]


def check(row: Row) -> None:
    """The argument changes the result as the row says."""
    before = _before(row, 1)
    if row.then == REFUSED:
        with pytest.raises((TypeError, ValueError)):
            row.result(**{row.argument: row.other})
        return
    after = row.result(**{row.argument: row.other})
    if row.then == LARGER:
        assert after > before
    elif row.then == SMALLER:
        assert after < before
    else:
        assert _before(row, 2) == before, "a result that changes by itself says nothing"
        assert (after != before) == (row.then == DIFFERENT)
