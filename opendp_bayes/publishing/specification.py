"""What a report is to release: a TOML file, its format and its errors, each with its line."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec

from opendp_bayes.publishing.lines import line_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Value = str | bool | int
#: Where something is wrong, as the steps to it, and what it must be.
Problem = tuple[tuple[str | int, ...], str]
_Positive = Annotated[float, msgspec.Meta(gt=0)]
_Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
_Number = Annotated[int, msgspec.Meta(ge=1)]
_Values = Annotated[list[Value], msgspec.Meta(min_length=1)]


def _says(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file."""


class Privacy(_Part, frozen=True, kw_only=True):
    """Whom the report protects, and with what budget for all results together."""

    unit: Annotated[str, _says("Whom or what a privacy unit is, in words.")] = "one record"
    epsilon: Annotated[_Positive | None, _says("Budget ε; either this or rho.")] = None
    rho: Annotated[_Positive | None, _says("Budget ρ of zero-concentrated privacy.")] = None
    delta: Annotated[_Share | None, _says("The δ that goes with ε or ρ.")] = None
    shares: Annotated[
        Literal["weights", "equal_errors", "smallest_error"],
        _says(
            "Divide the budget by the share of each result, or so that expected errors are equal,"
            " or their mean smallest."
        ),
    ] = "weights"
    size: Annotated[_Number | None, _says("The number of records, if it is public.")] = None
    guess_size: Annotated[
        _Number | None,
        _says("For shares by errors, a public guess of a private number of records."),
    ] = None
    contributions: Annotated[
        _Number, _says("The most records, or identifiers, of one unit. A promise.")
    ] = 1
    identifier: Annotated[str | None, _says("The column that says whose a record is.")] = None
    rows_per_identifier: Annotated[
        _Number | None, _says("Keep at most so many records of each identifier.")
    ] = None


class Column(_Part, frozen=True, kw_only=True):
    """A column, its categories, and where other values are counted."""

    categories: Annotated[
        _Values | None,
        _says("All categories, in order; an Enum or Boolean column has its own."),
    ] = None
    labels: Annotated[
        list[str] | None, _says("What the report calls the categories, in the same order.")
    ] = None
    nulls: Annotated[
        Value | None,
        _says("Where records without a value are counted; without it they are left out."),
    ] = None
    unknown: Annotated[
        Value | None, _says("Where other values are counted; without it they are left out.")
    ] = None


class Result(_Part, frozen=True, kw_only=True):
    """A posterior, or one for each group."""

    column: Annotated[
        str | list[str],
        _says("The column, described under `columns`; several are one joint table."),
    ]
    title: Annotated[str, _says("The heading; the column unless given.")] = ""
    text: Annotated[str, _says("A paragraph below the heading.")] = ""
    by: Annotated[
        str | None, _says("A posterior for each category of this column, also under `columns`.")
    ] = None
    prior: Annotated[
        float | list[float], _says("Prior concentration: one number, or one for each category.")
    ] = 1.0
    share: Annotated[_Positive, _says("Weight of the result in the budget.")] = 1.0
    mechanism: Annotated[str, _says("As for `posterior`.")] = "auto"

    @property
    def heading(self) -> str:
        """What the report calls the result."""
        columns = " × ".join(self.columns)
        return self.title or (columns if self.by is None else f"{columns} by {self.by}")

    @property
    def columns(self) -> list[str]:
        """The columns whose categories are counted."""
        return [self.column] if isinstance(self.column, str) else self.column


class Specification(_Part, frozen=True, kw_only=True):
    """What a report releases, of which columns, for whom and at what cost."""

    title: Annotated[str, _says("The title of the report.")]
    text: Annotated[str, _says("A paragraph below the title: where the data are from.")] = ""
    separator: Annotated[str | None, _says("Between the values of a line of CSV.")] = None
    privacy: Privacy
    columns: Annotated[dict[str, Column], _says("By name.")]
    results: Annotated[list[Result], _says("In the order of the report.")]


