"""`OwnerFile`: the facts of data that only their owner states, and the questions they allow.

Somebody who asks may choose columns, categories among those of the owner, budgets and mechanisms up
to what the owner allows. All else that a question says must be what the owner says, or be left out.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from opendp_bayes.mathematics.telling import told
from opendp_bayes.mechanisms.registry import BUILT_IN
from opendp_bayes.release_format.labels import distinct
from opendp_bayes.trusted.account import Loss
from opendp_bayes.unlisted.thresholds import LAWS
from opendp_bayes_office.files.encodings import as_encoding
from opendp_bayes_office.report.field_errors import FieldError
from opendp_bayes_office.report.specification import (
    DISCOVER,
    NULL_VALUES,
    RECODE,
    Number,
    Part,
    Reading,
    Rows,
    Share,
    Specification,
    Value,
    Values,
    as_text,
    says,
)
from opendp_bayes_office.report.statements import cleaning_said

_AtMost = Annotated[float, msgspec.Meta(gt=0)]
#: Mechanisms that every question may name.
_BUILT_IN = ("auto", *(kind.name for kind in BUILT_IN), *LAWS)


class OwnersPrivacy(Part, frozen=True, kw_only=True):
    """The people behind the data, as only the owner knows them."""

    unit: Annotated[str, says("Whom or what a privacy unit is, in words.")] = "one record"
    contributions: Annotated[Rows, says("The most records, or identifiers, of one unit.")] = 1
    identifier: Annotated[str | None, says("The column that says whose a record is.")] = None
    most_rows_per_identifier: Annotated[
        Rows | None, says("The most records of an identifier that a question may keep.")
    ] = None
    size: Annotated[Number | None, says("The number of records, if it is public.")] = None


class OwnersColumn(Part, frozen=True, kw_only=True):
    """A column that may be asked for."""

    categories: Annotated[
        Values | None,
        says(
            "All categories; an Enum or Boolean column has its own. With discover, those that a"
            " question may name."
        ),
    ] = None
    discover: Annotated[
        bool,
        says(
            "Whether a question may have the values discovered that are in the column, and named"
            " in a release; needs delta_at_most."
        ),
    ] = False
    nulls: Annotated[Value | None, says("Where records without a value are counted.")] = None
    recode: Annotated[dict[str, Value], RECODE] = msgspec.field(default_factory=dict)
    null_values: Annotated[list[str | int], NULL_VALUES] = msgspec.field(default_factory=list)


class OwnersLedger(Part, frozen=True, kw_only=True):
    """The ledger in which every answer is entered, and every answer that failed."""

    path: Annotated[str, says("The file, from the folder of this one; it is made if need be.")]
    total: Annotated[Loss, says("What may be spent in all: epsilon or rho, and delta.")]
    dataset: Annotated[str | None, says("The name of the data in the ledger.")] = None


class OwnerFile(Reading, frozen=True, kw_only=True):
    """Facts of a file with data. No question may state them otherwise; a measure of loss without a
    most is not allowed at all.
    """

    path: Annotated[str, says("The file with the data, from the folder of this one.")]
    plugins: Annotated[
        list[str], says("Mechanisms of installed plugins that a question may name.")
    ] = msgspec.field(default_factory=list)
    epsilon_at_most: Annotated[_AtMost | None, says("The most ε of one run.")] = None
    rho_at_most: Annotated[_AtMost | None, says("The most ρ of one run.")] = None
    delta_at_most: Annotated[Share | None, says("The most δ of one run.")] = None
    privacy: OwnersPrivacy
    columns: Annotated[dict[str, OwnersColumn], says("Columns that may be asked for, by name.")]
    ledger: OwnersLedger


def problems_of_owner(owner: OwnerFile) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the problems of an owner's file that no single field shows."""
    privacy, total = owner.privacy, owner.ledger.total
    if (privacy.identifier is None) != (privacy.most_rows_per_identifier is None):
        yield (
            ("privacy",),
            "identifier and most_rows_per_identifier go together: give both, or neither.",
        )
    if privacy.identifier is not None and privacy.size is not None:
        yield ("privacy", "size"), "does not go with an identifier. Leave it out."
    if owner.epsilon_at_most is None and owner.rho_at_most is None:
        yield (), "must have epsilon_at_most or rho_at_most, such as epsilon_at_most = 1.0."
    if not (total.is_sound and total.value > 0):
        yield ("ledger", "total"), "must be of epsilon or rho, as in total = { epsilon = 3.0 }."
    for name in ("epsilon_at_most", "rho_at_most"):
        if getattr(owner, name) == math.inf:
            yield (name,), "=inf: must be finite, such as 1.0."
    for name, column in owner.columns.items():
        if name == privacy.identifier:
            yield ("columns", name), "is the identifier, which is never counted. Leave it out."
        if len(distinct(column.categories or ())) < len(column.categories or ()):
            yield ("columns", name, "categories"), "must all be different."
        if column.discover and not total.delta:
            yield ("ledger", "total"), "must have delta, such as 1e-7, where discover is allowed."
        if column.discover and owner.delta_at_most is None:
            yield (
                ("columns", name, "discover"),
                "needs delta_at_most, without which nothing is discovered, such as delta_at_most ="
                " 1e-8.",
            )


