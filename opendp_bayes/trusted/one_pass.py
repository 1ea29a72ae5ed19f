"""Counts of several questions of one frame, so that it crosses from OpenDP into Python once."""

from collections.abc import Sequence
from typing import Any

import polars as pl
from opendp.metrics import frame_distance, symmetric_distance
from opendp.mod import Domain, Metric, Transformation
from opendp.transformations import make_user_transformation

from opendp_bayes.mathematics.validation import Integers, as_distance
from opendp_bayes.trusted.boundary import ContractError, guarded, guarded_map
from opendp_bayes.trusted.cells import Cells, counted
from opendp_bayes.trusted.counting import check_frame, records_of_bounds, records_of_moved
from opendp_bayes.trusted.interrupts import interruptible
from opendp_bayes.trusted.kept_rows import RowLimits
from opendp_bayes.trusted.kinds import types_of
from opendp_bayes.trusted.spaces import CountsOfSeveral


def in_one_pass(
    domain: Domain, metric: Metric, cells: Sequence[Cells], limits: RowLimits
) -> tuple[Transformation, list[Transformation]]:
    """Count several cells of one frame: the transformation to the counts of all, and those from
    there to the counts of each.

    Raises `ValueError`/`TypeError` for cells that do not fit the space of the frame.
    """
    for each in cells:
        check_frame(domain, metric, each)
    several = CountsOfSeveral(tuple(each.space for each in cells))
    together = _make_counts_of_several(domain, metric, cells, limits, several)
    return together, [_make_one_of(several, at) for at in range(len(cells))]


def _make_counts_of_several(
    domain: Domain,
    metric: Metric,
    cells: Sequence[Cells],
    limits: RowLimits,
    several: CountsOfSeveral,
) -> Transformation:
    if metric != frame_distance(symmetric_distance()):
        raise ValueError(f"input_metric={metric}: must be frame_distance(symmetric_distance()).")

    types = types_of(domain)

    def function(frame: pl.LazyFrame) -> tuple[Integers, ...]:
        with interruptible():
            counts = counted(cells, frame, types, limits)
        return tuple(each.space.counts(one) for each, one in zip(cells, counts, strict=True))

    return make_user_transformation(
        domain,
        metric,
        several.domain,
        several.metric,
        guarded(function, "survey: counting"),
        guarded_map(records_of_bounds, "survey"),
    )


def _make_one_of(several: CountsOfSeveral, at: int) -> Transformation:
    space = several.spaces[at]

    def function(value: Any) -> Integers:
        if not isinstance(value, tuple) or len(value) != len(several.spaces):
            raise ContractError(f"the input must hold counts of {len(several.spaces)} questions.")
        return space.counts(value[at])

    return make_user_transformation(
        several.domain,
        several.metric,
        space.domain,
        space.metric,
        guarded(function, "survey: counting"),
        guarded_map(lambda d_in: records_of_moved(space, as_distance(d_in)), "survey"),
    )
