"""Counts of a query on a polars frame: its plan, and the cells that a question asks for."""

from dataclasses import dataclass

from opendp.extras.polars import LazyFrameQuery
from opendp.mod import Transformation

from opendp_bayes.queries.categorical_counts import cells_in_frame
from opendp_bayes.queries.question import Question
from opendp_bayes.trusted.cells import Cells
from opendp_bayes.trusted.stable_plans import StablePlan, check_columns, stable_plan_of


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
    of_groups = question.groups if question.combinations is None else ()
    every = (*question.variables, *of_groups)
    listed_by_type = [variable.column for variable in every if variable.categories is None]
    check_columns(query, [*question.columns, *question.by], listed_by_type)
    made_by = "make_grouped_counts" if question.by else "make_categorical_counts"
    gate = stable_plan_of(query)
    cells = cells_in_frame(*gate.output_space, question)
    return CountsOfFrame(gate, cells, gate.counts(cells, made_by))
