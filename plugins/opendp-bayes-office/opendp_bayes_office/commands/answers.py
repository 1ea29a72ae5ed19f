"""Turn a specification into the question that it asks of a Context, all of whose budget it is."""

from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

import polars as pl
from msgspec.structs import replace
from opendp.context import loss_of, unit_of
from opendp.mod import enable_features

import opendp_bayes as ob
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.release_format.merging import neighbours
from opendp_bayes_office.files.files import Source, frame_of
from opendp_bayes_office.files.reading import as_text
from opendp_bayes_office.report.checks import check
from opendp_bayes_office.report.field_errors import FieldError
from opendp_bayes_office.report.language import Language
from opendp_bayes_office.report.specification import (
    DISCOVER,
    DROP,
    Column,
    Result,
    Specification,
    Unit,
    texts,
)
from opendp_bayes_office.report.statements import counted


def columns_of(specification: Specification) -> dict[str, Column]:
    """The columns that are counted, by name."""
    used = dict.fromkeys(column for result in specification.results for column in result.used)
    return {column: specification.columns[column] for column in used}


def as_in(data: Source, specification: Specification) -> Specification:
    """The specification for a file: columns with value labels have these as their categories,
    unless given, and codes for no value stand for their labels, too.

    Raises
    ------
    FieldError
        For a code that the file describes where its label is meant, and for what is one value.
    """
    columns: dict[str, Column] = {}
    for column, stated in specification.columns.items():
        labels = data.labels(column)
        codes = labels.keys() - {DROP, *labels.values()}
        for field, values in stated.named.items():
            for code in codes & set(values) if field != "null_values" else ():
                raise FieldError(
                    ("columns", column, field),
                    f"{code!r}: is a code that the file calls {labels[code]!r}; write that.",
                )
        if labels:
            none = [labels[code] for code in specification.codes(stated) if code in labels]
            categories = stated.categories or data.codebook(column, stated) or None
            null_values = distinct([*stated.null_values, *none])
            columns[column] = replace(stated, categories=categories, null_values=null_values)
    described = replace(specification, columns=specification.columns | columns)
    check(described)
    return described


def frame_in(data: Source | None, specification: Specification) -> pl.LazyFrame:
    """The columns of a file that a specification reads, cleaned as it says; without a file, columns
    without records.

    Raises
    ------
    FieldError
        For a column whose categories only a file knows.
    """
    columns, identifier = columns_of(specification), specification.privacy.identifier
    if data is not None:
        return frame_of(data, columns, identifier)
    for column, stated in columns.items():
        if stated.categories is None:
            raise FieldError(
                ("columns", column),
                "has the categories of its type, which only the file knows; name the file with the"
                " data, of which no record is read, or list the categories.",
            )
    return pl.LazyFrame(schema=dict.fromkeys(filter(None, [*columns, identifier]), pl.String))


def unit(privacy: Unit) -> Any:
    """The privacy unit in OpenDP's terms."""
    if privacy.size is not None:
        return unit_of(changes=privacy.contributions)
    return unit_of(contributions=privacy.contributions, identifier=privacy.identifier)


def survey_of(frame: pl.LazyFrame, specification: Specification) -> Any:
    """All results as one survey, by their headings, in a Context of a frame that has their columns.

    Raises
    ------
    ValueError, TypeError
        For what does not fit the columns, or has no release within the budget.
    """
    enable_features("contrib", "honest-but-curious")
    privacy, schema, results = specification.privacy, frame.collect_schema(), specification.results
    for column, stated in columns_of(specification).items():
        if stated.categories is None and not isinstance(schema[column], pl.Enum):
            raise FieldError(
                ("columns", column, "categories"),
                "is missing; list all of them, from what is public and not from the data. Where"
                f" nobody can, discover them: categories = {DISCOVER!r} in a specification, or"
                f" --discover {column} in place of --column, with a delta such as 1e-8.",
            )
    context = ob.context(
        frame,
        privacy_unit=unit(privacy),
        privacy_loss=loss_of(epsilon=privacy.epsilon, rho=privacy.rho, delta=privacy.delta),
        split_evenly_over=1,
    )
    query: Any = context.query()
    if privacy.rows_per_identifier is not None:
        query = query.truncate_per_group(privacy.rows_per_identifier)
    questions = {
        result.heading: _question(specification, result, schema, query) for result in results
    }
    survey = ob.survey(query, questions, share={result.heading: result.share for result in results})
    survey.resolve()
    if specification.joint:
        survey.check_joint()
    for result in results:
        if result.pooled:
            survey.check_pooled(result.heading)
    return survey


