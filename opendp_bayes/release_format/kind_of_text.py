"""Read documents of this package, and tell other texts by what they are, with what reads them."""

import codecs
import json
import re
from contextlib import suppress
from os import PathLike
from typing import Any, TypeVar

import msgspec

from opendp_bayes.mathematics.telling import depth_told
from opendp_bayes.mathematics.validation import each_once

#: From the format that a document states to what it is, and what reads it.
_READERS = {
    "opendp-bayes release": ("a release", "Release.from_json, and `opendp-bayes show` prints it"),
    "opendp-bayes discovery": (
        "a release of discovered categories",
        "DiscoveredRelease.from_json, and `opendp-bayes show` prints it",
    ),
    "opendp-bayes survey": ("a survey", "Survey.from_json, and `opendp-bayes show` prints it"),
    "opendp-bayes report": (
        "a report",
        "`opendp-bayes show FILE`, and `opendp-bayes report FILE` makes its page again",
    ),
}
#: A short text of one line that ends as the names of files do, and cannot be JSON.
_PATH = re.compile(r"[^\n{\[\"<]{1,4096}\.[A-Za-z]\w{0,7}")
#: How text in UTF-16 begins where a program marks it, and none in UTF-8 does.
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ONCE = each_once("text: ", "one of the two is wrong. Ask for the file as it was written")
T = TypeVar("T")


class _Header(msgspec.Struct):
    """The first fields of every document, of whichever version it is."""

    format: str = ""
    version: Any = None


def decoded(kind: type[T], text: str | bytes, name: str, version: int) -> T:
    """Decode a document of a format and version; `ValueError` that says what is wrong with it."""
    check_kind(text, name, version)
    try:
        return msgspec.json.decode(_without_mark(text), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = name.removeprefix("opendp-bayes ")
        raise ValueError(f"text: is not a {what} in JSON: {error}") from None


def format_of(text: str | bytes) -> str:
    """Read the format that a document states; empty where it states none.

    Raises
    ------
    ValueError
        For one that is nested too deep.
    """
    return _header(text).format


def check_kind(text: Any, name: str, version: int) -> None:
    """Raise `ValueError`/`TypeError` where the text is plainly something else than a document of
    this format, or is of a later version. The error says what it is and what reads it.

    Other texts pass, also those that are no JSON: to say why is left to their reader. Refuses what
    is nested deeper than any document, and one of this format with a name twice in one object.
    """
    if isinstance(text, PathLike):
        raise TypeError(
            f"text={text!r}: must be what the file holds, not its path: pass its read_bytes()."
        )
    if not isinstance(text, (str, bytes)):
        raise TypeError(f"text: must be str or bytes, not {type(text).__name__}.")
    if isinstance(text, str) and _PATH.fullmatch(text):
        raise ValueError(
            f"text={text!r}: is a path, not JSON; pass what the file holds, as in"
            f" Path({text!r}).read_bytes()."
        )
    if isinstance(text, bytes) and text.startswith(_UTF_16):
        raise ValueError(
            "text: is in UTF-16, as PowerShell writes what a command prints; must be in UTF-8."
            " Pass text.decode('utf-16'), or let the command write the file by --output."
        )
    if _without_mark(text)[:100].lstrip()[:1] in ("<", b"<"):
        raise ValueError(
            "text: is a page in HTML. The releases that a report shows are in the file of its name"
            " that ends in .json, which `opendp-bayes show` prints."
        )
    header = _header(text)
    if header.format != name:
        if header.format in _READERS:
            what, reader = _READERS[header.format]
            raise ValueError(f"format={header.format!r}: is {what}; it is read by {reader}.")
        return
    with depth_told("text"), suppress(UnicodeDecodeError):  # which its reader says
        json.loads(_without_mark(text), object_pairs_hook=_ONCE, parse_int=str)
    if isinstance(header.version, int) and header.version > version:
        raise ValueError(
            f"version={header.version}: this package reads version {version}, and a newer one wrote"
            " this; run `pip install --upgrade opendp-bayes`."
        )


def _header(text: str | bytes) -> _Header:
    """The header of a document; an empty one for what is none."""
    try:
        with depth_told("text"):
            return msgspec.json.decode(_without_mark(text), type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Header()


def _without_mark(text: Any) -> Any:
    """A text without the mark that some programs, of Windows above all, write before UTF-8."""
    if isinstance(text, bytes):
        return text.removeprefix(codecs.BOM_UTF8)
    return text.removeprefix("\ufeff") if isinstance(text, str) else text
