"""Contexts over tables of any engine, and their queries."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from opendp.context import Query
from opendp.domains import user_domain
from opendp.metrics import change_one_distance, symmetric_distance
from opendp.mod import (
    ChangeOneIdDistance,
    Domain,
    Measure,
    Metric,
    SymmetricIdDistance,
    Transformation,
)
from opendp.transformations import make_user_transformation

from opendp_bayes import Ledger
from opendp_bayes.extend import as_distance, as_size
from opendp_bayes.extend.framework import (
    CheckedContext,
    Question,
    counting,
    counting_values,
    guarded,
    guarded_map,
    require_features,
)
from opendp_bayes_engines.kinds import Schema, check_columns
from opendp_bayes_engines.opening import table_of
from opendp_bayes_engines.steps import Condition, Limit, Step
from opendp_bayes_engines.tables import Rows


@dataclass(frozen=True)
class EngineQuery:
    """A query on a table of any engine: steps, each a new query, and then
    `opendp_bayes.posterior`. Nothing is read before a release.
    """

    base: Query
    domain: Domain
    metric: Metric
    d_in: Any
    schema: Schema
    steps: tuple[Step, ...] = ()

    def filter(self, *conditions: tuple[str, str, Any]) -> "EngineQuery":
        """Keep the rows that fulfil every condition.

        Parameters
        ----------
        conditions : tuples of str, str and a constant
            `(column, op, constant)`, as in `("age", ">=", 18)`. `op` is `"=="`, `"!="`, `"<"`,
            `"<="`, `">"` or `">="`, with a constant of the column's type; `"is_in"`, with a list of
            them; or `"is_null"`, with True or False. A null fulfils none of the others.

        Raises
        ------
        ValueError or TypeError
            For a condition that does not fit its column.

        Notes
        -----
        Under `unit_of(changes=)` the number of rows is private afterwards, and a change moves two.
        """
        steps = tuple(Condition.checked(condition, self.schema) for condition in conditions)
        return replace(self, steps=(*self.steps, *steps))

    def truncate_per_group(self, m: int) -> "EngineQuery":
        """Keep at most `m` rows of each identifier, drawn at random in every release.

        Parameters
        ----------
        m : int
            The largest number of rows that an identifier keeps.

        Raises
        ------
        ValueError or TypeError
            For an `m` that is no whole number of at least 1, for a privacy unit without identifier,
            and the second time.
        """
        identifier = identifier_of(self.metric, self.schema)
        if identifier is None or self._limit is not None:
            raise ValueError(
                "truncate_per_group: needs a privacy unit with an identifier, as in"
                " `dp.unit_of(contributions=1, identifier='person')`, and limits it once."
            )
        return replace(self, steps=(*self.steps, Limit(identifier, as_size(m, "m"))))

    def counts_of(self, question: Question) -> tuple[Transformation, Query]:
        """Make the transformation to the counts that answer a question, and return it with the
        query that has the budget. `opendp_bayes.posterior` goes through this door.

        Parameters
        ----------
        question : Question
            As the user put it.

        Raises
        ------
        ValueError or TypeError
            For a question that does not fit the table.
        """
        check_columns(self.schema, [*question.columns, *question.by], counted=True)
        plan = self._plan()
        kinds = {label: column.kind for label, column in self.schema.items()}
        counts = counting(
            *plan.output_space, question, kinds, Rows.combinations, "engines: counting"
        )
        return plan >> counts, self.base

    def counts_of_values(
        self, column: Any, *, always: Sequence[Any], nulls: Any
    ) -> tuple[Transformation, Query]:
        """Make the transformation to the counts of all values of a column, and return it with the
        query that has the budget. `opendp_bayes.discover` goes through this door.

        Parameters
        ----------
        column : str
            Its name.
        always : a list of labels
            They are shown whatever their count.
        nulls : a label, or `DROP`
            Nulls are counted under it, or left out.

        Raises
        ------
        ValueError or TypeError
            For a column or arguments that do not fit the table.

        Notes
        -----
        People are counted where the privacy unit is one identifier whose rows are limited; records
        otherwise.
        """
        check_columns(self.schema, [column], counted=True)
        plan, person = self._plan(), None
        if isinstance(self.metric, SymmetricIdDistance) and self.d_in == 1 and self._limit:
            person = self._limit.column
        kinds = {label: described.kind for label, described in self.schema.items()}
        counts = counting_values(
            *plan.output_space,
            column,
            kinds,
            Rows.values,
            "engines: counting",
            always=always,
            nulls=nulls,
            person=person,
            plan=None if person is None else plan,
        )
        return (counts if person else plan >> counts), self.base

    def __getattr__(self, name: str) -> Any:
        """Say where steps and queries of polars and OpenDP are found, which an engine has not."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{name}: is no step of an engine's query, which has `filter((column, op, constant))`"
            " and `truncate_per_group(m)`, and goes to opendp_bayes.posterior and"
            " opendp_bayes.discover. For OpenDP's own queries, such as `select(dp.len())`, and for"
            " other steps, open ob.context(opendp_bayes_engines.columns(table, names), ...)."
        )

    @property
    def _limit(self) -> Limit | None:
        return next((step for step in self.steps if isinstance(step, Limit)), None)

    def _plan(self) -> Transformation:
        """The transformation by the steps (`docs/research/proofs.md`, "Plans of other engines").

        Raises `ValueError` where a unit has any number of rows.
        """
        require_features("engines")
        metric, per_unit, steps = self.metric, 1, self.steps
        if self._limit is not None:
            per_unit = self._limit.rows * (2 if isinstance(metric, ChangeOneIdDistance) else 1)
            metric = symmetric_distance()
        elif identifier_of(metric, self.schema) is not None:
            raise ValueError(
                f"privacy_unit={metric}: a person may own any number of rows; limit them first,"
                " with `query.truncate_per_group(m)`."
            )
        elif steps and metric == change_one_distance():
            # A row that changes may leave, enter, or both: the number of rows is private then.
            metric, per_unit = symmetric_distance(), 2
        return make_user_transformation(
            self.domain,
            self.metric,
            self.domain,
            metric,
            guarded(lambda rows: rows.then(steps), "the plan"),
            guarded_map(lambda d_in: per_unit * as_distance(d_in), "the plan"),
        )


