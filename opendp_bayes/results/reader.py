"""The protocol of results of all kinds, and their reader, by the format that a document names."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from opendp_bayes.display.sheet import Sheet
from opendp_bayes.release_format.kind_of_text import format_of
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee

if TYPE_CHECKING:
    import polars as pl

#: By the name of the format, the class that reads it, which is loaded then.
_OTHERS = {"opendp-bayes discovery": ("opendp_bayes.unlisted.discovered", "DiscoveredRelease")}
_RELEASE = ("opendp_bayes.results.release", "Release")


class Result(Protocol):
    """The release of one question, whatever its kind."""

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """The privacy guarantee."""

    @property
    def overview(self) -> tuple[str, str]:
        """The categories counted, and the mechanism, in words."""

    def estimates(self, level: float = ...) -> "pl.DataFrame":
        """A row for each group and category (`estimates_frame`)."""

    @property
    def unmatched(self) -> Sequence[str]:
        """Sentences where nearly all records are none of its categories."""

    def sheet(self, level: float = ..., *, wait: bool = ..., percent: bool = ...) -> Sheet:
        """Its tables, and what is said of them."""

    def to_json(self) -> str:
        """The document that `result_from_json` reads."""


def result_from_json(text: str | bytes) -> Result:
    """Read what one question releases, written by its `to_json`; `ValueError` as its `from_json`
    raises.
    """
    module, name = _OTHERS.get(format_of(text) or "", _RELEASE)
    result: Result = getattr(import_module(module), name).from_json(text)
    return result
