"""Which mistakes are of lines that are still in the code."""

import re
from functools import cache
from pathlib import Path

_PROJECT = Path(__file__).parents[2]
#: A negative number, which one mistake makes of another, and words, numbers and signs.
_NEGATIVE = re.compile(r"(?<=[\[(,=<>:*/+e])(\s*)-\s*(?=\d)")
_PARTS = re.compile(r"~?\w+(?:\.\w+)*|[<>=*/!]+|[^\w\s]")


def is_still_there(module: str, line: str) -> bool:
    """Whether a line of a module, which may be gone, becomes this one by a single mistake."""
    made = _parts(line)
    return any(_apart(made, own) <= 1 for own in _lines(module))


@cache
def _lines(module: str) -> list[list[str]]:
    path = _PROJECT / module
    return [_parts(line) for line in path.read_text().splitlines()] if path.exists() else []


def _parts(line: str) -> list[str]:
    return _PARTS.findall(_NEGATIVE.sub(r"\1~", line.partition("  #")[0]))


def _apart(one: list[str], other: list[str]) -> int:
    """How many parts are changed, added or removed, but at most 2."""
    start = next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), None
    )
    if start is None:
        return min(abs(len(one) - len(other)), 2)
    rest = [(start + 1, start + 1), (start + 1, start), (start, start + 1)]
    return 1 if any(one[left:] == other[right:] for left, right in rest) else 2
