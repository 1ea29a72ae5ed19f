"""Releases made by hand: what many tests begin with."""

from dataclasses import replace
from typing import Any, TypeVar

from opendp_bayes import LaplaceParameters, PrivacyGuarantee, PrivacyLoss, Release
from opendp_bayes.results.release import GroupedRelease

R = TypeVar("R", Release, GroupedRelease)
LOSS = PrivacyLoss(epsilon=1.0, rho=0.5, range=2.0)
PRIVATE = LaplaceParameters(1.0, total="private")


def guarantee(size: int | None, loss: PrivacyLoss = LOSS, **changes: Any) -> PrivacyGuarantee:
    """A promise for one record, pure unless `measure` says otherwise."""
    of = {"d_in": 1, "measure": "MaxDivergence"} | changes
    return PrivacyGuarantee(size=size, loss=loss, **of)


def release(
    drawn: Any, labels: Any, mechanism: Any = PRIVATE, size: Any = None, **more: Any
) -> Any:
    return Release(drawn, labels, (1.0,) * len(labels), mechanism, guarantee(size), **more)


def grouped(drawn: Any, mechanism: Any = PRIVATE, size: Any = None, **more: Any) -> Any:
    """Of groups g and h, in categories a and b."""
    of = ("g", "h"), drawn, ("a", "b"), (1.0, 1.0), mechanism, guarantee(size)
    return GroupedRelease(*of, **more)


def changed(release: R, **changes: Any) -> R:
    """The release with other fields, of its own or of its promise."""
    names = ("size", "d_in", "loss", "measure")
    promised = {name: changes.pop(name) for name in names if name in changes}
    return replace(release, guarantee=replace(release.guarantee, **promised), **changes)
