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
from opendp_bayes_office.report.field_errors import FieldError
from opendp_bayes_office.report.specification import (
    DISCOVER,
    Rows,
    Share,
    Unit,
    Values,
    texts,
)

_AtMost = Annotated[float, msgspec.Meta(gt=0)]


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
    epsilon_at_most: Annotated[_AtMost | None, says("The most ε of one run.")] = None
    rho_at_most: Annotated[_AtMost | None, says("The most ρ of one run.")] = None
    delta_at_most: Annotated[Share | None, says("The most δ of one run.")] = None
    privacy: OwnersPrivacy
    columns: Annotated[dict[str, OwnersColumn], says("Columns that may be asked for, by name.")]
    ledger: OwnersLedger


def check_owner(owner: OwnerFile) -> None:
    """Raise `FieldError` for what no single field of an owner's file shows."""
    check_text(owner.separator, owner.encoding)
    privacy, total = owner.privacy, owner.ledger.total
    if (privacy.identifier is None) != (privacy.most_rows_per_identifier is None):
        raise FieldError(
            ("privacy",),
            "identifier and most_rows_per_identifier go together: give both, or neither.",
        )
    if owner.epsilon_at_most is None and owner.rho_at_most is None:
        raise FieldError(
            (), "must have epsilon_at_most or rho_at_most, such as epsilon_at_most = 1.0."
        )
    if not (total.is_sound and total.value > 0):
        raise FieldError(
            ("ledger", "total"), "must be of epsilon or rho, as in total = { epsilon = 3.0 }."
        )
    if privacy.identifier in owner.columns:
        raise FieldError(
            ("columns", str(privacy.identifier)),
            "is the identifier, which is never counted. Leave it out.",
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
    for name in Reading.__struct_fields__:
        _agree(made, (name,), getattr(owner, name))
    for name in Unit.__struct_fields__:
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
    refused = entry_points(group="opendp_bayes.mechanisms").names - set(owner.plugins)
    for number, result in enumerate(document["results"]):
        if (mechanism := result.get("mechanism")) in refused:
            raise FieldError(
                ("results", number, "mechanism"),
                f"={mechanism!r}: may not be asked for; it is of a plugin, of which the owner of"
                f" the data allows {', '.join(owner.plugins) or 'none'}.",
            )
    return {**made, "columns": columns}


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
        for field in ("column", "by"):
            named = result.get(field) or ()
            for name in [named] if isinstance(named, str) else named:
                yield name, ("results", number, field)


def _column(name: str, asked: dict[str, Any], owner: OwnersColumn) -> dict[str, Any]:
    """A column of a question, with the owner's facts; its categories may be some of the owner's,
    all of them unless some are given.
    """
    _agree(asked, ("columns", name, "nulls"), owner.nulls)
    _agree(asked, ("columns", name, "null_values"), owner.null_values)
    given, recode = asked.get("categories"), owner.recode
    if given == DISCOVER and not owner.discover:
        raise FieldError(
            ("columns", name, "categories"),
            f"={DISCOVER!r}: may not be asked for; the owner of the data does not let the values of"
            f" {name} be discovered.",
        )
    if given is None:
        asked["categories"] = owner.categories
    elif given != DISCOVER:
        _check_listed(name, "categories", given, owner)
    if given == DISCOVER:
        _check_listed(name, "always", asked.get("always", ()), owner)
    else:  # what leads to a category that was not asked for is another value, as that one is
        counted = texts(filter(None, [*(asked["categories"] or ()), owner.nulls]))
        recode = {value: new for value, new in recode.items() if as_text(new) in counted}
    _agree(asked, ("columns", name, "recode"), recode)
    return asked


def _check_listed(name: str, field: str, given: Sequence[Any], owner: OwnersColumn) -> None:
    """Refuse labels that the owner does not list."""
    if field == "categories" and owner.categories is None:
        raise FieldError(
            ("columns", name, field), "are those of its type, as the owner says; leave them out."
        )
    listed = texts(owner.categories or ())
    for label in given:
        if as_text(label) not in listed:
            raise FieldError(
                ("columns", name, field),
                f"{label!r} is not among those that the owner of the data lists.",
            )
