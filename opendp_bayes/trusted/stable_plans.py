"""OpenDP's polars queries: the user's plan, read from the query and made a stable transformation,
then the counts of cells.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import polars as pl
from opendp.context import Query
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.metrics import frame_distance, symmetric_distance
from opendp.mod import (
    ChangeOneIdDistance,
    Domain,
    FrameDistance,
    Metric,
    OpenDPException,
    Transformation,
)
from opendp.transformations import make_stable_lazyframe

from opendp_bayes.mathematics.validation import check_cells
from opendp_bayes.trusted.boundary import silenced
from opendp_bayes.trusted.bounds import Bounds
from opendp_bayes.trusted.budget import identifier_of
from opendp_bayes.trusted.cells import Cells
from opendp_bayes.trusted.counting import in_one_pass, make_counts_of_cells
from opendp_bayes.trusted.kinds import kind_of
from opendp_bayes.trusted.opendp_internals import (
    belongs_to,
    frame_of,
    grouped_plan_of,
    parts_of,
    plan_of,
)
from opendp_bayes.trusted.plan_validation import check_plan, is_kept
from opendp_bayes.trusted.plan_values import named
from opendp_bayes.trusted.truncation import Truncation


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
    limits : Truncation
        Its limits on the rows of each identifier.
    """

    base: Query
    plan: pl.LazyFrame
    stable: Transformation
    limits: Truncation

    @property
    def output_space(self) -> tuple[Domain, Metric]:
        """The space of the frame that the plan makes."""
        return self.stable.output_space

    @property
    def person(self) -> str | None:
        """The column of identifiers, where the privacy unit has one that the plan leaves as it is;
        otherwise None.
        """
        identifier = identifier_of(self.stable.input_metric)
        if identifier is None or not identifier.meta.is_column():
            return None
        name = str(identifier.meta.output_name())
        kept = name in self.plan.collect_schema()
        return name if kept and self.is_kept(name) else None

    def counts(self, cells: Cells, made_by: str) -> Transformation:
        """Chain the plan and the counts of cells; messages name the constructor `made_by`."""
        kept = self._kept([cells])
        return self.stable >> make_counts_of_cells(
            *self.output_space, cells, self.limits, made_by, kept
        )

    def counts_of_several(
        self, cells: Sequence[Cells]
    ) -> tuple[Transformation, list[Transformation]]:
        """Count for several questions to one query: the transformation to the counts of all, and
        those from there to the counts of each.
        """
        kept = self._kept(cells)
        together, each = in_one_pass(*self.output_space, cells, self.limits, kept)
        return self.stable >> together, each

    def is_kept(self, column: str) -> bool:
        """True if a column is surely what it was where the plan limited its groups."""
        return is_kept(column, self.plan, frame_of(self.stable.input_domain))

    def _kept(self, several: Sequence[Cells]) -> frozenset[str]:
        """The columns by which cells are told apart that the plan leaves as they are."""
        return frozenset(filter(self.is_kept, {of.column for one in several for of in one.axes}))


def stable_plan_of(query: LazyFrameQuery) -> StablePlan:
    """The plan of a query; `ValueError` for one that looks at other rows or is not stable."""
    stable, base = stable_plan(query)
    plan = plan_of(query)
    return StablePlan(base, plan, stable, Truncation.of(plan))


def stable_plan(query: LazyFrameQuery) -> tuple[Transformation, Query]:
    """The user's plan as a stable transformation to `frame_distance(symmetric_distance())`, and the
    query with the budget and the Context that it belongs to.
    """
    plan = plan_of(query)
    base = belongs_to(query)
    _check_types(query, plan)
    domain, metric = cast(tuple[Domain, Metric], parts_of(base).chain)
    check_plan(plan, frame_of(domain), parts_of(base).d_in)
    output = "FrameDistance<SymmetricDistance>"
    inner = metric.inner_metric if isinstance(metric, FrameDistance) else metric
    try:
        if isinstance(inner, ChangeOneIdDistance):
            # OpenDP moves from change-one to symmetric identifiers only in a step of its own.
            identity = make_stable_lazyframe(domain, metric, frame_of(domain), MO=output)
            stable = identity >> make_stable_lazyframe(*identity.output_space, plan, MO=output)
        else:
            stable = make_stable_lazyframe(domain, metric, plan, MO=output)
        if stable.output_metric == frame_distance(symmetric_distance()):
            # Refuse an unlimited unit here, with a message that OpenDP does not wrap.
            Bounds.of(stable.map(parts_of(base).d_in))
    except OpenDPException as error:
        if identifier_of(metric) is not None:
            advice = (
                "with an identifier as the privacy unit, its plan must limit the rows of each, as"
                " in `context.query().truncate_per_group(3)`."
            )
        else:
            advice = (
                "the privacy unit must be contributions= or changes=, and every step of the plan"
                " one that OpenDP supports."
            )
        said = (error.message or "").partition('""If you would like')[0].strip()
        raise ValueError(
            f"query: {advice} OpenDP does not find this plan stable under {metric}: {said}"
        ) from None
    return stable, base


