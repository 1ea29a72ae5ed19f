"""From a specification to its releases, in one Context that holds the budget of all of them."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
from opendp.context import Context, loss_of, unit_of
from opendp.mod import enable_features

from opendp_bayes.accounting.division import divided
from opendp_bayes.commands.files import Source, scan_columns
from opendp_bayes.commands.query import without_uncounted
from opendp_bayes.framework.context import PosteriorQuery, posterior
from opendp_bayes.publishing.specification import Column, Privacy, Result, Specification


def queries_of(found: Source, asked: Specification) -> list[PosteriorQuery[Any]]:
    """A query for each result, all in one Context, to be released in their order.

    Reads names and types of columns alone. Raises `ValueError`/`TypeError`, with the number of the
    result in front, for what does not fit.
    """
    enable_features("contrib", "honest-but-curious")
    privacy = asked.privacy
    frame = scan_columns(found, _columns(asked), "columns.{}")
    budget = {"epsilon": privacy.epsilon, "rho": privacy.rho, "delta": privacy.delta}
    context = Context.compositor(
        data=frame, privacy_unit=_unit(privacy), privacy_loss=loss_of(**budget)
    )
    shares = [result.share for result in asked.results]
    parts = {name: divided(loss, shares) for name, loss in budget.items() if loss is not None}
    queries = []
    for number, result in enumerate(asked.results):
        spend = {name: part[number] for name, part in parts.items()}
        try:
            query = _query(context.query(**spend), frame.collect_schema(), asked, result)
            query.resolve()
        except (TypeError, ValueError) as error:
            raise ValueError(f"results[{number}]: {error}") from None
        queries.append(query)
    return queries


def _columns(asked: Specification) -> list[str]:
    """The columns that are read."""
    used = [name for result in asked.results for name in (*result.columns, result.by)]
    return list(dict.fromkeys(name for name in (*used, asked.privacy.identifier) if name))


def _unit(privacy: Privacy) -> Any:
    if privacy.size is not None:
        return unit_of(changes=privacy.contributions)
    return unit_of(contributions=privacy.contributions, identifier=privacy.identifier)


def _query(
    plan: Any, schema: pl.Schema, asked: Specification, result: Result
) -> PosteriorQuery[Any]:
    """The query for one result."""
    columns = {name: asked.columns[name] for name in result.columns}
    labels = {name: _categories(column, schema[name]) for name, column in columns.items()}
    policies: dict[str, dict[str, Any]] = {"nulls": {}, "unknown": {}}
    for name, column in columns.items():
        nulls, unknown = column.nulls, column.unknown
        if asked.privacy.size is None and labels[name] is not None:
            plan = without_uncounted(plan, name, labels[name], nulls is None, unknown is None)
            # Nothing is left for a bucket that was not asked for, so it may be any category.
            nulls = labels[name][0] if nulls is None else nulls
            unknown = labels[name][0] if unknown is None else unknown
        for policy, label in (("nulls", nulls), ("unknown", unknown)):
            if label is not None:
                policies[policy][name] = label
    if asked.privacy.rows_per_identifier is not None:
        plan = plan.truncate_per_group(asked.privacy.rows_per_identifier)
    keys = None
    if result.by is not None:
        keys = _categories(asked.columns[result.by], schema[result.by])
        plan = plan.group_by(result.by)
    of: Any = result.column
    query: Any = posterior(
        plan,
        of,
        keys=keys,
        prior=result.prior,
        categories=labels if isinstance(of, list) else labels[of],
        size=asked.privacy.size,
        mechanism=result.mechanism,
        nulls=policies["nulls"],
        unknown=policies["unknown"],
    )
    return query


def _categories(column: Column, dtype: pl.DataType) -> Any:
    """The categories that the specification or the type of the column names."""
    if column.categories is None and isinstance(dtype, pl.Enum):
        return list(dtype.categories)
    if column.categories is None and dtype == pl.Boolean:
        return [True, False]
    return column.categories


def made(
    queries: Sequence[PosteriorQuery[Any]], keep: Callable[[list[Any]], None], show: Any
) -> list[Any]:
    """The releases, each kept as soon as it is made."""
    releases: list[Any] = []
    for number, query in enumerate(queries):
        show("Releasing", number, len(queries))
        releases.append(query.release())
        keep(releases)
    return releases
