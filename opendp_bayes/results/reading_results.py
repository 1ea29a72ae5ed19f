"""A release of whichever kind, from its JSON."""

import msgspec

from opendp_bayes.mathematics.telling import depth_told
from opendp_bayes.release_format.grouped_document import GroupedReleaseDocument
from opendp_bayes.results.grouped_release import GroupedRelease
from opendp_bayes.results.release import Release


class _Format(msgspec.Struct):
    format: str = ""


def format_of(text: str | bytes) -> str:
    """Read the format that a document states; empty where it states none. Raises `ValueError` for
    one that is nested too deep.
    """
    try:
        with depth_told("text"):
            return msgspec.json.decode(text, type=_Format).format
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""


def release_from_json(text: str | bytes) -> Release | GroupedRelease:
    """The release that `to_json` wrote, of one posterior or of groups.

    Raises `ValueError` for anything else, with what the text is where that can be told.
    """
    kind = GroupedRelease if format_of(text) == GroupedReleaseDocument.name else Release
    return kind.from_json(text)