def answered(document: Mapping[str, Any], owner: OwnerFile) -> dict[str, Any]:
    """The document of a question, of a `Specification`'s fields and types, with the owner's facts
    in it.

    Raises
    ------
    FieldError
        For what only the owner may state, or allows nobody.
    """
    made: dict[str, Any] = {**document, "privacy": dict(document["privacy"])}
    privacy, columns = made["privacy"], dict(document.get("columns", {}))
    for name in ("epsilon", "rho", "delta"):
        _check_at_most(name, privacy.get(name), getattr(owner, f"{name}_at_most"))
    if made.get("encoding") and owner.encoding:
        with suppress(ValueError):  # of another name for the same, such as latin1 for latin-1
            if as_encoding(made["encoding"]) == as_encoding(owner.encoding):
                made["encoding"] = owner.encoding
    for name in Reading.__struct_fields__:
        _agree(made, (name,), getattr(owner, name))
    for name in ("unit", "contributions", "identifier", "size"):
        _agree(privacy, ("privacy", name), getattr(owner.privacy, name))
    rows, most = privacy.get("rows_per_identifier"), owner.privacy.most_rows_per_identifier
    _check_at_most("rows_per_identifier", rows, most)
    if rows is None and most is not None:
        privacy["rows_per_identifier"] = most
    for name, path in _columns_of(document):
        if name not in owner.columns:
            listed = ", ".join(map(repr, owner.columns)) or "none"
            raise FieldError(
                path, f"={name!r}: may not be asked for; the owner of the data lists {listed}."
            )
        columns[name] = _column(name, dict(columns.get(name, {})), owner.columns[name])
    allowed = (*_BUILT_IN, *owner.plugins)
    for number, result in enumerate(document["results"]):
        if (mechanism := result.get("mechanism", "auto")) not in allowed:
            raise FieldError(
                ("results", number, "mechanism"),
                f"={told(mechanism)}: may not be asked for; the owner of the data allows"
                f" {', '.join(allowed)}.",
            )
    return {**made, "columns": columns}


