"""The office: the command `opendp-bayes`, specifications, reports, and files with data."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opendp_bayes_office.files.files import read as read


def __getattr__(attribute: str) -> Any:
    """`read`, imported when it is asked for: the help of the command needs no polars."""
    if attribute != "read":
        raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")
    from opendp_bayes_office.files.files import read

    return read
