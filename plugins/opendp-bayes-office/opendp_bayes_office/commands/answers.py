"""Turn a specification into its releases, in one Context that holds the budget of all of them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import polars as pl
from msgspec.structs import replace
from opendp.context import loss_of, unit_of
from opendp.mod import OpenDPException, enable_features

from opendp_bayes import DROP as LEFT_OUT, context
from opendp_bayes.display.wording import listed
from opendp_bayes.queries.bound_query import BoundQuery, ask
from opendp_bayes.queries.columns import DIFFER, check_new, covers, public_values
from opendp_bayes.queries.question import Question
from opendp_bayes.release_format.data import Value as Label
from opendp_bayes.release_format.labels import distinct, place_of, twins
from opendp_bayes.release_format.merging import neighbours
from opendp_bayes.surveys.survey_query import SurveyQuery
from opendp_bayes.trusted.account import Kind, Loss
from opendp_bayes.trusted.budget import as_entry, unit_in_words
from opendp_bayes.trusted.kinds import ColumnKind, kind_of, kinds_in
from opendp_bayes.trusted.opendp_internals import parts_of
from opendp_bayes.trusted.spaces import groups_and_labels
from opendp_bayes.unlisted.discovery_query import Discovering, discovering
from opendp_bayes_office.files.files import (
    Cleaning,
    Source,
    codebook,
    name_in_plan,
    scan_columns,
    schema_of,
    understood,
)
from opendp_bayes_office.report.field_errors import FieldError
from opendp_bayes_office.report.owner_file import OwnerFile, OwnersPrivacy
from opendp_bayes_office.report.problems import problems
from opendp_bayes_office.report.specification import (
    DISCOVER,
    DROP,
    Column,
    Privacy,
    Result,
    Specification,
    as_text,
)
from opendp_bayes_office.report.statements import cleaning_said, named, notes

#: An error of the library: the argument that it is about, its value, and what is wrong.
_ARGUMENT = re.compile(r"(\w+)(=.*?)?: (.*)", re.DOTALL)


def frame_of(found: Source, asked: Specification) -> pl.LazyFrame:
    """The columns of a file that a specification reads. Reads their names and types alone.

    Raises
    ------
    FieldError
        For a column that is not there or is of another type.
    """

    def refuse(column: str, problem: str) -> NoReturn:
        if column == asked.privacy.identifier:
            raise FieldError(("privacy", "identifier"), f"={column!r}: {problem}")
        raise FieldError(("columns", column), problem)

    return scan_columns(found, _columns(asked), refuse, asked.privacy.identifier)


def cleaning_of(asked: Specification | OwnerFile) -> Cleaning:
    """Read from a specification or the owner's file what is done to each value."""
    of_columns = {name: tuple(column.null_values) for name, column in asked.columns.items()}
    keep_blank = asked.blank_lines == "null"
    return Cleaning(asked.trim, tuple(asked.null_values), of_columns, keep_blank, asked.labels)


def as_in(found: Source, asked: Specification) -> Specification:
    """The specification for a file: where all its values are text, whole numbers among the labels
    are texts, too, codes that the file describes are its value labels, and columns with value
    labels have these as their categories, unless given.

    Raises
    ------
    FieldError
        For a code that is the label of another one, and for what is one value.
    """
    if not found.is_text:
        return asked
    columns = {name: _column_in(found, name, of, asked) for name, of in asked.columns.items()}
    book = codebook(found)
    for name, column in columns.items():
        if column.categories is None and name in book:
            columns[name] = replace(column, categories=book[name])
    results = [
        replace(of, merge=_merge_in(found, of.columns, of.merge, ("results", number, "merge")))
        if isinstance(of.merge, dict)
        else of
        for number, of in enumerate(asked.results)
    ]
    codes = list(map(as_text, asked.null_values))
    return replace(asked, columns=columns, results=results, null_values=codes)


def _column_in(found: Source, name: str, column: Column, asked: Specification) -> Column:
    """A column of a specification with its values as the records of a file have them."""

    def read(field: str, value: Any) -> Any:
        if isinstance(value, list):
            return [read(field, one) for one in value]
        return value if value is None else _understood(found, name, value, ("columns", name, field))

    fields = ("always", "null_values", "nulls", "unknown")
    made: dict[str, Any] = {field: read(field, getattr(column, field)) for field in fields}
    general = [(code, read("null_values", code)) for code in asked.null_values]
    made["null_values"] += [label for code, label in general if label != as_text(code)]
    made["categories"] = DISCOVER if column.discovered else read("categories", column.listed)
    made["recode"] = {}
    for value, label in column.recode.items():
        if (key := read("recode", value)) in made["recode"]:
            raise FieldError(
                ("columns", name, "recode"),
                f"{value!r}: is {key!r} by the file, which is there too; leave out one of them.",
            )
        made["recode"][key] = read("recode", label)
    return replace(column, **made)