def identifier_of(metric: Metric, schema: Schema) -> str | None:
    """The column that identifies the privacy unit, None where it is a number of rows.

    Raises
    ------
    ValueError, TypeError
        For a metric that no plan is proved for, or a column that cannot identify.
    """
    if metric in (symmetric_distance(), change_one_distance()):
        return None
    if not isinstance(metric, (SymmetricIdDistance, ChangeOneIdDistance)):
        raise ValueError(
            f"privacy_unit={metric}: must be unit_of(contributions=) or unit_of(changes=), each a"
            " number, with identifier= where people own several rows."
        )
    identifier: str = metric.identifier.meta.output_name()
    check_columns(schema, [identifier], counted=True)
    return identifier


class EngineContext(CheckedContext):
    """A Context over a table of any engine; `query()` gives an `EngineQuery`."""

    schema: Schema

    def query(self, **kwargs: Any) -> EngineQuery:  # type: ignore[override]
        """Return a query with the next share of the budget, or with the loss given.

        Parameters
        ----------
        kwargs : Any
            The loss of this query, by `epsilon`, `delta` and `rho`, where the Context does not
            divide its budget itself; otherwise none.

        Raises
        ------
        ValueError, TypeError
            For a loss that buys nothing, and where the budget is spent.
        """
        base: Any = super().query(**kwargs)
        accountant = self.accountant
        return EngineQuery(base, *accountant.input_space, self.d_in, self.schema)


def context(
    table: Any,
    *,
    privacy_unit: tuple[Metric, Any],
    privacy_loss: tuple[Measure, Any],
    split_evenly_over: int | None = None,
    split_by_weights: Sequence[float] | None = None,
    ledger: Ledger | None = None,
) -> EngineContext:
    """Open an OpenDP Context over a table, whose engine counts its records where they are.

    Parameters
    ----------
    table : a table of DuckDB, Dask, Spark or Ibis
        The data are its rows: what was computed before it is not checked, so that each of its rows
        must belong to the privacy unit by your word.
    privacy_unit : `dp.unit_of(contributions=)` or `dp.unit_of(changes=)`
        With `identifier=`, the name of a column, where people own several rows.
    privacy_loss : `dp.loss_of(epsilon=)` or `dp.loss_of(rho=)`
        The budget, with or without `delta=`.
    split_evenly_over : int
        The number of queries that share the budget equally.
    split_by_weights : a list of float
        A weight for each query, in their order. At most one of the two is given; without either,
        each query says what it spends, `context.query(epsilon=0.5)`.
    ledger : an `opendp_bayes.Ledger`
        Every release of the Context is entered in it before it is handed out, and it refuses what
        it has no room for.

    Raises
    ------
    ValueError or TypeError
        For anything else, as `opendp_bayes.context` does. No row is read.
    """
    require_features("engines.context")
    arguments = {
        "privacy_unit": privacy_unit,
        "privacy_loss": privacy_loss,
        "split_evenly_over": split_evenly_over,
        "split_by_weights": split_by_weights,
    }
    EngineContext.checked(arguments, ledger)
    opened = table_of(table)
    return EngineContext.opened(
        Rows(opened),
        user_domain(
            f"EngineTable({opened.schema!r})", lambda value: isinstance(value, Rows), opened.schema
        ),
        opened.schema,
        arguments,
        check=partial(identifier_of, schema=opened.schema),
        ledger=ledger,
        schema=opened.schema,
    )
