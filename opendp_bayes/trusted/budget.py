"""Express privacy losses in OpenDP's measures, and check them against the remaining budget of a
Context.
"""

import math
import sys
from collections.abc import Callable
from typing import Any, Literal

from opendp.context import Context
from opendp.measures import approximate, max_divergence, zero_concentrated_divergence
from opendp.metrics import (
    change_one_distance,
    hamming_distance,
    insert_delete_distance,
    symmetric_distance,
)
from opendp.mod import (
    ChangeOneIdDistance,
    FrameDistance,
    Measure,
    Metric,
    OdometerQueryable,
    SymmetricIdDistance,
)

from opendp_bayes.accounting.calibration import relative_loss
from opendp_bayes.mathematics.rounding import sum_up
from opendp_bayes.mathematics.telling import told
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.mechanisms.privacy_loss import PrivacyLoss
from opendp_bayes.mechanisms.setting import Setting
from opendp_bayes.release_format.privacy_guarantee import MEASURES
from opendp_bayes.trusted.account import LedgerError, Loss

#: The measure of ε with δ.
WITH_DELTA = "Approximate(MaxDivergence)"
#: OpenDP's measures by their names in `MEASURES`.
_NAMED: dict[str, Callable[[], Measure]] = {
    "MaxDivergence": max_divergence,
    "ZeroConcentratedDivergence": zero_concentrated_divergence,
    WITH_DELTA: lambda: approximate(max_divergence()),
    "Approximate(ZeroConcentratedDivergence)": lambda: approximate(zero_concentrated_divergence()),
}


#: Metrics of records that are changed, and of those that are added and removed.
CHANGES = (change_one_distance(), hamming_distance())
_CONTRIBUTIONS = (symmetric_distance(), insert_delete_distance())


def name_of(measure: Measure) -> str:
    """The name that promises give to a measure of OpenDP's, whatever OpenDP calls it; empty for
    another one.
    """
    return next((name for name, make in _NAMED.items() if measure == make()), "")


def loss_in(output_measure: Measure) -> Callable[[PrivacyLoss], tuple[float, ...]]:
    """Choose the function that expresses a privacy loss in an OpenDP measure; `ValueError` for a
    measure that is not supported.
    """
    expressions: dict[str, Callable[[PrivacyLoss], tuple[float, ...]]] = {
        "MaxDivergence": lambda loss: (loss.epsilon,),
        "ZeroConcentratedDivergence": lambda loss: (loss.rho,),
        WITH_DELTA: lambda loss: (loss.epsilon, loss.delta),
        "Approximate(ZeroConcentratedDivergence)": lambda loss: (loss.rho, 0.0),
    }
    if (name := name_of(output_measure)) not in expressions:
        raise ValueError(
            f"output_measure={output_measure}: must be one of"
            f" {', '.join(repr(_NAMED[name]()) for name in expressions)}."
        )
    return expressions[name]


def relative_to_budget(
    output_measure: Measure, budget: Any
) -> Callable[[Setting, Distance], float]:
    """The loss of a setting at a distance, as a multiple of a budget in `output_measure`."""
    limit = min(as_tuple(budget)[0], sys.float_info.max)
    if MEASURES.get(name_of(output_measure)) == "rho":
        loss = relative_loss(rho=limit)
    else:
        loss = relative_loss(epsilon=limit, delta=delta_of(output_measure, budget) or None)
    return lambda setting, distance: loss(setting, distance, "exact")


def as_entry(measure: Measure, loss: Any) -> Loss:
    """The loss in an OpenDP measure as a ledger enters it; `LedgerError` in another measure."""
    value, delta = (*as_tuple(loss), 0.0)[:2]
    name = name_of(measure)
    if not name:
        raise LedgerError(f"a ledger adds losses in epsilon or rho, not in {measure}.")
    return Loss.of(MEASURES[name], float(value), float(delta))


def identifier_of(metric: Metric) -> Any:
    """The identifier whose records are one privacy unit, as polars takes it; None where a unit is a
    number of records.
    """
    return getattr(inner_metric(metric), "identifier", None)


def inner_metric(metric: Metric) -> Metric:
    """The metric of the records, of one that has Bounds on groups of them too."""
    return metric.inner_metric if isinstance(metric, FrameDistance) else metric


def kind_of_unit(metric: Metric) -> Literal["changes", "contributions"] | None:
    """The argument of `dp.unit_of` that makes a privacy unit in this metric; None for another."""
    inner = inner_metric(metric)
    if isinstance(inner, ChangeOneIdDistance) or inner in CHANGES:
        return "changes"
    if isinstance(inner, SymmetricIdDistance) or inner in _CONTRIBUTIONS:
        return "contributions"
    return None


def unit_in_words(metric: Metric, distance: Any) -> str:
    """The privacy unit of a Context, as a ledger tells units apart.

    Examples
    --------
    >>> import opendp.prelude as dp
    >>> unit_in_words(*dp.unit_of(contributions=2, identifier="person"))
    'contributions: 2, identifier: person'
    """
    bounds = [distance] if not isinstance(metric, FrameDistance) else sorted(map(_bound, distance))
    by = identifier_of(metric)
    identifier = "" if by is None else f", identifier: {_name(by)}"
    return f"{kind_of_unit(metric)}: {', '.join(map(str, bounds))}{identifier}"


def as_made(pair: Any, argument: str, example: str, kind: type) -> tuple[Any, Any]:
    """A unit or a loss as OpenDP makes it, a metric or a measure with a number; `TypeError` for
    anything else.
    """
    if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], kind)):
        raise TypeError(f"{argument}={told(pair)}: must be what OpenDP makes, as in {example}.")
    return pair


def delta_of(output_measure: Measure, budget: Any) -> float:
    """The δ of a budget in `approximate(max_divergence())`; 0 in another measure, whose losses use
    none.
    """
    if name_of(output_measure) == WITH_DELTA and budget is not None:
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
        sum_up(both) > limit for *both, limit in zip(spent, as_tuple(loss), limits, strict=True)
    ):
        raise ValueError(
            f"query: its privacy loss {loss} exceeds what is left of the Context's budget:"
            f" {context.d_out}, less {context.current_privacy_loss()} already spent, where OpenDP"
            " rounds the sum up. Nothing was released or spent; ask for less, at most about"
            f" {context.remaining_privacy_loss()}."
        )


def shown(values: tuple[float, ...]) -> str:
    return str(values[0]) if len(values) == 1 else str(values)


def _bound(bound: Any) -> str:
    by = "+".join(sorted(map(_name, bound.by)))
    limits = ((limit, getattr(bound, limit)) for limit in ("per_group", "num_groups"))
    given = "".join(f" {limit}={value}" for limit, value in limits if value is not None)
    return f"(by={by}{given})"


def _name(key: Any) -> str:
    """A column by its name, anything else as polars shows it."""
    if isinstance(key, str) or not key.meta.is_column():
        return str(key)
    return str(key.meta.output_name())


def as_tuple(distance: Any) -> tuple[float, ...]:
    return distance if isinstance(distance, tuple) else (distance,)


def distance_of_unit(d_in: Any) -> Distance:
    """Distance that one privacy unit moves the counts; `ValueError` for none, where any mechanism
    has a loss of 0 and the smallest noise there is.
    """
    distance = Distance.of(d_in)
    if distance.records == 0:
        raise ValueError(
            "query: its privacy unit has no records (d_in=0), so nothing would be protected and the"
            " counts be released as they are. Let contributions=, changes=, every number of a Bound"
            " and what the plan truncates to be at least 1."
        )
    return distance
