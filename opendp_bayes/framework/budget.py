"""Express privacy losses in OpenDP's measures, and check them against the remaining budget of a
Context.
"""

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from opendp.context import Context
from opendp.measures import approximate, max_divergence, zero_concentrated_divergence
from opendp.mod import Measure, OdometerQueryable

from opendp_bayes.accounting.calibration import relative_loss
from opendp_bayes.mathematics.rounding import round_up
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.setting import Setting


def loss_in(output_measure: Measure) -> Callable[[PrivacyLoss], tuple[float, ...]]:
    """Choose the function that expresses a privacy loss in an OpenDP measure; `ValueError` for a
    measure that is not supported.
    """
    expressions: list[tuple[Measure, Callable[[PrivacyLoss], tuple[float, ...]]]] = [
        (max_divergence(), lambda loss: (loss.epsilon,)),
        (zero_concentrated_divergence(), lambda loss: (loss.rho,)),
        (approximate(max_divergence()), lambda loss: (loss.epsilon, loss.delta)),
        (approximate(zero_concentrated_divergence()), lambda loss: (loss.rho, 0.0)),
    ]
    for measure, expression in expressions:
        if output_measure == measure:
            return expression
    raise ValueError(
        f"output_measure={output_measure}: must be one of"
        f" {', '.join(repr(measure) for measure, _ in expressions)}."
    )


def relative_to_budget(output_measure: Measure, budget: Any) -> Callable[[Setting, int], float]:
    """The loss of a setting at a distance, as a multiple of a budget in `output_measure`."""
    limit = min(as_tuple(budget)[0], sys.float_info.max)
    if output_measure in (
        zero_concentrated_divergence(),
        approximate(zero_concentrated_divergence()),
    ):
        loss = relative_loss(rho=limit)
    else:
        loss = relative_loss(epsilon=limit, delta=delta_of(output_measure, budget) or None)
    return lambda setting, d_in: loss(setting, d_in, "exact")


def delta_of(output_measure: Measure, budget: Any) -> float:
    """The δ of a budget in `approximate(max_divergence())`; 0 in another measure, whose losses use
    none.
    """
    if output_measure == approximate(max_divergence()) and budget is not None:
        return float(budget[1])
    return 0.0


def check_query_budget(budget: Any) -> None:
    """Raise `ValueError` unless a query has a budget that buys anything."""
    if budget is None:
        raise ValueError(
            "query: has no budget of its own; say how much to spend, as in"
            " `context.query(epsilon=0.5)`."
        )
    if not 0 < as_tuple(budget)[0] < math.inf:
        raise ValueError(
            f"query: has a budget of {budget}; epsilon or rho must be finite and greater than 0."
        )


def check_remaining(context: Context, loss: float | tuple[float, ...]) -> None:
    """Raise `ValueError` if a privacy filter would refuse `loss`: a filter that has refused once
    refuses everything after.
    """
    if context.d_out is None or not isinstance(context.queryable, OdometerQueryable):
        return
    spent = as_tuple(context.current_privacy_loss())
    limits = as_tuple(context.d_out)
    if any(
        _sum_up(a, b) > limit for a, b, limit in zip(spent, as_tuple(loss), limits, strict=True)
    ):
        raise ValueError(
            f"query: its privacy loss {loss} exceeds what is left of the Context's budget:"
            f" {context.d_out}, less {context.current_privacy_loss()} already spent, where OpenDP"
            " rounds the sum up. Nothing was released or spent; ask for less, at most about"
            f" {context.remaining_privacy_loss()}."
        )


def _sum_up(a: float, b: float) -> float:
    return round_up(Fraction(a) + Fraction(b)) if math.isfinite(a + b) else math.inf


def shown(values: tuple[float, ...]) -> str:
    return str(values[0]) if len(values) == 1 else str(values)


def as_tuple(distance: Any) -> tuple[float, ...]:
    return distance if isinstance(distance, tuple) else (distance,)