def _merge_in(
    found: Source, columns: Sequence[str], merge: dict[str, Any], path: tuple[str | int, ...]
) -> dict[str, Any]:
    """What a result merges, with the values of its columns as the records have them."""

    def read(part: Any) -> Any:
        if not isinstance(part, list):
            return _understood(found, columns[0], part, path)
        both = zip(columns, part, strict=False)
        return [_understood(found, name, one, path) for name, one in both] + part[len(columns) :]

    return {label: list(map(read, parts)) for label, parts in merge.items()}


def _understood(found: Source, name: str, value: Label, path: tuple[str | int, ...]) -> Label:
    try:
        return understood(found, name, value)
    except ValueError as error:
        raise FieldError(path, str(error)) from None


def frame_without_data(asked: Specification) -> pl.LazyFrame:
    """Columns without records, whose types are those of their categories.

    Raises
    ------
    FieldError
        For a column whose categories are not listed.
    """
    types: dict[str, Any] = {}
    for name in _columns(asked):
        column = asked.columns.get(name, Column(categories=[""]))
        listed = column.always or [""] if column.discovered else column.listed
        if listed is None:
            raise FieldError(
                ("columns", name),
                "has the categories of its type, which only the file knows; name the file with the"
                " data, of which no record is read, or list the categories.",
            )
        types[name] = {bool: pl.Boolean, int: pl.Int64}.get(type(listed[0]), pl.String)
        types[name_in_plan(name)] = types[name]
    return pl.LazyFrame(schema=types)


def typed(asked: Specification, frame: pl.LazyFrame) -> Specification:
    """The specification with its labels in the types of the columns: of integers and Booleans they
    may be written as text, and so may nulls and unknown, where they name a category.

    Raises
    ------
    FieldError
        For a label that is none of such a column.
    """
    columns = dict(asked.columns)
    for name, known in kinds_in(frame).items():
        if name not in columns:
            continue
        column = columns[name]
        path = ("columns", name, "categories")
        own = [typed_label(label, known, path) for label in column.listed or ()]
        if column.discovered:
            columns[name] = _typed_discovered(name, column, known)
            continue
        if column.listed is None and known.kind == "boolean":
            own = [True, False]
        named = {as_text(label): label for label in own}
        policies: dict[str, Any] = {
            field: given if given is None else named.get(as_text(given), given)
            for field, given in (("nulls", column.nulls), ("unknown", column.unknown))
        }
        policies["recode"] = {
            typed_label(value, known, ("columns", name, "recode")): named.get(as_text(label), label)
            for value, label in column.recode.items()
        }
        categories = None if column.listed is None else own
        columns[name] = replace(column, categories=categories, **policies)
    made = replace(asked, columns=columns)
    for where, problem in problems(made):  # of what is one value as the file has it
        raise FieldError(where, problem)
    return made


def _typed_discovered(name: str, column: Column, known: ColumnKind) -> Column:
    """A column whose categories are to be discovered, with its labels in the type of its values."""

    def typed_in(field: str, label: Label) -> Label:
        return typed_label(label, known, ("columns", name, field))

    nulls = column.counted_nulls
    return replace(
        column,
        always=[typed_in("always", label) for label in column.always],
        nulls=column.nulls if nulls is None else typed_in("nulls", nulls),
        recode={
            typed_in("recode", value): typed_in("recode", label)
            for value, label in column.recode.items()
        },
    )


def typed_label(label: Label, known: ColumnKind, path: tuple[str, ...]) -> Label:
    """A label in the type of its column."""
    if known.kind == "boolean" and isinstance(label, str):
        if label not in ("true", "false"):
            raise FieldError(
                path, f"{label!r}: the column is Boolean, so it must be true or false."
            )
        return label == "true"
    if known.kind == "integer" and isinstance(label, str):
        try:
            return int(label)
        except ValueError:
            problem = "the column holds integers, so it must be one, such as 1."
            raise FieldError(path, f"{label!r}: {problem}") from None
    return label


def budget_of(privacy: Privacy) -> tuple[Loss, str]:
    """The budget of all results as a ledger enters it, and the privacy unit that it is for."""
    kind: Kind = "epsilon" if privacy.rho is None else "rho"
    value = float(getattr(privacy, kind))
    return Loss.of(kind, value, float(privacy.delta or 0)), unit_in_words(*unit(privacy))


