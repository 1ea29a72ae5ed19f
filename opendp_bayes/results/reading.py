"""A release of whichever kind, from its JSON."""

import msgspec

from opendp_bayes.released.grouped_document import GroupedReleaseDocument
from opendp_bayes.results.grouped_release import GroupedRelease
from opendp_bayes.results.release import Release


class _Format(msgspec.Struct):
    format: str = ""


def release_from_json(text: str | bytes) -> Release | GroupedRelease:
    """The release that `to_json` wrote, of one posterior or of groups.

    Raises `ValueError` for anything else, as `from_json` of the kind does.
    """
    try:
        kind = msgspec.json.decode(text, type=_Format).format
    except (msgspec.DecodeError, UnicodeDecodeError):
        kind = ""  # what is wrong with it, `from_json` says
    return (GroupedRelease if kind == GroupedReleaseDocument.name else Release).from_json(text)
