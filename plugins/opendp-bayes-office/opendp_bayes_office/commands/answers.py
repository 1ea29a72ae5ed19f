"""Turn a specification into the question that it asks of a Context, all of whose budget it is."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from msgspec.structs import replace
from opendp.context import loss_of, unit_of
from opendp.mod import enable_features

import opendp_bayes as ob
from opendp_bayes.release_format.labels import twins
from opendp_bayes.release_format.merging import neighbours
from opendp_bayes_office.files.files import Source, frame_of
from opendp_bayes_office.files.reading import Value, as_text
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


def columns_of(asked: Specification) -> dict[str, Column]:
    """The columns that are counted, by name."""
    names = dict.fromkeys(name for result in asked.results for name in result.used)
    return {name: asked.columns[name] for name in names}


def as_in(data: Source, asked: Specification) -> Specification:
    """The specification for a file: codes that the file describes are its value labels, and columns
    with value labels have these as their categories, unless given.

    Raises
    ------
    FieldError
        For a code that is the label of another one, and for what is one value.
    """
    coded = {name: column for name, column in asked.columns.items() if data.labels(name)}
    columns = {name: _column_in(data, name, column, asked) for name, column in coded.items()}
    results = [
        replace(
            result,
            merge=_merge_in(data, result.columns, result.merge, ("results", number, "merge")),
        )
        if isinstance(result.merge, dict)
        else result
        for number, result in enumerate(asked.results)
    ]
    described = replace(asked, columns=asked.columns | columns, results=results)
    check(described, understood=True)
    return described


def _column_in(data: Source, name: str, column: Column, asked: Specification) -> Column:
    """A column of a specification with its values as the records of a file have them."""

    def read(field: str, value: Any) -> Any:
        if isinstance(value, list):
            return [read(field, one) for one in value]
        kept = value is None or value in (DROP, DISCOVER)
        return value if kept else _understood(data, name, value, ("columns", name, field))

    fields = ("categories", "always", "null_values", "nulls", "unknown")
    made: dict[str, Any] = {field: read(field, getattr(column, field)) for field in fields}
    general = [(code, read("null_values", code)) for code in asked.null_values]
    made["null_values"] += [label for code, label in general if label != code]
    made["recode"] = {}
    for value, label in column.recode.items():
        if (key := read("recode", value)) in made["recode"]:
            raise FieldError(
                ("columns", name, "recode"),
                f"{value!r}: is {key!r} by the file, which is there too; leave out one of them.",
            )
        made["recode"][key] = read("recode", label)
    made["categories"] = made["categories"] or data.codebook(name, column) or None
    return replace(column, **made)


def _merge_in(
    data: Source, columns: Sequence[str], merge: dict[str, Any], path: tuple[str | int, ...]
) -> dict[str, Any]:
    """What a result merges, with the values of its columns as the records have them."""

    def read(part: Any) -> Any:
        if not isinstance(part, list):
            return _understood(data, columns[0], part, path)
        both = zip(columns, part, strict=False)
        return [_understood(data, name, one, path) for name, one in both] + part[len(columns) :]

    return {label: list(map(read, parts)) for label, parts in merge.items()}


def _understood(data: Source, name: str, value: Value, path: tuple[str | int, ...]) -> Value:
    try:
        return data.understood(name, value)
    except ValueError as error:
        raise FieldError(path, str(error)) from None


def frame_in(data: Source | None, asked: Specification) -> pl.LazyFrame:
    """The columns of a file that a specification reads, cleaned as it says; without a file, columns
    without records.

    Raises
    ------
    FieldError
        For a column whose categories only a file knows.
    """
    columns = columns_of(asked)
    if data is not None:
        return frame_of(data, columns, asked.privacy.identifier)
    for name, column in columns.items():
        if column.categories is None:
            raise FieldError(
                ("columns", name),
                "has the categories of its type, which only the file knows; name the file with the"
                " data, of which no record is read, or list the categories.",
            )
    names = filter(None, [*columns, asked.privacy.identifier])
    return pl.LazyFrame(schema=dict.fromkeys(names, pl.String))


def unit(privacy: Unit) -> Any:
    """The privacy unit in OpenDP's terms."""
    if privacy.size is not None:
        return unit_of(changes=privacy.contributions)
    return unit_of(contributions=privacy.contributions, identifier=privacy.identifier)


def survey_of(frame: pl.LazyFrame, asked: Specification) -> Any:
    """All results as one survey, by their headings, in a Context of a frame that has their columns.

    Raises
    ------
    ValueError, TypeError
        For what does not fit the columns, or has no release within the budget.
    """
    enable_features("contrib", "honest-but-curious")
    privacy, schema = asked.privacy, frame.collect_schema()
    for name, column in columns_of(asked).items():
        if column.categories is None and not isinstance(schema[name], pl.Enum):
            raise FieldError(
                ("columns", name, "categories"),
                "is missing; list all of them, from what is public and not from the data. Where"
                f" nobody can, discover them: categories = {DISCOVER!r} in a specification, or"
                f" --discover {name} in place of --column, with a delta such as 1e-8.",
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
        result.heading: _discovery(query, asked, result)
        if asked.columns[result.columns[0]].discovered
        else _question(asked, result, schema)
        for result in asked.results
    }
    share = {result.heading: result.share for result in asked.results}
    survey = ob.survey(query, questions, share=share)
    survey.resolve()
    if asked.joint:
        survey.check_joint()
    for result in asked.results:
        if result.pooled:
            _check_pooled(survey, result.heading)
    return survey


