"""Contexts over frames, as the tests ask them."""

from typing import Any

import opendp.prelude as dp

from opendp_bayes_engines import EngineContext, context

#: What an error says of a count that failed.
MESSAGE = "engines: counting: counting failed. The cause is withheld"


def made(frame: Any, *, shares: int = 1, epsilon: float = 1.0, **unit: Any) -> EngineContext:
    return context(
        frame,
        privacy_unit=dp.unit_of(**(unit or {"contributions": 1})),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=shares,
    )


def two_shares(frame: Any) -> EngineContext:
    return made(frame, shares=2)
