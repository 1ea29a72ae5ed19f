"""Frames and vectors to counts: `make_categorical_counts`."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from opendp.metrics import (
    change_one_distance,
    frame_distance,
    hamming_distance,
    insert_delete_distance,
    symmetric_distance,
)
from opendp.mod import (
    ChangeOneIdDistance,
    Domain,
    FrameDistance,
    Metric,
    SymmetricIdDistance,
    Transformation,
    VectorDomain,
)
from opendp.transformations import make_user_transformation

from opendp_bayes.mathematics.validation import Integers, as_distance, as_size
from opendp_bayes.trusted.boundary import guarded, guarded_map
from opendp_bayes.trusted.cells import Cells, counted
from opendp_bayes.trusted.interrupts import interruptible
from opendp_bayes.trusted.kept_rows import RowLimits
from opendp_bayes.trusted.spaces import CountsSpace


def make_counts_of_cells(
    domain: Domain, metric: Metric, cells: Cells, limits: RowLimits, made_by: str
) -> Transformation:
    """The transformation from a frame to the counts of cells."""

    def count(frame: pl.LazyFrame) -> Integers:
        return counted([cells], frame, limits)[0]

    return counting(domain, metric, cells.space, count, made_by)


def counting(
    domain: Domain,
    metric: Metric,
    space: CountsSpace,
    count: Callable[[Any], Integers],
    made_by: str,
) -> Transformation:
    """Make the transformation to `space` by a function that counts each row once, in one of the
    categories that its own values decide, with its stability map (`docs/proofs.md`, "Counts").

    Parameters
    ----------
    domain : the domain of the data, whatever holds them.
    metric : a metric that bounds a number of records: `symmetric_distance()`,
        `change_one_distance()`, `frame_distance(symmetric_distance())`, `insert_delete_distance()`
        or `hamming_distance()`.
    space : the space of the counts, with categories, public size and neighbours.
    count : from the data to int64 counts of shape `(k,)`. It is guarded.
    made_by : the name that messages give.

    Raises `ValueError` for a metric that does not bound a number of records.
    """
    distance = _counted_distance(domain, metric)

    def function(frame: Any) -> Integers:
        with interruptible():
            counts = count(frame)
        return space.counts(counts)

    def stability_map(d_in: Any) -> int:
        moved = distance(d_in)
        return moved if _is_of_changes(metric) else records_of_moved(space, moved)

    return make_user_transformation(
        domain,
        metric,
        space.domain,
        space.metric,
        guarded(function, f"{made_by}: counting"),
        guarded_map(stability_map, made_by),
    )


def records_of_moved(space: CountsSpace, moved: int) -> int:
    """The distance of counts between data of which so many records were added and removed.

    Under equal sizes as many records leave as arrive; a change is one of each. An odd bound is
    rounded up: one record changed is no less.
    """
    return moved if space.size is None else (moved + 1) // 2


def _is_of_changes(metric: Metric) -> bool:
    """True if a metric counts records that change, between data of equal size."""
    return metric in (change_one_distance(), hamming_distance())


def _counted_distance(domain: Domain, metric: Metric) -> Callable[[Any], int]:
    """The map from a distance of `metric` to a number of records; refuses every metric that is not
    known to bound one.
    """
    if metric in (symmetric_distance(), change_one_distance()):
        return as_distance
    # In order, no fewer records are inserted and deleted, or changed, than out of order.
    is_vector = isinstance(domain, VectorDomain)
    if is_vector and metric in (insert_delete_distance(), hamming_distance()):
        return as_distance
    if metric == frame_distance(symmetric_distance()):
        return records_of_bounds
    inner = metric.inner_metric if isinstance(metric, FrameDistance) else metric
    if isinstance(inner, (SymmetricIdDistance, ChangeOneIdDistance)):
        raise ValueError(
            f"input_metric={metric}: a person may own any number of records. Limit them first, with"
            " `query.truncate_per_group(k)` in a Context, or with a truncating plan in"
            " make_stable_lazyframe(..., MO='FrameDistance<SymmetricDistance>')."
        )
    if is_vector:
        raise ValueError(
            f"input_metric={metric}: must be symmetric_distance(), insert_delete_distance(),"
            " change_one_distance() or hamming_distance()."
        )
    raise ValueError(
        f"input_metric={metric}: must be symmetric_distance(), change_one_distance() or"
        " frame_distance(symmetric_distance()). Order does not matter to counts: use"
        " symmetric_distance() for insert-delete and change_one_distance() for Hamming distances."
    )


def records_of_bounds(bounds: Any) -> int:
    """The largest number of records that a list of `Bound` lets one unit add and remove: the
    smallest that any grouping proves.

    `per_group` and `num_groups` of one grouping allow their product, whatever it groups by and
    whether one Bound or two say it; without grouping there is one group. A grouping without one of
    the two says nothing.
    """
    bounds = bounds if isinstance(bounds, Sequence) else [bounds]
    largest: dict[frozenset[bytes], dict[str, int]] = {}
    for bound in bounds:
        by = frozenset(
            (pl.col(key) if isinstance(key, str) else key).meta.serialize() for key in bound.by
        )
        known = largest.setdefault(by, {} if by else {"num_groups": 1})
        for name in ("per_group", "num_groups"):
            limit = getattr(bound, name)
            if limit is not None:
                known[name] = min(limit, known.get(name, limit))
    proven = [
        known["per_group"] * known["num_groups"] for known in largest.values() if len(known) == 2
    ]
    if not proven:
        raise ValueError(
            f"d_in={bounds!r}: no Bound limits the number of records of a unit. Give Bound(by=[],"
            " per_group=...), or per_group= together with num_groups=; with an identifier,"
            " truncate first with `query.truncate_per_group(k)`."
        )
    return min(proven)


def checked_size(size: int | None, *, is_public: bool) -> int | None:
    """Return `size`, the number of records that a user states, checked against whether it is public
    in the space that is counted; `ValueError`/`TypeError` where they disagree.
    """
    if size is not None:
        size = as_size(size)
    if is_public and size is None:
        raise ValueError(
            "size=None: under change-one neighbours the number of records is public; pass size=,"
            " the number of rows."
        )
    if size is not None and not is_public:
        raise ValueError(
            f"size={size}: the number of records is private here, so it cannot be stated. It is"
            " public under change-one neighbours (`dp.unit_of(changes=1)`), until a plan drops"
            " that knowledge: a filter or a select does, so pick the column with column= instead."
        )
    return size
