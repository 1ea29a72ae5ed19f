"""Rules of a specification that no single field shows, and no library checks."""

from collections.abc import Iterable, Iterator, Sequence

from opendp_bayes_office.files.encodings import check_text
from opendp_bayes_office.report.field_errors import FieldError
from opendp_bayes_office.report.specification import DROP, Column, Result, Specification

#: Whether something is wrong, where, as the steps to it, and what it must be.
Rule = tuple[bool, Sequence[str | int], str]
_LISTED = "is for categories that are listed. Leave it out."
_JOINT = "does not go with joint, which estimates all results together. Leave it out."
_POOLED = "does not go with pooled, which learns how alike the groups are. Leave it out."


def check(specification: Specification) -> None:
    """Raise `ValueError` for the first problem."""
    check_text(specification.separator, specification.encoding)
    refuse(_rules(specification))


def refuse(rules: Iterable[Rule]) -> None:
    """Raise `FieldError` for the first rule that is broken."""
    for is_wrong, path, problem in rules:
        if is_wrong:
            raise FieldError(path, problem)


def _rules(specification: Specification) -> Iterator[Rule]:
    privacy = specification.privacy
    yield from (
        (
            (privacy.epsilon is None) == (privacy.rho is None),
            ("privacy",),
            "must have epsilon or rho, and not both, such as epsilon = 1.0, or --epsilon 1.",
        ),
        (
            (privacy.identifier is None) != (privacy.rows_per_identifier is None),
            ("privacy",),
            "identifier and rows_per_identifier go together; give both, or neither.",
        ),
        (
            privacy.identifier is not None and privacy.size is not None,
            ("privacy", "size"),
            "does not go with an identifier: how many rows are kept of each is private. Leave it"
            " out.",
        ),
    )
    for column, stated in specification.columns.items():
        for is_wrong, field, problem in _rules_of_column(stated, specification):
            yield is_wrong, ("columns", column, *field), problem
    headings = [result.heading for result in specification.results]
    for number, result in enumerate(specification.results):
        yield (
            result.heading in headings[:number],
            ("results", number, "title"),
            f"={result.heading!r}: is there already; give it another title.",
        )
        for is_wrong, field, problem in _rules_of_result(result, specification):
            yield is_wrong, ("results", number, *field), problem


def _rules_of_column(column: Column, specification: Specification) -> Iterator[Rule]:
    categories, codes, labels = column.listed or [], specification.codes(column), column.labels
    for field, values in column.named.items():
        for value in values:
            yield (
                value in codes and field in ("categories", "always", "recode"),
                (field,),
                f"{value!r} is also in null_values, by which it is no value; leave it out of one of"
                " them.",
            )
            yield (
                specification.trim and value != value.strip(),
                (field,),
                f"{value!r}: has blanks around it, which trim leaves out of the file; write"
                f" {value.strip()!r}.",
            )
    counted = [*categories, column.counted_nulls, column.counted_unknown]
    for value, label in column.recoded.items():
        yield (
            value in categories or (column.listed is not None and label not in counted),
            ("recode",),
            f"{{{value!r}: {label!r}}}: must lead from a value that is no category to one, or to"
            " the label of nulls or unknown.",
        )
    yield from (
        (
            labels is not None and not len(labels) == len(set(labels)) == len(categories),
            ("labels",),
            "must be one for each of categories, all different.",
        ),
        (column.discovered and column.unknown is not None, ("unknown",), _LISTED),
        (
            bool(column.always) and not column.discovered,
            ("always",),
            "goes with categories to discover. Leave it out.",
        ),
    )


def _rules_of_result(result: Result, specification: Specification) -> Iterator[Rule]:
    for column in result.used:
        field = "by" if column == result.by else "column"
        yield (
            column not in specification.columns,
            (field,),
            f"{column!r} is not under columns; add a table [columns.{column}].",
        )
        yield (
            column == specification.privacy.identifier,
            (field,),
            f"{column!r} is the identifier; count another column.",
        )
    columns = {column: specification.columns[column] for column in result.used}
    discovered, joint = any(column.discovered for column in columns.values()), specification.joint
    has_prior, by = result.prior not in ("auto", 1), result.by is not None
    yield from (
        (discovered and by, ("by",), _LISTED),
        (discovered and result.ordered is not None, ("ordered",), _LISTED),
        (discovered and result.merge is not None, ("merge",), _LISTED),
        (discovered and result.prior != "auto", ("prior",), _LISTED),
        (discovered and (joint or len(result.columns) > 1), ("column",), _LISTED),
        (
            discovered and specification.privacy.size is not None,
            ("column",),
            "has categories to discover, for a number of records that is private. Leave size out.",
        ),
        (
            result.rest is not None and not discovered,
            ("rest",),
            "goes with categories to discover. Leave it out.",
        ),
        (joint and by, ("by",), _JOINT),
        (joint and has_prior, ("prior",), _JOINT),
        (result.pooled and has_prior, ("prior",), _POOLED),
        (
            result.pooled and not by,
            ("pooled",),
            "is for groups; name their column, as in by = 'region'.",
        ),
        (
            result.merge is not None and by,
            ("merge",),
            "does not go with by; merge cells of their joint table.",
        ),
        (
            isinstance(result.merge, int) and len(result.columns) > 1,
            ("merge",),
            f"={result.merge}: is for one column; list the cells of each new label.",
        ),
    )
    for column in result.columns:
        stated = columns[column]
        yield (
            joint
            and specification.privacy.size is None
            and (stated.counted_nulls is None or stated.unknown == DROP),
            ("column",),
            f"={column!r}: leaves records out, and joint takes tables of the same records; under"
            f" [columns.{column}], of the owner's file if there is one, name a category for them,"
            " such as nulls = 'missing', and leave out unknown = 'DROP'.",
        )
