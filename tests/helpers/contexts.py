"""Contexts of OpenDP's own and of this package, by the unit, the loss and the number of queries."""

from typing import Any

import opendp.prelude as dp

import opendp_bayes as ob

ONE_RECORD, ONE = {"contributions": 1}, {"epsilon": 1.0}


def arguments(unit: Any, loss: Any, parts: int | None, more: dict[str, Any]) -> dict[str, Any]:
    """What both take; a budget that is not divided has no parts."""
    divided = {} if parts is None else {"split_evenly_over": parts}
    of = {"privacy_unit": dp.unit_of(**unit), "privacy_loss": dp.loss_of(**loss)}
    return of | divided | more


def plain_context(
    data: Any, unit: Any = ONE_RECORD, loss: Any = ONE, parts: int | None = 1, **more: Any
) -> Any:
    """OpenDP's own Context."""
    return dp.Context.compositor(data=data, **arguments(unit, loss, parts, more))


def checked_context(
    frame: Any, unit: Any = ONE_RECORD, loss: Any = ONE, parts: int | None = 1, **more: Any
) -> Any:
    """What `ob.context` opens."""
    return ob.context(frame, **arguments(unit, loss, parts, more))
