"""Contexts over frames of any engine, and their queries."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from opendp.context import Query
from opendp.mod import Domain, Measure, Metric, Transformation

from opendp_bayes import Ledger
from opendp_bayes.extend import as_size, told
from opendp_bayes.extend.framework import CheckedContext, Question, require_features
from opendp_bayes.trusted.opendp_internals import parts_of, wrap_answer
from opendp_bayes_engines.engines import held
from opendp_bayes_engines.space import (
    FrameSpace,
    identifier_of,
    is_one_person,
    make_counts,
    make_counts_of_values,
    make_step,
)
from opendp_bayes_engines.steps import Filter, Schema, Step, Truncate, WithColumns, flat


class EngineQuery(Query):
    """A query on a frame of any engine: steps, each a new query, and then `opendp_bayes.posterior`.

    Each step is checked when it is made, and runs when something is released. `schema` has what is
    known of each column, `kept` says which rows of each identifier are kept, and `by` names the
    columns of its groups.
    """

    def __init__(
        self,
        base: Query,
        schema: Schema,
        identifier: str | None,
        plan: Transformation | None = None,
        by: tuple[str, ...] = (),
        kept: str = "",
        selected: bool = False,
        person: str | None = None,
    ) -> None:
        parts = parts_of(base)
        super().__init__(*(parts if plan is None else parts._replace(chain=plan)))
        self.schema, self.kept = schema, kept
        self._base, self._identifier = base, identifier
        self._plan, self.by, self._selected = plan, by, selected
        self._person = person  # the identifier of limited rows, where no step changed it

    def filter(self, *predicates: Any, **constraints: Any) -> "EngineQuery":
        """Keep the rows that fulfil every predicate; `filter(region="north")` is short for
        `filter(nw.col("region") == "north")`.

        Under `unit_of(changes=)` the number of rows is private afterwards, and a change moves two.
        Raises `ValueError`/`TypeError` for an expression that is not accepted.
        """
        return self._then(Filter.build(self.schema, predicates, constraints))

    def with_columns(self, *exprs: Any, **named_exprs: Any) -> "EngineQuery":
        """Add columns computed row by row, or replace columns.

        Raises `ValueError`/`TypeError` for an expression that is not accepted.
        """
        return self._then(WithColumns.build(self.schema, exprs, named_exprs, only=False))

    def select(self, *exprs: Any, **named_exprs: Any) -> "EngineQuery":
        """Keep the columns named and computed, and no others.

        Raises `ValueError`/`TypeError` for an expression that is not accepted.
        """
        return self._then(WithColumns.build(self.schema, exprs, named_exprs, only=True))

    def truncate_per_group(self, m: int) -> "EngineQuery":
        """Keep at most `m` rows of each identifier: the first by all columns, in the order of their
        names, nulls first, whatever order the engine reads them in.

        Raises `ValueError`/`TypeError` for an `m` that is no whole number of at least 1, or a
        privacy unit without identifier.
        """
        if self._identifier is None:
            raise ValueError(
                "truncate_per_group: needs a privacy unit with an identifier, as in"
                " `dp.unit_of(contributions=1, identifier='person')`, and limits it once."
            )
        step = Truncate.build(self.schema, self._identifier, as_size(m, "m"))
        limited = self._then(step)
        limited._person = self._identifier
        limited._identifier, limited.kept = None, step.rule(selected=self._selected)
        return limited

    def group_by(self, *by: str) -> "EngineQuery":
        """Ask for a posterior per group of the column named; nothing but the question may follow.

        Raises `ValueError`/`TypeError` for anything but names of columns.
        """
        names = flat(by)
        if not names or not all(isinstance(name, str) for name in names):
            raise TypeError(
                f"by={told(names)}: must be names of columns; compute them in the plan first."
            )
        self._check_ungrouped()
        return EngineQuery(
            self._base, self.schema, self._identifier, self._plan, tuple(names), self.kept
        )

    def compositor(self, *args: Any, **kwargs: Any) -> Query:
        """Return a query whose `.release()` is another Context, over the frame that the plan makes,
        which divides this query's budget.

        Parameters
        ----------
        args, kwargs : handed to OpenDP's `Query.compositor`: `split_evenly_over`, a number of
            queries, or `split_by_weights`, a weight for each; `d_out`, the loss to divide;
            `output_measure`, the measure of the new Context; and `alpha`, the part of δ for its
            conversion.

        Raises `ValueError` after `group_by`, which must be the last step.
        """
        self._check_ungrouped()
        nested = Query(*parts_of(self)).compositor(*args, **kwargs)
        wrap_answer(
            nested, lambda made: EngineContext.over(made, schema=self.schema, kept=self.kept)
        )
        return nested

    def counts_of(self, question: Question) -> tuple[Transformation, Query]:
        """Make the transformation to the counts that answer a question, and return it with the
        query that has the budget. `opendp_bayes.posterior` goes through this door.

        Parameters
        ----------
        question : the question as the user put it.

        Raises `ValueError`/`TypeError` for a question that does not fit the frame.
        """
        counts = make_counts(*self._space, question)
        return (counts if self._plan is None else self._plan >> counts), self._base

    def counts_of_values(
        self, column: Any, *, always: Sequence[Any], nulls: Any
    ) -> tuple[Transformation, Query]:
        """Make the transformation to the counts of all values of a column, and return it with the
        query that has the budget. `opendp_bayes.posterior` with `categories="discover"` goes
        through this door.

        People are counted where the privacy unit is one identifier, which the plan leaves as it is
        after it has limited the rows of each; records otherwise.

        Parameters
        ----------
        column : its name.
        always : labels that are shown whatever their count.
        nulls : the label under which nulls are counted, or `DROP`.

        Raises `ValueError`/`TypeError` for a column or arguments that do not fit the frame.
        """
        self._check_ungrouped()
        _, metric = self._base_space
        person = self._person if is_one_person(metric, parts_of(self._base).d_in) else None
        counts = make_counts_of_values(
            *self._space,
            column,
            always=always,
            nulls=nulls,
            person=person,
            plan=None if person is None else self._plan,
        )
        of_records = self._plan is not None and person is None
        return (self._plan >> counts if of_records else counts), self._base

    @property
    def _space(self) -> tuple[Domain, Metric]:
        return self._base_space if self._plan is None else self._plan.output_space

    @property
    def _base_space(self) -> tuple[Domain, Metric]:
        return parts_of(self._base).chain

    def _then(self, step: Step) -> "EngineQuery":
        self._check_ungrouped()
        made = make_step(*self._space, step)
        plan = made if self._plan is None else self._plan >> made
        selected = self._selected or (isinstance(step, WithColumns) and step.only)
        return EngineQuery(
            self._base,
            step.schema,
            self._identifier,
            plan,
            kept=self.kept,
            selected=selected,
            person=self._person if self._person in step.kept else None,
        )

    def _check_ungrouped(self) -> None:
        if self.by:
            raise ValueError("query: group_by must be the last step.")


class EngineContext(CheckedContext):
    """A Context over a frame of any engine; `query()` gives an `EngineQuery`. `kept` says which
    rows of each identifier its frame has, if it was made by a query that limited them.
    """

    schema: Schema
    kept: str

    @property
    def identifier(self) -> str | None:
        """The column that identifies the privacy unit; None where it is a number of rows."""
        space: Any = self.query_space or self.accountant.input_space
        return identifier_of(space[1], self.schema)

    def query(self, **kwargs: Any) -> EngineQuery:
        """Return a query with the next share of the budget, or with the loss given.

        Parameters
        ----------
        kwargs : the loss of this query, by `epsilon`, `delta` and `rho`, where the Context does not
            divide its budget itself; otherwise none.

        Raises `ValueError`/`TypeError` for a loss that buys nothing, and where the budget is spent.
        """
        base: Any = super().query(**kwargs)
        return EngineQuery(base, self.schema, self.identifier, kept=self.kept)


def context(
    data: Any,
    *,
    privacy_unit: tuple[Metric, Any],
    privacy_loss: tuple[Measure, Any],
    split_evenly_over: int | None = None,
    split_by_weights: Sequence[float] | None = None,
    ledger: Ledger | None = None,
) -> EngineContext:
    """Open an OpenDP Context over a frame of PySpark, DuckDB, Dask, Ibis, SQLFrame or polars.

    Parameters
    ----------
    data : a frame. The data are its rows: what was computed before it is not checked,
        so that each of its rows must belong to the privacy unit by your word.
    privacy_unit : `dp.unit_of(contributions=)` or `dp.unit_of(changes=)`, with `identifier=`, the
        name of a column, where people own several rows.
    privacy_loss : the budget: `dp.loss_of(epsilon=)` or `dp.loss_of(rho=)`, with or without
        `delta=`.
    split_evenly_over : the number of queries that share the budget equally.
    split_by_weights : a weight for each query, in their order. At most one of the two is given;
        without either, each query says what it spends, `context.query(epsilon=0.5)`.
    ledger : an `opendp_bayes.Ledger`, in which every release of the Context is entered before it
        is handed out, and which refuses what it has no room for.

    Raises `ValueError`/`TypeError` for anything else, as `opendp_bayes.context` does. Reads no
    rows.
    """
    require_features("engines.context")
    arguments = {
        "privacy_unit": privacy_unit,
        "privacy_loss": privacy_loss,
        "split_evenly_over": split_evenly_over,
        "split_by_weights": split_by_weights,
    }
    EngineContext.checked(arguments, ledger)
    frame, schema = held(data)
    return EngineContext.opened(
        frame,
        FrameSpace(schema).domain,
        schema,
        arguments,
        check=partial(identifier_of, columns=schema),
        ledger=ledger,
        schema=schema,
        kept="",
    )
