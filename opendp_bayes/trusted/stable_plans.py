"""OpenDP's polars queries: the user's plan, read from the query and made a stable transformation,
then the counts of cells.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import polars as pl
from opendp.context import Query
from opendp.extras.polars import LazyFrameQuery
from opendp.metrics import frame_distance, symmetric_distance
from opendp.mod import ChangeOneIdDistance, Domain, Metric, OpenDPException, Transformation
from opendp.transformations import make_stable_lazyframe

from opendp_bayes.mathematics.validation import check_cells
from opendp_bayes.trusted.bounds import Bounds
from opendp_bayes.trusted.budget import identifier_of, inner_metric
from opendp_bayes.trusted.cells import Cells
from opendp_bayes.trusted.counting import make_counts_of_cells
from opendp_bayes.trusted.kinds import kind_of
from opendp_bayes.trusted.opendp_internals import belongs_to, frame_of, parts_of, plan_of
from opendp_bayes.trusted.plan_validation import check_plan
from opendp_bayes.trusted.truncation import RowLimit


@dataclass(frozen=True, eq=False)
class StablePlan:
    """The plan of a query, which passed the gate: it looks at one row at a time, and is stable.

    Attributes
    ----------
    base : Query
        The query that the frame came from, with the budget and the Context.
    plan : LazyFrame
        The user's plan.
    stable : Transformation
        The same as a stable transformation.
    limits : tuple[RowLimit, ...]
        Its limits on the rows of each identifier, the first one first.
    computed : frozenset[str]
        The columns that it computes anew.
    """

    base: Query
    plan: pl.LazyFrame
    stable: Transformation
    limits: tuple[RowLimit, ...]
    computed: frozenset[str]

    def counts(
        self, several: Sequence[Cells], made_by: str = "survey"
    ) -> tuple[Transformation, list[Transformation]]:
        """Count for several questions to one query: the transformation to the counts of all, and
        those from there to the counts of each; messages name the constructor `made_by`.
        """
        columns = {axis.column for cells in several for axis in cells.axes}
        together, single = make_counts_of_cells(
            *self.stable.output_space,
            several,
            self.limits,
            made_by,
            frozenset(columns - self.computed),
        )
        return self.stable >> together, single


def stable_plan_of(
    query: LazyFrameQuery, columns: Sequence[Any] = (), listed_by_type: Sequence[Any] = ()
) -> StablePlan:
    """The plan of a query, as a stable transformation to `frame_distance(symmetric_distance())`.

    Parameters
    ----------
    query : LazyFrameQuery
        The query with the plan.
    columns : Sequence[Any], optional
        Columns that the Context must not have left out of its frame.
    listed_by_type : Sequence[Any], optional
        Columns whose type may have no more categories than can be asked for, at which OpenDP would
        look for long.

    Raises
    ------
    ValueError
        For a plan that looks at other rows, is not stable, or fails on every frame, and for these
        columns.
    """
    plan = plan_of(query)
    base = belongs_to(query)
    _check_columns(query, columns, listed_by_type)
    domain, metric = cast(tuple[Domain, Metric], parts_of(base).chain)
    rows = check_plan(plan, frame_of(domain), parts_of(base).d_in)
    output = "FrameDistance<SymmetricDistance>"
    try:
        if isinstance(inner_metric(metric), ChangeOneIdDistance):
            # OpenDP moves from change-one to symmetric identifiers only in a step of its own.
            identity = make_stable_lazyframe(domain, metric, frame_of(domain), MO=output)
            stable = identity >> make_stable_lazyframe(*identity.output_space, plan, MO=output)
        else:
            stable = make_stable_lazyframe(domain, metric, plan, MO=output)
        if stable.output_metric == frame_distance(symmetric_distance()):
            # Refuse an unlimited unit here, with a message that OpenDP does not wrap.
            Bounds.of(stable.map(parts_of(base).d_in))
    except OpenDPException as error:
        advice = (
            "the privacy unit must be contributions= or changes=, and every step of the plan one"
            " that OpenDP supports."
            if identifier_of(metric) is None
            else "with an identifier as the privacy unit, its plan must limit the rows of each, as"
            " in `context.query().truncate_per_group(3)`."
        )
        reason = (error.message or "").partition('""If you would like')[0].strip()
        raise ValueError(
            f"query: {advice} OpenDP does not find this plan stable under {metric}: {reason}"
        ) from None
    return StablePlan(base, plan, stable, rows.limits, rows.computed)


def _check_columns(
    query: LazyFrameQuery, columns: Sequence[Any], listed_by_type: Sequence[Any]
) -> None:
    """Raise `ValueError` for a plan that fails on every frame: OpenDP would find it stable, and the
    release would fail. Only the names and types of the columns take part.
    """
    # Which columns are not in the frame of the Context, and why.
    left_out = getattr(parts_of(belongs_to(query)).context, "left_out", {})
    schema, problem = None, ""
    try:
        schema = plan_of(query).collect_schema()
    except pl.exceptions.PolarsError as error:
        # Not which columns there are: of a CSV file without a header, they are somebody's record.
        problem = str(error).partition("\n")[0].partition("; valid columns")[0]
    for dropped, reason in left_out.items():
        if schema is None and json.dumps(dropped, ensure_ascii=False) in problem:
            raise ValueError(f"query: its plan asks for {dropped!r}, which {reason}")
        if schema is not None and dropped in columns and dropped not in schema:
            raise ValueError(f"column={dropped!r}: {reason}")
    if schema is None:
        raise ValueError(
            f"query: its plan cannot be carried out on any data; polars says: {problem}. Instead of"
            " `truncate_num_groups`, limit the rows by `truncate_per_group`."
        )
    for column in listed_by_type:
        if isinstance(column, str) and column in schema:
            check_cells("categories", len(kind_of(schema[column]).declared or ()))