def loss_of_release(survey: SurveyQuery) -> Loss:
    """What the release of all results costs, as a ledger enters it."""
    parts = parts_of(survey)
    return as_entry(parts.output_measure, survey.resolve().map(parts.d_in))


def survey_of(frame: pl.LazyFrame, asked: Specification) -> SurveyQuery:
    """All results as one survey, by their headings, in a Context of a frame that has their columns,
    whose whole budget it is.

    Raises
    ------
    FieldError
        For what does not fit the columns.
    """
    enable_features("contrib", "honest-but-curious")
    privacy = asked.privacy
    kinds = kinds_in(frame)
    with field_errors("privacy"):
        opened = context(
            frame,
            privacy_unit=unit(privacy),
            privacy_loss=loss_of(epsilon=privacy.epsilon, rho=privacy.rho, delta=privacy.delta),
            split_evenly_over=1,
        )
    query: Any = opened.query()
    if asked.joint:  # by one plan, so that all results are of the same rows
        query = _limited(query, privacy)
    questions = {}
    for number, result in enumerate(asked.results):
        with field_errors("results", number):
            questions[result.heading] = _asked(query, kinds, asked, result)
    weights = {result.heading: result.share for result in asked.results}
    with field_errors("privacy", headings=list(questions)):
        survey = SurveyQuery(questions, weights)
        survey.resolve()
        _check_pooled(survey, asked)
        if asked.joint:
            _check_joint(survey, asked)
    return survey


def _check_pooled(survey: SurveyQuery, asked: Specification) -> None:
    """Raise `FieldError` where groups are to be pooled whose draws are not noise on counts."""
    settings = survey.settings
    for number, result in enumerate(asked.results):
        if not result.pooled or result.heading not in settings:
            continue
        setting = settings[result.heading]
        if not setting.adds_noise:
            raise FieldError(
                ("results", number, "pooled"),
                f"needs noise on the counts, not {type(setting.mechanism).__name__}; name another,"
                " as in mechanism = 'laplace_parameters', or leave out pooled.",
            )
        with field_errors("results", number):
            survey.check_pooled(result.heading, setting)


def _check_joint(survey: SurveyQuery, asked: Specification) -> None:
    """Raise `FieldError` for what cannot be estimated together."""
    settings = survey.settings
    for number, result in enumerate(asked.results):
        if not settings[result.heading].adds_noise:
            raise FieldError(
                ("results", number, "mechanism"),
                f"={result.mechanism!r}: must add noise to the counts, for joint; leave it out, or"
                " name another, as in mechanism = 'laplace_parameters'.",
            )
    try:
        survey.check_joint()
    except ValueError as error:
        raise FieldError(("joint",), str(error).removeprefix("tables: ")) from None


def before_reading(found: Source, survey: SurveyQuery, asked: Specification) -> Iterator[str]:
    """Yield a sentence for everything that is to be said before records are read: where records in
    no category will be counted, of several results with their headings in front, and whose labels
    are in the file.
    """
    headings: dict[str, list[str]] = {}
    for result in asked.results:
        own: Sequence[Any] = asked.columns[result.columns[0]].always
        if result.heading in survey.questions:
            question = survey.questions[result.heading]
            _, in_groups = groups_and_labels(question.space.categories)
            merged = [label for part in question.question.parts for label in part]
            own = merged or in_groups or question.space.categories
        said = " ".join(notes(asked, result, own, _called))
        headings.setdefault(said, []).append(result.heading)
    yield from cleaning_said(asked)
    for said, of in headings.items():
        if said:
            yield said if len(asked.results) == 1 else f"{'; '.join(of)}: {said}"
    yield from labelled_by_type(found, asked)


def _called(column: Column, label: Label) -> str:
    """A category as the report names it, but for that of all other values, as releases do."""
    return label if label == column.own_unknown else named(column, label)


@contextmanager
def field_errors(*path: str | int, headings: Sequence[str] = ()) -> Iterator[None]:
    """A block whose errors are about the specification or a table of it, a field there, or the
    result whose heading they name.
    """
    try:
        yield
    except FieldError:
        raise
    except OpenDPException as error:
        raise FieldError(path, f"is refused by OpenDP: {error.message}") from None
    except (TypeError, ValueError) as error:
        message = str(error)
    else:
        return
    for number, heading in enumerate(headings):
        if message.startswith(question := f"questions[{heading!r}]: "):
            path, message = ("results", number), message.removeprefix(question)
    message = message.replace("=ob.DROP", f" = {DROP!r}")
    found = _ARGUMENT.fullmatch(message)
    if found and found[1] in ("size", "guess_size"):
        path = ("privacy", found[1])
    elif found and found[1] in _fields(path):
        path = (*path, found[1])
    else:
        raise FieldError(path, message)
    raise FieldError(path, f"{found[2]}: {found[3]}" if found[2] else found[3])


