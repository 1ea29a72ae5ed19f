"""Read a specification, or the owner's file beside it, from its text, in TOML or JSON, and state
its errors in plain words.
"""

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import getitem
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from opendp_bayes.display.tables import CONTROLS
from opendp_bayes.mathematics.telling import depth_told, meant, told
from opendp_bayes_office.report.checks import check
from opendp_bayes_office.report.field_errors import FieldError, SpecificationError
from opendp_bayes_office.report.owner_file import OwnerFile, OwnersColumn, answered, check_owner
from opendp_bayes_office.report.specification import Column, Specification

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: What msgspec calls types, in words.
_TYPES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "list": "a list",
    "object": "a table",
    "bool": "true or false",
}
#: Dots join at most so many names, and none beyond one of these: to read them takes the square.
_MOST_DOTS, _BETWEEN_NAMES = 100, re.compile(r"[\n,=\[\]{}]")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def read_specification(
    text: str, *, joint: bool = False, owner: OwnerFile | None = None
) -> Specification:
    """The specification in a text of TOML, or of JSON with the same fields; `joint` in any case
    where that is to be, and with the facts of an `owner` where there is one.

    Raises
    ------
    SpecificationError
        That says which field, and what it must be.
    """
    document = _document(text)
    if str(document.get("format", "")).startswith("opendp-bayes "):
        raise SpecificationError(
            f"format={document['format']!r}: holds results, not what is asked for; name the"
            " specification that they were made by."
        )
    return specification_of({**document, "joint": True} if joint else document, owner=owner)


def specification_of(document: Any, *, owner: OwnerFile | None = None) -> Specification:
    """The specification in a table of its fields, with the facts of an `owner` where there is one.

    Raises
    ------
    FieldError
        That says which field, and what it must be.
    """
    specification: Specification = _converted(document, Specification, Column)
    if owner is not None:
        specification = _converted(answered(document, owner), Specification, Column)
    check(specification)
    return specification


def read_owner_file(text: str) -> OwnerFile:
    """The owner's file in a text of TOML; raises `SpecificationError` as `read_specification`
    does.
    """
    owner: OwnerFile = _converted(_document(text), OwnerFile, OwnersColumn)
    check_owner(owner)
    return owner


def _document(text: str) -> Any:
    with depth_told("the file", SpecificationError):
        document = _parsed(text.removeprefix("\ufeff"))
        _check_texts({**document, "separator": None})  # which may be one, and is never shown
    return document


def _parsed(text: str) -> Any:
    if text.lstrip()[:1] == "{":  # as none of TOML begins
        try:
            return json.loads(text, object_pairs_hook=_each_once)
        except ValueError as error:
            raise SpecificationError(f"is not JSON: {error}") from None
    if any(piece.count(".") > _MOST_DOTS for piece in _BETWEEN_NAMES.split(text)):
        raise RecursionError
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # which knows the line
        raise SpecificationError(f"is not TOML: {error}") from None


def _each_once(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of JSON; raises `ValueError` for a field that is there twice."""
    table = dict(fields)
    if len(table) < len(fields):
        (twice, _), *_ = Counter(field for field, _ in fields).most_common(1)
        raise ValueError(f"{told(twice)} is there twice in one object; leave out one of them.")
    return table


def _check_texts(value: Any) -> None:
    """Raise `SpecificationError` for a text that a terminal takes for commands, and shows other
    than it is, or that no file can hold: whoever runs what others wrote reads it first.
    """
    if isinstance(value, str) and CONTROLS.search(value):
        raise SpecificationError(
            f"{value!a}: has control characters; write it without them, and a new line as \\n."
        )
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for item in value:
            _check_texts(item)


def _converted(document: Any, kind: type[Any], kind_of_column: type[Any]) -> Any:
    """The document, column by column first, since msgspec names no key of a mapping."""
    columns = document.get("columns")
    for column, table in columns.items() if isinstance(columns, dict) else ():
        _convert(table, kind_of_column, ("columns", column))
    return _convert(document, kind)


def _convert(document: Any, kind: type[Any], above: tuple[str, ...] = ()) -> Any:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
    steps = [step or int(number) for step, number in _STEP.findall(where.rstrip("`"))]
    path = (*above, *steps)
    if field := re.fullmatch(r"Object (contains unknown|missing required) field `(.*)`", what):
        names = _hint(kind, steps).__struct_fields__
        raise FieldError(
            (*path, field[2]),
            f"is not a field; must be one of {', '.join(names)}.{meant(field[2], names)}"
            if "unknown" in field[1]
            else "is missing; add it. The page Reports lists all fields.",
        )
    if what.startswith("Invalid enum value"):
        must = _choices(_hint(kind, steps))
    else:
        must = re.sub(
            "`(.*?)`", _in_words, what.partition(", got ")[0].removeprefix("Expected ")
        ).replace(".0", "")
    advice = "; write [[results]] in TOML" if path == ("results",) else ""
    raise FieldError(path, f"={reduce(getitem, steps, document)!r}: must be {must}{advice}.")


def _in_words(types: re.Match[str]) -> str:
    return " or ".join(words for name, words in _TYPES.items() if name in types[1].split(" | "))


def _choices(hint: Any) -> str:
    """The words that a type takes, and the names of the other types beside it."""
    members = [hint] if get_origin(hint) is Literal else get_args(hint)
    return " or ".join(
        " or ".join(map(repr, get_args(member)))
        if get_origin(member) is Literal
        else _TYPES[(get_origin(member) or member).__name__]
        for member in members
        if member is not NoneType
    )


def _hint(kind: Any, steps: Sequence[str | int]) -> Any:
    """The type of a field, by the steps to it from a table."""
    for step in steps:
        kind = get_type_hints(kind)[step] if isinstance(step, str) else get_args(kind)[0]
    return kind
