"""Turn a specification into the question that it asks of a Context, all of whose budget it is."""

from collections.abc import Iterator, Mapping
from html import unescape
from typing import Any

import polars as pl
from msgspec.structs import replace
from opendp.context import loss_of, unit_of
from opendp.mod import enable_features

import opendp_bayes as ob
from opendp_bayes.release_format.labels import twins
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

#: Fields of a column that are values of its records, or lists of such.
_VALUES = "categories", "always", "null_values", "nulls", "unknown"


def columns_of(specification: Specification) -> dict[str, Column]:
    """The columns that are counted, by name."""
    used = dict.fromkeys(column for result in specification.results for column in result.used)
    return {column: specification.columns[column] for column in used}


def as_in(data: Source, specification: Specification) -> Specification:
    """The specification for a file: codes that the file describes are its value labels, and columns
    with value labels have these as their categories, unless given.

    Raises
    ------
    FieldError
        For a code that is the label of another one, and for what is one value.
    """
    columns = {
        column: _column_in(data, column, specification)
        for column in specification.columns
        if data.labels(column)
    }
    results = [
        _result_in(data, number, result) for number, result in enumerate(specification.results)
    ]
    described = replace(specification, columns=specification.columns | columns, results=results)
    check(described, understood=True)
    return described


def _column_in(data: Source, column: str, specification: Specification) -> Column:
    """A column of a specification with its values as the records of a file have them."""

    def read(field: str, value: Any) -> Any:
        return _understood(data, column, value, ("columns", column, field))

    stated = specification.columns[column]
    fields: dict[str, Any] = {field: read(field, getattr(stated, field)) for field in _VALUES}
    general = [(code, read("null_values", code)) for code in specification.null_values]
    fields["null_values"] += [label for code, label in general if label != code]
    recode: dict[Any, Any] = {}
    for value, label in stated.recode.items():
        if (key := read("recode", value)) in recode:
            raise FieldError(
                ("columns", column, "recode"),
                f"{value!r}: is {key!r} by the file, which is there too; leave out one of them.",
            )
        recode[key] = read("recode", label)
    fields["categories"] = fields["categories"] or data.codebook(column, stated) or None
    return replace(stated, recode=recode, **fields)


def _result_in(data: Source, number: int, result: Result) -> Result:
    """A result of a specification whose merged categories are those of the records."""
    if not isinstance(result.merge, dict):
        return result
    path, columns = ("results", number, "merge"), result.columns

    def read(cell: Any) -> Any:
        if not isinstance(cell, list):
            return _understood(data, columns[0], cell, path)
        values = zip(columns, cell, strict=False)
        return [_understood(data, *value, path) for value in values] + cell[len(columns) :]

    return replace(
        result, merge={label: list(map(read, cells)) for label, cells in result.merge.items()}
    )


def _understood(data: Source, column: str, value: Any, path: tuple[str | int, ...]) -> Any:
    """A value, or a list of values, of a column as its records have it."""
    if isinstance(value, list):
        return [_understood(data, column, item, path) for item in value]
    if value in (None, DROP, DISCOVER):
        return value
    try:
        return data.understood(column, value)
    except ValueError as error:
        raise FieldError(path, str(error)) from None


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
    for column in columns:
        if any(twins([column, neighbour]) for neighbour in schema):
            yield (
                f"{column!a}: it and another column of the file differ in nothing but blanks around"
                " them or the form of Unicode."
            )
    coded = [column for column, stated in columns.items() if data and data.codebook(column, stated)]
    if coded:
        yield (
            f"The value labels of {', '.join(coded)} are public as facts of the code book of"
            " the file; if they were generated from the data, stop: they would be published as they"
            " are."
        )