def check_number(query: LazyFrameQuery, columns: Sequence[Any]) -> None:
    """Raise `ValueError` for a type of `columns` with more categories than can be asked for, which
    OpenDP would take long to look at.
    """
    plan = plan_of(query)
    _check_types(query, plan)
    schema = plan.collect_schema()
    for column in columns:
        dtype = schema.get(column) if isinstance(column, str) else None
        if dtype is not None:
            check_cells("categories", len(kind_of(dtype).declared or ()))


def check_left_out(query: LazyFrameQuery, columns: Sequence[Any]) -> None:
    """Raise `ValueError` for a column that the Context left out of its frame, with the reason."""
    plan = plan_of(query)
    _check_types(query, plan)
    for name, reason in _left_out(query).items():
        if name in columns and name not in plan.collect_schema():
            raise ValueError(f"column={name!r}: {reason}")


def _left_out(query: LazyFrameQuery) -> Mapping[str, str]:
    """The columns that are not in the frame of the Context, and why."""
    return getattr(parts_of(belongs_to(query)).context, "left_out", {})


def _check_types(query: LazyFrameQuery, plan: pl.LazyFrame) -> None:
    """Raise `ValueError` for a plan that fails on every frame: OpenDP would find it stable, and the
    release would fail. Only the names and types of the columns take part.
    """
    try:
        plan.collect_schema()
    except pl.exceptions.PolarsError as error:
        # Not which columns there are: of a CSV file without a header, they are somebody's record.
        cause = str(error).partition("\n")[0].partition("; valid columns")[0]
        for name, reason in _left_out(query).items():
            if json.dumps(name, ensure_ascii=False) in cause:
                raise ValueError(f"query: its plan asks for {name!r}, which {reason}") from None
    else:
        return
    raise ValueError(
        f"query: its plan cannot be carried out on any data; polars says: {cause}. If it has"
        " `truncate_num_groups`, pass keep='first' or keep='last': without, the plan that OpenDP"
        " makes is not valid."
    )


def _key(key: Any) -> Any:
    """The name of a column in a plan, also of one that polars takes for a pattern; None for what is
    no column by name.
    """
    kind, body = named(key)
    if kind == "Selector":
        return "*" if body == "Wildcard" else body.get("Matches")
    return body if kind == "Column" else None


def ungrouped(query: LazyGroupByQuery) -> tuple[LazyFrameQuery, tuple[str, ...]]:
    """The query before `group_by` and the columns it groups by; `ValueError` unless these are
    columns by name.

    Polars does not give back the plan of a group-by, so it is read from the serialised one. The
    plan holds no data.
    """
    grouped = grouped_plan_of(query).agg([])
    try:
        with silenced():  # polars will drop the JSON form; the rule below notices if it changes
            node = json.loads(grouped.serialize(format="json"))["GroupBy"]
            plan = pl.LazyFrame.deserialize(io.StringIO(json.dumps(node["input"])), format="json")
            keys = [name for key in node["keys"] if (name := _key(key)) is not None]
    except Exception as error:  # noqa: BLE001 - polars promises no kind
        raise ValueError(
            "query: its plan cannot be read back from `group_by`; leave out infinite and undefined"
            f" literals and Python functions. ({error})"
        ) from None
    if not keys or len(keys) < len(node["keys"]) or len(set(keys)) < len(keys):
        raise ValueError(
            "query: must group by columns, by name and each once. Compute a column in the plan"
            " first: `query.with_columns(adult=pl.col('age') > 17).group_by('adult')`."
        )
    if plan.group_by(keys).agg([]).serialize() != grouped.serialize():
        raise ValueError(
            "query: its plan is not read back from `group_by` as it was, or groups with options;"
            " use `group_by(column, ...)` alone."
        )
    return LazyFrameQuery(plan, belongs_to(query)), tuple(keys)
