"""Read a specification, or the owner's file beside it, from its text, in TOML or JSON, and state
its errors in plain words.
"""

import json
import re
import sys
from collections.abc import Iterator
from functools import reduce
from itertools import chain
from operator import getitem
from typing import Any, get_args

import msgspec

from opendp_bayes.display.tables import CONTROLS
from opendp_bayes.mathematics.validation import each_once
from opendp_bayes.release_format.kind_of_text import without_mark
from opendp_bayes.trusted.account import Loss
from opendp_bayes_office.files.encodings import problems_of_text
from opendp_bayes_office.report.field_errors import FieldError, SpecificationError
from opendp_bayes_office.report.owner_file import (
    OwnerFile,
    OwnersColumn,
    OwnersLedger,
    OwnersPrivacy,
    answered,
    problems_of_owner,
)
from opendp_bayes_office.report.problems import Problem, problems, problems_of_size
from opendp_bayes_office.report.specification import (
    DISCOVER,
    BlankLines,
    Column,
    Privacy,
    Result,
    Specification,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The tables of a specification and of an owner's file, each with what it holds.
_TABLES: dict[Any, dict[str, Any]] = {
    Specification: {"privacy": Privacy, "columns": Column, "results": Result},
    OwnerFile: {"privacy": OwnersPrivacy, "columns": OwnersColumn, "ledger": OwnersLedger},
}
#: What msgspec calls types, in words.
_TYPES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "object": "a table",
    "bool": "true or false",
}
#: What a field of texts may be.
_CHOICES = {
    "blank_lines": f"one of {', '.join(map(repr, get_args(BlankLines)))}",
    "categories": f"a list, or {DISCOVER!r}",
    "prior": "a number, a list of numbers, 'learned' or 'auto'",
}
_COLUMNS_TO_ADD = "add a table [columns.NAME] with categories"
#: What to add where a table is missing.
_TO_ADD: dict[Any, dict[str, str]] = {
    Specification: {
        "title": "begin with one, as in title = 'Our survey'",
        "privacy": "add a table [privacy] with epsilon",
        "columns": _COLUMNS_TO_ADD,
        "results": "list categories in a table [columns.NAME], and add [[results]] with column",
    },
    OwnerFile: {
        "privacy": "add a table [privacy] with unit and contributions",
        "columns": _COLUMNS_TO_ADD,
        "path": "name the file, as in path = 'votes.csv'",
        "ledger": "add a table [ledger] with path and total",
        "total": "say what may be spent in all, as in total = { epsilon = 3.0 }",
    },
}
_TOO_DEEP = "has tables or lists too deep in each other; no specification needs more than 4 levels."
#: Dots join at most so many names, and none beyond one of these.
_MOST_DOTS, _BETWEEN_NAMES = 100, re.compile(r"[\n,=\[\]{}]")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


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
    found = specification_of(document, owner=owner)
    if not joint:
        return found
    for number, result in enumerate(found.results):
        if result.merge is not None:
            raise FieldError(
                ("results", number, "merge"),
                "is for reports; synthetic records have every category. Leave it out.",
            )
    found = msgspec.structs.replace(found, joint=True)
    _check_none(problems(found))
    return found


def specification_of(document: Any, *, owner: OwnerFile | None = None) -> Specification:
    """The specification in a table of its fields, with the facts of an `owner` where there is one.

    Raises
    ------
    FieldError
        That says which field, and what it must be.
    """
    found: Specification = _converted(document, Specification)
    if owner is not None:
        found = _converted(answered(document, owner), Specification)
    _check_none(problems_of_text(found.separator, found.encoding))
    _check_none(chain(problems_of_size(found), problems(found)))
    return found


def read_owner_file(text: str) -> OwnerFile:
    """The owner's file in a text of TOML; raises `SpecificationError` as `read_specification`
    does.
    """
    document = _document(text)
    found: OwnerFile = _converted(document, OwnerFile)
    _check_none(problems_of_text(found.separator, found.encoding))
    _check_none(problems_of_owner(found))
    return found


def _check_none(found: Iterator[Problem]) -> None:
    for path, problem in found:
        raise FieldError(path, problem)


def _converted(document: Any, of: type[Any]) -> Any:
    try:
        return msgspec.convert(document, of)
    except msgspec.ValidationError as error:
        raise _field_error(str(error), document, of) from None


def _document(text: str) -> Any:
    try:
        document = _parsed(text)
        _check_texts({**document, "separator": None})  # which may be one, and is never shown
    except RecursionError:
        raise SpecificationError(_TOO_DEEP) from None
    return document


def _parsed(text: str) -> Any:
    text = without_mark(text)
    if text.lstrip("\ufeff\r\n\t ")[:1] == "{":  # as none of TOML begins
        once = each_once("", "leave out one of them")
        try:
            return json.loads(text, object_pairs_hook=once, parse_constant=_refuse)
        except ValueError as error:
            raise SpecificationError(f"is not JSON: {error}") from None
    # Which takes the square of their number to read the names that dots join.
    if any(part.count(".") > _MOST_DOTS for part in _BETWEEN_NAMES.split(text)):
        raise SpecificationError(_TOO_DEEP)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # which knows the line
        raise SpecificationError(f"is not TOML: {error}") from None


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
        for part in value:
            _check_texts(part)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON; write a finite number.")


def _field_error(message: str, document: Any, of: type[Any]) -> FieldError:
    """Turn a message of msgspec into an error about the field itself, in words."""
    what, _, where = message.partition(" - at `$")
    path = tuple(_steps(where.rstrip("`"), document, _TABLES[of]["columns"]))
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        fields = _fields_at(path, of)
        known = ", ".join(fields)
        return FieldError((*path, unknown[1]), f"is not a field; must be one of {known}.")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        advice = _TO_ADD[of].get(missing[1], "")
        return FieldError(path, f"must have {missing[1]}{advice and f'; {advice}'}.")
    if what.startswith("Invalid enum value"):
        must = _CHOICES[str(path[-1])]
    else:
        expected = what.partition(", got ")[0].removeprefix("Expected ").replace(".0", "")
        must = re.sub("`(.*?)`", _in_words, expected)
    advice = "; write [[results]] in TOML" if path == ("results",) else ""
    return FieldError(
        path, f"must be {must}, not {_shown(reduce(getitem, path, document))}{advice}."
    )


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
    return "a table" if isinstance(value, dict) else f"a date or time; write {str(value)!r}"


def _steps(path: str, document: Any, column: type[Any]) -> Iterator[str | int]:
    """The steps of msgspec's path, `.results[0].prior`; its `[...]` is a key of a table, the first
    whose value is wrong there.
    """
    for name, index in _STEP.findall(path):
        if index == "...":
            yield next(key for key, one in document["columns"].items() if _is_wrong(one, column))
        else:
            yield name or int(index)


def _fields_at(path: tuple[str | int, ...], of: type[Any]) -> tuple[str, ...]:
    """The fields of a table of a document."""
    if path and path[-1] == "total":
        return Loss.__struct_fields__
    fields: tuple[str, ...] = (_TABLES[of][str(path[0])] if path else of).__struct_fields__
    return fields


def _is_wrong(given: Any, column: type[Any]) -> bool:
    try:
        msgspec.convert(given, column)
    except msgspec.ValidationError:
        return True
    return False