def _question(specification: Specification, result: Result, schema: pl.Schema, query: Any) -> Any:
    """One result, as the arguments of a question of a survey, or as a discovery of categories."""
    columns = {column: specification.columns[column] for column in result.used}
    first, size = columns[result.columns[0]], specification.privacy.size
    if first.discovered:
        return ob.discover(
            query,
            result.columns[0],
            always=texts(first.always),
            rest=result.rest,
            nulls=first.counted_nulls or ob.DROP,
            mechanism=result.mechanism,
        )
    nulls: dict[str, Any] = {column: stated.counted_nulls for column, stated in columns.items()}
    unknown: dict[str, Any] = {
        column: None
        if stated.unknown is None
        and (column == result.by or _covers(schema[column], stated.listed))
        else stated.counted_unknown
        for column, stated in columns.items()
    }
    for column in columns.keys() - {result.by}:
        if nulls[column] is None and size is None:
            nulls[column] = ob.DROP
        if columns[column].unknown == DROP:
            unknown[column] = ob.DROP
    typed: Any = schema[result.columns[0]]  # an Enum, where no categories are listed
    # All results together have a posterior where noise is added to the counts.
    joins = specification.joint and result.mechanism == "auto"
    return {
        "column": result.column,
        "by": result.by,
        "prior": result.prior,
        "ordered": result.ordered,
        "categories": {column: stated.listed for column, stated in columns.items()},
        "size": size,
        "nulls": nulls,
        "unknown": unknown,
        "merge": _merged(result, first.listed or typed.categories.to_list(), nulls, unknown),
        "mechanism": "laplace_parameters" if joins else result.mechanism,
    }


def _covers(dtype: pl.DataType, categories: list[str] | None) -> bool:
    """True if a column cannot hold other values than its categories."""
    return isinstance(dtype, pl.Enum) and (
        categories is None or set(dtype.categories) <= set(categories)
    )


def _merged(
    result: Result, categories: list[str], *policies: Mapping[str, Any]
) -> dict[Any, list[Any]] | None:
    """The categories that are counted in each new label; so many neighbours are named by the first
    and the last, and a new label of nulls or other values is alone.
    """
    if isinstance(result.merge, dict):
        return {
            label: [tuple(texts(cell)) if isinstance(cell, list) else as_text(cell) for cell in of]
            for label, of in result.merge.items()
        }
    if result.merge is None:
        return None
    labels = [policy[result.columns[0]] for policy in policies]
    return neighbours(categories, result.merge) | {
        label: [label] for label in labels if isinstance(label, str) and label not in categories
    }


def before_reading(
    summary: pl.DataFrame, specification: Specification, data: Source | None
) -> Iterator[str]:
    """Yield a sentence for everything that is to be said before records are read: what is done to
    values, where records in no category will be counted, and whose labels are in the file.
    """
    columns = columns_of(specification)
    yield from specification.sentences(columns)
    yield from dict.fromkeys(
        unescape(sentence)
        for result in specification.results
        for sentence in counted(specification, result, Language())
    )
    schema: Any = {} if data is None else data.schema()
    shown = dict(summary.select("question", "categories").rows())
    for result in specification.results:
        categories = shown.get(result.heading, "")
        types = {schema.get(column) for column in result.used if columns[column].categories is None}
        if "Enum" in categories and types != {pl.Boolean()}:
            yield f"Categories of {result.heading}: {categories}."
    coded = [column for column, stated in columns.items() if data and data.codebook(column, stated)]
    if coded:
        yield (
            f"The value labels of {', '.join(coded)} are public as facts of the code book of"
            " the file; if they were generated from the data, stop: they would be published as they"
            " are."
        )
