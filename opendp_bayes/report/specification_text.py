"""Read a specification from its TOML text, and state its errors in the words of TOML."""

import re
import sys
from collections.abc import Iterator
from typing import Any, get_args

import msgspec

from opendp_bayes.report.lines import FieldError, SpecificationError, located
from opendp_bayes.report.problems import problems
from opendp_bayes.report.specification import (
    Column,
    Privacy,
    Result,
    Shares,
    Specification,
    Unmatched,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_TABLES = {"privacy": Privacy, "columns": Column, "results": Result}
#: What msgspec calls types, in words.
_TYPES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
}
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def read_specification(text: str) -> Specification:
    """The specification in a TOML text.

    Raises `SpecificationError` that says in which line, which field, and what it must be.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # which knows the line
        raise SpecificationError(f"is not TOML: {error}") from None
    with located(text):
        try:
            found = msgspec.convert(document, Specification)
        except msgspec.ValidationError as error:
            raise _field_error(str(error), document) from None
        for path, problem in problems(found):
            raise FieldError(path, problem)
    return found


def _field_error(message: str, document: Any) -> FieldError:
    """Turn a message of msgspec into an error about the field itself, in words."""
    what, _, where = message.partition(" - at `$")
    path = tuple(_steps(where.rstrip("`"), document))
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        fields = _TABLES[str(path[0])] if path else Specification
        known = ", ".join(fields.__struct_fields__)
        return FieldError((*path, unknown[1]), f"is not a field; must be one of {known}.")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        return FieldError(path, f"must have {missing[1]}.")
    if what.startswith("Invalid enum value"):
        of = Unmatched if path[-1] == "unmatched" else Shares
        must = f"one of {', '.join(map(repr, get_args(of)))}"
    else:
        expected = what.partition(", got ")[0].removeprefix("Expected ").replace(".0", "")
        must = re.sub("`(.*?)`", _in_words, expected)
    return FieldError(path, f"must be {must}, not {_shown(_value_at(document, path))}.")


def _in_words(types: re.Match[str]) -> str:
    named = types[1].split(" | ")
    return " or ".join(words for name, words in _TYPES.items() if name in named)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return repr(value)
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "a table" if isinstance(value, dict) else "a date or time"


def _value_at(document: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        document = document[step]
    return document


def _steps(path: str, document: Any) -> Iterator[str | int]:
    """The steps of msgspec's path, `.results[0].prior`; its `[...]` is a key of a table, the first
    whose value is wrong there.
    """
    for name, index in _STEP.findall(path):
        if index == "...":
            yield next(key for key, column in document["columns"].items() if _is_wrong(column))
        else:
            yield name or int(index)


def _is_wrong(column: Any) -> bool:
    try:
        msgspec.convert(column, Column)
    except msgspec.ValidationError:
        return True
    return False
