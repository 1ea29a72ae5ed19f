"""Read documents of this package, and tell other texts by what they are, with what reads them."""

import codecs
import re
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from opendp_bayes.mathematics.telling import depth_told

#: From the format that a document states to what it is, and what reads it.
_READERS = {
    "opendp-bayes release": (
        "is a release; it is read by Release.from_json, and `opendp-bayes show` prints it"
    ),
    "opendp-bayes discovery": (
        "is a release of discovered categories; it is read by DiscoveredRelease.from_json, and"
        " `opendp-bayes show` prints it"
    ),
    "opendp-bayes survey": (
        "is a survey; it is read by Survey.from_json, and `opendp-bayes show` prints it"
    ),
    "opendp-bayes report": (
        "is a report; it is read by `opendp-bayes show FILE`, and `opendp-bayes report FILE` makes"
        " its page again"
    ),
}
#: How texts begin that are plainly no JSON, and what they are: a short line that ends as the names
#: of files do, UTF-16 where a program marks it, a page.
_MISTAKES = {
    rb"[^\n{\[\"<]{1,4096}\.[A-Za-z]\w{0,7}\Z": (
        "={text!r}: is a path, not JSON; pass what the file holds, as in"
        " Path({text!r}).read_bytes()."
    ),
    rb"\xff\xfe|\xfe\xff": (
        ": is in UTF-16, as PowerShell writes what a command prints; must be in UTF-8. Pass"
        " text.decode('utf-16'), or let the command write the file by --output."
    ),
    rb"\s*<": (
        ": is a page in HTML. The releases that a report shows are in the file of its name that"
        " ends in .json, which `opendp-bayes show` prints."
    ),
}
T = TypeVar("T")


class _Header(msgspec.Struct):
    """The first fields of every document, of whichever version it is."""

    format: str = ""
    version: Any = None


def format_and_version(kind: type) -> tuple[str, int]:
    """The format of a kind of document and its version: the only values that these fields have."""
    hints = get_type_hints(kind)
    return get_args(hints["format"])[0], get_args(hints["version"])[0]


def decoded(kind: type[T], text: str | bytes) -> T:
    """Decode a document of a kind.

    Raises
    ------
    ValueError, TypeError
        For a text that is no such document, or is of another version, that says what it is and what
        reads it.
    """
    content, (name, version) = _content(text), format_and_version(kind)
    header = _header(content)
    if header.format != name and header.format in _READERS:
        raise ValueError(f"format={header.format!r}: {_READERS[header.format]}.")
    if header.format == name and isinstance(header.version, int) and header.version != version:
        raise ValueError(
            f"version={header.version}: this package reads version {version}, and"
            f" {'a newer one wrote' if header.version > version else 'one from before 1.0.0 wrote'}"
            " this; run `pip install --upgrade opendp-bayes`, or see what differs (docs: Policy,"
            " JSON)."
        )
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"text: is not a {name.removeprefix('opendp-bayes ')} in JSON: {error}"
        ) from None


def format_of(text: str | bytes) -> str:
    """Read the format that a document states; empty where it states none.

    Raises
    ------
    ValueError, TypeError
        For what is plainly no JSON, or is nested too deep.
    """
    return _header(_content(text)).format


def _content(text: Any) -> bytes:
    """The bytes of a text, without the mark that some programs, of Windows above all, write before
    UTF-8.
    """
    if not isinstance(text, (str, bytes)):
        raise TypeError(
            "text: must be str or bytes, what the file holds, as path.read_bytes() gives it, not"
            f" {type(text).__name__}."
        )
    encoded = text.encode(errors="replace") if isinstance(text, str) else text
    content = encoded.removeprefix(codecs.BOM_UTF8)
    for pattern, problem in _MISTAKES.items():
        if re.match(pattern, content):
            raise ValueError(f"text{problem.format(text=text)}")
    return content


def _header(content: bytes) -> _Header:
    """The header of a document; an empty one for what is none."""
    try:
        with depth_told("text"):
            return msgspec.json.decode(content, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Header()
