"""Count data in cells, whatever holds the data, and for several questions at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl
from opendp.metrics import (
    change_one_distance,
    frame_distance,
    hamming_distance,
    insert_delete_distance,
    symmetric_distance,
)
from opendp.mod import Domain, LazyFrameDomain, Metric, Transformation, VectorDomain
from opendp.transformations import make_user_transformation

from opendp_bayes.mathematics.validation import Integers, as_distance, as_size
from opendp_bayes.mechanisms.neighbours import Distance
from opendp_bayes.trusted.boundary import ContractError, guarded, guarded_map
from opendp_bayes.trusted.bounds import Bounds
from opendp_bayes.trusted.budget import CHANGES, identifier_of
from opendp_bayes.trusted.cells import Axis, Cells, counted
from opendp_bayes.trusted.kinds import VALUES, ColumnKind, element_type, kinds_of_frame
from opendp_bayes.trusted.opendp_internals import frame_of
from opendp_bayes.trusted.spaces import CountsOfSeveral
from opendp_bayes.trusted.truncation import RowLimit


def make_counts_of_cells(
    domain: Domain,
    metric: Metric,
    several: Sequence[Cells],
    limits: Sequence[RowLimit],
    made_by: str,
    kept: frozenset[str] = frozenset(),
) -> tuple[Transformation, list[Transformation]]:
    """Count the cells of several questions in one pass: the transformation from a frame to the
    counts of all, and those from there to the counts of each. `kept` are columns that are what they
    were where Bounds name them; other Bounds by columns limit the number of records alone.

    Raises
    ------
    ValueError, TypeError
        For cells that do not fit the space of the frame.
    """
    types = frame_of(domain).collect_schema()

    def count(frame: pl.LazyFrame) -> list[Integers]:
        return counted(several, frame, types, limits)

    return _counting(domain, metric, several, kinds_of_frame(domain), count, made_by, kept)


def make_counts_of_groups(
    domain: Domain,
    metric: Metric,
    cells: Cells,
    kinds: Mapping[str, ColumnKind],
    groups: Callable[[Any, Sequence[Axis]], pl.DataFrame],
    made_by: str,
) -> Transformation:
    """The transformation from any data to the counts of cells. `groups` is what an adapter does: it
    takes the data, and returns what `Cells.counts` reads.

    Raises
    ------
    ValueError, TypeError
        For cells that do not fit the space of the data.
    """

    def count(data: Any) -> list[Integers]:
        return [cells.counts(groups(data, cells.axes))]

    together, (counts,) = _counting(domain, metric, [cells], kinds, count, made_by, frozenset())
    return together >> counts


def groups_of_vector(domain: Domain) -> Callable[[Any, Sequence[Axis]], pl.DataFrame]:
    """The function of `make_counts_of_groups` for the elements of a vector."""
    dtype = element_type(domain)
    return lambda values, axes: pl.Series(VALUES, values, dtype).to_frame().group_by(VALUES).len()


def _is_size_public(domain: Domain, metric: Metric) -> bool:
    """True if neighbours have the same number of records, or a margin says that it is public."""
    if metric in CHANGES:
        return True
    if isinstance(domain, VectorDomain):
        return domain.size is not None
    return isinstance(domain, LazyFrameDomain) and domain.get_margin([]).invariant == "lengths"


def _counting(
    domain: Domain,
    metric: Metric,
    several: Sequence[Cells],
    kinds: Mapping[str, ColumnKind],
    count: Callable[[Any], list[Integers]],
    made_by: str,
    kept: frozenset[str],
) -> tuple[Transformation, list[Transformation]]:
    """Make the transformation to the counts of several questions by a function that counts each row
    once for each, in one of the cells that its own values decide; and those from there, with the
    stability map of each (`docs/research/proofs.md`, "Counts").

    Raises `ValueError` for a metric that does not bound a number of records. The data must have the
    columns of the cells, and a public number of records where that of the cells is public.
    Otherwise a record more would fail instead of being counted.
    """
    for cells in several:
        cells.check_kinds(kinds)
        checked_size(cells.space.size, domain, metric)
    space = CountsOfSeveral(tuple(cells.space for cells in several))

    def function(data: Any) -> tuple[Integers, ...]:
        pairs = zip(space.spaces, count(data), strict=True)
        return tuple(measured.counts(counts) for measured, counts in pairs)

    together = make_user_transformation(
        domain,
        metric,
        space.domain,
        space.metric,
        guarded(function, f"{made_by}: counting"),
        guarded_map(counted_distance(domain, metric), made_by),
    )

    def one_of(number: int, cells: Cells) -> Transformation:
        own = space.spaces[number]

        def function(value: Any) -> Integers:
            if not isinstance(value, tuple) or len(value) != len(space.spaces):
                raise ContractError(f"the input must hold counts of {len(space.spaces)} questions.")
            return own.counts(value[number])

        def stability_map(d_in: Any) -> int | Distance:
            rows = Bounds.of(d_in)
            return rows.records if metric in CHANGES else rows.distance(cells, kinds, kept).stated

        return make_user_transformation(
            space.domain,
            space.metric,
            own.domain,
            own.metric,
            guarded(function, f"{made_by}: counting"),
            guarded_map(stability_map, made_by),
        )

    return together, [one_of(number, cells) for number, cells in enumerate(several)]


def counted_distance(domain: Domain, metric: Metric) -> Callable[[Any], Bounds]:
    """The map from a distance of `metric` to Bounds on the records that are added and removed, or
    changed; refuses every metric that is not known to bound a number of them.
    """
    # In order, no fewer records are inserted and deleted, or changed, than out of order.
    is_vector = isinstance(domain, VectorDomain)
    if metric in (symmetric_distance(), change_one_distance()) or (
        is_vector and metric in (insert_delete_distance(), hamming_distance())
    ):
        return lambda d_in: Bounds.of(as_distance(d_in))
    if metric == frame_distance(symmetric_distance()):
        return Bounds.of
    if identifier_of(metric) is not None:
        raise ValueError(
            f"input_metric={metric}: a person may own any number of records. Limit them first, with"
            " `query.truncate_per_group(k)` in a Context, or with a truncating plan in"
            " make_stable_lazyframe(..., MO='FrameDistance<SymmetricDistance>')."
        )
    raise ValueError(
        f"input_metric={metric}: must be symmetric_distance() or change_one_distance(), of a vector"
        " also insert_delete_distance() or hamming_distance(), and of a frame, whose order does not"
        " matter to counts, frame_distance(symmetric_distance())."
    )


def checked_size(size: int | None, domain: Domain, metric: Metric) -> int | None:
    """Return `size`, the number of records that a user states, checked against whether it is public
    in the space of the data; `ValueError`/`TypeError` where they disagree.
    """
    if size is not None:
        size = as_size(size)
    is_public = _is_size_public(domain, metric)
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
