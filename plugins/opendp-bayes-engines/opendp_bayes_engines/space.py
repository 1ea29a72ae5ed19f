"""The OpenDP domain of frames, whichever engine they are in, and the transformations of a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from opendp.domains import user_domain
from opendp.metrics import change_one_distance, symmetric_distance
from opendp.mod import (
    ChangeOneIdDistance,
    Domain,
    Metric,
    SymmetricIdDistance,
    Transformation,
)
from opendp.transformations import make_user_transformation

from opendp_bayes.extend import as_distance
from opendp_bayes.extend.framework import (
    Axis,
    Keys,
    Question,
    counting,
    counting_values,
    descriptor_of,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes_engines.frames import Held, Lazy
from opendp_bayes_engines.kinds import Kind
from opendp_bayes_engines.on_dask import Partitioned
from opendp_bayes_engines.steps import Filter, Schema, Step, Truncate
from opendp_bayes_engines.values import Batches, check_label

#: What an identifier may be: its values must be the same everywhere when they are equal.
_IDENTIFIERS = (Kind.STRING, Kind.INTEGER, Kind.WIDE, Kind.DATE)


@dataclass(frozen=True)
class FrameSpace:
    """Frames with given columns. `columns` has the public knowledge of each, in order."""

    columns: Schema

    @property
    def identifier(self) -> str:
        return f"EngineFrame(columns={self.columns!r})"

    @property
    def domain(self) -> Domain:
        return user_domain(self.identifier, is_member, self)


def is_member(value: Any) -> bool:
    """True if a value is a frame as a Context holds it."""
    return isinstance(value, (Lazy, Partitioned))


def identifier_of(metric: Metric, columns: Schema) -> str | None:
    """The column that identifies the privacy unit, None where it is a number of rows.

    Raises `ValueError` for a metric that no plan is proved for, or a column that cannot identify.
    """
    if metric in (symmetric_distance(), change_one_distance()):
        return None
    if not isinstance(metric, (SymmetricIdDistance, ChangeOneIdDistance)):
        raise ValueError(
            f"privacy_unit={metric}: must be unit_of(contributions=) or unit_of(changes=), each a"
            " number, with identifier= where people own several rows."
        )
    names = metric.identifier.meta.root_names()
    if len(names) != 1 or not metric.identifier.meta.is_column():
        raise ValueError(
            f"privacy_unit={metric}: the identifier must be the name of a column; compute it in the"
            " frame before."
        )
    (name,) = names
    if columns[name].kind not in _IDENTIFIERS:
        raise ValueError(
            f"privacy_unit={metric}: column {name!r} has type {columns[name].dtype}; an identifier"
            " must be a string, an integer or a date."
        )
    return name


def make_step(domain: Domain, metric: Metric, step: Step) -> Transformation:
    """The transformation by one step of a plan (`docs/research/proofs.md`, "Plans of other
    engines").

    Raises `ValueError` for a step that the metric does not allow.
    """
    require_features("engines")
    space = descriptor_of(domain, FrameSpace, "engines.context")
    name = identifier_of(metric, space.columns)
    output, per_unit = metric, 1
    if isinstance(step, Truncate):
        if name != step.identifier:
            raise ValueError("truncate_per_group: needs a privacy unit with an identifier.")
        output = symmetric_distance()
        per_unit = step.rows * (2 if isinstance(metric, ChangeOneIdDistance) else 1)
    elif name is not None and name not in step.kept:
        raise ValueError(
            f"query: a step before truncate_per_group must leave the identifier {name!r} as it is."
        )
    elif metric == change_one_distance() and isinstance(step, Filter):
        # A row that changes may leave, enter, or both: the number of rows is private from here on.
        output, per_unit = symmetric_distance(), 2

    return make_user_transformation(
        domain,
        metric,
        FrameSpace(step.schema).domain,
        output,
        guarded(lambda frame: frame.then(step), "the plan"),
        guarded_map(lambda d_in: per_unit * as_distance(d_in), "the plan"),
    )


def make_counts(domain: Domain, metric: Metric, question: Question) -> Transformation:
    """The transformation from a frame to the counts that a question asks for.

    Raises `ValueError`/`TypeError` for a question that does not fit the frame.
    """
    columns = _limited_columns(domain, metric)
    kinds = {name: column.known for name, column in columns.items()}

    def groups(frame: Held, axes: Sequence[Axis]) -> pl.DataFrame:
        return frame.groups(axes, columns)

    return counting(domain, metric, question, kinds, groups, "engines: counting")


def make_counts_of_values(
    domain: Domain,
    metric: Metric,
    column: Any,
    *,
    always: Sequence[Any],
    nulls: Any,
    person: str | None,
    plan: Transformation | None,
) -> Transformation:
    """The transformation to the counts of all values of a column: from a frame, or with a `person`
    to count instead of records from what `plan` begins with.

    Raises `ValueError`/`TypeError` for a column or arguments that do not fit the frame.
    """
    columns = _limited_columns(domain, metric)
    kinds = {name: of.known for name, of in columns.items()}

    def batches(frame: Held, keys: Keys) -> Batches:
        return frame.values(keys, columns)

    counts = counting_values(
        domain,
        metric,
        column,
        kinds,
        batches,
        "engines: counting",
        always=always,
        nulls=nulls,
        person=person,
        plan=plan,
    )
    check_label(columns[column], nulls)
    return counts


def _limited_columns(domain: Domain, metric: Metric) -> Schema:
    """The columns of a frame of which a unit has a limited number of rows; `ValueError` for one
    that has any number.
    """
    require_features("engines")
    columns = descriptor_of(domain, FrameSpace, "engines.context").columns
    if identifier_of(metric, columns) is not None:
        raise ValueError(
            f"privacy_unit={metric}: a person may own any number of rows; limit them first, with"
            " `query.truncate_per_group(m)`."
        )
    return columns


def is_one_person(metric: Metric, d_in: Any) -> bool:
    """True if neighbours differ by all rows of one identifier, which come or go."""
    return isinstance(metric, SymmetricIdDistance) and bool(d_in == 1)
