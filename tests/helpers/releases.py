"""Releases made by hand: what many tests begin with."""

from dataclasses import replace
from typing import Any, TypeVar

from opendp_bayes import PrivacyLoss, Promise, Release
from opendp_bayes.results.release import GroupedRelease

R = TypeVar("R", Release, GroupedRelease)
LOSS = PrivacyLoss(epsilon=1.0, rho=0.5, range=2.0)


def promise(size: int | None, loss: PrivacyLoss = LOSS, **changes: Any) -> Promise:
    """A promise for one record, pure unless `measure` says otherwise."""
    return Promise(size=size, loss=loss, **{"d_in": 1, "measure": "MaxDivergence", **changes})


def changed(release: R, **changes: Any) -> R:
    """The release with other fields, of its own or of its promise."""
    names = ("size", "d_in", "loss", "measure")
    promised = {name: changes.pop(name) for name in names if name in changes}
    return replace(release, promise=replace(release.promise, **promised), **changes)