def _fields(path: tuple[str | int, ...]) -> tuple[str, ...]:
    """The fields of the specification, of a result or of a column, that errors of the library are
    about.
    """
    if not path:
        return Specification.__struct_fields__
    of = {"results": Result, "columns": Column}.get(str(path[0]))
    return () if of is None else of.__struct_fields__


def _columns(asked: Specification) -> list[str]:
    """The columns that are read."""
    named = (*labelled(asked), asked.privacy.identifier)
    return list(dict.fromkeys(name for name in named if name is not None))


def labelled(asked: Specification) -> list[str]:
    """The columns whose labels say what is counted."""
    return list(dict.fromkeys(name for result in asked.results for name in result.used))


def unit(privacy: Privacy | OwnersPrivacy) -> Any:
    """The privacy unit in OpenDP's terms."""
    if privacy.size is not None:
        return unit_of(changes=privacy.contributions)
    identifier = None if privacy.identifier is None else name_in_plan(privacy.identifier)
    return unit_of(contributions=privacy.contributions, identifier=identifier)


def _asked(
    plan: Any, kinds: Mapping[str, ColumnKind], asked: Specification, result: Result
) -> BoundQuery | Discovering:
    """One result as a question."""
    if asked.columns[result.columns[0]].discovered:
        return _discovering(plan, asked, result)
    recode = {name: asked.columns[name].recode for name in (*result.columns, result.by) if name}
    labels: dict[str, list[Any]] = {}
    nulls: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    for name in result.columns:
        column, known = asked.columns[name], kinds[name]
        own = labels[name] = _categories(name, column, known, asked, result)
        covered = covers(known, tuple(own))
        null, other = _policies(name, column, own, covered)
        if asked.privacy.size is None and not asked.joint:
            values = distinct([*own, *([] if null is None else [null]), *column.recode])
            plan = _without_uncounted(plan, name, values, null is None, other is None)
            # Nothing is left for a bucket that was not asked for, so it may be any category.
            null, other = (own[0] if label is None else label for label in (null, other))
        else:
            _check_counts_all(asked, name, null is not None, covered or other is not None)
        nulls[name], unknown[name] = null, other
    if not asked.joint:
        plan = _limited(plan, asked.privacy)
    if (by := result.by) is not None:  # whose nulls and others are in no group, unless named
        column = asked.columns[by]
        labels[by] = _categories(by, column, kinds[by], asked, result)
        nulls[by], unknown[by] = _policies(by, column, labels[by], covered=True)
    of: Any = result.column
    question = Question.of(
        of,
        by=result.by,
        prior=result.prior,
        ordered=result.ordered,
        categories=labels,
        recode=recode,
        size=asked.privacy.size,
        nulls=nulls,
        unknown=unknown,
        merge=_merged(asked, result, labels, nulls, unknown),
    )
    return ask(plan, question, result.mechanism, noise_only=asked.joint)


def _discovering(plan: Any, asked: Specification, result: Result) -> Discovering:
    """One result whose categories are to be discovered."""
    (name,) = result.columns
    column = asked.columns[name]
    value, nulls = pl.col(name_in_plan(name)), column.counted_nulls
    if column.recode:
        plan = plan.with_columns(value.replace(column.recode).alias(name))
    if nulls is None:  # none of the rows that are kept of an identifier is one of them
        plan = plan.filter(value.is_not_null())
    try:
        return discovering(
            _limited(plan, asked.privacy),
            name,
            always=column.always,
            nulls=LEFT_OUT if nulls is None else nulls,
            rest=result.rest,
            mechanism=result.mechanism,
        )
    except (TypeError, ValueError) as error:
        if not str(error).startswith(("always", "nulls")):
            raise
        with field_errors("columns", name):
            raise


def _without_uncounted(
    plan: Any, column: str, labels: list[Any], drop_nulls: bool, drop_unknown: bool
) -> Any:
    """Filter out the records that are not to be counted, which brings no two data sets further
    apart.
    """
    value = pl.col(name_in_plan(column))
    known = (
        value.cast(pl.String)
        .cast(pl.Enum([as_text(label) for label in labels]), strict=False)
        .is_not_null()
    )
    if drop_unknown:
        return plan.filter(known if drop_nulls else known | value.is_null())
    return plan.filter(value.is_not_null()) if drop_nulls else plan


