"""The tools for an OpenDP measurement or transformation of your own, on the spaces of this package.
See `docs/plugins.md`.

A door of its own, because it loads OpenDP: `opendp_bayes.extend` needs neither OpenDP nor polars.
"""

from opendp_bayes.framework.boundary import (
    ContractError,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes.framework.interrupts import deferred_interrupts, interruptible
from opendp_bayes.framework.spaces import CountsSpace, PosteriorSpace

__all__ = [
    "ContractError",
    "CountsSpace",
    "PosteriorSpace",
    "deferred_interrupts",
    "descriptor_of",
    "guarded",
    "guarded_map",
    "interruptible",
    "require_features",
]
