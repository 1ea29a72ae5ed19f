"""Read documents of this package by the format and the version that they state."""

import codecs
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from opendp_bayes.mathematics.telling import depth_told, told

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
        For a text that is no such document, or is of another version.
    """
    (content, header), (name, version) = _opened(text), format_and_version(kind)
    if header.format != name:
        raise ValueError(
            f"format={told(header.format)}: must be {name!r}. Others are read by from_json of"
            " Release, Survey and DiscoveredRelease, and printed by `opendp-bayes show FILE`."
        )
    if header.version != version:
        raise ValueError(
            f"version={told(header.version)}: this package reads version {version}; one from before"
            " 1.0.0 wrote lower ones, and a newer one wrote higher ones: run `pip install"
            " --upgrade opendp-bayes`, or see what differs (docs: Policy, JSON)."
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
        For what is no document in JSON, or is nested too deep.
    """
    return _opened(text)[1].format


def _opened(text: Any) -> tuple[bytes, _Header]:
    """The bytes of a text and its header, without the mark that some programs, of Windows above
    all, write before UTF-8.
    """
    if not isinstance(text, (str, bytes)):
        raise TypeError(
            "text: must be str or bytes, what the file holds, as path.read_bytes() gives it, not"
            f" {type(text).__name__}."
        )
    encoded = text.encode(errors="replace") if isinstance(text, str) else text
    content = encoded.removeprefix(codecs.BOM_UTF8)
    try:
        with depth_told("text"):
            return content, msgspec.json.decode(content, type=_Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"text: is not a result in JSON: {error}. Pass what its file holds, as"
            " Path('r.json').read_bytes() gives it, in UTF-8; of a report the file that ends in"
            " .json, beside the page."
        ) from None
