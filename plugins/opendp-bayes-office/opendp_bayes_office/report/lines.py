"""Find the line of a value in a TOML text, which the parsers of TOML do not tell, and raise errors
with it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import eq

_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_NAME = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_KEY = re.compile(rf"^\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*=")
_PART = re.compile(_NAME)


class FieldError(ValueError):
    """A field of a specification is wrong; `path` gives the steps to it, and `problem` says how."""

    def __init__(self, path: Sequence[str | int], problem: str) -> None:
        steps = (f"[{step}]" if isinstance(step, int) else f".{_shown(step)}" for step in path)
        name = "".join(steps).lstrip(".") or "the file"
        super().__init__(f"{name}{'' if problem.startswith('=') else ': '}{problem}")
        self.path, self.problem = tuple(path), problem


class SpecificationError(ValueError):
    """A specification is wrong; the message gives its line."""


@contextmanager
def located(text: str) -> Iterator[None]:
    """A block whose `FieldError` becomes a `SpecificationError`, with its line in a text of TOML;
    in JSON the path to the field says where it is.
    """
    try:
        yield
    except FieldError as error:
        line = "" if is_json(text) else f"line {line_of(text, error.path)}: "
        raise SpecificationError(f"{line}{error}") from None


def _shown(name: str) -> str:
    return name if name and "." not in name else f'"{name}"'


def is_json(text: str) -> bool:
    """Tell whether the text of a specification is meant as JSON; none of TOML begins like that."""
    return text.lstrip("\ufeff\r\n\t ")[:1] == "{"


def line_of(text: str, path: Sequence[str | int]) -> int:
    """The line, from 1, of the value at `path`, of the first thing in it, or of the nearest table
    around it.

    Knows tables, arrays of tables and dotted keys; in an inline table, the line of its key.

    >>> line_of("a = 1\\n[[b]]\\nc = 2\\n[[b]]\\nc = 3", ("b", 1, "c"))
    5
    """
    best, depth = 1, 0
    for number, place in _places(text):
        alike = [*map(eq, place, path), False]
        common = alike.index(False)
        if common in (len(place), len(path)) and common > depth:
            best, depth = number, common
    return best


def _places(text: str) -> list[tuple[int, tuple[str | int, ...]]]:
    """The lines that begin something, with its path."""
    places: list[tuple[int, tuple[str | int, ...]]] = []
    table: tuple[str | int, ...] = ()
    seen: dict[tuple[str | int, ...], int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
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