def _discovery(query: Any, asked: Specification, result: Result) -> Any:
    """One result whose categories are to be discovered."""
    (name,) = result.columns
    column = asked.columns[name]
    return ob.discover(
        query,
        name,
        always=texts(column.always),
        rest=result.rest,
        nulls=column.counted_nulls or ob.DROP,
        mechanism=result.mechanism,
    )


def _question(asked: Specification, result: Result, schema: pl.Schema) -> dict[str, Any]:
    """One result, as the arguments of a question of a survey."""
    columns = {name: asked.columns[name] for name in result.used}
    private = asked.privacy.size is None
    nulls: dict[str, Any] = {name: column.counted_nulls for name, column in columns.items()}
    unknown: dict[str, Any] = {}
    for name, column in columns.items():
        if name == result.by:  # whose other values are in no group, unless named
            unknown[name] = column.counted_unknown if column.unknown is not None else None
            continue
        if nulls[name] is None and private:
            nulls[name] = ob.DROP
        unknown[name] = ob.DROP if column.unknown == DROP else column.counted_unknown
        if column.unknown is None and _covers(schema[name], column.listed):
            unknown[name] = None
    mechanism = result.mechanism
    if asked.joint and mechanism == "auto":  # which may add no noise to counts
        mechanism = "laplace_parameters"
    return {
        "column": result.column,
        "by": result.by,
        "prior": result.prior,
        "ordered": result.ordered,
        "categories": {name: column.listed for name, column in columns.items()},
        "size": asked.privacy.size,
        "nulls": nulls,
        "unknown": unknown,
        "merge": _merged(result, columns[result.columns[0]], nulls, unknown),
        "mechanism": mechanism,
    }


def _covers(dtype: pl.DataType, categories: list[str] | None) -> bool:
    """True if a column cannot hold other values than its categories."""
    if not isinstance(dtype, pl.Enum):
        return False
    return categories is None or set(dtype.categories) <= set(categories)


def _merged(
    result: Result, column: Column, *policies: dict[str, Any]
) -> dict[str, list[Any]] | None:
    """From each new label the categories that are counted in it; so many neighbours are named by
    the first and the last, and a new label of nulls or other values is alone.
    """
    if isinstance(result.merge, dict):
        return {
            label: [tuple(texts(one)) if isinstance(one, list) else as_text(one) for one in parts]
            for label, parts in result.merge.items()
        }
    if result.merge is None:
        return None
    categories = column.listed or []
    merge: dict[Any, list[Any]] = {**neighbours(categories, result.merge)}
    labels = [one[result.columns[0]] for one in policies]
    new = [label for label in labels if isinstance(label, str) and label not in categories]
    return merge | {label: [label] for label in new}


def _check_pooled(survey: Any, heading: str) -> None:
    """Raise `ValueError` where groups are to be pooled whose draws are not noise on counts, or that
    are too many.
    """
    setting = survey.settings[heading]
    if not setting.adds_noise:
        raise ValueError(
            f"questions[{heading!r}]: pooled: needs noise on the counts, not"
            f" {type(setting.mechanism).__name__}; name another, as in mechanism ="
            " 'laplace_parameters', or leave out pooled."
        )
    survey.check_pooled(heading, setting)


def before_reading(
    summary: pl.DataFrame, asked: Specification, data: Source | None
) -> Iterator[str]:
    """Yield a sentence for everything that is to be said before records are read: what is done to
    values, where records in no category will be counted, and whose labels are in the file.
    """
    columns = columns_of(asked)
    yield from asked.sentences(columns)
    for result in asked.results:
        yield from counted(asked, result, Language())
    schema: Any = {} if data is None else data.schema()
    said = dict(summary.select("question", "categories").rows())
    for result in asked.results:
        categories = said.get(result.heading, "")
        of_type = [schema.get(name) for name in result.used if columns[name].categories is None]
        if "Enum" in categories and set(of_type) != {pl.Boolean()}:
            yield f"Categories of {result.heading}: {categories}."
    for name in columns:
        if any(twins([name, other]) for other in schema):
            yield (
                f"{name!a}: it and another column of the file differ in nothing but blanks around"
                " them or the form of Unicode."
            )
    coded = [name for name, column in columns.items() if data and data.codebook(name, column)]
    if coded:
        yield (
            f"The value labels of {', '.join(coded)} are public as facts of the code book of"
            " the file; if they were generated from the data, stop: they would be published as they"
            " are."
        )