def facts(question: Specification, owner: OwnerFile) -> Iterator[tuple[str, str, str]]:
    """Yield each fact behind a question that was `answered`, its value, and who states it."""
    privacy, mine, asked = owner.privacy, "owner", "question"
    yield "file", owner.path, mine
    yield "separator", owner.separator or "as its extension says", mine
    yield "encoding", owner.encoding or "utf-8", mine
    for said in cleaning_said(question):
        yield "reading", said, mine
    yield "unit", privacy.unit, mine
    yield "contributions", str(privacy.contributions), mine
    if privacy.identifier is not None:
        yield "identifier", privacy.identifier, mine
        yield "rows per identifier", str(question.privacy.rows_per_identifier), asked
        yield "at most", str(privacy.most_rows_per_identifier), mine
    yield "number of records", "private" if privacy.size is None else str(privacy.size), mine
    for name, column in question.columns.items():
        own = owner.columns[name].categories
        who = mine if own is None or column.categories == own else asked
        if column.discovered:
            yield f"categories of {name}", "to be discovered", asked
            yield f"{name} may be discovered", "yes", mine
            for label in column.always:
                yield f"always shown of {name}", str(label), asked
            continue
        listed = ["those of its type"] if column.listed is None else column.listed
        yield f"categories of {name}", ", ".join(map(str, listed)), who
    for name in ("epsilon", "rho", "delta"):
        if (value := getattr(question.privacy, name)) is not None:
            yield name, repr(value), asked
            yield "at most", repr(getattr(owner, f"{name}_at_most")), mine
    mechanisms = dict.fromkeys(result.mechanism for result in question.results)
    yield "mechanisms", ", ".join(mechanisms), asked
    yield "ledger", f"{owner.ledger.path}, in all {owner.ledger.total}", mine


def _check_at_most(name: str, given: float | None, most: float | None) -> None:
    """Refuse more of something than the owner allows, which is none where nothing is said."""
    if given is None or (most is not None and given <= most):
        return
    allowed = f"must be at most {most!r}" if most is not None else "must be left out"
    raise FieldError(
        ("privacy", name), f"={given!r}: {allowed}, by the word of the owner of the data."
    )


def _agree(table: dict[str, Any], path: tuple[str, ...], own: Any) -> None:
    """Put an owner's fact into a table; refuse another one there."""
    given = table.pop(path[-1], None)
    if given is not None and (own is None or as_text(given) != as_text(own)):
        same = "" if own is None else f", or write {own!r} as the owner does"
        raise FieldError(
            path, f"={given!r}: is for the owner of the data to state; leave it out{same}."
        )
    if own is not None:
        table[path[-1]] = own


def _columns_of(document: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Every column that a question names, and the field in which it does."""
    for name in document.get("columns", {}):
        yield name, ("columns", name)
    for number, result in enumerate(document["results"]):
        named = result["column"]
        for name in [named] if isinstance(named, str) else named:
            yield name, ("results", number, "column")
        if result.get("by") is not None:
            yield result["by"], ("results", number, "by")


def _column(name: str, asked: dict[str, Any], owner: OwnersColumn) -> dict[str, Any]:
    """A column of a question, with the owner's facts; its categories may be some of the owner's."""
    _agree(asked, ("columns", name, "nulls"), owner.nulls)
    _agree(asked, ("columns", name, "null_values"), owner.null_values)
    given = _asked_of(name, asked.get("categories"), owner)
    if given == DISCOVER:
        asked["always"] = _asked_of(name, asked.get("always", []), owner, "always")
        _agree(asked, ("columns", name, "recode"), owner.recode)
        return asked
    # What is recoded to a category that was not asked for is another value, as that one is.
    counted = {as_text(label) for label in (*(given or ()), owner.nulls) if label is not None}
    recode = {value: new for value, new in owner.recode.items() if as_text(new) in counted}
    _agree(asked, ("columns", name, "recode"), recode)
    return asked if given is None else {**asked, "categories": given}


def _asked_of(
    name: str, given: Any, owner: OwnersColumn, field: str = "categories"
) -> list[Any] | str | None:
    """The categories of a column that are asked for, all of the owner's unless some are given; or
    that they are to be discovered, where the owner allows that.
    """
    path = ("columns", name, field)
    if given is None:
        return owner.categories
    if given == DISCOVER:
        if not owner.discover:
            raise FieldError(
                path,
                f"={DISCOVER!r}: may not be asked for; the owner of the data does not let the"
                f" values of {name} be discovered.",
            )
        return DISCOVER
    if field == "categories" and owner.categories is None:
        raise FieldError(path, "are those of its type, as the owner says; leave them out.")
    own = {as_text(label): label for label in owner.categories or ()}
    for label in given:
        if as_text(label) not in own:
            raise FieldError(
                path, f"{told(label)} is not among those that the owner of the data lists."
            )
    return [own[as_text(label)] for label in given]