class SpecificationError(ValueError):
    """What is wrong in a specification, with its line."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a specification."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(Specification),
    }


def read_specification(text: str) -> Specification:
    """The specification in a TOML text.

    Raises `SpecificationError` that says in which line, which field, and what it must be.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # which knows the line
        raise SpecificationError(f"is not TOML: {error}") from None
    try:
        found = msgspec.convert(document, Specification)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        path = tuple(_steps(where.rstrip("`"), document))
        raise SpecificationError(_at(text, path, f"{what}.")) from None
    for path, problem in _problems(found):
        raise SpecificationError(_at(text, path, problem))
    return found


def _at(text: str, path: tuple[str | int, ...], problem: str) -> str:
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"line {line_of(text, path)}: {name.lstrip('.') or 'the file'}: {problem}"


def _steps(path: str, document: Any) -> Iterator[str | int]:
    """The steps of msgspec's path, `.results[0].prior`; its `[...]` is a key of a table, the first
    whose value is wrong there.
    """
    for step in path.replace("[", ".[").split(".[...]")[0].split("."):
        if step:
            yield int(step.strip("[]")) if step.startswith("[") else step
    if "[...]" in path:
        rest = path.split("[...]", 1)[1]
        yield from _key_of(document["columns"], rest)


def _key_of(columns: dict[str, Any], rest: str) -> Iterator[str]:
    for name, column in columns.items():
        try:
            msgspec.convert(column, Column)
        except msgspec.ValidationError:
            yield name
            yield from (step for step in rest.split("[")[0].split(".") if step)
            return


def _problems(found: Specification) -> Iterator[Problem]:
    """What no single field shows."""
    yield from _problems_of_privacy(found.privacy)
    if found.privacy.shares != "weights" and any(result.share != 1 for result in found.results):
        yield ("privacy", "shares"), "finds the shares; leave out share of the results."
    for key, column in found.columns.items():
        categories, labels = column.categories, column.labels
        if labels is not None and categories is None:
            problem = "needs categories, of which each has a label; list them, in the same order."
            yield ("columns", key, "labels"), problem
        elif labels is not None and len(labels) != len(categories or ()):
            yield ("columns", key, "labels"), "must be one for each of categories."
        if labels is not None and len(set(labels)) < len(labels):
            yield ("columns", key, "labels"), "must all be different."
    for number, result in enumerate(found.results):
        for field, problem in _problems_of_result(result, found.columns):
            yield ("results", number, field), problem
    if not found.results:
        yield ("results",), "must have at least one; add a table [[results]]."
    headings = [result.heading for result in found.results]
    for number, heading in enumerate(headings):
        if heading in headings[:number]:
            yield ("results", number), f"{heading!r} is there already; give it another title."


def _problems_of_privacy(privacy: Privacy) -> Iterator[Problem]:
    if (privacy.epsilon is None) == (privacy.rho is None):
        yield ("privacy",), "must have epsilon or rho, and not both, such as epsilon = 1.0."
    if (privacy.identifier is None) != (privacy.rows_per_identifier is None):
        yield ("privacy",), "identifier and rows_per_identifier need each other."
    if privacy.identifier is not None and privacy.size is not None:
        yield (
            ("privacy", "size"),
            "does not go with an identifier: how many rows are kept of each is private. Leave it"
            " out.",
        )
    needs_guess = privacy.shares != "weights" and privacy.size is None
    if (privacy.guess_size is not None) != needs_guess:
        yield (
            ("privacy",),
            "guess_size goes with shares by errors and a private number of records; they need it.",
        )


def _problems_of_result(result: Result, columns: dict[str, Column]) -> Iterator[tuple[str, str]]:
    """Each with its field."""
    fields = dict.fromkeys(result.columns, "column")
    if result.by is not None:
        fields[result.by] = "by"
    for name, field in fields.items():
        if name not in columns:
            yield field, f"{name!r} is not under columns; add a table [columns.{name}]."
    if not result.columns or len(set(result.columns)) < len(result.columns):
        yield "column", "must name at least one column, and each once."
    if result.by in result.columns:
        yield "by", "must be another column."
