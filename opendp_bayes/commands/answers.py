"""From a specification to its releases, in one Context that holds the budget of all of them."""

from typing import Any

import polars as pl
from opendp.context import Context, loss_of, unit_of
from opendp.mod import enable_features

from opendp_bayes.commands.files import Source, scan_columns
from opendp_bayes.commands.query import without_uncounted
from opendp_bayes.framework.asked import Asked, ask
from opendp_bayes.framework.question import Question
from opendp_bayes.framework.shares import Division
from opendp_bayes.framework.survey import SurveyQuery
from opendp_bayes.publishing.specification import Column, Privacy, Result, Specification


def survey_of(found: Source, asked: Specification) -> SurveyQuery:
    """All results as one survey, by their headings, in a Context whose whole budget it is.

    Reads names and types of columns alone. Raises `ValueError`/`TypeError`, with the number or the
    heading of the result in front, for what does not fit.
    """
    enable_features("contrib", "honest-but-curious")
    privacy = asked.privacy
    frame = scan_columns(found, _columns(asked), "columns.{}")
    schema = frame.collect_schema()
    context = Context.compositor(
        data=frame,
        privacy_unit=_unit(privacy),
        privacy_loss=loss_of(epsilon=privacy.epsilon, rho=privacy.rho, delta=privacy.delta),
        split_evenly_over=1,
    )
    query: Any = context.query()
    questions = {}
    for number, result in enumerate(asked.results):
        try:
            questions[result.heading] = _asked(query, schema, asked, result)
        except (TypeError, ValueError) as error:
            raise ValueError(f"results[{number}]: {error}") from None
    weights = {result.heading: result.share for result in asked.results}
    share = weights if privacy.shares == "weights" else privacy.shares
    division = Division(share, "total_variation", privacy.guess_size)
    division.check(questions)
    survey = SurveyQuery(questions, division)
    survey.resolve()
    return survey


def _columns(asked: Specification) -> list[str]:
    """The columns that are read."""
    used = [name for result in asked.results for name in (*result.columns, result.by)]
    return list(dict.fromkeys(name for name in (*used, asked.privacy.identifier) if name))


def _unit(privacy: Privacy) -> Any:
    if privacy.size is not None:
        return unit_of(changes=privacy.contributions)
    return unit_of(contributions=privacy.contributions, identifier=privacy.identifier)


def _asked(plan: Any, schema: pl.Schema, asked: Specification, result: Result) -> Asked:
    """One result as a question."""
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
    question = Question.of(
        of,
        keys=keys,
        prior=result.prior,
        categories=labels if isinstance(of, list) else labels[of],
        size=asked.privacy.size,
        nulls=policies["nulls"],
        unknown=policies["unknown"],
    )
    return ask(plan, question, result.mechanism)


def _categories(column: Column, dtype: pl.DataType) -> Any:
    """The categories that the specification or the type of the column names."""
    if column.categories is None and isinstance(dtype, pl.Enum):
        return list(dtype.categories)
    if column.categories is None and dtype == pl.Boolean:
        return [True, False]
    return column.categories
