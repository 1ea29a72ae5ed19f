"""`OwnerFile`: the facts of data that only their owner states, and the questions they allow.

Somebody who asks may choose columns, categories among those of the owner, budgets and mechanisms up
to what the owner allows. All else that a question says must be what the owner says, or be left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Annotated, Any

import msgspec

from opendp_bayes.trusted.account import Loss
from opendp_bayes_office.files.encodings import check_text
from opendp_bayes_office.files.reading import Part, Reading, Steps, Value, as_text, says
from opendp_bayes_office.report.checks import Rule, refuse
from opendp_bayes_office.report.field_errors import FieldError
from opendp_bayes_office.report.specification import (
    DISCOVER,
    Positive,
    Rows,
    Share,
    Unit,
    Values,
    texts,
)


class OwnersPrivacy(Unit, frozen=True, kw_only=True):
    """The people behind the data, as only the owner knows them."""

    most_rows_per_identifier: Annotated[
        Rows | None, says("The most records of an identifier that a question may keep.")
    ] = None


class OwnersColumn(Steps, frozen=True, kw_only=True):
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
    epsilon_at_most: Annotated[Positive | None, says("The most ε of one run.")] = None
    rho_at_most: Annotated[Positive | None, says("The most ρ of one run.")] = None
    delta_at_most: Annotated[Share | None, says("The most δ of one run.")] = None
    privacy: OwnersPrivacy
    columns: Annotated[dict[str, OwnersColumn], says("Columns that may be asked for, by name.")]
    ledger: OwnersLedger


def check_owner(owner: OwnerFile) -> None:
    """Raise `FieldError` for what no single field of an owner's file shows."""
    check_text(owner.separator, owner.encoding)
    privacy, total = owner.privacy, owner.ledger.total
    rules: tuple[Rule, ...] = (
        (
            (privacy.identifier is None) != (privacy.most_rows_per_identifier is None),
            ("privacy",),
            "identifier and most_rows_per_identifier go together: give both, or neither.",
        ),
        (
            owner.epsilon_at_most is None and owner.rho_at_most is None,
            (),
            "must have epsilon_at_most or rho_at_most, such as epsilon_at_most = 1.0.",
        ),
        (
            not (total.is_sound and total.value > 0),
            ("ledger", "total"),
            "must be of epsilon or rho, as in total = { epsilon = 3.0 }.",
        ),
        (
            privacy.identifier in owner.columns,
            ("columns", str(privacy.identifier)),
            "is the identifier, which is never counted. Leave it out.",
        ),
    )
    refuse(rules)


def answered(question: Mapping[str, Any], owner: OwnerFile) -> dict[str, Any]:
    """The document of a question, of a `Specification`'s fields and types, with the owner's facts
    in it.

    Raises
    ------
    FieldError
        For what only the owner may state, or allows nobody.
    """
    document: dict[str, Any] = {**question, "privacy": dict(question["privacy"])}
    privacy, columns = document["privacy"], dict(question.get("columns", {}))
    limits = {f: getattr(owner, f"{f}_at_most") for f in ("epsilon", "rho", "delta")}
    limits["rows_per_identifier"] = owner.privacy.most_rows_per_identifier
    for field, limit in limits.items():
        _check_at_most(field, privacy.get(field), limit)
    for field in Reading.__struct_fields__:
        _agree(document, (field,), getattr(owner, field))
    for field in Unit.__struct_fields__:
        _agree(privacy, ("privacy", field), getattr(owner.privacy, field))
    if privacy.get("rows_per_identifier") is None:
        privacy["rows_per_identifier"] = limits["rows_per_identifier"]
    for column, path in _columns_of(question):
        if column not in owner.columns:
            listed = ", ".join(map(repr, owner.columns)) or "none"
            raise FieldError(
                path, f"={column!r}: may not be asked for; the owner of the data lists {listed}."
            )
        columns[column] = _column(column, dict(columns.get(column, {})), owner.columns[column])
    refused = entry_points(group="opendp_bayes.mechanisms").names - set(owner.plugins)
    for number, result in enumerate(question["results"]):
        if (mechanism := result.get("mechanism")) in refused:
            raise FieldError(
                ("results", number, "mechanism"),
                f"={mechanism!r}: may not be asked for; it is of a plugin, of which the owner of"
                f" the data allows {', '.join(owner.plugins) or 'none'}.",
            )
    return {**document, "columns": columns}


def _check_at_most(field: str, value: float | None, limit: float | None) -> None:
    """Refuse more of something than the owner allows, which is none where nothing is said."""
    if value is None or (limit is not None and value <= limit):
        return
    allowed = f"must be at most {limit!r}" if limit is not None else "must be left out"
    raise FieldError(
        ("privacy", field), f"={value!r}: {allowed}, by the word of the owner of the data."
    )


def _agree(table: dict[str, Any], path: tuple[str, ...], fact: Any) -> None:
    """Put an owner's fact into a table; refuse another one there."""
    value = table.pop(path[-1], None)
    if value is not None and (fact is None or as_text(value) != as_text(fact)):
        same = "" if fact is None else f", or write {fact!r} as the owner does"
        raise FieldError(
            path, f"={value!r}: is for the owner of the data to state; leave it out{same}."
        )
    if fact is not None:
        table[path[-1]] = fact


def _columns_of(question: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Every column that a question names, and the field in which it does."""
    for column in question.get("columns", {}):
        yield column, ("columns", column)
    for number, result in enumerate(question["results"]):
        for field in ("column", "by"):
            columns = result.get(field) or ()
            for column in [columns] if isinstance(columns, str) else columns:
                yield column, ("results", number, field)


def _column(column: str, table: dict[str, Any], owner: OwnersColumn) -> dict[str, Any]:
    """A column of a question, with the owner's facts; its categories may be some of the owner's,
    all of them unless some are given.
    """
    path = ("columns", column)
    _agree(table, (*path, "nulls"), owner.nulls)
    _agree(table, (*path, "null_values"), owner.null_values)
    categories, recode = table.get("categories") or owner.categories, owner.recode
    if categories == DISCOVER:
        if not owner.discover:
            raise FieldError(
                (*path, "categories"),
                f"={DISCOVER!r}: may not be asked for; the owner of the data does not let the"
                f" values of {column} be discovered.",
            )
        _check_listed((*path, "always"), table.get("always", ()), owner)
    else:  # what leads to a category that was not asked for is another value, as that one is
        if owner.categories is None and categories is not None:
            raise FieldError(
                (*path, "categories"), "are those of its type, as the owner says; leave them out."
            )
        _check_listed((*path, "categories"), categories or (), owner)
        counted = texts(filter(None, [*(categories or ()), owner.nulls]))
        recode = {value: new for value, new in recode.items() if as_text(new) in counted}
    table["categories"] = categories
    _agree(table, (*path, "recode"), recode)
    return table


def _check_listed(path: tuple[str, ...], labels: Sequence[Any], owner: OwnersColumn) -> None:
    """Refuse labels that the owner does not list."""
    listed = texts(owner.categories or ())
    for label in labels:
        if as_text(label) not in listed:
            raise FieldError(
                path, f"{label!r} is not among those that the owner of the data lists."
            )
