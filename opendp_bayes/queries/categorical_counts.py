"""Frames and vectors to counts: `make_categorical_counts`, the counts of a query on a frame, and
`counting` for data of any kind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import polars as pl
from opendp.extras.polars import LazyFrameQuery
from opendp.mod import Domain, LazyFrameDomain, Metric, Transformation, VectorDomain

from opendp_bayes.queries.cells_of import cells_of
from opendp_bayes.queries.question import Categories, Columns, Policy, Question
from opendp_bayes.release_format.data import Value
from opendp_bayes.trusted.boundary import require_features
from opendp_bayes.trusted.cells import Axis, Cells
from opendp_bayes.trusted.counting import (
    checked_size,
    counted_distance,
    groups_of_vector,
    make_counts_of_cells,
    make_counts_of_groups,
)
from opendp_bayes.trusted.kinds import VALUES, ColumnKind, kinds_of_frame, kinds_of_vector
from opendp_bayes.trusted.opendp_internals import to_then
from opendp_bayes.trusted.stable_plans import StablePlan, stable_plan_of

#: The name that messages give.
_MADE_BY = "make_categorical_counts"


def make_categorical_counts(
    input_domain: Domain,
    input_metric: Metric,
    *,
    column: Columns | None = None,
    by: Columns | None = None,
    categories: Categories | None = None,
    size: int | None = None,
    nulls: Policy | None = None,
    unknown: Policy | None = None,
    cells: Sequence[Sequence[Value]] | None = None,
) -> Transformation:
    """Count the records of each category of one column, or of each cell of a joint table; with `by`
    in each group of another column.

    The output is an int64 array of shape `(k,)` in a space whose identity includes categories, size
    and neighbour relation; of groups one group after the other, and where the number of records is
    public a last entry for the rows in no group. The stability map returns the number of records
    changed, or added and removed (`docs/research/proofs.md`, "Counts" and "Groups").

    Parameters
    ----------
    input_domain : Domain
        A `LazyFrameDomain`; or a `VectorDomain` of text, integers or booleans, each of which is a
        record.
    input_metric : Metric
        `symmetric_distance()`, `change_one_distance()`, or `frame_distance(symmetric_distance())`
        with Bounds; `make_stable_lazyframe` gives the latter after a plan, after truncation by
        identifier included. For a vector, `insert_delete_distance()` and `hamming_distance()` too.
    column : Columns, optional
        The column whose categories are counted, Enum, String, Categorical, integer or Boolean; or a
        list of them, whose joint table is. Left out for a vector.
    by : Columns, optional
        The column that says which group a record is in, or a list of them, whose groups are tuples.
        Records of no group are not counted, or where the number of records is public in a cell of
        their own.
    categories : Categories, optional
        The public labels, in the order of the counts, for a joint table or groups by column. Not
        needed for an Enum column, which carries its own, or a Boolean one.
    size : int, optional
        The number of records, where it is public: required under `change_one_distance()` (and
        wherever a margin says `invariant="lengths"`), refused otherwise. With it, neighbours are
        change-one; without it, add/remove. A `VectorDomain` with a size brings it along. Those of
        groups are private.
    nulls, unknown : Policy, optional
        Labels under which nulls, and values outside the categories, are counted, for all columns or
        by name: a category, or a new one, which is appended; or `DROP`, which leaves such records
        out where their number is private. Required where they may occur; in `by` such records are
        in no group unless a mapping names one.
    cells : Sequence[Sequence[str or int or bool]], optional
        For a joint table, the tuples of labels that are counted, by default all; the
        others are in the cell of the columns' labels for `unknown` then, which `DROP` leaves out.

    Raises
    ------
    ValueError, TypeError
        For a column, metric or policy that does not fit.
    """
    require_features("make_categorical_counts")
    is_vector = isinstance(input_domain, VectorDomain)
    if (column is None) != is_vector or (is_vector and by is not None):
        raise TypeError(
            f"column={column!r}, by={by!r}: must be left out, because a vector has no columns."
            if is_vector
            else "column=None: must be the name of a column of the frame, or a list of names."
        )
    question = Question.of(
        VALUES if column is None else column,
        by=by,
        categories=categories,
        nulls=nulls,
        unknown=unknown,
        size=size,
        cells=cells,
    )
    if is_vector:
        counted_distance(input_domain, input_metric)
        known = cast(VectorDomain, input_domain).size
        if known is not None and size not in (None, known):
            raise ValueError(f"size={size!r}: must be {known}, that of the input domain.")
        question = replace(question, size=size if known is None else known)
        kinds, groups = kinds_of_vector(input_domain), groups_of_vector(input_domain)
        return counting(input_domain, input_metric, question, kinds, groups, _MADE_BY)
    return counts_in_frame(input_domain, input_metric, question)


def counts_in_frame(domain: Domain, metric: Metric, question: Question) -> Transformation:
    """The transformation from a frame to the counts that a question asks for."""
    cells = [cells_in_frame(domain, metric, question)]
    together, (counts,) = make_counts_of_cells(domain, metric, cells, (), _MADE_BY)
    return together >> counts


def cells_in_frame(domain: Domain, metric: Metric, question: Question) -> Cells:
    """The cells in which a question counts the records of a frame.

    Raises
    ------
    ValueError, TypeError
        For a question that does not fit the space.
    """
    if not isinstance(domain, LazyFrameDomain):
        raise TypeError(
            f"input_domain={domain}: must be a LazyFrameDomain, as `dp.domain_of(frame,"
            " infer=True)` makes."
        )
    counted_distance(domain, metric)
    size = checked_size(question.size, domain, metric)
    return cells_of(question, kinds_of_frame(domain), size)


def counting(
    domain: Domain,
    metric: Metric,
    question: Question,
    kinds: Mapping[str, ColumnKind],
    groups: Callable[[Any, Sequence[Axis]], pl.DataFrame],
    made_by: str,
) -> Transformation:
    """Make the transformation from data of your own to the counts that a question asks for, guarded
    and with its stability map (`docs/research/proofs.md`, "Counts").

    Parameters
    ----------
    domain : Domain
        The domain of the data, whatever holds them.
    metric : Metric
        One that bounds a number of records: `symmetric_distance()`, under which that number is
        private, or `change_one_distance()`, under which it is public.
    question : Question
        As the user put it.
    kinds : Mapping[str, ColumnKind]
        By name, what is known of each column.
    groups : Callable[[Any, Sequence[Axis]], DataFrame]
        From the data and the columns to group by, each with its `column` and the `values` that are
        told apart, to a polars frame with a row for every combination that occurs: the values in
        the order of the columns, of any type that can be cast to theirs, and last the number of
        records. A record belongs to the combination of its own values.
    made_by : str
        The name that messages give.

    Raises
    ------
    ValueError, TypeError
        For a question or a metric that does not fit.
    """
    size = checked_size(question.size, domain, metric)
    cells = cells_of(question, kinds, size)
    return make_counts_of_groups(domain, metric, cells, kinds, groups, made_by)


then_categorical_counts = to_then(make_categorical_counts)


@dataclass(frozen=True, eq=False)
class CountsOfFrame:
    """The counts that a question asks for, of a query on a polars frame.

    Attributes
    ----------
    gate : StablePlan
        The plan of the query.
    cells : Cells
        In which the records of its frame are counted.
    transformation : Transformation
        The plan and the counts chained, from the frame of the Context.
    """

    gate: StablePlan
    cells: Cells
    transformation: Transformation


def counts_of_frame(query: LazyFrameQuery, question: Question) -> CountsOfFrame:
    """Turn the plan of a query on a polars frame into counts.

    Raises
    ------
    ValueError, TypeError
        For a plan that is not stable or a question that does not fit it.
    """
    variables = (*question.variables, *question.groups)
    listed_by_type = [variable.column for variable in variables if variable.categories is None]
    gate = stable_plan_of(query, [*question.columns, *question.by], listed_by_type)
    cells = cells_in_frame(*gate.stable.output_space, question)
    together, (counts,) = gate.counts([cells], _MADE_BY)
    return CountsOfFrame(gate, cells, together >> counts)
