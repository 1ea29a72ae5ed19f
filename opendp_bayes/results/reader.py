"""Reads results, each by the format that it names."""

from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from opendp_bayes.display.sheet import Sheet
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.release_format.document import format_of
from opendp_bayes.release_format.privacy_guarantee import PrivacyGuarantee
from opendp_bayes.results.estimates import Estimate

#: By the name of the format, the class that reads it, which is loaded then.
_OTHERS = {"opendp-bayes discovery": ("opendp_bayes.unlisted.discovered", "DiscoveredRelease")}
_RELEASE = ("opendp_bayes.results.release", "Release")


@runtime_checkable
class OtherResult(Protocol):
    """What a survey shows of a question that was not answered by a `Release`."""

    @property
    def guarantee(self) -> PrivacyGuarantee: ...
    @property
    def measure(self) -> str: ...
    @property
    def loss(self) -> PrivacyLoss: ...
    def estimated_shares(self, level: float) -> tuple[Estimate, list[Any], list[int]]: ...
    def overview(self) -> tuple[str, str]: ...
    def sheet(self, level: float = ..., *, wait: bool = ...) -> Sheet: ...


def result_from_json(text: str | bytes) -> Any:
    """Read what one question releases, written by its `to_json`; `ValueError` as its `from_json`
    raises.
    """
    module, name = _OTHERS.get(format_of(text) or "", _RELEASE)
    return getattr(import_module(module), name).from_json(text)
