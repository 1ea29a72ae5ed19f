"""Expected errors from a thirtieth of the draws, for tests that do not measure the choice."""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from opendp_bayes.planning import automatic, release_law


@cache
def _coarse_score(score: Any) -> Any:
    """What errors are once is what they are in every module."""
    return lru_cache(maxsize=4096)(score.__wrapped__)


def coarsen(put: Callable[[Any, str, Any], Any]) -> None:
    """Put coarser settings in place of the usual ones, by `setattr` or that of a patch."""
    for name in ("_LARGEST_LAW", "_LARGEST_NOISE", "_SIMULATED"):
        put(release_law, name, 1 << 12)
    put(release_law, "_FEWEST_DRAWS", 1 << 10)
    put(automatic, "_score", _coarse_score(automatic._score))