def _limited(plan: Any, privacy: Privacy) -> Any:
    limit = privacy.rows_per_identifier
    return plan if limit is None else plan.truncate_per_group(limit)


def _merged(
    asked: Specification,
    result: Result,
    labels: dict[str, list[Any]],
    *policies: dict[str, Any],
) -> Any:
    """Find what a result merges: categories by new labels. So many neighbours are named as the
    report names them, and a new label of nulls or other values is alone.
    """
    if not isinstance(result.merge, int):
        return result.merge
    (name,) = result.columns
    names = [named(asked.columns[name], value) for value in labels[name]]
    width, own = result.merge, labels[name]
    merge: dict[Any, list[Any]] = {
        group: own[at * width : (at + 1) * width]
        for at, group in enumerate(neighbours(names, width))
    }
    new = [given[name] for given in policies if given[name] is not None]
    return merge | {label: [label] for label in new if place_of(label, own) is None}


def _categories(
    name: str, column: Column, known: ColumnKind, asked: Specification, result: Result
) -> list[Any]:
    """The categories that the specification or the type of the column names."""
    if column.listed is None and known.declared is None and known.kind != "boolean":
        needs = "" if asked.privacy.delta else "; that needs delta under [privacy], such as 1e-8"
        alone = result.used == [name] and asked.privacy.size is None and not asked.joint
        discover = f"; or where nobody can, write categories = {DISCOVER!r}{needs}"
        raise FieldError(
            ("columns", name, "categories"),
            f"is missing; a column of type {known.type} does not say publicly which there are. List"
            " all of them, from what is public and not from the data"
            f"{discover if alone else ''}.",
        )
    try:
        return list(public_values(name, known, column.listed))
    except (TypeError, ValueError) as error:
        problem = str(error).removeprefix("categories")
        raise FieldError(("columns", name, "categories"), problem) from None


def _policies(
    name: str, column: Column, categories: list[Any], covered: bool
) -> tuple[Label | None, Label | None]:
    """Labels under which nulls and other values are counted: None where they are left out or,
    `covered` by the categories, cannot occur. Raises `FieldError` for a new category that reads
    like another.
    """
    labels, nulls, unknown = list(categories), column.counted_nulls, column.counted_unknown
    for field, label in (("nulls", nulls), ("unknown", unknown)):
        if label is not None and place_of(label, labels) is None:
            with field_errors("columns", name):
                check_new(field, label, labels)
            labels.append(label)
    return nulls, unknown if covered or column.own_unknown is None else column.own_unknown


def _check_counts_all(asked: Specification, name: str, nulls: bool, unknown: bool) -> None:
    """Raise `FieldError` where records would be left out."""
    public = asked.privacy.size is not None
    reason = "number of records is public" if public else "tables are of the same records"
    column = asked.columns[name]
    for field, given, counted, kind, label in (
        ("nulls", column.nulls, nulls, "without a value", "missing"),
        ("unknown", column.unknown, unknown, "with a value that is no category", "other"),
    ):
        if not counted:
            problem = f"={DROP!r}: leaves records out" if given == DROP else "is missing"
            raise FieldError(
                ("columns", name, field),
                f"{problem}; the {reason}, so those {kind} are counted too. Name a category for"
                f" them, such as {field} = {label!r}.",
            )


def labelled_by_type(found: Source, asked: Specification) -> Iterator[str]:
    """Yield a sentence on the columns whose labels the file brings along, for whoever knows whether
    they are public, and on each whose name another one nearly has.
    """
    schema, columns = schema_of(found), labelled(asked)
    for name in columns:
        if any(twins([name, other]) for other in schema):
            yield f"{name!a}: it and another column of {found.name} {DIFFER}."
    columns = [name for name in columns if not asked.columns[name].discovered]
    enums = [name for name in columns if kind_of(schema[name]).declared is not None]
    if enums:
        yield (
            f"The labels of {listed(enums, 'and')} are public because {found.name} has them in a"
            " type, Enum; an Enum that was made from the data is the data, which this would release"
            " as it is."
        )
    book, labels = codebook(found), found.cleaning.labels
    where = labels if isinstance(labels, str) else found.name
    if coded := [name for name in columns if name in book]:
        yield (
            f"The value labels of {listed(coded, 'and')} are public because {where} has them,"
            " as facts of its code book; where they were made from the data, this would release"
            " them as they are."
        )
