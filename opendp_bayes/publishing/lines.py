"""In which line of a TOML text a value is: the parsers of TOML do not say."""

import re
from collections.abc import Sequence

_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_NAME = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_KEY = re.compile(rf"^\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_PART = re.compile(_NAME)


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line, from 1, of the value at `path`, or of the nearest table around it.

    Knows tables, arrays of tables and dotted keys; in an inline table, the line of its key.

    >>> line_of("a = 1\\n[[b]]\\nc = 2\\n[[b]]\\nc = 3", ("b", 1, "c"))
    5
    """
    best, depth = 1, 0
    for number, place in _places(text):
        common = _common(place, tuple(path))
        if common == len(place) and common > depth:
            best, depth = number, common
    return best


def _places(text: str) -> list[tuple[int, tuple[str | int, ...]]]:
    """The lines that begin something, with its path."""
    places: list[tuple[int, tuple[str | int, ...]]] = []
    table: tuple[str | int, ...] = ()
    seen: dict[tuple[str | int, ...], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _TABLE.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                seen[table] = seen.get(table, -1) + 1
                table = (*table, seen[table])
            places.append((number, table))
        elif key := _KEY.match(line):
            places.append((number, (*table, *_parts(key[1]))))
    return places


def _parts(name: str) -> tuple[str | int, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(name))


def _common(place: tuple[str | int, ...], path: tuple[str | int, ...]) -> int:
    for length, (a, b) in enumerate(zip(place, path, strict=False)):
        if a != b:
            return length
    return min(len(place), len(path))
