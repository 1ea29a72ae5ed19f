"""Frames and vectors to counts: `make_categorical_counts`."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import polars as pl
from opendp.domains import _lazyframe_from_domain
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
    LazyFrameDomain,
    Metric,
    SymmetricIdDistance,
    Transformation,
    VectorDomain,
)
from opendp.transformations import make_user_transformation

from opendp_bayes.framework.boundary import guarded, guarded_map, require_features
from opendp_bayes.framework.chaining import to_then
from opendp_bayes.framework.interrupts import interruptible
from opendp_bayes.framework.joint_cells import Cells, cells_of, counted
from opendp_bayes.framework.kept_rows import RowLimits
from opendp_bayes.framework.question import Categories, Columns, Policy, Question
from opendp_bayes.framework.spaces import CountsSpace
from opendp_bayes.mathematics.validation import Integers, as_distance, as_size
from opendp_bayes.release_format.data import Value


def make_categorical_counts(
    input_domain: Domain,
    input_metric: Metric,
    *,
    column: Columns | None = None,
    categories: Categories | None = None,
    size: int | None = None,
    nulls: Policy | None = None,
    unknown: Policy | None = None,
    cells: Sequence[Sequence[Value]] | None = None,
    elsewhere: Sequence[Value] | None = None,
) -> Transformation:
    """Count the records of each category of one column, or of each cell of a joint table.

    Parameters
    ----------
    input_domain : a `LazyFrameDomain`; or a `VectorDomain` of text, integers or booleans, each of
        which is a record.
    input_metric : `symmetric_distance()`, `change_one_distance()`, or
        `frame_distance(symmetric_distance())` with Bounds; `make_stable_lazyframe` gives the latter
        after a plan, after truncation by identifier included. For a vector,
        `insert_delete_distance()` and `hamming_distance()` too.
    column : the column whose categories are counted: Enum, String, Categorical, integer or Boolean.
        A list of them asks for their joint table, whose labels are tuples with one value of each
        column, the last column changing fastest. Left out for a vector.
    categories : the public labels, in the order of the counts. Not needed for an Enum column, which
        carries its own, or a Boolean one. For a joint table, a mapping from columns to their
        labels.
    size : the number of records, where it is public: required under `change_one_distance()` (and
        wherever a margin says `invariant="lengths"`), refused otherwise. With it, neighbours are
        change-one; without it, add/remove. A `VectorDomain` with a size brings it along.
    nulls : label of the category in which nulls are counted: one of the categories, or a new one,
        which is appended. Required if the column is nullable.
    unknown : label of the category in which values outside the categories are counted, in like
        manner. Required unless the column's type excludes them. For a joint table, `nulls` and
        `unknown` are a label for every column, or a mapping from columns to labels. `DROP` leaves
        such records out, where their number is private.
    cells : for a joint table, the cells that are counted, as tuples of labels, in the order of the
        counts; by default every combination of labels. Leave out only combinations that are
        publicly known to be impossible.
    elsewhere : the cell in which the records of all other combinations are counted: one of `cells`,
        or a new one, which is appended. Required if `cells` leaves any combination out, since a
        record may be there all the same.

    The output is an int64 array of shape `(k,)` in a space whose identity includes categories, size
    and neighbour relation. The stability map returns the number of records changed, or added and
    removed (`docs/proofs.md`, "Counts").

    Raises `ValueError`/`TypeError` for a column, metric or policy that does not fit.
    """
    require_features("make_categorical_counts")
    is_vector = isinstance(input_domain, VectorDomain)
    if (column is None) != is_vector:
        raise TypeError(
            f"column={column!r}: must be left out, because a vector has no columns."
            if is_vector
            else "column=None: must be the name of a column of the frame, or a list of names."
        )
    question = Question.of(
        _VALUES if column is None else column,
        categories=categories,
        nulls=nulls,
        unknown=unknown,
        size=size,
        cells=cells,
        elsewhere=elsewhere,
    )
    make = _make_counts_of_vector if is_vector else make_counts
    return make(input_domain, input_metric, question, "make_categorical_counts")


def make_counts(domain: Domain, metric: Metric, question: Question, made_by: str) -> Transformation:
    """The transformation from a frame to the counts that a question asks for, with the stability
    map of `make_categorical_counts`.

    Raises `ValueError`/`TypeError` for a question that does not fit the space.
    """
    cells = cells_in_frame(domain, metric, question)
    return make_counts_of_cells(domain, metric, cells, RowLimits(), made_by)


def cells_in_frame(domain: Domain, metric: Metric, question: Question) -> Cells:
    """The cells in which a question counts the records of a frame.

    Raises `ValueError`/`TypeError` for a question that does not fit the space.
    """
    if not isinstance(domain, LazyFrameDomain):
        raise TypeError(
            f"input_domain={domain}: must be a LazyFrameDomain, as `dp.domain_of(frame,"
            " infer=True)` makes."
        )
    _counted_distance(domain, metric)
    schema = _lazyframe_from_domain(domain).collect_schema()
    is_public = metric == change_one_distance() or domain.get_margin([]).invariant == "lengths"
    return cells_of(
        question,
        schema,
        lambda column: domain.get_series_domain(column).nullable,
        checked_size(question.size, is_public=is_public),
    )


def make_counts_of_cells(
    domain: Domain, metric: Metric, cells: Cells, limits: RowLimits, made_by: str
) -> Transformation:
    """The transformation from a frame to the counts of cells."""

    def count(frame: pl.LazyFrame) -> Integers:
        return counted([cells], frame, limits)[0]

    return counting(domain, metric, cells.space, count, made_by)


#: What messages call the column of a vector, which has no name.
_VALUES = "values"
_ATOMS = {
    "String": pl.String(),
    "bool": pl.Boolean(),
    "i32": pl.Int32(),
    "i64": pl.Int64(),
    "u32": pl.UInt32(),
    "u64": pl.UInt64(),
}


def _make_counts_of_vector(
    domain: Domain, metric: Metric, question: Question, made_by: str
) -> Transformation:
    """Count the categories of a vector, whose elements are the records; OpenDP lets no null in."""
    public_size = cast(VectorDomain, domain).size
    dtype = _ATOMS.get(str(domain.carrier_type).removeprefix("Vec<").removesuffix(">"))
    if dtype is None:
        raise TypeError(
            f"input_domain={domain}: must be a vector of text, integers or booleans, as in"
            " `dp.vector_domain(dp.atom_domain(T=str))`."
        )
    _counted_distance(domain, metric)
    size = question.size
    if public_size is not None:
        if size not in (None, public_size):
            raise ValueError(f"size={size!r}: must be {public_size}, that of the input domain.")
        size = public_size
    is_public = public_size is not None or _is_of_changes(metric)
    cells = cells_of(
        question, {_VALUES: dtype}, lambda _: False, checked_size(size, is_public=is_public)
    )

    def count(values: list[Value]) -> Integers:
        return cells.counts(pl.Series(_VALUES, values, dtype).to_frame().group_by(_VALUES).len())

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


then_categorical_counts = to_then(make_categorical_counts)


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
