"""TODO."""

from dataclasses import dataclass, replace

import polars as pl
from opendp.context import Query
from opendp.extras.polars import LazyFrameQuery, LazyGroupByQuery
from opendp.mod import (
    Transformation,
)

from opendp_bayes.mathematics.telling import told
from opendp_bayes.questions.categorical_counts import cells_in_frame
from opendp_bayes.questions.question import Question
from opendp_bayes.trusted.cells import Cells
from opendp_bayes.trusted.counting import make_counts_of_cells
from opendp_bayes.trusted.kept_rows import RowLimits
from opendp_bayes.trusted.stable_plans import _check_number, stable_plan, ungrouped


@dataclass(frozen=True, eq=False)
class CountsOfFrame:
    """The counts that a question asks for, of a query on a polars frame.

    Attributes
    ----------
    base : the query that the frame came from, with the budget and the Context.
    plan : the user's plan.
    stable : the same as a stable transformation.
    limits : its limits on the rows of each identifier.
    cells : in which the records of its frame are counted.
    made_by : the constructor that messages name.
    """

    base: Query
    plan: pl.LazyFrame
    stable: Transformation
    limits: RowLimits
    cells: Cells
    made_by: str

    @property
    def transformation(self) -> Transformation:
        """Chain the plan and the counts, from the frame of the Context."""
        return self.stable >> make_counts_of_cells(
            *self.stable.output_space, self.cells, self.limits, self.made_by
        )


def counts_of_frame(query: LazyFrameQuery | LazyGroupByQuery, question: Question) -> CountsOfFrame:
    """Turn the plan of a query on a polars frame into counts.

    Raises `ValueError`/`TypeError` for a plan that is not stable or a question that does not fit
    it.
    """
    if isinstance(query, LazyGroupByQuery):
        query, by = ungrouped(query)
        question = replace(question, by=by)
    if question.keys is not None and not question.by:
        raise ValueError(
            f"keys={told(question.keys)}: belongs to a query per group; group it by a column, as in"
            " `query.group_by('region')`."
        )
    _check_number(query, question)
    made_by = "make_grouped_counts" if question.by else "make_categorical_counts"
    stable, base = stable_plan(query)
    plan: pl.LazyFrame = object.__getattribute__(query, "polars_plan")
    cells = cells_in_frame(*stable.output_space, question)
    return CountsOfFrame(base, plan, stable, RowLimits.of(plan), cells, made_by)
